use std::cell::RefCell;

use filemap_report::{Format, Report};
use serde_json::Value;

use super::trial::TrialRun;
use super::*;
use crate::engine::Engines;
use crate::engine::mock::Mock;
use crate::published::PublishedRecord as Record;
use crate::published::cell_table::empty_columns;

fn study(length: StudyLength, seeds: u64) -> VmaRetry {
    VmaRetry::new(Some(seeds), length).unwrap()
}

/// `trial` reduced so that all of them take seconds. The number of CPUs stays, since the cost of an
/// eviction grows with it. Memory is scarce, so that most pages are evicted and a second has little
/// work.
fn small(trial: &Trial) -> Trial {
    Trial {
        threads: trial.threads.div_ceil(200),
        file_pages: 256,
        read_ahead_pages: trial.read_ahead_pages / 16,
        high_pages: trial.high_pages / 2000 + 120,
        max_pages: trial.max_pages / 2000 + 160,
        seconds: 1,
        ..trial.clone()
    }
}

/// The report on reduced trials.
fn report(study: &VmaRetry) -> Report {
    let found = study.find_with(&|trials| {
        let small: Vec<Trial> = trials.iter().map(small).collect();
        trial::run_in_parallel(&small, &*Mock::default().progress(None))
    });
    Record::new(vec![found.unwrap()], &[], "filemap published vma-retry".to_string()).report()
}

#[test]
fn a_report_is_a_page_wide_and_of_its_schema() {
    let schema = crate::schema::all_schemas().into_iter();
    let schema = schema.into_iter().find(|(name, _)| *name == "published").unwrap().1;
    let validator = jsonschema::validator_for(schema.as_value()).unwrap();
    // Two rows by two figures with the series, and the ratio; with few seeds nothing is judged.
    for (length, seeds, judged) in [(StudyLength::Short, 5, 5), (StudyLength::Full, 2, 0)] {
        let report = report(&study(length, seeds));
        assert_eq!(empty_columns(&report), [""; 0]);
        let text = report.render(Format::Table);
        for line in text.lines().filter(|line| !line.starts_with("Command:")) {
            assert!(line.chars().count() <= 75, "{line}");
        }
        for words in ["series A", "run queue", "all runs", "Over readahead sizes"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let is_full = length == StudyLength::Full;
        assert_eq!(text.contains("Each assumed cost at half"), is_full);
        assert!(report.render(Format::Markdown).contains("| series B |"));
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        let faults: Vec<_> = validator.iter_errors(&json).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{faults:#?}");
        let cells = json["cells"].as_array().unwrap();
        let decided = cells.iter().filter(|cell| cell["ok"].is_boolean());
        assert_eq!(decided.count(), judged, "with {seeds} seeds");
        let costs = trial::costs().unwrap().len();
        let of_costs = cells.iter().filter(|cell| cell["experiment"] == "sensitivity");
        assert_eq!(of_costs.count(), if is_full { costs * 2 * 2 } else { 0 });
    }
}

/// The report does not depend on the order in which trials complete.
#[test]
fn a_report_is_the_same_again() {
    let study = study(StudyLength::Short, 1);
    let one = report(&study);
    assert_eq!(one.record_json, report(&study).record_json);
    let text = one.render(Format::Table).replace('\n', " ");
    assert!(text.contains("with one seed") && !text.contains("1 seeds"), "{text}");
    assert!(text.contains("evicting a page (170 us) is assumed"), "{text}");
}

#[test]
fn the_published_job_is_what_was_published() {
    let asked: RefCell<Vec<Trial>> = RefCell::default();
    let run = |trials: &[Trial]| {
        asked.borrow_mut().extend_from_slice(trials);
        Ok(vec![TrialRun { rounds: 1, ..TrialRun::default() }; trials.len()])
    };
    study(StudyLength::Full, 5).find_with(&run).unwrap();
    let asked = asked.into_inner();
    let first = asked[0].clone();
    let program = trial::spec(&first).unwrap().validate(None).unwrap();
    assert_eq!((program.threads.len(), program.file_pages(499).0), (500, 4096));
    assert_eq!(program.cpus, Some(256));
    let (high, max) = (program.machine.memory_high_bytes, program.machine.memory_max_bytes);
    assert_eq!(high, Some(1 << 30));
    assert_eq!(max.unwrap() / 4096, (1.2 * f64::from(1 << 30) / 4096.0) as u64);
    let longest = Trial { seconds: 600, ..first };
    let pages = [32, 128, 256, 384, 480, 576, 640, 704, 768, 896, 1024];
    let run = pages.iter().filter(|&&read_ahead_pages| {
        asked.contains(&Trial { read_ahead_pages, ..longest.clone() })
    });
    assert_eq!(run.count(), 1, "600 s at the size that is inferred");
}

#[test]
fn threads_of_one_vma_read_parts_of_one_file() {
    let base = small(&StudyExtent::for_length(StudyLength::Short).read_ahead_sweep(1)[0].trial);
    let trial = Trial { one_vma: true, writers: 2, ..base };
    let program = trial::spec(&trial).unwrap().validate(None).unwrap();
    assert_eq!((program.files.len(), program.mappings.len()), (1, 1));
    assert_eq!(program.threads.len() as u64, trial.threads + 2);
    let run = trial::run(&trial).unwrap();
    assert!(run.rounds > 0 && run.protections > 0, "{run:?}");
}

/// Note on the readahead size for a sweep with these rounds, drops and misses.
fn inferred(counts: [(u64, u64, u64); 3]) -> String {
    let run = |trials: &[Trial]| {
        let trial = |at: usize| {
            let (rounds, drops, misses) = counts[at / 2 % 3];
            let run = TrialRun { elapsed_ns: 1_000_000_000, rounds, drops, ..TrialRun::default() };
            TrialRun { retries: drops, misses, ..run }
        };
        Ok((0..trials.len()).map(trial).collect())
    };
    let found = vec![study(StudyLength::Brief, 1).find_with(&run).unwrap()];
    let text = Record::new(found, &[], String::new()).report().render(Format::Table);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn infers_readahead_size_with_progress() {
    let near = inferred([(2, 200, 1), (2, 100, 40), (2, 100, 30)]);
    assert!(near.contains("480 pages (1920 KiB) come nearest"), "{near}");
    assert!(near.contains("the model has 40.0 there"), "{near}");
    let between = inferred([(2, 200, 1), (0, 100, 45), (2, 100, 30)]);
    assert!(between.contains("640 pages (2560 KiB) come nearest"), "{between}");
    let none = inferred([(0, 5, 0), (0, 5, 0), (0, 5, 0)]);
    assert!(none.contains("Nothing can be inferred") && none.contains("256 pages"), "{none}");
}
