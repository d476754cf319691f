use filemap_job::FolioOpsRun;
use filemap_job::folio_ops::{
    FolioOpsSample, MM_OWNER, Operation, PAGE_BYTES, PLAIN_COUNTS, SCHEMES,
};
use serde_json::{Map, Value};

use super::*;
use crate::engine::Engines;
use crate::engine::mock::Mock;
use crate::published::PublishedRecord as Record;
use crate::published::cell_table::empty_columns;
use filemap_report::{Format, Report};

/// A record with the published figures.
fn published_record(length: StudyLength, change: impl Fn(&mut FolioOpsSample)) -> FolioOpsRecord {
    let job = job(length);
    let mut run = FolioOpsRun { locked_ns: Some(5.0), ..FolioOpsRun::default() };
    for &folio_bytes in &job.folio_bytes {
        for &operation in Operation::ALL {
            let is_alone = operation.is_single_threaded();
            let has = |counters: &&str| is_alone || *counters != PLAIN_COUNTS;
            for counters in SCHEMES.into_iter().filter(has) {
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
) -> FolioOpsSample {
    let counts_pages = [SCHEMES[0], PLAIN_COUNTS].contains(&counters);
    let base = if operation.writes() { 880.0 } else { 15.0 };
    let reuses = operation.reuses() && (folio_bytes == PAGE_BYTES || !counts_pages);
    let ns_per_page = match (operation.writes(), counters) {
        _ if folio_bytes == PAGE_BYTES => base,
        (true, _) if reuses => 60.0,
        (false, PLAIN_COUNTS) => base - 4.5,
        (false, name) if !counts_pages && name != MM_OWNER => base - 5.0,
        _ => base,
    };
    FolioOpsSample {
        folio_bytes,
        operation,
        counters: counters.to_string(),
        ns_per_page,
        copied: operation.writes().then_some(if reuses { 0 } else { pages }),
        reused: operation.writes().then_some(if reuses { pages } else { 0 }),
        locked_ns: Some(5.0),
    }
}

fn judge(record: &FolioOpsRecord) -> (usize, Report) {
    let found = vec![find_in_record(record).unwrap()];
    let record = Record::new(found, &[], "filemap published mm-owner".to_string());
    (record.failed(), record.report())
}

fn cells(report: &Report) -> Vec<Value> {
    let json: Value = serde_json::from_str(&report.record_json).unwrap();
    json["cells"].as_array().unwrap().clone()
}

#[test]
fn published_figures_hold() {
    let (failed, report) = judge(&published_record(StudyLength::Short, |_| {}));
    assert_eq!(failed, 0);
    assert_eq!(empty_columns(&report), [""; 0]);
    for cell in cells(&report) {
        let is_published = cell["published"].is_number();
        let judged = is_published && cell["unit"] == "pages copied of 100";
        assert_eq!(cell["ok"].is_boolean(), judged, "{cell}");
        assert!(cell["ok"] != false && cell["verdict"] != "off", "{cell}");
        let is_small =
            cell["unit"] == "L a page" && [16, 32].iter().any(|size| cell["folio_kib"] == *size);
        let near = is_published && !judged && !is_small;
        assert_eq!(cell["verdict"] == "near", near, "{cell}");
        assert_eq!(cell["error"].is_number(), is_published, "{cell}");
        let is_anon_cow =
            cell["workload"].as_str().is_some_and(|workload| workload.starts_with("anon-"));
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
fn counts_are_judged_and_times_are_not() {
    let slow = |cell: &mut FolioOpsSample| {
        if cell.counters == "no-page-mapcount" && cell.operation == Operation::Fork {
            cell.ns_per_page = 15.0;
        }
    };
    let (failed, report) = judge(&published_record(StudyLength::Short, slow));
    let is_off = |cell: &&Value| cell["verdict"] == "off" && cell["ok"].is_null();
    let missed = cells(&report).iter().filter(is_off).count();
    // Eight sizes in percent, and six in L.
    assert_eq!((failed, missed), (0, 14));
    let text = report.render(Format::Table);
    let wide = |line: &&str| line.chars().count() > filemap_report::TEXT_COLUMNS;
    let wide = text.lines().filter(wide).find(|line| !line.starts_with("Command:"));
    assert_eq!(wide, None);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "fork, 64 KiB, no-page-mapcount: off. Published: 1.000, here: 0.000 L a page. \
         Tolerated: 0.6 to 1.5 L.",
        "fork, 2048 KiB, no-page-mapcount: off. Published: -21.000, here: 0.000 percent. \
         Tolerated: 21 to 60 % faster.",
    ] {
        assert_eq!(flat.matches(line).count(), 1, "{line}: {flat}");
    }
    assert_eq!(flat.matches("Tolerated:").count(), missed, "{flat}");
    assert!(!flat.contains(": fail."), "{flat}");
    let copies = |cell: &mut FolioOpsSample| {
        if cell.counters == MM_OWNER && cell.operation == Operation::ReuseByte {
            (cell.copied, cell.reused) = (Some(1), cell.reused.map(|reused| reused - 1));
        }
    };
    let (failed, report) = judge(&published_record(StudyLength::Brief, copies));
    let fails = |cell: &&Value| cell["ok"] == false;
    assert_eq!((failed, cells(&report).iter().filter(fails).count()), (3, 3));
    let text = report.render(Format::Markdown);
    let line = "reuse-byte, 16 KiB, mm-owner: fail. Published: 0.000, here: 0.024 pages copied of \
                100. Tolerated: exact.";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("| no-page-mapcount published |"), "{text}");
    let judged = cells(&report).iter().filter(|cell| cell["ok"].is_boolean()).count();
    assert_eq!(judged, 3 * 3 * 3, "a brief form judges counts alone");
}

/// One repeat, as the command takes too long for a test.
#[test]
fn reports_what_was_counted() {
    let job = FolioOps { runs: 1, ..job(StudyLength::Brief) };
    let progress = |_| Mock::default().progress(None);
    let record = folio_ops::measure(&job, SizeSource::Flag, progress).unwrap();
    let (failed, report) = judge(&record);
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
        "64 0.969 0",
        "of 12 cells",
    ] {
        assert!(flat.contains(words), "{words}: {text}");
    }
    let is_exact = |cell: &&Value| cell["unit"] == "pages copied of 100";
    for cell in cells(&report).iter().filter(|cell| !is_exact(cell)) {
        assert!(cell["ok"].is_null(), "a brief form judges no time: {cell}");
    }
}
