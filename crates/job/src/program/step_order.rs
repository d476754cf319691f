//! Ordering between steps of different threads, and the check for deadlocks.

use serde::{Deserialize, Serialize};

use super::error::ProgramError;
use super::names::Names;
use super::spec::{AfterSpec, ThreadSpec};
use super::{Job, ProgramStep, Rounds, Thread};
use crate::Error;
use crate::size::shorten;

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadStep {
    /// Index of the thread.
    pub thread: usize,
    /// Index of the step.
    pub step: usize,
}

/// Adds the dependencies of `threads` to `program`, which already has the steps.
///
/// # Errors
/// A dependency on a phase that does not exist or on the thread itself, and circular dependencies.
pub(super) fn add_dependencies(
    threads: &[ThreadSpec],
    names: &Names<'_>,
    program: &mut Job,
) -> Result<(), Error> {
    for (number, thread) in threads.iter().enumerate() {
        for (step, phase) in
            thread.phase.iter().enumerate().filter(|(_, phase)| !phase.after.is_empty())
        {
            let find = |after| {
                let found = find_step(number, after, threads, names);
                found.and_then(|step| check_runs_once(step, number, program))
            };
            let found = phase.after.iter().map(find);
            let found: Vec<ThreadStep> = found.collect::<Result<_, _>>().map_err(|error| {
                super::names::table_error(
                    "thread",
                    &program.threads[number].name,
                    Error::InPhase { number: step + 1, error: Box::new(error) },
                )
            })?;
            program.threads[number].after.push((step, found));
        }
    }
    match find_deadlock(program) {
        None => Ok(()),
        Some(ThreadStep { thread, step }) => {
            Err(ProgramError::Circle { step: program.step_name(thread, step) }.into())
        }
    }
}

fn find_step(
    thread: usize,
    after: &AfterSpec,
    threads: &[ThreadSpec],
    names: &Names<'_>,
) -> Result<ThreadStep, Error> {
    let other = names.find(&after.thread)?;
    let name = || shorten(&after.thread);
    if other == thread {
        return Err(ProgramError::AfterItself { name: name() }.into());
    }
    let phases = threads[other].phase.len() as u64;
    if !(1..=phases).contains(&after.phase) {
        return Err(ProgramError::NoPhase { phase: after.phase, name: name(), phases }.into());
    }
    Ok(ThreadStep { thread: other, step: after.phase as usize - 1 })
}

/// Returns `step` if its thread and the waiting thread `waits` both run their steps only once.
fn check_runs_once(step: ThreadStep, waits: usize, program: &Job) -> Result<ThreadStep, Error> {
    let repeats = |number: &usize| program.threads[*number].rounds != Rounds::Times(1);
    match [waits, step.thread].into_iter().find(repeats) {
        None => Ok(step),
        Some(number) => {
            let name = shorten(&program.threads[number].name);
            Err(ProgramError::AfterRounds { name }.into())
        }
    }
}

/// Simulates one round of all threads and returns a step that can never start, if any.
fn find_deadlock(program: &Job) -> Option<ThreadStep> {
    let threads = &program.threads;
    let mut done = vec![0; threads.len()];
    loop {
        let before = done.clone();
        let mut at_barrier = vec![Vec::new(); program.barriers.len()];
        for (number, thread) in threads.iter().enumerate() {
            let barrier;
            (done[number], barrier) = next_waiting_step(thread, &done, number);
            barrier.into_iter().for_each(|barrier: usize| at_barrier[barrier].push(number));
        }
        for (barrier, waiting) in program.barriers.iter().zip(at_barrier) {
            if waiting.len() == barrier.threads {
                waiting.into_iter().for_each(|number| done[number] += 1);
            }
        }
        if done == before {
            let mut left = threads.iter().zip(&done).enumerate();
            let stuck = left.find(|(_, (thread, done))| **done < thread.steps.len());
            return stuck.map(|(thread, (_, step))| ThreadStep { thread, step: *step });
        }
    }
}

/// The next step of thread `number` that cannot start because of an unfinished dependency, or
/// because of the returned barrier.
fn next_waiting_step(thread: &Thread, done: &[usize], number: usize) -> (usize, Option<usize>) {
    let from = done[number];
    let is_met = |step: &ThreadStep| done[step.thread] > step.step;
    let first = thread.after.partition_point(|(step, _)| *step < from);
    let unmet = thread.after[first..].iter().find(|(_, after)| !after.iter().all(is_met));
    let end = unmet.map_or(thread.steps.len(), |(step, _)| *step);
    let barrier = |(at, step): (usize, &ProgramStep)| match step {
        ProgramStep::Barrier { barrier } => Some((from + at, Some(*barrier))),
        _ => None,
    };
    let barrier = thread.steps[from..end].iter().enumerate().find_map(barrier);
    barrier.unwrap_or((end, None))
}
