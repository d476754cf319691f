//! Random patterns of `conform`. Three of four are a built-in pattern with other random numbers and
//! at most one change, since a completely random job reaches most rules only once in hundreds.

use filemap_job::random::Rng;
use filemap_job::{JobFlags, SizeText, parse_size};

use super::patterns;
use crate::random_jobs::{self, PAGE, READ_AHEAD_KB};

/// One pattern in this many is completely random.
const AT_LARGE: u64 = 4;

/// Random pattern `number` of `seed`. A running kernel can execute it.
pub fn draw_pattern(seed: u64, number: u64) -> JobFlags {
    let (round, place) = (number / AT_LARGE, number % AT_LARGE);
    if place == AT_LARGE - 1 {
        return random_jobs::draw_job(seed, number);
    }
    // In the order of patterns.toml: the patterns that detect most additional mutants come first.
    // Patterns with tables are not used.
    let all: Vec<&JobFlags> = patterns::flags().collect();
    let mut job = all[(round * (AT_LARGE - 1) + place) as usize % all.len()].clone();
    let mut rng = Rng(Rng(seed).next() ^ number);
    job.seed = Some(1 + rng.below(1 << 40));
    if rng.chance(67) {
        change(&mut rng, &mut job);
    }
    job
}

/// Redraws one property of `job`.
fn change(rng: &mut Rng, job: &mut JobFlags) {
    match rng.below(8) {
        0 | 1 => {
            job.accesses = job.accesses.map(|accesses| about(rng, accesses));
            for phase in &mut job.phase {
                phase.accesses = phase.accesses.map(|accesses| about(rng, accesses));
            }
        }
        2 | 3 => job.file_size = job.file_size.as_ref().map(|size| longer(rng, size)),
        4 => job.read_ahead_kb = Some(rng.pick(&READ_AHEAD_KB)),
        5 => job.fs = Some(rng.pick(&["ext4", "xfs"]).to_string()),
        6 => job.map_shift = Some(rng.below(512)),
        // The protections of split pieces depend on `exec` and `private`.
        _ if job.split.is_some() => {}
        _ if rng.chance(50) => job.exec = Some(job.exec != Some(true)),
        _ => job.private = Some(job.private != Some(true)),
    }
}

/// Three to five quarters of `accesses`.
fn about(rng: &mut Rng, accesses: u64) -> u64 {
    (accesses - accesses / 4 + rng.below(accesses / 2 + 1)).max(1)
}

/// A size up to an eighth larger, so that the mapping still covers part of the file.
fn longer(rng: &mut Rng, size: &SizeText) -> SizeText {
    let pages = parse_size(&size.0).unwrap_or(PAGE).div_ceil(PAGE);
    let pages = pages + rng.below(pages / 8 + 1);
    SizeText::from_bytes(pages * PAGE - rng.pick(&[0, 0, 1, 4095]))
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::{Decision, Log};
    use filemap_model::{Profile, Timing, trace_timed};

    use super::*;

    /// The highest counter at which a fault read no window.
    #[derive(Default)]
    struct Misses {
        most: u16,
    }

    impl Log for Misses {
        fn record(&mut self, decision: Decision) {
            if let Decision::NoReadahead { mmap_miss, .. } = decision {
                self.most = self.most.max(mmap_miss);
            }
        }
    }

    #[test]
    fn some_of_a_few_patterns_pass_the_threshold_of_misses_and_their_cap() {
        let mut capped = 0;
        for seed in 1..4 {
            let most = (0..20).map(|number| {
                let job = draw_pattern(seed, number).validate(None).unwrap();
                let mut misses = Misses::default();
                trace_timed(&job, &Profile::DEFAULT, Timing::Settled, &mut misses).unwrap();
                misses.most
            });
            let most: Vec<u16> = most.collect();
            assert!(most.iter().any(|most| *most > 100), "{most:?}");
            capped += most.iter().filter(|most| **most == 1000).count();
        }
        assert!(capped >= 2, "{capped}");
    }

    #[test]
    fn every_pattern_is_a_job_and_some_are_drawn_at_large() {
        for number in 0..300 {
            let job = draw_pattern(7, number);
            assert!(job.clone().validate(None).is_ok(), "{number}: {job:?}");
            assert_eq!(job == random_jobs::draw_job(7, number), number % 4 == 3);
        }
    }
}
