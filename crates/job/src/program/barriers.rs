//! Barriers between threads.

use super::error::ProgramError;
use super::spec::ThreadSpec;
use super::{Barrier, Job, ProgramStep, Rounds, Thread};
use crate::Error;
use crate::size::shorten;

/// Adds the barriers that `threads` name to `program`.
pub(super) fn take(threads: &[ThreadSpec], program: &mut Job) {
    for thread in threads {
        let mut named: Vec<&String> =
            thread.phase.iter().filter_map(|phase| phase.barrier.as_ref()).collect();
        named.sort();
        named.dedup();
        for name in named {
            match program.barriers.iter_mut().find(|known| known.name == *name) {
                Some(known) => known.threads += 1,
                None => program.barriers.push(Barrier { name: name.clone(), threads: 1 }),
            }
        }
    }
}

/// Describes how often a thread that names a barrier `times` reaches it.
fn often(times: usize, rounds: u64) -> String {
    match rounds {
        1 => format!("{times}x"),
        _ => format!("{times}x in each of {rounds} rounds"),
    }
}

/// Rejects barriers that threads do not reach equally often.
pub(super) fn check(program: &Job) -> Result<(), Error> {
    for (number, barrier) in program.barriers.iter().enumerate() {
        let is_at_barrier = |thread: &Thread| {
            let is_it = |step: &&ProgramStep| **step == ProgramStep::Barrier { barrier: number };
            thread.steps.iter().filter(is_it).count()
        };
        // The number of rounds within a time is unknown.
        let rounds = |thread: &Thread| match thread.rounds {
            Rounds::Times(times) => Ok(times),
            Rounds::For(_) => Err(ProgramError::TimedBarrier {
                name: shorten(&barrier.name),
                thread: shorten(&thread.name),
            }),
        };
        let mut parties = program.threads.iter().filter(|thread| is_at_barrier(thread) > 0);
        let first = parties.next().expect("a thread names it");
        let first_comes = (is_at_barrier(first), rounds(first)?);
        for other in parties {
            let other_comes = (is_at_barrier(other), rounds(other)?);
            if other_comes != first_comes {
                return Err(ProgramError::Uneven {
                    name: shorten(&barrier.name),
                    one: shorten(&first.name),
                    often: often(first_comes.0, first_comes.1),
                    other: shorten(&other.name),
                    other_often: often(other_comes.0, other_comes.1),
                }
                .into());
            }
        }
    }
    Ok(())
}
