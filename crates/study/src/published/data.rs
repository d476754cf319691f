//! The published figures as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use filemap_job::folio_ops::Operation;
use serde::Deserialize;

use super::source::Source;

/// The published figures.
pub static PUBLISHED: LazyLock<Published> = LazyLock::new(|| {
    let text = include_str!("../../../../data/published.toml");
    toml::from_str(text).expect("data/published.toml is of the form that is declared here")
});

/// All that is published and compared.
#[derive(Debug, Deserialize)]
pub struct Published {
    /// `mm/filemap: tighten mmap_miss hit accounting`.
    pub mmap_miss: MmapMiss,
    /// `mm: limit filemap_fault readahead to VMA boundaries`.
    pub vma_bound: VmaBound,
    /// `mm: improve large folio readahead for exec memory`.
    pub exec_order: ExecOrder,
    /// `mm: continue using per-VMA lock when retrying page faults after I/O`.
    pub vma_retry: VmaRetry,
    /// `mm: MM owner tracking for large folios`.
    pub mm_owner: MmOwner,
}

/// The figures of the mm-owner series.
#[derive(Debug, Deserialize)]
pub struct MmOwner {
    /// What it does, who posted it where, and what was measured on what.
    #[serde(flatten)]
    pub source: Source,
    munmap: BySize,
    fork: BySize,
    #[serde(rename = "cow-byte")]
    cow_byte: BySize,
    #[serde(rename = "reuse-byte")]
    reuse_byte: BySize,
    #[serde(rename = "child-reuse-byte")]
    child_reuse_byte: BySize,
    /// What is said of children that copy, by case.
    pub vm_scalability: BTreeMap<String, String>,
}

/// By the size of the folios in KiB: the change of the time in percent, with slots and with slots
/// alone.
type BySize = BTreeMap<String, [f64; 2]>;

impl MmOwner {
    /// The change of the time in percent in folios of this size, with owner slots beside counts of
    /// pages, and without these; `None` for what was not published.
    pub fn percents(&self, operation: Operation, folio_kib: u64) -> Option<[f64; 2]> {
        let by_size = match operation {
            Operation::Munmap => &self.munmap,
            Operation::Fork => &self.fork,
            Operation::CowByte => &self.cow_byte,
            Operation::ReuseByte => &self.reuse_byte,
            Operation::ChildReuseByte => &self.child_reuse_byte,
            Operation::AnonCowSeq | Operation::AnonCowRand => return None,
        };
        by_size.get(&folio_kib.to_string()).copied()
    }
}

/// The figures of the vma-retry series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmaRetry {
    /// What it does, who posted it where, and what was measured on what.
    #[serde(flatten)]
    pub source: Source,
    /// Two runs without it, and two variants of it.
    pub rows: Vec<RetryRow>,
}

/// One run of 600 s.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryRow {
    /// `baseline 1`, `baseline 2`, `series A` or `series B`.
    pub case: String,
    /// Files mapped, read and unmapped.
    pub rounds: u64,
    /// The same a second.
    pub rounds_s: f64,
    /// Misses of 100 drops.
    pub miss_drop_pct: f64,
    /// Faults that dropped their lock for I/O.
    pub retry_mmap_drop: u64,
    /// Retries that found their page gone.
    pub retry_io_miss: u64,
}

impl RetryRow {
    /// Whether it is of the series.
    pub fn with_series(&self) -> bool {
        self.case.starts_with("series")
    }

    /// Drops a round.
    pub fn drops_per_round(&self) -> f64 {
        self.retry_mmap_drop as f64 / self.rounds as f64
    }
}

/// The figures of the vma-bound series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VmaBound {
    /// What it does, who posted it where, and what was measured on what.
    #[serde(flatten)]
    pub source: Source,
    /// What is said of page counts, without a table.
    pub claim: String,
    /// fio's rows.
    pub rows: Vec<FioRow>,
}

/// One job of fio, five runs before and five after.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FioRow {
    /// `mmap` or `psync`.
    pub ioengine: String,
    /// `read` or `randread`.
    pub rw: String,
    /// MiB a second without the series.
    pub before_mib_s: Vec<f64>,
    /// MiB a second with it.
    pub after_mib_s: Vec<f64>,
}

