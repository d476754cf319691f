//! Children that copy what their parent has, each on a thread of its own.

use std::sync::Arc;
use std::thread::Builder;

use filemap_job::FolioOps;
use filemap_job::folio_ops::{
    FolioCell, MM_OWNER, NO_PAGE_MAPCOUNT, Operation, PAGE_MAPCOUNT, PRECISE_OWNERS,
};
use filemap_kernel::clock::thread_ns;
use filemap_kernel::huge_pages::huge_pages;
use filemap_mapcount::anon_cow::{AnonCow, Pattern};
use filemap_mapcount::folio_ops::Sample;
use filemap_mapcount::mm::Contents;
use filemap_mapcount::{Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners};

use super::at_once::at_once;
use super::memory_budget::{memory_pages, parent_pages};
use super::{Repeat, memory_budget, order_of, take_turns};
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

impl Setup {
    /// The memory of `job` is shared out among the parent and `children`.
    fn new(
        job: &FolioOps,
        (folio_bytes, operation): (u64, Operation),
        children: usize,
    ) -> Result<Setup, Error> {
        let all = memory_budget::pages(job)?;
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
        let done = take_turns(turn, WAYS.len(), |way| WAYS[way].1(&setup))?;
        let Some(repeat) = turn.checked_sub(1).map(|at| &mut repeats[at]) else { continue };
        let named = WAYS.into_iter().zip(done);
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
