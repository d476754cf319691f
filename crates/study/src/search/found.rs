//! What a search has found so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::goal::Goal;
use super::record::{Case, Group};
use crate::error::Error;

/// Jobs of a round: they are tried beside each other, before what was found is varied.
pub(super) const ROUND: u64 = 256;

/// What became of a job that was drawn.
pub(super) enum Fate {
    /// It is none.
    LeftOut(Error),
    /// Both variants are one job.
    Alike,
    /// It does not show what is looked for.
    Same,
    /// It does, by this mechanism.
    Found(String, Box<Case>),
}

/// What a search has found so far, by mechanism.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Found {
    /// Jobs that were drawn.
    pub drawn: u64,
    /// Of these, those that are no jobs.
    pub left_out: u64,
    /// Of these, those in which both variants are the same job.
    pub alike: u64,
    /// What was found of each mechanism.
    pub mechanisms: BTreeMap<String, Group>,
}

impl Found {
    /// Jobs that ran in both variants.
    pub(super) fn tried(&self) -> u64 {
        self.drawn - self.left_out - self.alike
    }

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
                Fate::Found(mechanism, case) => self.add(mechanism, *case, goal),
            }
        }
    }

    /// Adds a job that differs by `mechanism`. Of equals the first one is kept.
    fn add(&mut self, mechanism: String, case: Case, goal: Goal) {
        let Some(Group { jobs, cases, .. }) = self.mechanisms.get_mut(&mechanism) else {
            let cases = [(); 3].map(|()| case.clone());
            let group = Group { mechanism: mechanism.clone(), jobs: 1, cases };
            self.mechanisms.insert(mechanism, group);
            return;
        };
        *jobs += 1;
        let (ratio, cost) = case.gain(goal);
        let is_more = [
            case.accesses < cases[0].accesses,
            ratio > cases[1].gain(goal).0,
            cost > cases[2].gain(goal).1,
        ];
        for (kept, _) in cases.iter_mut().zip(is_more).filter(|(_, is_more)| *is_more) {
            kept.clone_from(&case);
        }
    }
}
