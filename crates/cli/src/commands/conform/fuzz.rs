//! Random patterns, and smaller ones that still differ.

use filemap_job::random::{self, Rng};
use filemap_job::{Job, JobSpec, PhaseSpec, SizeText};
use filemap_report::conform::Comparison;

use crate::error::Error;

/// Most jobs that are tried to shrink one.
const MAX_ATTEMPTS: usize = 150;

/// Seed of the patterns where none is given.
const DEFAULT_SEED: u64 = 1;

const PAGE: u64 = 4096;

/// `jobs` random patterns; `flags` may give a seed, and nothing else.
///
/// # Errors
/// When other flags are given.
pub fn named(jobs: u64, mut flags: JobSpec) -> Result<Vec<(String, JobSpec)>, Error> {
    let seed = seed(&flags);
    flags.seed = None;
    if flags != JobSpec::default() {
        let message = "--fuzz draws its own jobs; give it --seed only, or leave it out";
        return Err(Error::Usage(message.to_string()));
    }
    let name = |number| format!("random {seed}/{number}");
    Ok((0..jobs).map(|number| (name(number), random_spec(seed, number))).collect())
}

/// The seed of the patterns that `flags` ask for.
pub fn seed(flags: &JobSpec) -> u64 {
    flags.seed.unwrap_or(DEFAULT_SEED)
}

/// The smallest job found that still differs. `differing` gives the first of several that does,
/// if any.
pub fn shrink(
    spec: &JobSpec,
    job: Job,
    found: Comparison,
    mut differing: impl FnMut(&[JobSpec]) -> Result<Option<(usize, Job, Comparison)>, Error>,
) -> Result<(Job, Comparison), Error> {
    let mut best = (spec.clone(), job, found);
    let mut left = MAX_ATTEMPTS;
    while left > 0 {
        let access = best.2.first.as_ref().and_then(|first| first.access);
        let mut specs = smaller(&best.0, access);
        specs.truncate(left);
        match differing(&specs)? {
            Some((at, job, found)) => {
                left -= at + 1;
                best = (specs.swap_remove(at), job, found);
            }
            None => break,
        }
    }
    Ok((best.1, best.2))
}

