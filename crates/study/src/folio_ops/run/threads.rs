//! Operations of several threads: children that copy their parent's pages.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread::{self, Builder};

use filemap_job::folio_ops::{
    MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_MAPCOUNT, PRECISE_OWNERS,
};
use filemap_job::{FolioOps, FolioOpsRun};
use filemap_kernel::clock::thread_cpu_ns;
use filemap_kernel::huge_pages::advise_huge_pages;
use filemap_mapcount::anon_cow::{AnonCow, WriteOrder};
use filemap_mapcount::folio_ops::Sample;
use filemap_mapcount::mm::Contents;
use filemap_mapcount::{Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners};

use super::memory_budget::{self, memory_pages, parent_pages};
use super::{TimedOperation, alternate, folio_order, sample};
use crate::error::{Error, reason};

/// Runs the operations with one scheme.
struct Scheme {
    name: &'static str,
    copy: fn(&CopySetup) -> Result<Vec<Sample>, Error>,
}

impl Scheme {
    const fn new<C: Mapcount>(name: &'static str) -> Scheme {
        Scheme { name, copy: copy::<C> }
    }
}

/// The schemes that threads may share; non-atomic counts would lose updates.
const SCHEMES: [Scheme; 4] = [
    Scheme::new::<PageMapcount>(PAGE_MAPCOUNT),
    Scheme::new::<MmOwner>(MM_OWNER),
    Scheme::new::<NoPageMapcount>(NO_PAGE_MAPCOUNT),
    Scheme::new::<PreciseOwners>(PRECISE_OWNERS),
];

/// What children copy, the same for all schemes.
struct CopySetup {
    contents: Arc<Contents>,
    /// Pages of the parent.
    pages: usize,
    order: Order,
    children: usize,
    order_of_writes: WriteOrder,
    /// Seed of random orders.
    seed: u64,
}

/// Adds a sample of each scheme to each of `runs`: `children` writing in parallel, after one
/// warm-up repeat. They and their parent share the memory of `job`.
pub fn time_children(
    job: &FolioOps,
    timed: TimedOperation,
    children: usize,
    runs: &mut [FolioOpsRun],
) -> Result<(), Error> {
    let all = memory_budget::pages(job)?;
    let random = timed.1 == Operation::AnonCowRand;
    let setup = CopySetup {
        contents: Arc::new(Contents::new(memory_pages(all, children), &mut advise_huge_pages)?),
        pages: parent_pages(all, children),
        order: folio_order(timed.0)?,
        children,
        order_of_writes: if random { WriteOrder::Random } else { WriteOrder::Sequential },
        seed: job.seed,
    };
    for turn in 0..=runs.len() {
        let samples = alternate(turn, SCHEMES.len(), |at| (SCHEMES[at].copy)(&setup))?;
        let Some(run) = turn.checked_sub(1).map(|at| &mut runs[at]) else { continue };
        let named = SCHEMES.iter().zip(samples);
        let pages = setup.pages as u64;
        run.cells
            .extend(named.map(|(scheme, samples)| sample(timed, scheme.name, &samples, pages)));
    }
    Ok(())
}

/// Runs the children. A time is the CPU time of the child's thread.
fn copy<C: Mapcount>(setup: &CopySetup) -> Result<Vec<Sample>, Error> {
    let CopySetup { contents, pages, order, children, order_of_writes, seed } = setup;
    let mut cow =
        AnonCow::<C>::with_contents(contents, *pages, *order, *children, &mut advise_huge_pages)?;
    let children = cow.children(*order_of_writes, *seed)?.into_iter();
    let writes = children.map(|mut child| move || (child.run(thread_cpu_ns), child)).collect();
    // No child exits before the last one has written, as on the kernel.
    let samples = run_together(writes, Builder::new)?;
    let (samples, _children): (Vec<_>, Vec<_>) = samples.into_iter().unzip();
    Ok(samples.into_iter().collect::<Result<_, _>>()?)
}

/// Runs each of `bodies` on its own thread, in parallel.
///
/// # Errors
/// A thread cannot be started; then none of `bodies` has run.
fn run_together<T: Send, F: FnOnce() -> T + Send>(
    bodies: Vec<F>,
    thread: impl Fn() -> Builder,
) -> Result<Vec<T>, Error> {
    let threads = bodies.len();
    let start = &Barrier::new(threads);
    thread::scope(|scope| {
        let spawn = |body: F| {
            let (go, waits) = channel::<()>();
            let body = move || {
                // Fails if another thread could not be started.
                waits.recv().ok()?;
                start.wait();
                Some(body())
            };
            thread().spawn_scoped(scope, body).map(|handle| (go, handle))
        };
        let started = bodies.into_iter().map(spawn).collect::<Result<Vec<_>, _>>();
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
    fn all_threads_run_at_the_same_time() {
        let meet = Barrier::new(3);
        let bodies = (0..3).map(|number| {
            let meet = &meet;
            move || (meet.wait(), number).1
        });
        assert_eq!(run_together(bodies.collect(), Builder::new).unwrap(), [0, 1, 2]);
    }

    /// Otherwise the started threads would wait for the missing one forever.
    #[test]
    fn no_thread_runs_where_one_cannot_be_started() {
        let (ran, started) = (AtomicUsize::new(0), Cell::new(0));
        let too_large = || {
            started.set(started.get() + 1);
            if started.get() == 3 { Builder::new().stack_size(1 << 60) } else { Builder::new() }
        };
        let bodies = vec![|| ran.fetch_add(1, Relaxed); 3];
        let error = run_together(bodies, too_large).unwrap_err();
        assert_eq!((error.exit_code(), ran.load(Relaxed)), (4, 0));
        assert_eq!(
            error.one_line(),
            "3 threads at once cannot be started: resource temporarily unavailable; raise the \
             limit of processes, or let filemap use fewer CPUs (taskset)"
        );
    }
}
