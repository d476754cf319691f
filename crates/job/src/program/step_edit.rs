//! Inserting and removing steps of threads that depend on each other.

use super::{Job, ProgramStep, Thread, ThreadStep};

/// What [`Job::edit_steps`] does at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEdit {
    /// Leaves it.
    Keep,
    /// Removes it. What waits for it waits for the step before, and what it waits for delays the
    /// step after it.
    Remove,
    /// Inserts a step that waits for what this one waits for.
    InsertBefore(ProgramStep),
    /// Inserts a step that others do not wait for.
    InsertAfter(ProgramStep),
}

/// The new numbers of a thread's steps.
#[derive(Default)]
struct NewSteps {
    /// Of the first step that stands for each old one, or of the next step.
    begins: Vec<usize>,
    /// The number of steps up to and including each old one, without steps inserted after it.
    done: Vec<usize>,
}

impl Job {
    /// Applies `edit` to each step (with the number of its thread), in order, and renumbers the
    /// dependencies between threads. A thread that would lose all its steps is not changed.
    pub fn edit_steps(&mut self, mut edit: impl FnMut(&Job, usize, &ProgramStep) -> StepEdit) {
        let mut threads = std::mem::take(&mut self.threads);
        let numbers: Vec<NewSteps> = threads
            .iter_mut()
            .enumerate()
            .map(|(number, thread)| {
                let steps = thread.steps.iter();
                let mut edits: Vec<StepEdit> = steps.map(|step| edit(self, number, step)).collect();
                if edits.iter().all(|edit| *edit == StepEdit::Remove) {
                    edits.fill(StepEdit::Keep);
                }
                replace_steps(thread, edits)
            })
            .collect();
        for (thread, own) in threads.iter_mut().zip(&numbers) {
            renumber_dependencies(thread, own, &numbers);
        }
        self.threads = threads;
    }
}

fn replace_steps(thread: &mut Thread, edits: Vec<StepEdit>) -> NewSteps {
    let mut numbers = NewSteps::default();
    let mut steps = Vec::with_capacity(thread.steps.len());
    for (step, edit) in thread.steps.drain(..).zip(edits) {
        numbers.begins.push(steps.len());
        let mut inserted_after = None;
        match edit {
            StepEdit::Keep => steps.push(step),
            StepEdit::Remove => {}
            StepEdit::InsertBefore(other) => steps.extend([other, step]),
            StepEdit::InsertAfter(other) => {
                steps.push(step);
                inserted_after = Some(other);
            }
        }
        numbers.done.push(steps.len());
        steps.extend(inserted_after);
    }
    thread.steps = steps;
    numbers
}

fn renumber_dependencies(thread: &mut Thread, own: &NewSteps, all: &[NewSteps]) {
    let mut after: Vec<(usize, Vec<ThreadStep>)> = Vec::new();
    for (step, dependencies) in std::mem::take(&mut thread.after) {
        let dependencies = dependencies.into_iter().filter_map(|ThreadStep { thread, step }| {
            let step = all[thread].done[step].checked_sub(1)?;
            Some(ThreadStep { thread, step })
        });
        let dependencies: Vec<ThreadStep> = dependencies.collect();
        let step = own.begins[step];
        match after.last_mut() {
            _ if dependencies.is_empty() || step >= thread.steps.len() => {}
            // The steps between were removed.
            Some((last, others)) if *last == step => others.extend(dependencies),
            _ => after.push((step, dependencies)),
        }
    }
    thread.after = after;
}

#[cfg(test)]
mod tests {
    use super::StepEdit::{InsertAfter, InsertBefore, Keep, Remove};
    use super::*;
    use crate::program::JobSpec;
    use crate::random::Rng;

