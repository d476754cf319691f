//! The series "MM owner tracking for large folios": operations over anonymous memory, in real time.

mod cells;
mod counting;
mod tables;

use filemap_job::folio_ops::{PAGE_BYTES, PMD_BYTES};
use filemap_job::{DEFAULT_SEED, EngineKind, FolioOps, FolioOpsRecord, Record};

pub use self::tables::{parts, rows};
use super::{Begin, Found, Study};
use crate::error::Error;
use crate::folio_ops::{self, Asked};

pub const NAME: &str = "mm-owner";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Sizes of folios: the control, then those that were published.
const SIZES: [u64; 9] =
    [4 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, PMD_BYTES];

/// Those of a brief form.
const FEW_SIZES: [u64; 3] = [16 * KIB, 128 * KIB, PMD_BYTES];

/// How long the report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Among all series: a second or two. Times are not judged: they are too few and too short.
    Brief,
    /// By name: an eighth of the published memory.
    Short,
    /// As published.
    Full,
}

impl Form {
    /// The form of a report that `is_named`, and is in full or not.
    pub fn of(full: bool, is_named: bool) -> Form {
        match (full, is_named) {
            (true, _) => Form::Full,
            (false, true) => Form::Short,
            (false, false) => Form::Brief,
        }
    }

    /// The form that has so much memory.
    fn of_bytes(bytes: u64) -> Form {
        let is_own = |form: &Form| form.job().bytes >= bytes;
        [Form::Brief, Form::Short].into_iter().find(is_own).unwrap_or(Form::Full)
    }

    /// The note on it.
    fn note(self) -> &'static str {
        match self {
            Form::Brief => "brief",
            Form::Short => "short",
            Form::Full => "full",
        }
    }

    /// What is run.
    pub fn job(self) -> FolioOps {
        let (bytes, runs) = match self {
            Form::Brief => (16 * MIB, 5),
            Form::Short => (128 * MIB, 7),
            Form::Full => (1024 * MIB, 9),
        };
        let sizes: &[u64] = if self == Form::Brief { &FEW_SIZES } else { &SIZES };
        FolioOps {
            engine: EngineKind::Model,
            runs,
            seed: DEFAULT_SEED,
            bytes,
            folio_bytes: sizes.to_vec(),
        }
    }
}

/// The study of the series.
pub struct MmOwner {
    form: Form,
    asked: Asked,
}

impl MmOwner {
    /// The study of a report that `is_named`, and is in full or not.
    pub fn new(full: bool, is_named: bool) -> MmOwner {
        let shorter_bytes = full.then(|| Form::of(false, is_named).job().bytes);
        MmOwner { form: Form::of(full, is_named), asked: Asked::Published { shorter_bytes } }
    }
}

impl Study for MmOwner {
    fn folio_ops(&self) -> Option<(FolioOps, Asked)> {
        Some((self.form.job(), self.asked))
    }

    fn found(&self, _: &[Record], begin: &Begin<'_>) -> Result<Found, Error> {
        found(&folio_ops::record(&self.form.job(), self.asked, begin)?)
    }
}

/// What `record` says beside what is published.
fn found(record: &FolioOpsRecord) -> Result<Found, Error> {
    let pages = folio_ops::pages(record);
    let bytes = pages * PAGE_BYTES;
    let judges_times = Form::of_bytes(bytes) != Form::Brief;
    let mut cells = cells::beside(&folio_ops::compared(record), judges_times, pages);
    cells.extend(counting::cells()?);
    cells.extend(cells::alone(record, bytes));
    Ok(Found { series: NAME, cells, origin: Some(folio_ops::origin(record)) })
}

#[cfg(test)]
mod tests {
    use filemap_job::FolioOpsRun;
    use filemap_job::folio_ops::{
        CONFIGURATIONS, FolioCell, MM_OWNER, Operation, PAGE_BYTES, PLAIN_COUNTS,
    };
    use serde_json::{Map, Value};

    use super::super::Published;
    use super::*;
    use crate::engine::Engines;
    use crate::engine::mock::Mock;
    use filemap_report::{Format, Report};

    /// What each repeat of the study's job comes to where the series does what is published.
    fn record(form: Form, change: impl Fn(&mut FolioCell)) -> FolioOpsRecord {
        let job = form.job();
        let mut run = FolioOpsRun { locked_ns: Some(5.0), ..FolioOpsRun::default() };
        for &folio_bytes in &job.folio_bytes {
            for &operation in Operation::ALL {
                let is_alone = operation.is_of_one_thread();
                let has = |counters: &&str| is_alone || *counters != PLAIN_COUNTS;
                for counters in CONFIGURATIONS.into_iter().filter(has) {
                    let mut cell = as_published(folio_bytes, operation, counters, job.pages());
                    change(&mut cell);
                    run.cells.push(cell);
                }
            }
        }
        let runs = vec![run; job.runs as usize];
        FolioOpsRecord::new(&job, Map::new(), runs)
    }

    fn as_published(
        folio_bytes: u64,
        operation: Operation,
        counters: &str,
        pages: u64,
    ) -> FolioCell {
        let counts_pages = [CONFIGURATIONS[0], PLAIN_COUNTS].contains(&counters);
        let base = if operation.writes() { 880.0 } else { 15.0 };
        let reuses = operation.reuses() && (folio_bytes == PAGE_BYTES || !counts_pages);
        let ns_per_page = match (operation.writes(), counters) {
            _ if folio_bytes == PAGE_BYTES => base,
            (true, _) if reuses => 60.0,
            (false, PLAIN_COUNTS) => base - 4.5,
            (false, name) if !counts_pages && name != MM_OWNER => base - 5.0,
            _ => base,
        };
        FolioCell {
            folio_bytes,
            operation,
            counters: counters.to_string(),
            ns_per_page,
            copied: operation.writes().then_some(if reuses { 0 } else { pages }),
            reused: operation.writes().then_some(if reuses { pages } else { 0 }),
            locked_ns: Some(5.0),
        }
    }

