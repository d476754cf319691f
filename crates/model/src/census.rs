//! What the page cache holds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;

use filemap_core::cache::FileCache;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::Cached;
use filemap_job::program::MappedParts;

/// Pages of a file cached inside, between and outside what is `mapped` of it.
pub(crate) fn cached(mapped: &MappedParts, cache: &impl FileCache) -> Cached {
    let count =
        |pages: Range<PageIndex>| Ok::<_, Infallible>(cache.cached(pages.start, pages.end).0);
    match Cached::of(mapped, count) {
        Ok(cached) => cached,
    }
}

/// How many folios of each order the first `pages` pages of the file are cached in.
pub fn folio_orders(cache: &impl FileCache, pages: PageCount) -> BTreeMap<Order, u64> {
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
