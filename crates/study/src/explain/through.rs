//! What accesses go through: a mapping or an open file.

use filemap_job::Job;
use filemap_job::program::ProgramStep;

/// What an access goes through.
#[derive(Clone, Copy, Debug)]
pub(super) enum Through {
    Mapping(usize),
    Open(usize),
}

/// What the accesses of each step go through, with the first access after the step.
pub(super) fn steps(job: &Job) -> Vec<(u64, Option<Through>)> {
    let mut end: u64 = 0;
    let of_step = |step: &ProgramStep| {
        end = end.saturating_add(step.accesses());
        let through = match step {
            ProgramStep::Touch { mapping, .. } => Some(Through::Mapping(*mapping)),
            ProgramStep::Read { open, .. } => Some(Through::Open(*open)),
            _ => None,
        };
        (end, through)
    };
    job.steps().map(of_step).collect()
}
