//! Programs and trials for tests.

use filemap_job::JobSpec;
use filemap_job::program::Job;

use super::answer::Answer;
use super::record::{AdviceTrial, FileAdvice};
use super::{AdviceChange, AdviceTarget, AdviseRecord, FileContents, TrialOutcome};

/// The only mapping of the only file, as a target.
pub fn on(name: &str) -> AdviceTarget {
    AdviceTarget { file: 0, name: name.to_string(), numbers: vec![0] }
}

/// Mappings of the only file.
pub fn target(numbers: &[usize]) -> AdviceTarget {
    AdviceTarget { numbers: numbers.to_vec(), ..on("a") }
}

/// A program that maps a file of 256 pages: see [`program_of`].
pub fn program(more: &str, phases: &str) -> Job {
    program_of("1m", more, phases)
}

/// A program that maps a file of this size as `m`. `more` has further keys of its mappings, and its
/// only thread has `phases`.
pub fn program_of(size: &str, more: &str, phases: &str) -> Job {
    let text = format!(
        "[[file]]\nname = 'a'\nsize = '{size}'\n[[open]]\nname = 'a'\nfile = 'a'\n\
         [[mapping]]\nname = 'm'\nopen = 'a'\n{more}[[thread]]\n{phases}"
    );
    let mut program = JobSpec::from_toml(&text).unwrap().validate(None).unwrap();
    program.files[0].file.path = Some("/data/a".to_string());
    program
}

/// Outcome of one file, with time proportional to latency.
pub fn outcome(pages: u64, ms: u64) -> TrialOutcome {
    TrialOutcome {
        data_pages_read: pages,
        files: vec![pages],
        major_faults: 3,
        elapsed_ns: ms * 1_000_000,
        elapsed_ns_at_half_latency: ms * 500_000,
        elapsed_ns_at_double_latency: ms * 2_000_000,
    }
}

/// Advice for a program with one file after trying `changes` one by one, before conclusions.
pub fn tried(now: TrialOutcome, changes: Vec<(AdviceChange, TrialOutcome)>) -> AdviseRecord {
    let file = FileAdvice {
        name: "data.mdb".to_string(),
        contents: FileContents::Other,
        pages_read: now.data_pages_read,
        pages_used: 3000,
        answer: Answer::default(),
        number: 0,
    };
    let tried =
        changes.into_iter().map(|(change, outcome)| AdviceTrial::new(vec![change], outcome));
    AdviseRecord {
        files: vec![file],
        pages_used: 3000,
        now,
        tried: tried.collect(),
        page_bytes: 4096,
        read_ahead_kb: 8192,
        latency_ns: 54_000,
        ..AdviseRecord::default()
    }
}