/// Jobs that are simpler than `spec`, which differs first in the access of this number: the
/// simplest first.
fn smaller(spec: &JobSpec, access: Option<u64>) -> Vec<JobSpec> {
    let mut jobs = Vec::new();
    let mut with = |change: &dyn Fn(&mut JobSpec)| {
        let mut job = spec.clone();
        change(&mut job);
        if job != *spec {
            jobs.push(job);
        }
    };
    if let Some(access) = access {
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
    jobs
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

/// Pattern `number` of those that `seed` stands for: what a running kernel can do.
fn random_spec(seed: u64, number: u64) -> JobSpec {
    let mut rng = Rng(Rng(seed).next() ^ number);
    let (least, most) = rng.pick(&[(1, 40), (40, 700), (700, 6000), (700, 6000), (6000, 30_000)]);
    let pages = least + rng.below(most - least);
    let bytes = pages * PAGE - rng.pick(&[0, 0, 1, 4095]);
    let offset = if rng.chance(50) { rng.below(pages) } else { 0 };
    let length = if rng.chance(50) { pages - offset } else { 1 + rng.below(pages - offset) };
    let split = rng.chance(25).then(|| 1 + rng.below(length.min(700)));
    let size = |pages: u64| Some(SizeText((pages * PAGE).to_string()));
    let phases = 1 + rng.below(6);
    let mut spec = JobSpec {
        seed: Some(1 + rng.below(1 << 40)),
        file_size: Some(SizeText(bytes.to_string())),
        map_offset: size(offset),
        map_len: size(length),
        map_shift: rng.chance(30).then(|| rng.below(512)),
        split,
        split_prot: split.map(|_| rng.pick(&["write", "exec"]).to_string()),
        advice: rng
            .chance(40)
            .then(|| rng.pick(&["random", "sequential", "hugepage", "normal"]).to_string()),
        exec: rng.chance(15).then_some(true),
        private: rng.chance(15).then_some(true),
        read_ahead_kb: Some(rng.pick(&READ_AHEAD_KB)),
        fs: Some(rng.pick(&["ext4", "xfs"]).to_string()),
        phase: (0..phases).map(|_| random_phase(&mut rng, length)).collect(),
        ..JobSpec::default()
    };
    // Pieces that are protected so already are none.
    spec.split_prot = match (spec.private, spec.exec) {
        (Some(true), Some(true)) => None,
        (Some(true), _) => split.map(|_| "exec".to_string()),
        (_, Some(true)) => split.map(|_| "write".to_string()),
        _ => spec.split_prot,
    };
    spec.split = split.filter(|_| spec.split_prot.is_some());
    // Advice is a set, of which the huge-page flag goes with either kind of reading.
    if number % 4 == 1
        && let Some(advice @ ("random" | "sequential")) = spec.advice.as_deref()
    {
        spec.advice = Some(format!("{advice},hugepage"));
    }
    spec
}

/// Readahead sizes, the usual ones more than once.
const READ_AHEAD_KB: [u64; 16] =
    [0, 4, 16, 60, 64, 128, 128, 128, 200, 256, 512, 1000, 1024, 2048, 8192, 8192];

/// Sizes of reads.
const READS: [&str; 9] = ["512", "4k", "4k", "5000", "16k", "64k", "300k", "1m", "5m"];

fn random_phase(rng: &mut Rng, pages: u64) -> PhaseSpec {
    let workload = random::workload(rng, pages, true);
    let most = rng.pick(&[10, 100, 1500]);
    PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(1 + rng.below(most)),
        bs: workload.is_read().then(|| SizeText(rng.pick(&READS).into())),
        ..PhaseSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(accesses: &[u64]) -> Vec<PhaseSpec> {
        let phase = |accesses: &u64| PhaseSpec {
            workload: Some("random".to_string()),
            accesses: Some(*accesses),
            ..PhaseSpec::default()
        };
        accesses.iter().map(phase).collect()
    }

    #[test]
    fn what_comes_behind_an_access_is_cut_off() {
        let all = phases(&[3, 4, 5]);
        for (access, left) in
            [(0, vec![1]), (2, vec![3]), (3, vec![3, 1]), (11, vec![3, 4, 5]), (99, vec![3, 4, 5])]
        {
            assert_eq!(up_to(&all, access), phases(&left), "{access}");
        }
    }

    /// A job that differs whenever its second phase has at least 3 accesses comes down to that.
    #[test]
    fn the_smallest_job_that_differs_is_found() {
        let spec = JobSpec { file_size: Some(SizeText("1m".to_string())), ..JobSpec::default() };
        let reverse = |accesses| PhaseSpec {
            workload: Some("reverse".to_string()),
            accesses: Some(accesses),
            ..PhaseSpec::default()
        };
        let phase = [phases(&[40]), vec![reverse(60)], phases(&[9])].concat();
        let spec = JobSpec { phase, private: Some(true), ..spec };
        let job = spec.clone().validate(None).unwrap();
        let differs = |spec: &JobSpec| {
            let of = |phase: &PhaseSpec| phase.workload.as_deref() == Some("reverse");
            spec.phase.iter().any(|phase| of(phase) && phase.accesses >= Some(3))
        };
        let mut tried = 0;
        let (smallest, _) = shrink(&spec, job, Comparison::default(), |specs| {
            tried += specs.len();
            let found = specs.iter().position(differs);
            Ok(found
                .map(|at| (at, specs[at].clone().validate(None).unwrap(), Comparison::default())))
        })
        .unwrap();
        assert_eq!(smallest.to_spec().phase.len().max(1), 1);
        assert_eq!(smallest.phases[0].accesses, 3);
        assert!(!smallest.mapping.private && tried > 5, "{tried}");
    }
}
