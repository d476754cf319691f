//! What counts cost under assumptions.

use filemap_job::{Record, Run};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Constants that were not published. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Assumptions {
    /// From a request to its first byte.
    pub latency_ns: f64,
    /// Bytes a nanosecond, which are GB a second.
    pub bandwidth_gb_s: f64,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    pub calls: u64,
    pub bytes_read: u64,
    pub data_pages_read: u64,
    pub major_faults: u64,
    pub minor_faults: u64,
    /// Windows read.
    pub readahead_calls: u64,
    /// Those of them that a mark asked for.
    pub async_readahead: u64,
    /// Calls that missed the first level of the TLB.
    pub itlb_misses: u64,
    /// Those of them that walked the page tables.
    pub itlb_walks: u64,
}

impl Counts {
    /// What `run` counted beyond `before`.
    pub fn since(before: Counts, run: &Run) -> Counts {
        let counters = run.counters;
        let since = |value: Option<u64>, before: u64| value.unwrap_or(0) - before;
        Counts {
            calls: since(counters.accesses, before.calls),
            bytes_read: since(counters.bytes_read, before.bytes_read),
            data_pages_read: since(counters.data_pages_read, before.data_pages_read),
            major_faults: since(counters.major_faults, before.major_faults),
            minor_faults: since(counters.minor_faults, before.minor_faults),
            readahead_calls: since(counters.readahead_calls, before.readahead_calls),
            async_readahead: since(counters.async_readahead, before.async_readahead),
            itlb_misses: since(counters.itlb_misses, before.itlb_misses),
            itlb_walks: since(counters.itlb_walks, before.itlb_walks),
        }
    }
}

impl Assumptions {
    /// Those of the profile that `record` was made with, on another device.
    pub fn of(record: &Record, latency_ns: f64, bandwidth_gb_s: f64) -> Assumptions {
        let profile = record.environment.get("profile").cloned().unwrap_or(Value::Null);
        let number = |path: &str| profile.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        Assumptions {
            latency_ns,
            bandwidth_gb_s,
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
        let Counts { itlb_misses, itlb_walks, readahead_calls, async_readahead, .. } = *counts;
        let processor = of(counts.calls, self.touch_ns + self.call_ns)
            + of(itlb_misses.saturating_sub(itlb_walks), self.second_ns)
            + of(itlb_walks, self.walk_ns)
            + (2.0 * counts.major_faults as f64 + counts.minor_faults as f64) * self.fault_ns
            + of(counts.data_pages_read, self.add_page_ns);
        let waited = readahead_calls.saturating_sub(async_readahead);
        let share = if readahead_calls == 0 { 1.0 } else { waited as f64 / readahead_calls as f64 };
        let device = of(waited, self.latency_ns) + counts.bytes_read as f64 / self.bandwidth_gb_s;
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
            bandwidth_gb_s: 1.3,
            touch_ns: 5.0,
            call_ns: 40.0,
            second_ns: 3.0,
            walk_ns: 30.0,
            fault_ns: 700.0,
            add_page_ns: 60.0,
        };
        let whole = Counts { calls: 8192, bytes_read: 512 << 20, ..Counts::default() };
        let whole = Counts { data_pages_read: 8192, ..whole };
        let small =
            Counts { major_faults: 4096, minor_faults: 4096, readahead_calls: 4096, ..whole };
        let small = Counts { itlb_misses: 8192, itlb_walks: 8192, ..small };
        let large = Counts { major_faults: 1, minor_faults: 128, readahead_calls: 129, ..whole };
        let large = Counts { async_readahead: 128, itlb_misses: 256, itlb_walks: 256, ..large };
        for (counts, engine_ms) in [(small, 643.870_720), (large, 413.100_554)] {
            let sum = assumed.ms(&counts);
            assert!((sum / engine_ms - 1.0).abs() < 0.001, "{sum} for {engine_ms}");
        }
    }
}
