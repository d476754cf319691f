//! What a search has found so far.

use std::collections::BTreeMap;

use filemap_job::{Job, JobSpec, Run};

use super::goal::{Cost, Goal};
use crate::error::Error;

/// What a job costs in both variants.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The job without its variants.
    pub spec: JobSpec,
    /// How many accesses it makes.
    pub accesses: u64,
    /// In the first variant.
    pub first: Cost,
    /// In the second variant.
    pub second: Cost,
}

impl Tried {
    /// The job of `spec`, which is `job`, with its `runs` in both variants.
    pub(super) fn new(spec: JobSpec, job: &Job, runs: &[Run]) -> Self {
        let [first, second] = [&runs[0], &runs[1]].map(Cost::of);
        let accesses = job.accesses().map(|phase| phase.accesses).sum();
        Tried { spec, accesses, first, second }
    }

    /// How far it meets `goal`.
    pub(super) fn gain(&self, goal: Goal) -> (f64, u64) {
        goal.gain(&self.first, &self.second).unwrap_or((0.0, 0))
    }
}

/// What became of a job that was drawn.
pub(super) enum Fate {
    /// It is none.
    LeftOut(Error),
    /// Both variants are one job.
    Alike,
    /// It does not show what is looked for.
    Same,
    /// It does, by this mechanism.
    Found(String, Box<Tried>),
}

/// What a round has found of one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was not tried.
    Nothing,
    /// It does not show what is looked for.
    Same,
    /// It was tried. What it shows is not written, so a search that goes on tries it again.
    Tried,
}

/// The jobs of one mechanism that are kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// How many were found.
    pub jobs: u64,
    /// The one with the fewest accesses, with the largest ratio, and with the largest difference.
    pub cases: [Tried; 3],
}

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
                Fate::Found(mechanism, tried) => self.add(mechanism, *tried, goal),
            }
        }
    }

    /// Adds a job that differs by `mechanism`. Of equals the first one is kept.
    fn add(&mut self, mechanism: String, tried: Tried, goal: Goal) {
        let Some(Kept { jobs, cases }) = self.mechanisms.get_mut(&mechanism) else {
            let cases = [(); 3].map(|()| tried.clone());
            self.mechanisms.insert(mechanism, Kept { jobs: 1, cases });
            return;
        };
        *jobs += 1;
        let (ratio, cost) = tried.gain(goal);
        let is_more = [
            tried.accesses < cases[0].accesses,
            ratio > cases[1].gain(goal).0,
            cost > cases[2].gain(goal).1,
        ];
        for (case, _) in cases.iter_mut().zip(is_more).filter(|(_, is_more)| *is_more) {
            case.clone_from(&tried);
        }
    }
}
