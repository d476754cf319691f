//! What the page cache holds.

use std::collections::BTreeMap;

use filemap_core::cache::PageCache;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::{Cached, Job};

/// Pages cached inside, between and outside what `job` maps.
pub fn cached(job: &Job, cache: &impl PageCache) -> Cached {
    let mut parts: Vec<(PageIndex, PageIndex)> = match &job.elf {
        Some(_) => {
            job.segments().iter().map(|part| (part.offset, part.offset + part.pages)).collect()
        }
        None => vec![(job.mapping.offset, job.mapping.offset + job.mapping.pages)],
    };
    parts.sort_unstable();
    let (mut inside, mut between) = (0, 0);
    let first = parts[0].0;
    let mut end = first;
    for (from, stop) in parts {
        if from > end {
            between += count(cache, end, from);
        }
        inside += count(cache, from.max(end), stop);
        end = end.max(stop);
    }
    Cached {
        inside: Some(inside),
        before: Some(count(cache, PageIndex(0), first)),
        after: Some(count(cache, end, PageIndex(job.file_pages().0))),
        between: job.elf.is_some().then_some(between),
    }
}

/// Cached pages of `from..end`.
fn count(cache: &impl PageCache, from: PageIndex, end: PageIndex) -> u64 {
    let mut next = from;
    let mut pages = 0;
    while next < end {
        let present = cache.next_present(next, end);
        next = cache.next_absent(present, end);
        pages += (next - present).0;
    }
    pages
}

/// How many folios of each order the first `pages` pages of the file are cached in.
pub fn folio_orders(cache: &impl PageCache, pages: PageCount) -> BTreeMap<Order, u64> {
    let mut orders = BTreeMap::new();
    let end = PageIndex(pages.0);
    let mut next = cache.next_present(PageIndex(0), end);
    while next < end {
        let folio = cache.folio(next).expect("a present page lies in a folio");
        *orders.entry(folio.order).or_default() += 1;
        next = cache.next_present(folio.end(), end);
    }
    orders
}
