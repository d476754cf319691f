//! Draws the jobs of a search: random ones, and variations of findings.

use filemap_job::random::Rng;
use filemap_job::{JobFlags, PhaseSpec, SizeText, parse_size};

use crate::random_jobs::{self, PAGE, READ_AHEAD_KB, size};

/// Maximum file size in pages.
const MAX_FILE_PAGES: u64 = 16_384;

/// Maximum number of accesses of a phase.
const MAX_PHASE_ACCESSES: u64 = 8192;

/// The space of jobs: keys that the user has fixed.
pub struct JobSpace {
    fixed: JobFlags,
}

impl JobSpace {
    /// The space with the keys in `flags` fixed.
    pub fn new(flags: JobFlags) -> JobSpace {
        JobSpace { fixed: flags }
    }

    /// Machine keys of the jobs, and the kernel if it is not `kernel`.
    pub(super) fn machine_keys(&self, kernel: Option<String>) -> JobFlags {
        let kernel = kernel.or(self.fixed.kernel.clone());
        JobFlags { kernel, machine: self.fixed.machine.clone(), ..JobFlags::default() }
    }

    /// Random job `number` of `seed`.
    pub fn random_job(&self, seed: u64, number: u64) -> JobFlags {
        let mut job = random_jobs::draw_job(seed, number);
        let mut rng = Rng(Rng(seed ^ number).next());
        let pages = pages(&job.file_size);
        if rng.chance(30) {
            job.cache_limit = size((pages / (2 + rng.below(8))).max(512));
        }
        if rng.chance(20) {
            job.fault_around = Some(SizeText(rng.pick(&["4k", "16k", "256k"]).to_string()));
        }
        self.with_fixed_keys(job)
    }

    /// A variation of `job` in one or a few keys.
    pub fn vary_job(&self, job: &JobFlags, rng: &mut Rng) -> JobFlags {
        let mut changed = job.clone();
        for _ in 0..1 + rng.below(3) {
            redraw_key(&mut changed, rng);
        }
        self.with_fixed_keys(changed)
    }

    /// Whether `job` has the fixed keys.
    pub fn has(&self, job: &JobFlags) -> bool {
        self.with_fixed_keys(job.clone()) == *job
    }

    /// `job` with the fixed keys. A fixed workload applies to each phase.
    fn with_fixed_keys(&self, mut job: JobFlags) -> JobFlags {
        let mut fixed = self.fixed.clone();
        let (workload, accesses) = (fixed.workload.take(), fixed.accesses.take());
        let (fraction, bs) = (fixed.fraction.take(), fixed.bs.take());
        for phase in &mut job.phase {
            if workload.is_some() {
                phase.workload.clone_from(&workload);
                phase.bs.clone_from(&bs);
            }
            if accesses.is_some() || fraction.is_some() {
                (phase.accesses, phase.fraction) = (accesses, fraction);
            }
        }
        if fixed.file_size.is_some() {
            (job.map_offset, job.map_len) = (None, None);
        }
        job.overlay(fixed)
    }
}

/// Pages of a size, rounded up.
fn pages(size: &Option<SizeText>) -> u64 {
    let bytes = size.as_ref().and_then(|size| parse_size(&size.0).ok());
    bytes.unwrap_or(0).div_ceil(PAGE)
}

/// Doubles, halves, increments or decrements `number`, within 1 and `most`.
fn vary_number(rng: &mut Rng, number: u64, most: u64) -> u64 {
    let other = match rng.below(4) {
        0 => number.saturating_mul(2),
        1 => number / 2,
        2 => number + 1,
        _ => number.saturating_sub(1),
    };
    other.clamp(1, most)
}

/// Redraws one key of `job`.
fn redraw_key(job: &mut JobFlags, rng: &mut Rng) {
    let mapped = pages(&job.map_len).max(1);
    match rng.below(11) {
        0 => {
            let pages = vary_number(rng, pages(&job.file_size), MAX_FILE_PAGES);
            job.file_size = size(pages);
            (job.map_offset, job.map_len) = (size(0), size(pages));
        }
        1 => {
            let split = match job.split {
                Some(_) if rng.chance(20) => None,
                Some(split) => Some(vary_number(rng, split, mapped)),
                None => Some(1 + rng.below(mapped.min(64))),
            };
            job.split = split;
            let is_private = job.private == Some(true) || job.exec == Some(true);
            let kind = split.filter(|_| !is_private).map(|_| rng.pick(&["write", "exec"]));
            job.split_prot = kind.map(str::to_string);
            job.split = split.filter(|_| kind.is_some());
        }
        2 => job.read_ahead_kb = Some(rng.pick(&READ_AHEAD_KB)),
        3 => {
            let advice = rng.pick(&["normal", "normal", "random", "sequential", "hugepage"]);
            job.advice = Some(advice.to_string());
        }
        4 => job.map_shift = rng.chance(50).then(|| rng.below(512)),
        5 => {
            job.cache_limit =
                rng.chance(50).then(|| size((mapped / (2 + rng.below(8))).max(512))).flatten();
        }
        6 if job.phase.len() > 1 => {
            drop(job.phase.remove(rng.below(job.phase.len() as u64) as usize))
        }
        7 if job.phase.len() < 6 => job.phase.push(random_jobs::phase(rng, mapped)),
        8 => {
            let around = rng.pick(&["4k", "16k", "64k", "256k"]);
            job.fault_around = Some(SizeText(around.to_string()));
        }
        9 => job.seed = Some(1 + rng.below(1 << 40)),
        _ => change_phase(job, rng, mapped),
    }
}

fn change_phase(job: &mut JobFlags, rng: &mut Rng, mapped: u64) {
    let which = rng.below(job.phase.len().max(1) as u64) as usize;
    let Some(phase) = job.phase.get_mut(which) else { return };
    match (rng.below(3), phase.accesses) {
        (0, Some(accesses)) => {
            phase.accesses = Some(vary_number(rng, accesses, MAX_PHASE_ACCESSES))
        }
        // One access for each page.
        (1, Some(_)) => phase.accesses = Some(mapped.min(MAX_PHASE_ACCESSES)),
        _ => {
            let PhaseSpec { workload, bs, .. } = random_jobs::phase(rng, mapped);
            (phase.workload, phase.bs) = (workload, bs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_drawn_jobs_are_valid() {
        let fixed = JobFlags::from_toml("read_ahead_kb = 128\nfile_size = '4m'").unwrap();
        for space in [JobSpace::new(JobFlags::default()), JobSpace::new(fixed.clone())] {
            let mut rng = Rng(1);
            let mut valid = 0;
            for number in 0..200 {
                let drawn = space.random_job(7, number);
                let changed = space.vary_job(&drawn, &mut rng);
                for job in [drawn, changed] {
                    assert_eq!(job.clone().overlay(space.fixed.clone()), job);
                    valid += u32::from(job.validate(None).is_ok());
                }
            }
            assert!(valid > 340, "{valid} of 400");
        }
    }
}
