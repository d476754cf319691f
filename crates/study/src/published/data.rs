//! The published figures, what is tolerated beside them, and what is said of both, as data.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use filemap_job::JobSpec;
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
    pub mmap_miss: MmapMiss,
    pub vma_bound: VmaBound,
    pub exec_order: ExecOrder,
    pub vma_retry: VmaRetry,
    pub mm_owner: MmOwner,
}

/// What is said of a series.
#[derive(Debug, Deserialize)]
pub struct About {
    /// What it does, who posted it where, and what was measured on what.
    #[serde(flatten)]
    pub source: Source,
    notes: BTreeMap<String, String>,
}

impl About {
    /// The note of that name, with each of `values` in the places of its name.
    ///
    /// # Panics
    /// When there is no such note, which the tests of each series exclude.
    pub fn note(&self, name: &str, values: &[(&str, String)]) -> String {
        let note = self.notes.get(name).expect("the note is in data/published.toml");
        let mut note = note.split_whitespace().collect::<Vec<_>>().join(" ");
        for (place, value) in values {
            note = note.replace(&format!("{{{place}}}"), value);
        }
        note
    }
}

#[derive(Debug, Deserialize)]
pub struct MmapMiss {
    #[serde(flatten)]
    pub about: About,
    /// One table for each size of the file.
    pub case: Vec<Case>,
}

/// The table of one size of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub file_gib: u64,
    /// RAM of the guest.
    pub ram_gib: u64,
    pub rows: Vec<Row>,
    /// Rows that were published a second time.
    pub rerun: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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

impl Row {
    /// That of `rows` which is of a cell.
    pub fn find<'a>(rows: &'a [Row], workload: &str, variant: &str) -> Option<&'a Row> {
        rows.iter().find(|row| row.workload == workload && row.variant == variant)
    }
}

#[derive(Debug, Deserialize)]
pub struct VmaBound {
    #[serde(flatten)]
    pub about: About,
    /// What is said of page counts, without a table.
    pub claim: String,
    pub rows: Vec<FioRow>,
    /// Jobs of the shapes that fio was run in.
    pub fio: Vec<Shape>,
    /// Jobs that meet the end of a mapping.
    pub seeing: Vec<Shape>,
}

/// One job of fio, five runs before and five after.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FioRow {
    /// `mmap` or `psync`.
    pub ioengine: String,
    /// `read` or `randread`.
    pub rw: String,
    pub before_mib_s: Vec<f64>,
    pub after_mib_s: Vec<f64>,
}

/// A job that is run without a series and with it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub name: String,
    pub job: JobSpec,
}

#[derive(Debug, Deserialize)]
pub struct ExecOrder {
    #[serde(flatten)]
    pub about: About,
    pub rows: Vec<PhaseRow>,
    /// By how many percent a ratio may be off the published one.
    pub tolerance_percent: f64,
    /// The phase that the latency is fitted to: its ratio tests nothing.
    pub fitted: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRow {
    /// `cold` or `random`.
    pub phase: String,
    pub before_ms: f64,
    pub after_ms: f64,
}

impl PhaseRow {
    /// Time with the series as a share of that without.
    pub fn ratio(&self) -> f64 {
        self.after_ms / self.before_ms
    }
}

#[derive(Debug, Deserialize)]
pub struct VmaRetry {
    #[serde(flatten)]
    pub about: About,
    /// Two runs without it, and two variants of it.
    pub rows: Vec<RetryRow>,
    /// By the figure.
    pub tolerance: BTreeMap<String, Bounds>,
}

/// Between which figures a median has to lie; nothing is judged where there are none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    pub without: Option<(f64, f64)>,
    pub with: Option<(f64, f64)>,
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

    /// So many of its counts in a second.
    pub fn a_second(&self, count: u64) -> f64 {
        count as f64 * self.rounds_s / self.rounds as f64
    }
}

#[derive(Debug, Deserialize)]
pub struct MmOwner {
    #[serde(flatten)]
    pub about: About,
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
    pub tolerance: OwnerTolerance,
}

/// By the size of the folios in KiB: the change of the time in percent, with slots and with slots
/// alone.
type BySize = BTreeMap<String, [f64; 2]>;

/// What is tolerated of times; data/published.toml says of what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnerTolerance {
    pub same_percent: f64,
    pub copied_percent: f64,
    pub owner_free_kib: u64,
    pub owner_locked: f64,
    pub saved_locked: (f64, f64),
    pub saved_kib: u64,
    pub most_percent: f64,
    pub reuse_percent: f64,
    pub alike_points: f64,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_whole() {
        let cases = &PUBLISHED.mmap_miss.case;
        let sizes: Vec<_> = cases.iter().map(|case| (case.file_gib, case.rows.len())).collect();
        assert_eq!(sizes, [(20, 16), (4, 10)]);
        assert!(cases.iter().all(|case| case.rerun.len() == 5 && case.ram_gib == 8));
        assert_eq!(Row::find(&cases[0].rows, "stride2053", "p2").unwrap().gib, 15.722);
        assert!(Row::find(&cases[1].rows, "stride2053", "p2").is_none());
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
