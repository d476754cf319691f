//! The smallest job that still shows something.

use filemap_job::{JobSpec, PhaseSpec, SizeText};

use super::PAGE;
use crate::error::Error;

/// The smallest job found that still shows what `spec` does, after at most `most` tries, and what
/// it shows. `shows` gives the first of several jobs that does, by its position, and what it shows;
/// `last` is the number of the access behind which a job shows nothing more, where that is known.
///
/// # Errors
/// Those of `shows`.
pub fn shrink<T>(
    spec: &JobSpec,
    found: T,
    most: usize,
    last: impl Fn(&T) -> Option<u64>,
    mut shows: impl FnMut(&[JobSpec]) -> Result<Option<(usize, T)>, Error>,
) -> Result<(JobSpec, T), Error> {
    let mut best = (spec.clone(), found);
    let mut left = most;
    while left > 0 {
        let mut specs = smaller(&best.0, last(&best.1));
        specs.truncate(left);
        let Some((at, found)) = shows(&specs)? else { break };
        left -= at + 1;
        best = (specs.swap_remove(at), found);
    }
    Ok(best)
}

/// `phases` without what comes behind the access of this number.
fn up_to(phases: &[PhaseSpec], access: u64) -> Vec<PhaseSpec> {
    let mut left = access.saturating_add(1);
    let mut kept = Vec::new();
    for phase in phases {
        let accesses = phase.accesses.unwrap_or(1).min(left);
        kept.extend((left > 0).then(|| PhaseSpec { accesses: Some(accesses), ..phase.clone() }));
        left -= accesses;
    }
    kept
}

/// Jobs that are simpler than `spec`, the simplest first. Of one in which nothing matters behind
/// the access of number `last`, first what comes before.
fn smaller(spec: &JobSpec, last: Option<u64>) -> Vec<JobSpec> {
    let mut jobs = Vec::new();
    let mut with = |change: &dyn Fn(&mut JobSpec)| {
        let mut job = spec.clone();
        change(&mut job);
        if job != *spec {
            jobs.push(job);
        }
    };
    if let Some(access) = last {
        with(&|job| job.phase = up_to(&spec.phase, access));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(workload: &str, accesses: &[u64]) -> Vec<PhaseSpec> {
        let phase = |accesses: &u64| PhaseSpec {
            workload: Some(workload.to_string()),
            accesses: Some(*accesses),
            ..PhaseSpec::default()
        };
        accesses.iter().map(phase).collect()
    }

    #[test]
    fn what_comes_behind_an_access_is_cut_off() {
        let all = phases("random", &[3, 4, 5]);
        for (access, left) in
            [(0, vec![1]), (2, vec![3]), (3, vec![3, 1]), (11, vec![3, 4, 5]), (99, vec![3, 4, 5])]
        {
            assert_eq!(up_to(&all, access), phases("random", &left), "{access}");
        }
    }

    /// A job that shows something whenever a phase has at least 3 accesses in reverse comes down
    /// to that.
    #[test]
    fn the_smallest_job_that_shows_it_is_found() {
        let phase =
            [phases("random", &[40]), phases("reverse", &[60]), phases("random", &[9])].concat();
        let file_size = Some(SizeText("1m".to_string()));
        let spec = JobSpec { phase, file_size, private: Some(true), ..JobSpec::default() };
        let shows = |spec: &JobSpec| {
            let of = |phase: &PhaseSpec| phase.workload.as_deref() == Some("reverse");
            spec.phase.iter().any(|phase| of(phase) && phase.accesses >= Some(3))
        };
        let mut tried = 0;
        let found = |specs: &[JobSpec]| {
            tried += specs.len();
            Ok(specs.iter().position(shows).map(|at| (at, ())))
        };
        let (smallest, ()) = shrink(&spec, (), 150, |()| None, found).unwrap();
        assert_eq!(smallest.phase, phases("reverse", &[3]));
        assert!(smallest.private.is_none() && tried > 5, "{tried}");
    }
}
