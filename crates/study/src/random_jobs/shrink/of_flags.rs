//! Smaller jobs of flags.

use filemap_job::{JobSpec, PhaseSpec};

use super::{Shrinks, without_one};
use crate::random_jobs::{PAGE, size};

/// Keys of jobs and of phases that are made smaller and not dropped: what they are by default is
/// more, or another job.
const KEPT: [&str; 5] = ["workload", "accesses", "fraction", "file_size", "phase"];

impl Shrinks for JobSpec {
    fn smaller(&self, last: Option<u64>) -> Vec<JobSpec> {
        let spec = self;
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
        with(&|job| (job.map_offset, job.map_len) = (None, None));
        spec.without_a_key().into_iter().for_each(|less| with(&|job| job.clone_from(&less)));
        // Fewer pages, and no part of one.
        let bytes = spec.file_size.as_ref().and_then(|size| size.bytes().ok()).unwrap_or(0);
        let pages = bytes.div_ceil(PAGE);
        for fewer in [pages / 8, pages / 2, pages - pages / 8, pages] {
            with(&|job| job.file_size = size(fewer.max(1)));
        }
        if let Some(split) = spec.split {
            with(&|job| job.split = Some((split / 2).max(1)));
        }
        jobs
    }

    fn without_a_key(&self) -> Vec<JobSpec> {
        let phases = (0..self.phase.len()).map(|phase| format!("/phase/{phase}"));
        let places: Vec<String> = [String::new()].into_iter().chain(phases).collect();
        without_one(self, &places, &KEPT)
    }
}

/// `phases` without what comes after the access of this number.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(accesses: &[u64]) -> Vec<PhaseSpec> {
        let phase =
            |accesses: &u64| PhaseSpec { accesses: Some(*accesses), ..PhaseSpec::default() };
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
}
