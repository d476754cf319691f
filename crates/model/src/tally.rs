//! What a run counts.

use filemap_job::Counters;

use crate::tlb;

/// What a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Touches and reads.
    pub accesses: u64,
    /// Pages added to the page cache.
    pub pages_read: u64,
    /// Bytes read past the page cache.
    pub direct_bytes: u64,
    /// PGMAJFAULT events.
    pub major_faults: u64,
    /// Faults that the process's own accounting counts as minor.
    pub minor_faults: u64,
    /// Windows asked for.
    pub readahead_calls: u64,
    /// Those that read around a fault.
    pub read_around: u64,
    /// Those that a mark asked for.
    pub async_readahead: u64,
    /// Pages that left the cache.
    pub evicted_pages: u64,
    /// Highest value of the counter of misses.
    pub mmap_miss_max: u16,
    /// Locks dropped for I/O.
    pub lock_drops: u64,
    /// Retries that found their page gone.
    pub retry_misses: u64,
    /// Tries that began after another one of their fault, where others can wait for their locks.
    pub retries: u64,
    /// Tries that could not have the lock of their VMA.
    pub refused: u64,
    /// Times that `mmap_lock` was taken to share it.
    pub shared: u64,
    /// Times that `mmap_lock` was waited for.
    pub waits: u64,
    /// Times that a task slept as it was above `memory.high`.
    pub throttled: u64,
    /// What calls counted in the instruction TLB.
    pub tlb: tlb::Counts,
}

impl Tally {
    /// As the counters of a record, without those that it does not know.
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

    /// What both counted together.
    pub fn with(self, other: &Tally) -> Tally {
        Tally {
            accesses: self.accesses + other.accesses,
            pages_read: self.pages_read + other.pages_read,
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
            tlb: self.tlb.with(other.tlb),
        }
    }
}
