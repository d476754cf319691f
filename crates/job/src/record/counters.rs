//! What engines count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// The counters of one run; `None` = the engine cannot see it.
pub type Counters = PerCounter<Option<u64>>;

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident, )+) => {
        /// One value for each counter, in the order of the record.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct PerCounter<T> {
            $( $(#[$doc])* pub $name: T, )+
        }

        impl<T> PerCounter<T> {
            /// The names, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Each name with its value, in order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
                [$((stringify!($name), &self.$name)),+].into_iter()
            }
        }

        impl Counters {
            /// What both counted: nothing where one of them does not say. Of a highest value it is
            /// the higher one.
            pub fn and(&self, other: &Counters) -> Counters {
                let sum = PerCounter {
                    $( $name: self.$name.zip(other.$name).map(|(one, other)| one + other), )+
                };
                let mmap_miss_max = self.mmap_miss_max.max(other.mmap_miss_max);
                // None is left out where nobody sleeps.
                let sleeps = [self.throttled, other.throttled];
                let throttled = sleeps.into_iter().flatten().reduce(|one, other| one + other);
                Counters { mmap_miss: None, mmap_miss_max, throttled, ..sum }
            }
        }

        impl PerCounter<Option<Spread>> {
            /// Each counter over the runs that saw it.
            pub(crate) fn summary(runs: &[Counters]) -> Self {
                PerCounter {
                    $( $name: Spread::of(runs.iter().filter_map(|run| run.$name)), )+
                }
            }
        }
    };
}

counters! {
    /// Accesses done.
    accesses,
    /// Pages of the file added to the page cache.
    data_pages_read,
    /// Bytes read from the device.
    bytes_read,
    /// The kernel's `PGMAJFAULT` events.
    major_faults,
    /// Faults that were not major.
    minor_faults,
    /// Readahead windows submitted, whatever began them.
    readahead_calls,
    /// Those of them that were read-around.
    read_around,
    /// Those of them that were asynchronous.
    async_readahead,
    /// Pages of the file that reclaim took from the page cache.
    evicted_pages,
    /// The file's `mmap_miss` at the end.
    mmap_miss,
    /// The highest value that it reached.
    mmap_miss_max,
    /// Faults that dropped their lock to wait, each once.
    retry_mmap_drop,
    /// Retries that found the folio gone.
    retry_io_miss,
    /// Rounds that threads have completed which repeat their phases: in all, of those whose rounds
    /// have accesses.
    rounds,
    /// Tries of faults that dropped their lock to wait: a fault can do so more than once. Every
    /// one of them arrives at the retry path.
    retry_arrival,
    /// Of the retries that found the folio gone, those that may not drop their lock again.
    retry_io_miss_tried,
    /// Tries of faults that could not have the lock of their VMA, and took `mmap_lock` instead.
    vma_lock_refused,
    /// Times that `mmap_lock` was taken to share it: by faults, and by calls that only look at what
    /// is mapped. Of a program of several threads.
    mmap_lock_shared,
    /// Times that a thread waited for `mmap_lock`, to share it or to have it alone. Of a program of
    /// several threads.
    mmap_lock_waits,
    /// Times that a task slept as it was above `memory.high`.
    throttled,
    /// Calls that missed the first level of the instruction TLB.
    itlb_misses,
    /// Those of them that walked the page tables.
    itlb_walks,
}
