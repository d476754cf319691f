//! What counts cost under assumptions.

use std::collections::BTreeMap;

use filemap_job::{Record, Run};
use serde_json::{Value, json};

/// Constants that were not published, by name. Times are in nanoseconds.
pub struct Assumptions(pub BTreeMap<String, f64>);

/// What one phase counted, by name.
#[derive(Default)]
pub struct Counts(BTreeMap<&'static str, u64>);

/// What is counted: names here, and those of the counters.
const COUNTED: [(&str, &str); 9] = [
    ("calls", "accesses"),
    ("bytes_read", "bytes_read"),
    ("data_pages_read", "data_pages_read"),
    ("major_faults", "major_faults"),
    ("minor_faults", "minor_faults"),
    // Windows read, and those of them that a mark asked for.
    ("readahead_calls", "readahead_calls"),
    ("async_readahead", "async_readahead"),
    // Calls that missed the first level of the TLB, and those of them that walked the page tables.
    ("itlb_misses", "itlb_misses"),
    ("itlb_walks", "itlb_walks"),
];

impl Counts {
    /// What `run` counted beyond `before`.
    pub fn since(before: &Counts, run: &Run) -> Counts {
        let counters = json!(run.counters);
        let since = |(name, counter)| {
            let all = counters.get(counter).and_then(Value::as_u64).unwrap_or(0);
            (name, all - before.of(name))
        };
        Counts(COUNTED.into_iter().map(since).collect())
    }

    fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}

impl Assumptions {
    /// Those of the profile that `record` was made with, on another device.
    pub fn of(record: &Record, latency_ns: f64, bandwidth_gb_s: f64) -> Assumptions {
        let profile = record.environment.get("profile").unwrap_or(&Value::Null);
        let number = |path: &str| profile.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        let all = [
            // From a request to its first byte, and bytes a nanosecond, which are GB a second.
            ("latency_ns", latency_ns),
            ("bandwidth_gb_s", bandwidth_gb_s),
            // An access to a mapped page, which every call is too, and a call that finds its
            // translation.
            ("touch_ns", number("/cost/touch_ns")),
            ("call_ns", number("/itlb/call_ns")),
            // A translation that only the second level of the TLB has, and a walk.
            ("second_ns", number("/itlb/second/hit_ns")),
            ("walk_ns", number("/itlb/walk_ns")),
            // One try of a fault, and a page added to the cache.
            ("fault_ns", number("/cost/fault_ns")),
            ("add_page_ns", number("/cost/add_page_ns")),
        ];
        Assumptions(all.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    /// `counts` with the milliseconds that they take.
    pub fn told(&self, counts: &Counts) -> Value {
        let mut told = json!(counts.0);
        told["predicted_ms"] = self.ms(counts).into();
        told
    }

    /// Milliseconds that `counts` take. A window that a fault waits for costs its latency, its
    /// transfer and what the processor does meanwhile; of one that is read in advance only the
    /// transfer remains, as long as that is the longest of the three.
    fn ms(&self, counts: &Counts) -> f64 {
        let cost = |name: &str| self.0.get(name).copied().unwrap_or(0.0);
        let count = |name: &str| counts.of(name) as f64;
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

    /// The counts of the cold phase on 64 KiB pages, and what the engine predicts for them on a
    /// device of 54 us and 1.3 GB/s.
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
            let sum = assumed.ms(&Counts(whole.into_iter().chain(counts.concat()).collect()));
            assert!((sum / engine_ms - 1.0).abs() < 0.001, "{sum} for {engine_ms}");
        }
    }
}
