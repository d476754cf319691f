//! Wrong rules that are tried at once: a job that shows none of them needs one run.

use std::collections::{BTreeMap, BTreeSet};

use filemap_job::random::Rng;

use super::mutant::Mutant;

/// Most groups.
const MOST: u64 = 10;

/// Each wrong rule is in one group, which has one way of a site.
pub struct Groups {
    sites: Vec<usize>,
    group: Vec<u64>,
    rng: Rng,
}

impl Groups {
    /// As few as there can be.
    pub fn new(mutants: &[Mutant]) -> Groups {
        let sites: Vec<usize> = mutants.iter().map(|mutant| mutant.site).collect();
        let rank =
            |of: usize| sites[..of].iter().rev().take_while(|site| **site == sites[of]).count();
        let group = (0..sites.len()).map(|of| rank(of) as u64).collect();
        Groups { sites, group, rng: Rng(1) }
    }

    /// The groups of these.
    pub fn of(&self, all: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for of in all {
            groups.entry(self.group[*of]).or_default().push(*of);
        }
        groups.into_values().collect()
    }

    /// `some` of a group make a difference only together with others of it: they go elsewhere.
    pub fn part(&mut self, some: &[usize]) {
        for of in some {
            let site = self.sites[*of];
            let first = self.sites.partition_point(|other| *other < site);
            let end = self.sites.partition_point(|other| *other <= site);
            let taken: BTreeSet<u64> = (first..end).map(|other| self.group[other]).collect();
            let group = self.rng.below(MOST);
            if !taken.contains(&group) {
                self.group[*of] = group;
            }
        }
    }
}
