//! Findings of a search.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::goal::Goal;
use super::record::{MechanismGroup, SearchCase};
use crate::error::Error;

/// Jobs of a round. They run in parallel; findings are varied from the next round on.
pub(super) const ROUND_JOBS: u64 = 256;

/// Outcome of a drawn job.
pub(super) enum DrawOutcome {
    /// Invalid.
    LeftOut(Error),
    /// Both variants are one job.
    Alike,
    /// Does not meet the goal.
    Same,
    /// Meets the goal, by this mechanism.
    Found(String, Box<SearchCase>),
}

/// Findings so far, by mechanism.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SearchFindings {
    /// Number of drawn jobs.
    pub drawn: u64,
    /// Number of invalid ones.
    pub left_out: u64,
    /// Number of those equal in both variants.
    pub alike: u64,
    /// Findings of each mechanism.
    pub mechanisms: BTreeMap<String, MechanismGroup>,
}

impl SearchFindings {
    /// Number of jobs that ran in both variants.
    pub(super) fn tried_jobs(&self) -> u64 {
        self.drawn - self.left_out - self.alike
    }

    /// Adds the outcomes of further jobs. `reason` receives why one was invalid, if any was.
    pub(super) fn add_all(
        &mut self,
        fates: impl Iterator<Item = DrawOutcome>,
        goal: Goal,
        reason: &mut Option<Error>,
    ) {
        for fate in fates {
            self.drawn += 1;
            match fate {
                DrawOutcome::LeftOut(error) => {
                    self.left_out += 1;
                    reason.get_or_insert(error);
                }
                DrawOutcome::Alike => self.alike += 1,
                DrawOutcome::Same => {}
                DrawOutcome::Found(mechanism, case) => self.add(mechanism, *case, goal),
            }
        }
    }

    /// Adds a job that differs by `mechanism`. On ties the first one stays.
    fn add(&mut self, mechanism: String, case: SearchCase, goal: Goal) {
        let Some(MechanismGroup { jobs, cases, .. }) = self.mechanisms.get_mut(&mechanism) else {
            let cases = [(); 3].map(|()| case.clone());
            let group = MechanismGroup { mechanism: mechanism.clone(), jobs: 1, cases };
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
