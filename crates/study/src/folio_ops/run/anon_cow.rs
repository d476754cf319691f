//! Children that copy what their parent has, each on a thread of its own.

use std::sync::Arc;
use std::thread::Builder;

use filemap_job::folio_ops::{
    MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_MAPCOUNT, PRECISE_OWNERS,
};
use filemap_job::{FolioOps, FolioOpsRun};
use filemap_kernel::clock::thread_cpu_ns;
use filemap_kernel::huge_pages::advise_huge_pages;
use filemap_mapcount::anon_cow::{AnonCow, Pattern};
use filemap_mapcount::folio_ops::Sample;
use filemap_mapcount::mm::Contents;
use filemap_mapcount::{Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners};

use super::at_once::at_once;
use super::memory_budget::{self, memory_pages, parent_pages};
use super::{Timed, cell, order_of, take_turns};
use crate::error::Error;

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

/// Adds to each of `runs` what `children`, who write at once, take for a page; one repeat more
/// warms up. The memory of `job` is shared out among them and their parent.
pub fn time(
    job: &FolioOps,
    timed: Timed,
    children: usize,
    runs: &mut [FolioOpsRun],
) -> Result<(), Error> {
    let all = memory_budget::pages(job)?;
    let random = timed.1 == Operation::AnonCowRand;
    let setup = Setup {
        contents: Arc::new(Contents::new(memory_pages(all, children), &mut advise_huge_pages)?),
        pages: parent_pages(all, children),
        order: order_of(timed.0)?,
        children,
        pattern: if random { Pattern::Random } else { Pattern::Sequential },
        seed: job.seed,
    };
    for turn in 0..=runs.len() {
        let done = take_turns(turn, WAYS.len(), |way| WAYS[way].1(&setup))?;
        let Some(run) = turn.checked_sub(1).map(|at| &mut runs[at]) else { continue };
        let named = WAYS.into_iter().zip(done);
        let pages = setup.pages as u64;
        run.cells
            .extend(named.map(|((counters, _), samples)| cell(timed, counters, &samples, pages)));
    }
    Ok(())
}

/// What each child did. Their times are those of their threads.
fn samples<C: Mapcount>(setup: &Setup) -> Result<Vec<Sample>, Error> {
    let Setup { contents, pages, order, children, pattern, seed } = setup;
    let mut cow = AnonCow::<C>::with(contents, *pages, *order, *children, &mut advise_huge_pages)?;
    let children = cow.children(*pattern, *seed)?.into_iter();
    let writes = children.map(|mut child| move || (child.run(thread_cpu_ns), child)).collect();
    // As on the kernel, no child ends before the last has written.
    let (samples, _children): (Vec<_>, Vec<_>) = at_once(writes, Builder::new)?.into_iter().unzip();
    Ok(samples.into_iter().collect::<Result<_, _>>()?)
}