    /// Threads with `steps` sleeps each, of a thousand times the thread and the number, in
    /// nanoseconds.
    fn job(steps: &[usize], after: &[(ThreadStep, ThreadStep)]) -> Job {
        let thread = |number: usize| {
            let phase = |step: usize| {
                let of_step =
                    after.iter().filter(|(waits, _)| *waits == ThreadStep { thread: number, step });
                let of_step: Vec<String> = of_step
                    .map(|(_, on)| {
                        format!("{{thread = 't{}', phase = {}}}", on.thread, on.step + 1)
                    })
                    .collect();
                let ns = number * 1000 + step + 1;
                let after = of_step.join(", ");
                format!("[[thread.phase]]\nsleep_ns = {ns}\nafter = [{after}]\n")
            };
            let phases: String = (0..steps[number]).map(phase).collect();
            format!("[[thread]]\nname = 't{number}'\n{phases}")
        };
        let threads: String = (0..steps.len()).map(thread).collect();
        let text = format!("[[file]]\nname = 'a'\nsize = '1m'\n{threads}");
        JobSpec::from_toml(&text).unwrap().validate(None).unwrap()
    }

    fn number(step: &ProgramStep) -> u64 {
        match step {
            ProgramStep::Sleep { ns } => *ns,
            _ => unreachable!(),
        }
    }

    /// Whether `first` has to end before `then` begins, by the order of threads and dependencies.
    fn is_ordered(job: &Job, first: ThreadStep, then: ThreadStep) -> bool {
        let mut reached = vec![then];
        let mut at = 0;
        while let Some(ThreadStep { thread, step }) = reached.get(at).copied() {
            at += 1;
            if thread == first.thread && step > first.step {
                return true;
            }
            let waits = job.threads[thread].after.iter().filter(|(own, _)| *own <= step);
            for on in waits.flat_map(|(_, all)| all) {
                if on.thread == first.thread && on.step >= first.step {
                    return true;
                }
                if !reached.contains(on) {
                    reached.push(*on);
                }
            }
        }
        false
    }

    #[test]
    fn steps_that_are_kept_keep_their_order() {
        for seed in 1..400_u64 {
            let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut below = |limit: usize| rng.below(limit as u64) as usize;
            let counts: Vec<usize> = (0..3).map(|_| 1 + below(5)).collect();
            let mut after = Vec::new();
            for _ in 0..below(6) {
                let (one, two) = (below(3), below(3));
                // Only on an earlier step of another thread, which prevents cycles.
                let (waits, on) = (below(counts[one]), below(counts[two]));
                if one != two && (on, two) < (waits, one) {
                    let waits = ThreadStep { thread: one, step: waits };
                    after.push((waits, ThreadStep { thread: two, step: on }));
                }
            }
            let own = job(&counts, &after);
            let mut edits: Vec<usize> = (0..20).map(|_| below(4)).collect();
            let sleep = || ProgramStep::Sleep { ns: 500 };
            let mut edited = own.clone();
            edited.edit_steps(|_, _, _| match edits.pop().unwrap() {
                0 => Keep,
                1 => Remove,
                2 => InsertBefore(sleep()),
                _ => InsertAfter(sleep()),
            });
            let steps = |job: &Job| -> Vec<(u64, ThreadStep)> {
                let of = job.threads.iter().enumerate().flat_map(|(thread, own)| {
                    let steps = own.steps.iter().enumerate();
                    steps.map(move |(step, kind)| (number(kind), ThreadStep { thread, step }))
                });
                of.filter(|(ns, _)| *ns != 500).collect()
            };
            let (before, now) = (steps(&own), steps(&edited));
            let old = |ns: u64| before.iter().find(|(own, _)| *own == ns).unwrap().1;
            for (first_ns, first) in &now {
                for (then_ns, then) in &now {
                    assert_eq!(
                        is_ordered(&own, old(*first_ns), old(*then_ns)),
                        is_ordered(&edited, *first, *then),
                        "seed {seed}: {first_ns} before {then_ns}"
                    );
                }
            }
        }
    }
}