    fn told(record: &FolioOpsRecord) -> (usize, Report) {
        let found = vec![found(record).unwrap()];
        let record = Published::new(found, &[], "filemap published mm-owner".to_string());
        (record.failed(), record.report())
    }

    fn cells(report: &Report) -> Vec<Value> {
        let json: Value = serde_json::from_str(&report.json).unwrap();
        json["cells"].as_array().unwrap().clone()
    }

    #[test]
    fn what_does_as_published_holds() {
        let (failed, report) = told(&record(Form::Short, |_| {}));
        assert_eq!(failed, 0);
        for cell in cells(&report) {
            let is_published = cell["published"].is_number();
            let judged = is_published && !(cell["unit"] == "L a page" && cell["folio_kib"] == 16);
            let judged = judged && !(cell["unit"] == "L a page" && cell["folio_kib"] == 32);
            assert_eq!(cell["ok"].is_boolean(), judged, "{cell}");
            assert!(cell["ok"] != false, "{cell}");
            assert_eq!(cell["error"].is_number(), is_published, "{cell}");
            let is_anon_cow = cell["workload"].as_str().is_some_and(|of| of.starts_with("anon-"));
            assert!(!(is_anon_cow && is_published), "nothing is published so: {cell}");
        }
        let text = report.render(Format::Table);
        for line in text.lines().filter(|line| !line.starts_with("Command:")) {
            assert!(line.chars().count() <= filemap_report::TEXT_COLUMNS, "{line}");
        }
        for words in ["cow-byte: change of the time", "munmap: saving of a page in L", "all"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn a_time_that_misses_decides_nothing_and_a_count_does() {
        let slow = |cell: &mut FolioCell| {
            if cell.counters == "no-page-mapcount" && cell.operation == Operation::Fork {
                cell.ns_per_page = 15.0;
            }
        };
        let (failed, report) = told(&record(Form::Short, slow));
        let misses = |cell: &&Value| cell["verdict"] == "misses";
        let missed = cells(&report).iter().filter(misses).count();
        // Eight sizes in percent, and six in L.
        assert_eq!((failed, missed), (0, 14));
        let text = report.render(Format::Table);
        let wide = |line: &&str| line.chars().count() > filemap_report::TEXT_COLUMNS;
        let wide = text.lines().filter(wide).find(|line| !line.starts_with("Command:"));
        assert_eq!(wide, None);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sizes = "64 KiB, 128 KiB, 256 KiB, 512 KiB, 1 MiB, 2 MiB";
        let in_l = format!("no-page-mapcount misses at {sizes}. Tolerated: 0.6 to 1.5 L.");
        assert_eq!(flat.matches(&in_l).count(), 1, "{flat}");
        assert!(flat.contains("no-page-mapcount misses at 2 MiB. Tolerated: 21 to 60 % faster."));
        assert_eq!(flat.matches("Tolerated:").count(), 7, "alike ones are together: {flat}");
        assert!(!flat.contains("Not as published"), "{flat}");
        let copies = |cell: &mut FolioCell| {
            if cell.counters == MM_OWNER && cell.operation == Operation::ReuseByte {
                (cell.copied, cell.reused) = (Some(1), cell.reused.map(|reused| reused - 1));
            }
        };
        let (failed, report) = told(&record(Form::Brief, copies));
        let fails = |cell: &&Value| cell["ok"] == false;
        assert_eq!((failed, cells(&report).iter().filter(fails).count()), (3, 3));
        let text = report.render(Format::Markdown);
        assert!(text.contains("Not as published: reuse-byte with mm-owner at 16 KiB; "), "{text}");
        assert!(text.contains("| no-page-mapcount published |"), "{text}");
        let judged = cells(&report).iter().filter(|cell| cell["ok"].is_boolean()).count();
        assert_eq!(judged, 3 * 3 * 3, "a brief form judges counts alone");
    }

    /// One repeat: the command itself takes longer than a test may.
    #[test]
    fn mm_owner_is_said_as_it_was_counted() {
        let job = FolioOps { runs: 1, ..Form::Brief.job() };
        let progress = |_| Mock::default().progress(None);
        let record = folio_ops::record(&job, Asked::Size, progress).unwrap();
        let (failed, report) = told(&record);
        assert_eq!(failed, 0, "copies are the same on every machine");
        let text = report.render(Format::Table);
        for line in text.lines().filter(|line| !line.starts_with("Command:")) {
            assert!(line.chars().count() <= filemap_report::TEXT_COLUMNS, "{line}");
        }
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "27 of 27 counts of copied pages are as published",
            "A fork takes one for each page and one more, the last unmap two more.",
            "page-mapcount 16 17 18 mm-owner 16 17 18 no-page-mapcount 16 1 1",
            "mm-owner 512 513 514",
            "its 0 is proven, not measured",
            "64 96.9 % 0.0 %",
            "of 12 cells",
            "What is reported wrong then, for example:",
            "0-15; 5",
        ] {
            assert!(flat.contains(words), "{words}: {text}");
        }
        let is_exact = |cell: &&Value| cell["unit"] == "pages copied of 100";
        for cell in cells(&report).iter().filter(|cell| !is_exact(cell)) {
            assert!(cell["ok"].is_null(), "a brief form judges no time: {cell}");
        }
    }
}
