//! Published figures of the series.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::published::data::Series;

pub const NAME: &str = "vma-retry";

pub static PUBLISHED: LazyLock<VmaRetryData> = LazyLock::new(|| Series::figures(NAME));

/// Experiment of the published figures.
pub const PUBLISHED_JOB: &str = "published job";

/// Default number of seeds of the published job. Fewer are not judged, since its runs vary.
pub const MIN_SEEDS: usize = 5;

/// CPUs of the published machine.
pub const PUBLISHED_CPUS: u64 = 256;

/// Page size in KiB.
pub const PAGE_KIB: u64 = 4;

#[derive(Deserialize)]
pub struct VmaRetryData {
    /// Two runs without and two runs with the series.
    pub rows: Vec<RetryRow>,
    /// How each figure is judged.
    pub figures: BTreeMap<String, FigureJudging>,
}

/// How a figure is judged without and with the series.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureJudging {
    without: Judging,
    with: Judging,
}

impl FigureJudging {
    pub fn judging(&self, with_series: bool) -> Judging {
        if with_series { self.with } else { self.without }
    }
}

/// How a figure is judged.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judging {
    /// Judged: the command fails if it does not hold.
    Judged,
    /// Compared, not judged.
    Compared,
    /// An assumption was fitted to it.
    Fitted,
}

/// A run of 600 s.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRow {
    /// `baseline 1`, `baseline 2`, `series A` or `series B`.
    pub case: String,
    /// Rounds: files mapped, read and unmapped.
    pub rounds: u64,
    /// Rounds per second.
    pub rounds_s: f64,
    /// Misses in percent of drops.
    pub miss_drop_pct: f64,
    /// Faults that dropped their lock for I/O.
    pub retry_mmap_drop: u64,
    /// Retries that found their page gone.
    #[allow(dead_code, reason = "a test holds the published share of misses against it")]
    pub retry_io_miss: u64,
}

impl RetryRow {
    pub fn with_series(&self) -> bool {
        self.case.starts_with("series")
    }

    pub fn drops_per_round(&self) -> f64 {
        self.retry_mmap_drop as f64 / self.rounds as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_complete() {
        let rows = &PUBLISHED.rows;
        let drops: Vec<_> = rows.iter().map(RetryRow::drops_per_round).collect();
        assert_eq!(format!("{drops:.1?}"), "[42.7, 41.3, 22.1, 9.1]");
        for row in rows {
            let percent = row.retry_io_miss as f64 * 100.0 / row.retry_mmap_drop as f64;
            assert!((percent - row.miss_drop_pct).abs() < 0.01, "{}", row.case);
            assert!((row.rounds as f64 / 600.0 - row.rounds_s).abs() < 0.01, "{}", row.case);
        }
    }
}
