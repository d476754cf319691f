//! Counters of a run, and the contents of its page cache.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;

use filemap_core::cache::FileCache;
use filemap_core::units::{Order, PageCount, PageIndex};
use filemap_job::program::MappedParts;
use filemap_job::{Cached, Counters};

use crate::tlb;

/// Counters of a run or a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Touches and reads.
    pub accesses: u64,
    /// Pages added to the page cache.
    pub pages_read: u64,
    /// Those among them in holes.
    pub hole_pages: u64,
    /// Bytes read from the device with O_DIRECT.
    pub direct_bytes: u64,
    /// PGMAJFAULT events.
    pub major_faults: u64,
    /// Faults counted as minor for the process.
    pub minor_faults: u64,
    /// Readahead windows.
    pub readahead_calls: u64,
    /// Windows of read-around.
    pub read_around: u64,
    /// Windows of async readahead.
    pub async_readahead: u64,
    /// Pages evicted or dropped from the cache.
    pub evicted_pages: u64,
    /// Maximum of `mmap_miss`.
    pub mmap_miss_max: u16,
    /// Times a fault dropped its lock for I/O.
    pub lock_drops: u64,
    /// Retries that missed the page cache again.
    pub retry_misses: u64,
    /// Second and later tries of faults, where tasks can wait for each other's locks.
    pub retries: u64,
    /// Tries whose VMA lock was refused.
    pub refused: u64,
    /// Times `mmap_lock` was taken for reading.
    pub shared: u64,
    /// Times a task waited for `mmap_lock`.
    pub waits: u64,
    /// Times a task was throttled above `memory.high`.
    pub throttled: u64,
    /// Instruction TLB misses.
    pub tlb: tlb::TlbCounts,
}

impl Tally {
    /// The counters of a record, without those not tracked here.
    pub fn counters(&self) -> Counters {
        Counters {
            accesses: Some(self.accesses),
            data_pages_read: Some(self.pages_read),
            major_faults: Some(self.major_faults),
            minor_faults: Some(self.minor_faults),
            readahead_calls: Some(self.readahead_calls),
            read_around: Some(self.read_around),
            async_readahead: Some(self.async_readahead),
            evicted_pages: Some(self.evicted_pages),
            mmap_miss_max: Some(self.mmap_miss_max.into()),
            retry_mmap_drop: Some(self.lock_drops),
            retry_io_miss: Some(self.retry_misses),
            ..Counters::default()
        }
    }

    /// Sum of both.
    pub fn plus(self, other: &Tally) -> Tally {
        Tally {
            accesses: self.accesses + other.accesses,
            pages_read: self.pages_read + other.pages_read,
            hole_pages: self.hole_pages + other.hole_pages,
            direct_bytes: self.direct_bytes + other.direct_bytes,
            major_faults: self.major_faults + other.major_faults,
            minor_faults: self.minor_faults + other.minor_faults,
            readahead_calls: self.readahead_calls + other.readahead_calls,
            read_around: self.read_around + other.read_around,
            async_readahead: self.async_readahead + other.async_readahead,
            evicted_pages: self.evicted_pages + other.evicted_pages,
            mmap_miss_max: self.mmap_miss_max.max(other.mmap_miss_max),
            lock_drops: self.lock_drops + other.lock_drops,
            retry_misses: self.retry_misses + other.retry_misses,
            retries: self.retries + other.retries,
            refused: self.refused + other.refused,
            shared: self.shared + other.shared,
            waits: self.waits + other.waits,
            throttled: self.throttled + other.throttled,
            tlb: self.tlb.plus(other.tlb),
        }
    }
}

/// Cached pages of a file, split into those inside, between and outside the `mapped` parts.
pub(crate) fn cached(mapped: &MappedParts, cache: &impl FileCache) -> Cached {
    let count =
        |pages: Range<PageIndex>| Ok::<_, Infallible>(cache.cached(pages.start, pages.end).0);
    match Cached::count_pages(mapped, count) {
        Ok(cached) => cached,
    }
}

/// Number of folios of each order that cache the first `pages` pages of the file.
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
