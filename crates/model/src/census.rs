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
            between += cache.cached(end, from).0;
        }
        inside += cache.cached(from.max(end).min(stop), stop).0;
        end = end.max(stop);
    }
    Cached {
        inside: Some(inside),
        before: Some(cache.cached(PageIndex(0), first).0),
        after: Some(cache.cached(end, PageIndex(job.file_pages().0)).0),
        between: job.elf.is_some().then_some(between),
    }
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
