//! Conversion of `[[thread]]` tables to threads, with a check of the mappings in each phase.

use super::error::ProgramError;
use super::mapping_tracker::MappingTracker;
use super::names::{Names, table_error};
use super::spec::{ThreadPhaseSpec, ThreadSpec};
use super::{Job, ProgramStep, Rounds, Thread, barriers, step_order};
use crate::Error;
use crate::bounds::{MAX_PROCESSES, MAX_THREAD_PHASES, MAX_THREADS};
use crate::job::held_pages;
use crate::limits::out_of_range;
use crate::size::{is_one_line, shorten};

/// Default process name.
pub(super) const MAIN: &str = "main";

/// Adds the threads, with their steps, to `program`.
///
/// # Errors
/// As for [`super::JobSpec::validate`].
pub(super) fn take(
    threads: &[ThreadSpec],
    opens: &Names<'_>,
    mappings: &Names<'_>,
    program: &mut Job,
) -> Result<(), Error> {
    let named = threads.iter().enumerate();
    let names: Vec<String> = named.map(|(at, thread)| thread.called(at)).collect();
    let named = Names::new("thread", names.iter(), MAX_THREADS)?;
    let of_processes = processes(threads, program)?;
    barriers::take(threads, program);
    let mut tracker = MappingTracker::new(threads, &names, mappings, program);
    for (number, (thread, name)) in threads.iter().zip(&names).enumerate() {
        let before = tracker.mapped.clone();
        let valid = steps(number, &thread.phase, opens, mappings, program, &mut tracker);
        let valid = valid.and_then(|steps| {
            let (rounds, stagger_ns) = (thread.rounds()?, thread.valid_stagger_ns()?);
            if rounds != Rounds::Times(1) {
                if held_pages(&steps).0 > 0 {
                    return Err(ProgramError::GrowingRound.into());
                }
                tracker.check_round(&before, program)?;
            }
            Ok((rounds, stagger_ns, steps))
        });
        let (rounds, stagger_ns, steps) = valid.map_err(|error| match threads {
            [_] => error,
            _ => table_error("thread", name, error),
        })?;
        let (name, process) = (name.clone(), of_processes[number]);
        let after = Vec::new();
        program.threads.push(Thread { name, process, stagger_ns, rounds, steps, after });
    }
    barriers::check(program)?;
    step_order::add_dependencies(threads, &named, program)
}

/// Adds the process names to `program`. Returns the process index of each thread.
fn processes(threads: &[ThreadSpec], program: &mut Job) -> Result<Vec<usize>, Error> {
    let names = &mut program.processes;
    names.push(MAIN.to_string());
    let mut found = Vec::with_capacity(threads.len());
    for thread in threads {
        let name = thread.process.as_deref().unwrap_or(MAIN);
        if name.trim().is_empty() || !is_one_line(name) {
            return Err(ProgramError::NoProcessName { name: shorten(name) }.into());
        }
        let known = names.iter().position(|known| known == name);
        found.push(known.unwrap_or(names.len()));
        if known.is_none() {
            names.push(name.to_string());
        }
    }
    match names.len() {
        ..=MAX_PROCESSES => Ok(found),
        processes => Err(ProgramError::ManyProcesses { processes, most: MAX_PROCESSES }.into()),
    }
}

fn steps(
    thread: usize,
    phases: &[ThreadPhaseSpec],
    opens: &Names<'_>,
    mappings: &Names<'_>,
    program: &Job,
    tracker: &mut MappingTracker<'_>,
) -> Result<Vec<ProgramStep>, Error> {
    if phases.is_empty() || phases.len() > MAX_THREAD_PHASES {
        let value = format!("a number of {} phases", phases.len());
        return Err(out_of_range(value, 1, MAX_THREAD_PHASES));
    }
    let mut steps = Vec::with_capacity(phases.len());
    for (number, phase) in phases.iter().enumerate() {
        let step = tracker
            .check_owner(thread, phase, mappings)
            .and_then(|()| phase.validate(opens, mappings, &tracker.mapped, program))
            .and_then(|step| tracker.apply_step(&step, program).map(|()| step))
            .map_err(|error| Error::InPhase { number: number + 1, error: Box::new(error) })?;
        steps.push(step);
    }
    Ok(steps)
}