/// The figures of the exec-order series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecOrder {
    /// What it does, who posted it where, and what was measured on what.
    #[serde(flatten)]
    pub source: Source,
    /// One row for each phase.
    pub rows: Vec<PhaseRow>,
}

/// One phase.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRow {
    /// `cold` or `random`.
    pub phase: String,
    /// Milliseconds without the series.
    pub before_ms: f64,
    /// Milliseconds with it.
    pub after_ms: f64,
}

impl PhaseRow {
    /// Time with the series as a share of that without.
    pub fn ratio(&self) -> f64 {
        self.after_ms / self.before_ms
    }
}

/// The figures of the mmap-miss series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MmapMiss {
    /// What it does, who posted it where, and what was measured on what.
    #[serde(flatten)]
    pub source: Source,
    /// One table for each size of the file.
    pub case: Vec<Case>,
}

/// The table of one size of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Size of the file in GiB.
    pub file_gib: u64,
    /// RAM of the guest in GiB.
    pub ram_gib: u64,
    /// The table.
    pub rows: Vec<Row>,
    /// Rows that were published a second time.
    pub rerun: Vec<Row>,
}

/// One row.
#[derive(Debug, Deserialize)]
pub struct Row {
    /// `random`, `sequential`, or a stride as `stride1021`.
    pub workload: String,
    /// `baseline`, `p1`, `p2` or `p1+p2`.
    pub variant: String,
    /// GiB read.
    pub gib: f64,
    /// Seconds that the accesses took.
    pub s: f64,
}

impl Case {
    /// The published row of a cell, if it was published.
    pub fn row(&self, workload: &str, variant: &str) -> Option<&Row> {
        find(&self.rows, workload, variant)
    }

    /// The second measurement of a row, if there is one.
    pub fn rerun(&self, workload: &str, variant: &str) -> Option<&Row> {
        find(&self.rerun, workload, variant)
    }
}

fn find<'a>(rows: &'a [Row], workload: &str, variant: &str) -> Option<&'a Row> {
    rows.iter().find(|row| row.workload == workload && row.variant == variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_whole() {
        let cases = &PUBLISHED.mmap_miss.case;
        let sizes: Vec<_> = cases.iter().map(|case| (case.file_gib, case.rows.len())).collect();
        assert_eq!(sizes, [(20, 16), (4, 10)]);
        assert!(cases.iter().all(|case| case.rerun.len() == 5 && case.ram_gib == 8));
        assert_eq!(cases[0].row("stride2053", "p2").unwrap().gib, 15.722);
        assert!(cases[1].row("stride2053", "p2").is_none());
        let fio = &PUBLISHED.vma_bound.rows;
        assert!(fio.len() == 4 && fio.iter().all(|row| row.before_mib_s.len() == 5));
        let retry = &PUBLISHED.vma_retry.rows;
        let drops: Vec<_> = retry.iter().map(RetryRow::drops_per_round).collect();
        assert_eq!(format!("{drops:.1?}"), "[42.7, 41.3, 22.1, 9.1]");
        for row in retry {
            let percent = row.retry_io_miss as f64 * 100.0 / row.retry_mmap_drop as f64;
            assert!((percent - row.miss_drop_pct).abs() < 0.01, "{}", row.case);
            assert!((row.rounds as f64 / 600.0 - row.rounds_s).abs() < 0.01, "{}", row.case);
        }
        let owner = &PUBLISHED.mm_owner;
        for operation in Operation::OF_ONE_THREAD {
            let sizes = (4..=11).filter(|power| owner.percents(operation, 1 << power).is_some());
            assert_eq!(sizes.count(), 8, "{operation}");
        }
        assert_eq!(owner.percents(Operation::Fork, 2048), Some([-1.0, -21.0]));
        let ratios: Vec<_> = PUBLISHED.exec_order.rows.iter().map(PhaseRow::ratio).collect();
        assert_eq!(format!("{ratios:.3?}"), "[0.495, 0.767]");
    }
}
