//! What a search has found so far.

use std::collections::BTreeMap;

use filemap_study::search::Goal;

use super::Fate;
use super::tried::Tried;
use crate::error::Error;

/// What a search has found so far, by mechanism.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Jobs that were drawn.
    pub drawn: u64,
    /// Of these, those that are no jobs.
    pub left_out: u64,
    /// Of these, those in which both variants are the same job.
    pub alike: u64,
    /// What was found of each mechanism.
    pub mechanisms: BTreeMap<String, Kept>,
}

/// The jobs of one mechanism that are kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// How many were found.
    pub jobs: u64,
    /// The one with the fewest accesses.
    pub smallest: Tried,
    /// The one with the largest ratio.
    pub by_ratio: Tried,
    /// The one with the largest difference.
    pub by_cost: Tried,
}

impl Found {
    /// Adds what became of further jobs that were drawn. `reason` is why one was left out, if any.
    pub(super) fn add_all(
        &mut self,
        fates: impl Iterator<Item = Fate>,
        goal: Goal,
        reason: &mut Option<Error>,
    ) {
        for fate in fates {
            self.drawn += 1;
            match fate {
                Fate::LeftOut(error) => {
                    self.left_out += 1;
                    reason.get_or_insert(error);
                }
                Fate::Alike => self.alike += 1,
                Fate::Same => {}
                Fate::Found(mechanism, tried) => self.add(mechanism, *tried, goal),
            }
        }
    }

    /// Adds a job that differs by `mechanism`. Of equals the first one is kept.
    fn add(&mut self, mechanism: String, tried: Tried, goal: Goal) {
        let gain = |of: &Tried| goal.gain(&of.first, &of.second).unwrap_or((0.0, 0));
        let Some(kept) = self.mechanisms.get_mut(&mechanism) else {
            let [smallest, by_ratio, by_cost] = [(); 3].map(|()| tried.clone());
            self.mechanisms.insert(mechanism, Kept { jobs: 1, smallest, by_ratio, by_cost });
            return;
        };
        kept.jobs += 1;
        let (ratio, cost) = gain(&tried);
        if ratio > gain(&kept.by_ratio).0 {
            kept.by_ratio = tried.clone();
        }
        if cost > gain(&kept.by_cost).1 {
            kept.by_cost = tried.clone();
        }
        if tried.accesses < kept.smallest.accesses {
            kept.smallest = tried;
        }
    }
}
