//! The series "MM owner tracking for large folios": operations over anonymous memory, in real time.

mod counting;
mod flat;
mod notes;
mod plan;
mod published_vs_model;
mod tables;

use filemap_job::folio_ops::Operation;
use filemap_job::{FolioOps, FolioOpsRecord, Job};

pub use self::counting::{Atomics, Counting, FalselyShared};
pub use self::plan::Form;
use self::published_vs_model::{Beside, What};
use super::data::PUBLISHED;
use super::{Findings, Ran, Study};
use crate::folio_ops::{self, Compared};
use filemap_report::Part;

/// The study of the series.
pub struct MmOwner {
    form: Form,
    counting: Counting,
}

impl MmOwner {
    /// The study of this length, with what was counted beside it.
    pub fn new(form: Form, counting: Counting) -> Self {
        MmOwner { form, counting }
    }
}

impl Study for MmOwner {
    fn jobs(&self) -> Vec<Job> {
        Vec::new()
    }

    fn folio_ops(&self) -> Option<FolioOps> {
        Some(self.form.job())
    }

    fn findings(&self, ran: &Ran<'_>) -> Findings {
        let record = ran.folio_ops;
        let all: Vec<Compared> = record.map_or(Vec::new(), folio_ops::compared);
        let job = self.form.job();
        let beside = Beside::all(&all, self.form.judges_times(), job.pages());
        let mut cells: Vec<_> = beside.iter().map(Beside::json).collect();
        cells.extend(flat::counted(&self.counting));
        cells.extend(record.into_iter().flat_map(flat::contended));
        let fails = |own: &&Beside| own.is_exact() && own.ok == Some(false);
        Findings {
            parts: self.parts(record, &all, &beside),
            rows: flat::rows(&beside),
            cells,
            source: &PUBLISHED.mm_owner.source,
            failed: beside.iter().filter(fails).count(),
            origin: record.map(folio_ops::origin),
        }
    }
}

impl MmOwner {
    fn parts(
        &self,
        record: Option<&FolioOpsRecord>,
        all: &[Compared],
        beside: &[Beside],
    ) -> Vec<Part> {
        let job = self.form.job();
        let locked = record.and_then(folio_ops::locked);
        let mut parts = PUBLISHED.mm_owner.source.parts();
        parts.push(Part::Paragraph(notes::form(self.form, &job, locked)));
        parts.push(Part::Paragraph(notes::judged(self.form, beside)));
        parts.push(Part::Paragraph(notes::carries_over(all)));
        for operation in Operation::OF_ONE_THREAD {
            let own = Compared::of_operation(operation, all);
            parts.push(Part::Table(tables::times(operation, &own, beside)));
            parts.extend(tables::missed(operation, What::Time, beside));
            if !operation.writes() {
                parts.push(Part::Table(tables::savings(operation, &own, beside)));
                parts.extend(tables::missed(operation, What::Saving, beside));
            }
        }
        parts.extend(notes::noise(all).map(Part::Paragraph));
        let anon_cow = [Operation::AnonCowSeq, Operation::AnonCowRand];
        parts.extend(anon_cow.into_iter().filter_map(|of| folio_ops::changes(of, all)));
        parts.push(Part::Paragraph(notes::anon_cow(&PUBLISHED.mm_owner.vm_scalability)));
        parts.extend(record.into_iter().flat_map(folio_ops::contended));
        parts.extend(folio_ops::with_faults(all));
        parts.extend(folio_ops::copies(all, job.pages()));
        parts.extend(notes::copied_otherwise(beside).map(Part::Paragraph));
        parts.extend(self.counting.parts());
        parts
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::FolioOpsRun;
    use filemap_job::folio_ops::{CONFIGURATIONS, FolioCell, MM_OWNER, PAGE_BYTES, PLAIN_COUNTS};
    use serde_json::{Map, Value};

    use super::super::{Trials, report};
    use super::*;
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

    fn found(form: Form, record: FolioOpsRecord) -> (usize, Report) {
        let trials = Trials::default();
        let ran = Ran { records: &[], trials: &trials, folio_ops: Some(&record) };
        let findings = MmOwner::new(form, Counting::default()).findings(&ran);
        let failed = findings.failed;
        (failed, report(vec![findings], &[], "filemap published mm-owner".to_string()))
    }

    fn cells(report: &Report) -> Vec<Value> {
        let json: Value = serde_json::from_str(&report.json).unwrap();
        json["cells"].as_array().unwrap().clone()
    }

    #[test]
    fn what_does_as_published_holds() {
        let (failed, report) = found(Form::Short, record(Form::Short, |_| {}));
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
        let (failed, report) = found(Form::Short, record(Form::Short, slow));
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
        let (failed, report) = found(Form::Brief, record(Form::Brief, copies));
        let fails = |cell: &&Value| cell["ok"] == false;
        assert_eq!((failed, cells(&report).iter().filter(fails).count()), (3, 3));
        let text = report.render(Format::Markdown);
        assert!(text.contains("Not as published: reuse-byte with mm-owner at 16 KiB; "), "{text}");
        assert!(text.contains("| no-page-mapcount published |"), "{text}");
        let judged = cells(&report).iter().filter(|cell| cell["ok"].is_boolean()).count();
        assert_eq!(judged, 3 * 3 * 3, "a brief form judges counts alone");
    }
}
