//! What a run counts.

/// What a run counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Touches and reads.
    pub accesses: u64,
    /// Pages added to the page cache.
    pub pages_read: u64,
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
}

impl Tally {
    /// What was counted since `before`; the highest value of the counter is that of the whole run.
    pub fn since(self, before: &Tally) -> Tally {
        Tally {
            accesses: self.accesses - before.accesses,
            pages_read: self.pages_read - before.pages_read,
            major_faults: self.major_faults - before.major_faults,
            minor_faults: self.minor_faults - before.minor_faults,
            readahead_calls: self.readahead_calls - before.readahead_calls,
            read_around: self.read_around - before.read_around,
            async_readahead: self.async_readahead - before.async_readahead,
            evicted_pages: self.evicted_pages - before.evicted_pages,
            mmap_miss_max: self.mmap_miss_max,
            lock_drops: self.lock_drops - before.lock_drops,
            retry_misses: self.retry_misses - before.retry_misses,
        }
    }
}
