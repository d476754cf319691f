//! The model against a real kernel under memory limits: `data/measured-6.12-limits.json`.

use crate::support::emulated::in_time;
use crate::support::recorded::{Counts, Recorded, Recording};
use filemap_job::Job;
use filemap_model::trace;

/// Minimum number of jobs, runs of each, and maximum number of jobs with a known deviation.
const JOBS: usize = 51;
const REPEATS: usize = 2;
const DEVIATIONS: usize = 19;

/// Maximum error of the model, as a fraction of the kernel's count.
const PAGES_ERROR: f64 = 0.02;
const MAJOR_ERROR: f64 = 0.03;
const CACHED_ERROR: f64 = 0.01;

/// Some runs have few major faults: a difference of this many is no error.
const MAJOR_FAULTS: u64 = 10;

/// Maximum change of the model from its known count in jobs with a known deviation.
const KNOWN_ERROR: f64 = 0.005;

/// The counts of the model on a machine that takes as long for the job as the kernel did.
fn modelled(job: &Job, elapsed_ns: u64) -> Counts {
    let run = |profile| trace(job, &profile, &mut ()).unwrap();
    let run = in_time(elapsed_ns, run, |run| run.elapsed_ns.unwrap());
    Counts {
        data_pages_read: run.counters.data_pages_read.unwrap(),
        major_faults: run.counters.major_faults.unwrap(),
        cached_inside: run.cached.inside.unwrap(),
        elapsed_ns: run.elapsed_ns.unwrap(),
    }
}

/// Whether each counter of `ours` is that of `theirs`, within these fractions of it: pages read,
/// major faults, where a difference of `few` is allowed, and cached pages.
fn agree(ours: &Counts, theirs: &Counts, errors: [f64; 3], few: u64) -> bool {
    let within = |ours: u64, theirs: u64, error: f64, few: u64| {
        ours.abs_diff(theirs) <= few.max((theirs as f64 * error).ceil() as u64)
    };
    within(ours.data_pages_read, theirs.data_pages_read, errors[0], 0)
        && within(ours.major_faults, theirs.major_faults, errors[1], few)
        && within(ours.cached_inside, theirs.cached_inside, errors[2], 0)
}

/// The allowed errors of the model in a job: of pages read, major faults and cached pages.
fn errors(recording: &Recording) -> [f64; 3] {
    match &recording.pages_error {
        Some(error) => [error.part, MAJOR_ERROR, error.part],
        None => [PAGES_ERROR, MAJOR_ERROR, CACHED_ERROR],
    }
}

/// The error in the model's counts of one job, if any.
fn wrong(recording: &Recording, model: &[Counts]) -> Option<String> {
    let errors = errors(recording);
    let agrees = recording
        .repeats
        .iter()
        .zip(model)
        .all(|(kernel, model)| agree(model, kernel, errors, MAJOR_FAULTS));
    let what = match &recording.deviation {
        None if agrees => return None,
        None => "it differs from the kernel",
        Some(_) if agrees => "it agrees with the kernel now: remove its deviation",
        Some(known) => {
            let mut pairs = known.model.iter().zip(model);
            let is_known = known.model.len() == model.len()
                && pairs.all(|(known, model)| agree(model, known, [KNOWN_ERROR; 3], 1));
            if is_known {
                return None;
            }
            "it differs from the kernel, but not as it was known to"
        }
    };
    let kernel = serde_json::to_string(&recording.repeats).unwrap();
    let model = serde_json::to_string(model).unwrap();
    Some(format!("{}: {what}\n  kernel {kernel}\n  model  {model}", recording.name))
}

#[test]
fn runs_under_memory_limits_are_those_of_linux_6_12() {
    let recorded = Recorded::load();
    assert!(recorded.kernel.starts_with("6.12."), "{}", recorded.kernel);
    assert!(recorded.runs.len() >= JOBS, "{} jobs", recorded.runs.len());
    let mut found = Vec::new();
    let mut deviations = 0;
    for recording in &recorded.runs {
        assert!(recording.repeats.len() >= REPEATS, "{}", recording.name);
        let job = recording.job("6.12", None).unwrap();
        let model = recording.repeats.iter().map(|run| modelled(&job, run.elapsed_ns));
        found.extend(wrong(recording, &model.collect::<Vec<_>>()));
        deviations += usize::from(recording.deviation.is_some());
    }
    assert!(found.is_empty(), "{} of {}\n{}", found.len(), recorded.runs.len(), found.join("\n"));
    assert!(deviations <= DEVIATIONS, "{deviations} jobs are known to deviate");
}
