//! Time of counted events under assumed costs.

use std::collections::BTreeMap;

use filemap_job::{Record, Run};
use serde_json::{Value, json};

/// Unpublished constants by name; times in nanoseconds.
pub struct Assumptions(pub BTreeMap<String, f64>);

/// Events of one phase by name.
#[derive(Default)]
pub struct PhaseCounts(BTreeMap<&'static str, u64>);

/// Name of each count, and its counter.
const COUNTER_NAMES: [(&str, &str); 9] = [
    ("calls", "accesses"),
    ("bytes_read", "bytes_read"),
    ("data_pages_read", "data_pages_read"),
    ("major_faults", "major_faults"),
    ("minor_faults", "minor_faults"),
    // Windows read, and those triggered by a marked folio.
    ("readahead_calls", "readahead_calls"),
    ("async_readahead", "async_readahead"),
    // Calls that missed the first-level TLB, and those that walked the page tables.
    ("itlb_misses", "itlb_misses"),
    ("itlb_walks", "itlb_walks"),
];

impl PhaseCounts {
    /// Counts of `run` in excess of `before`.
    pub fn since(before: &PhaseCounts, run: &Run) -> PhaseCounts {
        let counters = json!(run.counters);
        let since = |(name, counter)| {
            let all = counters.get(counter).and_then(Value::as_u64).unwrap_or(0);
            (name, all - before.count(name))
        };
        PhaseCounts(COUNTER_NAMES.into_iter().map(since).collect())
    }

    fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

impl Assumptions {
    /// Assumptions from the profile of `record`, with another device.
    pub fn from_record(record: &Record, latency_ns: f64, bandwidth_gb_s: f64) -> Assumptions {
        let profile = record.environment.get("profile").unwrap_or(&Value::Null);
        let number = |path: &str| profile.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        let all = [
            // Time to the first byte, and bytes for each nanosecond (GB/s).
            ("latency_ns", latency_ns),
            ("bandwidth_gb_s", bandwidth_gb_s),
            // An access to a mapped page (every call makes one), and a call with a TLB hit.
            ("touch_ns", number("/cost/touch_ns")),
            ("call_ns", number("/itlb/call_ns")),
            // A second-level TLB hit, and a walk.
            ("second_ns", number("/itlb/second/hit_ns")),
            ("walk_ns", number("/itlb/walk_ns")),
            // One attempt of a fault, and a page added to the cache.
            ("fault_ns", number("/cost/fault_ns")),
            ("add_page_ns", number("/cost/add_page_ns")),
        ];
        Assumptions(all.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    /// `counts` and their time in milliseconds.
    pub fn with_times(&self, counts: &PhaseCounts) -> Value {
        let mut value = json!(counts.0);
        value["predicted_ms"] = self.ms(counts).into();
        value
    }

    /// Time of `counts` in milliseconds. A synchronous window costs latency, transfer and processor
    /// time; an asynchronous one only the transfer, as long as that is the longest of the three.
    fn ms(&self, counts: &PhaseCounts) -> f64 {
        let cost = |name: &str| self.0.get(name).copied().unwrap_or(0.0);
        let count = |name: &str| counts.count(name) as f64;
        let processor = count("calls") * (cost("touch_ns") + cost("call_ns"))
            + (count("itlb_misses") - count("itlb_walks")).max(0.0) * cost("second_ns")
            + count("itlb_walks") * cost("walk_ns")
            + (2.0 * count("major_faults") + count("minor_faults")) * cost("fault_ns")
            + count("data_pages_read") * cost("add_page_ns");
        let windows = count("readahead_calls");
        let waited = (windows - count("async_readahead")).max(0.0);
        let share = if windows == 0.0 { 1.0 } else { waited / windows };
        let device = waited * cost("latency_ns") + count("bytes_read") / cost("bandwidth_gb_s");
        (device + share * processor) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of the cold phase on 64 KiB pages, against the engine's prediction for a device with
    /// 54 us and 1.3 GB/s.
    #[test]
    fn the_sum_is_near_what_the_engine_predicts() {
        let costs = [("latency_ns", 54_000.0), ("bandwidth_gb_s", 1.3), ("touch_ns", 5.0)];
        let more = [("call_ns", 40.0), ("second_ns", 3.0), ("walk_ns", 30.0), ("fault_ns", 700.0)];
        let all = costs.into_iter().chain(more).chain([("add_page_ns", 60.0)]);
        let assumed = Assumptions(all.map(|(name, ns)| (name.to_string(), ns)).collect());
        let whole = [("calls", 8192), ("bytes_read", 512 << 20), ("data_pages_read", 8192)];
        let small = [("major_faults", 4096), ("minor_faults", 4096), ("readahead_calls", 4096)];
        let small = [small, [("async_readahead", 0), ("itlb_misses", 8192), ("itlb_walks", 8192)]];
        let large = [("major_faults", 1), ("minor_faults", 128), ("readahead_calls", 129)];
        let large = [large, [("async_readahead", 128), ("itlb_misses", 256), ("itlb_walks", 256)]];
        for (counts, engine_ms) in [(small, 643.870_720), (large, 413.100_554)] {
            let sum = assumed.ms(&PhaseCounts(whole.into_iter().chain(counts.concat()).collect()));
            assert!((sum / engine_ms - 1.0).abs() < 0.001, "{sum} for {engine_ms}");
        }
    }
}
