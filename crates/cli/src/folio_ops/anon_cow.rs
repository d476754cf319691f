//! Children that copy what their parent has, each on a thread of its own.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread::{self, Builder};

use filemap_job::FolioOps;
use filemap_job::folio_ops::{
    FolioCell, MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_BYTES, PAGE_MAPCOUNT, PMD_BYTES,
    PRECISE_OWNERS,
};
use filemap_mapcount::anon_cow::{AnonCow, Pattern};
use filemap_mapcount::folio_ops::Sample;
use filemap_mapcount::mm::Contents;
use filemap_mapcount::{Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners};

use super::clock::{huge_pages, thread_ns};
use super::{Repeat, in_turn, order_of, room};
use crate::error::{Error, reason};

/// What the children of one way to count did.
type Samples = fn(&Setup) -> Result<Vec<Sample>, Error>;

/// The ways to count that threads may share. Counts that are not atomic lose updates.
const WAYS: [(&str, Samples); 4] = [
    (PAGE_MAPCOUNT, samples::<PageMapcount>),
    (MM_OWNER, samples::<MmOwner>),
    (NO_PAGE_MAPCOUNT, samples::<NoPageMapcount>),
    (PRECISE_OWNERS, samples::<PreciseOwners>),
];

/// What all ways to count have alike.
struct Setup {
    contents: Arc<Contents>,
    /// Pages of the parent.
    pages: usize,
    order: Order,
    children: usize,
    pattern: Pattern,
    /// Of the orders in which children write at random.
    seed: u64,
}

impl Setup {
    /// The memory of `job` is shared out among the parent and `children`.
    fn new(
        job: &FolioOps,
        (folio_bytes, operation): (u64, Operation),
        children: usize,
    ) -> Result<Setup, Error> {
        let all = room::pages(job)?;
        let (pages, needed) = (parent_pages(all, children), memory_pages(all, children));
        Ok(Setup {
            contents: Arc::new(Contents::new(needed, &mut huge_pages)?),
            pages,
            order: order_of(folio_bytes)?,
            children,
            pattern: match operation {
                Operation::AnonCowRand => Pattern::Random,
                _ => Pattern::Sequential,
            },
            seed: job.seed,
        })
    }
}

/// Pages of the parent, where it and `children` share `all` out.
fn parent_pages(all: usize, children: usize) -> usize {
    let pmd_pages = (PMD_BYTES / PAGE_BYTES) as usize;
    (all / pmd_pages / (children + 1)).max(1) * pmd_pages
}

/// Pages that the parent and `children` take then.
pub fn memory_pages(all: usize, children: usize) -> usize {
    // The way to count does not matter for the size.
    AnonCow::<MmOwner>::memory_pages(parent_pages(all, children), children)
}

/// Adds to each of `repeats` what `children`, who write at once, take for a page; one repeat more
/// warms up.
pub fn time(
    job: &FolioOps,
    (folio_bytes, operation): (u64, Operation),
    children: usize,
    repeats: &mut [Repeat],
) -> Result<(), Error> {
    let setup = Setup::new(job, (folio_bytes, operation), children)?;
    for turn in 0..=repeats.len() {
        let mut done = WAYS.map(|_| None);
        for way in in_turn(turn, WAYS.len()) {
            done[way] = Some(WAYS[way].1(&setup)?);
        }
        let Some(repeat) = turn.checked_sub(1).map(|at| &mut repeats[at]) else { continue };
        let named = WAYS.into_iter().zip(done.into_iter().flatten());
        repeat.cells.extend(named.map(|((counters, _), samples)| {
            let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>();
            FolioCell {
                folio_bytes,
                operation,
                counters: counters.to_string(),
                ns_per_page: sum(|sample| sample.time_ns) as f64
                    / (setup.pages * setup.children) as f64,
                copied: Some(sum(|sample| sample.copied as u64)),
                reused: Some(sum(|sample| sample.reused as u64)),
                locked_ns: None,
            }
        }));
    }
    Ok(())
}

/// What each child did. Their times are those of their threads.
fn samples<C: Mapcount>(setup: &Setup) -> Result<Vec<Sample>, Error> {
    let Setup { contents, pages, order, children, pattern, seed } = setup;
    let mut cow = AnonCow::<C>::with(contents, *pages, *order, *children, &mut huge_pages)?;
    let children = cow.children(*pattern, *seed)?.into_iter();
    let writes = children.map(|mut child| move || (child.run(thread_ns), child)).collect();
    // As on the kernel, no child ends before the last has written.
    let (samples, _children): (Vec<_>, Vec<_>) = at_once(writes, Builder::new)?.into_iter().unzip();
    Ok(samples.into_iter().collect::<Result<_, _>>()?)
}

/// Runs each of `bodies` on a thread, and begins when all threads are there.
///
/// # Errors
/// When one of them cannot be started. Then none of `bodies` has run.
pub fn at_once<T: Send, F: FnOnce() -> T + Send>(
    bodies: Vec<F>,
    thread: impl Fn() -> Builder,
) -> Result<Vec<T>, Error> {
    let threads = bodies.len();
    let begin = &Barrier::new(threads);
    thread::scope(|scope| {
        let start = |body: F| {
            let (go, told) = channel::<()>();
            let body = move || {
                // Nobody says so any more if not all could be started.
                told.recv().ok()?;
                begin.wait();
                Some(body())
            };
            thread().spawn_scoped(scope, body).map(|handle| (go, handle))
        };
        let started = bodies.into_iter().map(start).collect::<Result<Vec<_>, _>>();
        let (go, handles): (Vec<_>, Vec<_>) = started
            .map_err(|error| {
                Error::CannotRun(format!(
                    "{threads} threads at once cannot be started: {}; raise the limit of \
                     processes, or let filemap use fewer CPUs (taskset)",
                    reason(&error)
                ))
            })?
            .into_iter()
            .unzip();
        go.iter().for_each(|go| go.send(()).expect("each thread waits for it"));
        let ends = handles.into_iter().map(|handle| handle.join().expect("no count is wrong"));
        Ok(ends.map(|end| end.expect("each thread was told to go")).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn all_threads_run_at_once() {
        let meet = Barrier::new(3);
        let bodies = (0..3).map(|number| {
            let meet = &meet;
            move || (meet.wait(), number).1
        });
        assert_eq!(at_once(bodies.collect(), Builder::new).unwrap(), [0, 1, 2]);
    }

    /// Threads that are there would otherwise wait for the missing one for ever.
    #[test]
    fn no_thread_runs_where_one_cannot_be_started() {
        let (ran, started) = (AtomicUsize::new(0), Cell::new(0));
        let too_large = || {
            started.set(started.get() + 1);
            if started.get() == 3 { Builder::new().stack_size(1 << 60) } else { Builder::new() }
        };
        let bodies = vec![|| ran.fetch_add(1, Relaxed); 3];
        let error = at_once(bodies, too_large).unwrap_err();
        assert_eq!((error.exit_code(), ran.load(Relaxed)), (4, 0));
        assert_eq!(
            error.one_line(),
            "3 threads at once cannot be started: resource temporarily unavailable; raise the \
             limit of processes, or let filemap use fewer CPUs (taskset)"
        );
    }
}
