//! Counters of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// The counters of one run; `None`: not visible to the engine.
pub type Counters = PerCounter<Option<u64>>;

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident, )+) => {
        /// One value per counter, in the order of the record.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct PerCounter<T> {
            $( $(#[$doc])* pub $name: T, )+
        }

        impl<T> PerCounter<T> {
            /// Names of the counters, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Names and values, in order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
                [$((stringify!($name), &self.$name)),+].into_iter()
            }
        }

        impl Counters {
            /// Sums up both, `None` if either is `None`. Maxima are combined to their maximum.
            pub fn and(&self, other: &Counters) -> Counters {
                let sum = PerCounter {
                    $( $name: self.$name.zip(other.$name).map(|(one, other)| one + other), )+
                };
                let mmap_miss_max = self.mmap_miss_max.max(other.mmap_miss_max);
                // A missing `throttled` means that no task slept.
                let sleeps = [self.throttled, other.throttled];
                let throttled = sleeps.into_iter().flatten().reduce(|one, other| one + other);
                Counters { mmap_miss: None, mmap_miss_max, throttled, ..sum }
            }
        }

        impl PerCounter<Option<Spread>> {
            /// The spread of each counter over the runs that have it.
            pub(crate) fn summary(runs: &[Counters]) -> Self {
                PerCounter {
                    $( $name: Spread::from_samples(runs.iter().filter_map(|run| run.$name)), )+
                }
            }
        }
    };
}

counters! {
    /// Number of accesses made.
    accesses,
    /// Pages of the file added to the page cache.
    data_pages_read,
    /// Bytes read from the device.
    bytes_read,
    /// Major faults (`PGMAJFAULT` events).
    major_faults,
    /// Minor faults.
    minor_faults,
    /// Number of readahead windows submitted, of any kind.
    readahead_calls,
    /// Number of those that were read-around.
    read_around,
    /// Number of those that were asynchronous.
    async_readahead,
    /// Pages of the file that reclaim evicted from the page cache.
    evicted_pages,
    /// `mmap_miss` of the file at the end.
    mmap_miss,
    /// Maximum of `mmap_miss` during the run.
    mmap_miss_max,
    /// Faults that dropped their lock to wait, each counted once.
    retry_mmap_drop,
    /// Retries that found the folio gone.
    retry_io_miss,
    /// Rounds completed by threads that repeat their phases, if the phases have accesses.
    rounds,
    /// Fault attempts that dropped their lock to wait, several per fault possible. Each of them
    /// arrives at the retry path.
    retry_arrival,
    /// Retries that found the folio gone and may not drop their lock again (`FAULT_FLAG_TRIED`).
    retry_io_miss_tried,
    /// Fault attempts that could not take the VMA lock and fell back to `mmap_lock`.
    vma_lock_refused,
    /// Times that `mmap_lock` was taken for reading, by faults and by calls that only inspect
    /// mappings. Only for programs with several threads.
    mmap_lock_shared,
    /// Times that a thread waited for `mmap_lock`, for reading or writing. Only for programs with
    /// several threads.
    mmap_lock_waits,
    /// Times that a task was throttled for exceeding `memory.high`.
    throttled,
    /// Calls that missed the first level of the instruction TLB.
    itlb_misses,
    /// Those that walked the page tables.
    itlb_walks,
}
