//! What counts cost under assumptions.

use filemap_job::{Record, Run};
use serde_json::Value;

/// Constants that were not published. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Assumptions {
    /// From a request to its first byte.
    pub latency_ns: f64,
    /// Bytes a nanosecond, which are GB a second.
    pub bandwidth: f64,
    /// An access to a mapped page, which every call is too.
    pub touch_ns: f64,
    /// A call that finds its translation.
    pub call_ns: f64,
    /// What a translation costs that only the second level of the TLB has.
    pub second_ns: f64,
    /// A walk of the page tables.
    pub walk_ns: f64,
    /// One try of a fault.
    pub fault_ns: f64,
    /// A page added to the cache.
    pub add_page_ns: f64,
}

/// What one phase counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls made.
    pub calls: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Pages read.
    pub pages: u64,
    /// Major faults.
    pub major: u64,
    /// Minor faults.
    pub minor: u64,
    /// Windows read.
    pub windows: u64,
    /// Those of them that a mark asked for.
    pub in_advance: u64,
    /// Calls that missed the first level of the TLB.
    pub misses: u64,
    /// Those of them that walked the page tables.
    pub walks: u64,
}

impl Counts {
    /// What `run` counted.
    pub fn of(run: &Run) -> Counts {
        let counters = run.counters;
        let count = |value: Option<u64>| value.unwrap_or(0);
        Counts {
            calls: count(counters.accesses),
            bytes: count(counters.bytes_read),
            pages: count(counters.data_pages_read),
            major: count(counters.major_faults),
            minor: count(counters.minor_faults),
            windows: count(counters.readahead_calls),
            in_advance: count(counters.async_readahead),
            misses: count(counters.itlb_misses),
            walks: count(counters.itlb_walks),
        }
    }

    /// What was counted since `before`.
    pub fn since(self, before: Counts) -> Counts {
        Counts {
            calls: self.calls - before.calls,
            bytes: self.bytes - before.bytes,
            pages: self.pages - before.pages,
            major: self.major - before.major,
            minor: self.minor - before.minor,
            windows: self.windows - before.windows,
            in_advance: self.in_advance - before.in_advance,
            misses: self.misses - before.misses,
            walks: self.walks - before.walks,
        }
    }
}

impl Assumptions {
    /// Those of the profile that `record` was made with, on another device.
    pub fn of(record: &Record, latency_ns: f64, bandwidth: f64) -> Assumptions {
        let profile = record.environment.get("profile").cloned().unwrap_or(Value::Null);
        let number = |path: &str| profile.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        Assumptions {
            latency_ns,
            bandwidth,
            touch_ns: number("/cost/touch_ns"),
            call_ns: number("/itlb/call_ns"),
            second_ns: number("/itlb/second/hit_ns"),
            walk_ns: number("/itlb/walk_ns"),
            fault_ns: number("/cost/fault_ns"),
            add_page_ns: number("/cost/add_page_ns"),
        }
    }

    /// Milliseconds that `counts` take. A window that a fault waits for costs its latency, its
    /// transfer and what the processor does meanwhile; of one that is read in advance only the
    /// transfer remains, as long as that is the longest of the three.
    pub fn ms(&self, counts: &Counts) -> f64 {
        let of = |count: u64, ns: f64| count as f64 * ns;
        let processor = of(counts.calls, self.touch_ns + self.call_ns)
            + of(counts.misses - counts.walks, self.second_ns)
            + of(counts.walks, self.walk_ns)
            + of(2 * counts.major + counts.minor, self.fault_ns)
            + of(counts.pages, self.add_page_ns);
        let waited = counts.windows - counts.in_advance;
        let share = if counts.windows == 0 { 1.0 } else { waited as f64 / counts.windows as f64 };
        let device = of(waited, self.latency_ns) + counts.bytes as f64 / self.bandwidth;
        (device + share * processor) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of the cold phase on 64 KiB pages, and what the engine predicts for them on a
    /// device of 54 us and 1.3 GB/s.
    #[test]
    fn the_sum_is_near_what_the_engine_predicts() {
        let assumed = Assumptions {
            latency_ns: 54_000.0,
            bandwidth: 1.3,
            touch_ns: 5.0,
            call_ns: 40.0,
            second_ns: 3.0,
            walk_ns: 30.0,
            fault_ns: 700.0,
            add_page_ns: 60.0,
        };
        let whole = Counts { calls: 8192, bytes: 512 << 20, pages: 8192, ..Counts::default() };
        let small = Counts { major: 4096, minor: 4096, windows: 4096, ..whole };
        let small = Counts { misses: 8192, walks: 8192, ..small };
        let large = Counts { major: 1, minor: 128, windows: 129, in_advance: 128, ..whole };
        let large = Counts { misses: 256, walks: 256, ..large };
        for (counts, engine_ms) in [(small, 643.870_720), (large, 413.100_554)] {
            let sum = assumed.ms(&counts);
            assert!((sum / engine_ms - 1.0).abs() < 0.001, "{sum} for {engine_ms}");
        }
    }
}
