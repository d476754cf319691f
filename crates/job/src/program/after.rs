//! The order between steps of different threads.

use super::error::ProgramError;
use super::names::Names;
use super::spec::{AfterSpec, ThreadSpec};
use super::{Program, ProgramThread};
use crate::Error;
use crate::size::shorten;

/// A step of a thread, both as indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepOf {
    /// The thread.
    pub thread: usize,
    /// Its step.
    pub step: usize,
}

/// Puts what steps of `threads` wait for into `program`, which has the steps.
///
/// # Errors
/// When a step waits for one that is not there, or for one of its own thread, and when steps wait
/// for each other.
pub(super) fn take(
    threads: &[ThreadSpec],
    names: &Names<'_>,
    program: &mut Program,
) -> Result<(), Error> {
    for (number, thread) in threads.iter().enumerate() {
        for (step, phase) in thread.phase.iter().enumerate().filter(|(_, of)| !of.after.is_empty())
        {
            let found = phase.after.iter().map(|after| find(number, after, threads, names));
            let found: Vec<StepOf> = found.collect::<Result<_, _>>().map_err(|error| {
                super::names::in_table(
                    "thread",
                    &program.threads[number].name,
                    Error::InPhase { number: step + 1, error: Box::new(error) },
                )
            })?;
            program.threads[number].after.push((step, found));
        }
    }
    match stuck(&program.threads) {
        None => Ok(()),
        Some(StepOf { thread, step }) => {
            Err(ProgramError::Circle { step: program.step_name(thread, step) }.into())
        }
    }
}

fn find(
    thread: usize,
    after: &AfterSpec,
    threads: &[ThreadSpec],
    names: &Names<'_>,
) -> Result<StepOf, Error> {
    let other = names.find(&after.thread)?;
    let name = || shorten(&after.thread);
    if other == thread {
        return Err(ProgramError::AfterItself { name: name() }.into());
    }
    let phases = threads[other].phase.len() as u64;
    if !(1..=phases).contains(&after.phase) {
        return Err(ProgramError::NoPhase { phase: after.phase, name: name(), phases }.into());
    }
    Ok(StepOf { thread: other, step: after.phase as usize - 1 })
}

/// A step that can never begin, if there is one.
fn stuck(threads: &[ProgramThread]) -> Option<StepOf> {
    let mut done = vec![0; threads.len()];
    let mut next = vec![0; threads.len()];
    loop {
        let before = done.clone();
        for (number, thread) in threads.iter().enumerate() {
            // Up to the next step that waits for something which is not done.
            let mut waits = thread.after[next[number]..].iter();
            let is_met = |of: &StepOf| done[of.thread] > of.step;
            let unmet = waits.position(|(_, after)| !after.iter().all(is_met));
            next[number] = unmet.map_or(thread.after.len(), |at| next[number] + at);
            done[number] = thread.after.get(next[number]).map_or(thread.steps.len(), |(at, _)| *at);
        }
        if done == before {
            let mut left = threads.iter().zip(&done).enumerate();
            let stuck = left.find(|(_, (thread, done))| **done < thread.steps.len());
            return stuck.map(|(thread, (_, step))| StepOf { thread, step: *step });
        }
    }
}
