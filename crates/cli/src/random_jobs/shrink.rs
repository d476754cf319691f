//! The smallest job that still shows something.

use filemap_job::{JobSpec, SizeText};

use super::PAGE;
use crate::error::Error;

/// The smallest job found that still shows what `spec` does, after at most `most` tries, and what
/// it shows. `shows` says what a job shows, if it does.
///
/// # Errors
/// Those of `shows`.
pub fn shrink<T>(
    spec: &JobSpec,
    found: T,
    most: u32,
    mut shows: impl FnMut(&JobSpec) -> Result<Option<T>, Error>,
) -> Result<(JobSpec, T), Error> {
    let mut best = (spec.clone(), found);
    let mut tries = 0;
    'smaller: loop {
        for spec in smaller(&best.0) {
            tries += 1;
            if tries > most {
                break 'smaller;
            }
            if let Some(found) = shows(&spec)? {
                best = (spec, found);
                continue 'smaller;
            }
        }
        break;
    }
    Ok(best)
}

/// Jobs that are a little simpler than `spec`, the simplest first.
fn smaller(spec: &JobSpec) -> Vec<JobSpec> {
    let mut jobs = Vec::new();
    let mut with = |change: &dyn Fn(&mut JobSpec)| {
        let mut job = spec.clone();
        change(&mut job);
        if job != *spec {
            jobs.push(job);
        }
    };
    for phase in 0..spec.phase.len() {
        if spec.phase.len() > 1 {
            with(&|job| drop(job.phase.remove(phase)));
        }
    }
    for phase in 0..spec.phase.len() {
        let accesses = spec.phase[phase].accesses.unwrap_or(1);
        for fewer in [accesses / 8, accesses / 2, accesses - accesses / 8, accesses - 1] {
            with(&|job| job.phase[phase].accesses = Some(fewer.max(1)));
        }
    }
    with(&|job| (job.split, job.split_prot) = (None, None));
    with(&|job| job.map_shift = None);
    with(&|job| job.exec = None);
    with(&|job| job.private = None);
    with(&|job| job.advice = None);
    with(&|job| (job.map_offset, job.map_len) = (None, None));
    with(&|job| job.fs = None);
    with(&|job| (job.cache_limit, job.fault_around) = (None, None));
    with(&|job| job.read_ahead_kb = None);
    with(&|job| job.seed = None);
    for phase in 0..spec.phase.len() {
        with(&|job| job.phase[phase].bs = None);
    }
    // Fewer pages, and no part of one.
    let bytes = spec.file_size.as_ref().and_then(|size| size.bytes().ok()).unwrap_or(0);
    let pages = bytes.div_ceil(PAGE);
    for fewer in [pages / 8, pages / 2, pages - pages / 8, pages] {
        with(&|job| job.file_size = Some(SizeText((fewer.max(1) * PAGE).to_string())));
    }
    // Of threads that wait for each other.
    with(&|job| (job.writers, job.noise_threads) = (None, None));
    with(&|job| job.noise_threads = None);
    with(&|job| job.memory_high = None);
    with(&|job| job.sparse = None);
    with(&|job| job.cpus = None);
    for fewer in [2, 4, 8] {
        with(&|job| job.threads = job.threads.map(|threads| threads.min(fewer)));
    }
    with(&|job| job.rounds = job.rounds.map(|rounds| (rounds / 2).max(1)));
    if let Some(split) = spec.split {
        with(&|job| job.split = Some((split / 2).max(1)));
    }
    jobs
}
