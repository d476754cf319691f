//! Shrinks jobs that flags describe.

use filemap_job::{JobFlags, PhaseSpec};

use super::{JobVariations, Shrinks, fewer_accesses, smaller_files, without_one};

/// Keys of jobs and phases that are shrunk but never dropped: their defaults are larger, or make it
/// another job.
const KEPT: [&str; 5] = ["workload", "accesses", "fraction", "file_size", "phase"];

impl Shrinks for JobFlags {
    fn smaller(&self, last: Option<u64>) -> Vec<JobFlags> {
        let mut smaller = JobVariations { of: self, jobs: Vec::new() };
        if let Some(access) = last {
            smaller.with(|job| job.phase = up_to(&self.phase, access));
        }
        for phase in 0..self.phase.len() {
            if self.phase.len() > 1 {
                smaller.with(|job| drop(job.phase.remove(phase)));
            }
        }
        for (phase, spec) in self.phase.iter().enumerate() {
            for fewer in fewer_accesses(spec.accesses.unwrap_or(1)) {
                smaller.with(|job| job.phase[phase].accesses = Some(fewer));
            }
        }
        smaller.with(|job| (job.split, job.split_prot) = (None, None));
        smaller.with(|job| (job.map_offset, job.map_len) = (None, None));
        smaller.without_a_key();
        for size in smaller_files(self.file_size.as_ref()) {
            smaller.with(|job| job.file_size = size);
        }
        if let Some(split) = self.split {
            smaller.with(|job| job.split = Some((split / 2).max(1)));
        }
        smaller.jobs
    }

    fn without_a_key(&self) -> Vec<JobFlags> {
        let phases = (0..self.phase.len()).map(|phase| format!("/phase/{phase}"));
        let places: Vec<String> = [String::new()].into_iter().chain(phases).collect();
        without_one(self, &places, &KEPT)
    }
}

/// `phases` truncated after access number `access`.
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
    fn cuts_flags_after_access() {
        let all = phases(&[3, 4, 5]);
        for (access, left) in
            [(0, vec![1]), (2, vec![3]), (3, vec![3, 1]), (11, vec![3, 4, 5]), (99, vec![3, 4, 5])]
        {
            assert_eq!(up_to(&all, access), phases(&left), "{access}");
        }
    }
}
