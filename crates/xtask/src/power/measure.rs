//! Which wrong rules the patterns of conform tell on one kernel, and which any job does.

use std::collections::{BTreeMap, BTreeSet};

use filemap_job::{JobSpec, Written};
use serde::{Deserialize, Serialize};

use super::mutant::Mutant;
use super::telling::{On, Switches, Telling};
use super::{conform, random_jobs};

/// Seeds whose random patterns are measured.
pub const SEEDS: u64 = 5;

/// So many random patterns of each.
pub const PATTERNS: u64 = 20;

/// The seed of the jobs of which any counts.
const ANY: u64 = 1000;

/// What is told on one kernel: numbers of wrong rules.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Power {
    /// The kernel.
    pub on: String,
    /// By the built-in patterns, of those that any job of one mapping tells.
    pub built_in: BTreeSet<usize>,
    /// By the random patterns of each seed.
    pub random: Vec<BTreeSet<usize>>,
    /// By any job of one mapping.
    pub any: BTreeSet<usize>,
    /// Of those, each that no built-in pattern of one mapping tells, with the number of the
    /// first job that does.
    pub by_job: BTreeMap<usize, u64>,
    /// By built-in patterns with tables, and by no job of one mapping.
    pub by_tables: BTreeSet<usize>,
    /// At which of the rules that are made wrong it matters in any job that they are.
    pub reached: BTreeSet<usize>,
}

/// Measures it, with so many jobs beside the patterns.
pub fn measure(switches: &impl Switches, mutants: &[Mutant], on: &On, jobs: u64) -> Power {
    let telling = Telling::new(switches, mutants);
    let all: BTreeSet<usize> = (0..mutants.len()).collect();
    let mut power = Power { on: on.name(), ..Power::default() };
    let mut first_told = |jobs: &mut dyn Iterator<Item = Written>, open: &BTreeSet<usize>| {
        let mut open = open.clone();
        let mut told = BTreeMap::new();
        for (number, job) in (0..).zip(jobs) {
            let Some(found) = telling.told(&job, on, &open) else { continue };
            open.retain(|of| !found.told.contains(of));
            told.extend(found.told.into_iter().map(|of| (of, number)));
            power.reached.extend(found.reached);
        }
        told
    };
    let built_in = || conform::built_in().iter().map(|(_, job)| job.clone());
    let has_tables = |job: &Written| matches!(job, Written::Tables(_));
    let random = |seed| (0..PATTERNS).map(move |number| of_flags(conform::drawn(seed, number)));
    let mut of_flags_alone = built_in().filter(|job| !has_tables(job));
    let mut told = vec![keys(first_told(&mut of_flags_alone, &all))];
    for seed in 1..=SEEDS {
        told.push(keys(first_told(&mut random(seed), &all)));
    }
    let open = all.difference(&told[0]).copied().collect();
    let mut by_job = first_told(&mut (0..jobs).map(|number| of_flags(job(number))), &open);
    let any: BTreeSet<usize> = told.iter().flatten().chain(by_job.keys()).copied().collect();
    // One may hide another that is wrong at the same time: what is left is tried again with few.
    let left = |told: &BTreeSet<usize>| any.difference(told).copied().collect();
    let more = first_told(&mut built_in(), &left(&told[0]));
    told[0].extend(more.keys());
    by_job.retain(|of, _| !told[0].contains(of));
    for (seed, told) in (1..).zip(&mut told[1..]) {
        let more = first_told(&mut random(seed), &left(told));
        told.extend(more.keys());
    }
    let beyond = all.difference(&any).copied().collect();
    let by_tables = keys(first_told(&mut built_in().filter(has_tables), &beyond));
    let random = told.split_off(1);
    Power { built_in: told.remove(0), random, any, by_tables, by_job, ..power }
}

fn keys(told: BTreeMap<usize, u64>) -> BTreeSet<usize> {
    told.into_keys().collect()
}

fn of_flags(job: JobSpec) -> Written {
    Written::Flags(Box::new(job))
}

/// One of all jobs that a kernel can be compared in: as conform draws them, or at large.
pub fn job(number: u64) -> JobSpec {
    if number.is_multiple_of(2) {
        conform::drawn(ANY, number)
    } else {
        random_jobs::drawn(ANY, number)
    }
}
