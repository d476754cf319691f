//! Applies changes to a job.

use filemap_core::address::vma::{AdviceFlag, ReadHint};
use filemap_core::units::PageCount;
use filemap_job::program::{Fadvise, Job, Madvise, ProgramStep, StepEdit};

use super::AdviceChange;

/// `program` with `changes` applied.
pub fn with(program: &Job, changes: &[AdviceChange]) -> Job {
    let mut program = program.clone();
    changes.iter().for_each(|change| apply(&mut program, change));
    program
}

fn apply(program: &mut Job, change: &AdviceChange) {
    let page_size = program.page_size();
    match change {
        AdviceChange::Madvise(on, hint) => {
            for number in &on.numbers {
                program.mappings[*number].mapping.advice.read = *hint;
            }
            remove_steps(program, |_, step| {
                is_read_advice(step).is_some_and(|mapping| on.numbers.contains(&mapping))
            });
        }
        AdviceChange::Ask(on, advice, parts) => {
            for (number, part) in on.numbers.iter().zip(parts) {
                ask(program, *number, *part, *advice);
            }
        }
        AdviceChange::Fadvise(on, hint) => {
            remove_steps(program, |_, step| {
                is_file_advice(step).is_some_and(|open| on.numbers.contains(&open))
            });
            for open in &on.numbers {
                advise_open(program, *open, *hint);
            }
        }
        AdviceChange::OmitPrefetch(on) => {
            remove_steps(program, |program, step| is_prefetch_of(program, on.file, step));
        }
        AdviceChange::ReadAhead(kb) => {
            program.machine.read_ahead = PageCount(kb * 1024 / page_size)
        }
        AdviceChange::FaultAround(bytes) => {
            program.machine.fault_around = PageCount(bytes / page_size)
        }
        AdviceChange::Governor => program.machine.governor = true,
    }
}

/// The mapping whose read pattern `step` advises.
pub fn is_read_advice(step: &ProgramStep) -> Option<usize> {
    match step {
        ProgramStep::Madvise { mapping, advice: Madvise::Flag(AdviceFlag::Read(_)), .. } => {
            Some(*mapping)
        }
        _ => None,
    }
}

/// The open file whose read pattern `step` advises.
pub fn is_file_advice(step: &ProgramStep) -> Option<usize> {
    use Fadvise::{Normal, Random, Sequential};
    match step {
        ProgramStep::Fadvise { open, advice: Normal | Random | Sequential, .. } => Some(*open),
        _ => None,
    }
}

/// Whether `step` prefetches a part of `file`.
pub fn is_prefetch_of(program: &Job, file: usize, step: &ProgramStep) -> bool {
    use Madvise::{PopulateRead, WillNeed};
    let open = match step {
        ProgramStep::Madvise { mapping, advice: WillNeed | PopulateRead, .. } => {
            program.mappings[*mapping].open
        }
        ProgramStep::Fadvise { open, advice: Fadvise::WillNeed, .. } => *open,
        _ => return false,
    };
    program.opens[open].file == file
}

/// Removes steps that match `is_gone`. A thread keeps at least one step.
fn remove_steps(program: &mut Job, is_gone: impl Fn(&Job, &ProgramStep) -> bool) {
    program.edit_steps(
        |program, _, step| {
            if is_gone(program, step) { StepEdit::Remove } else { StepEdit::Keep }
        },
    );
}

/// Inserts advice for the part `(first, pages)` of a mapping: after each `mmap(2)` of it, or before
/// its first use if it is mapped at the start.
fn ask(program: &mut Job, number: usize, (first, pages): (u64, u64), advice: Madvise) {
    let mut is_due = program.mappings[number].at_start;
    let (first, pages) = (PageCount(first), PageCount(pages));
    let ask = ProgramStep::Madvise { mapping: number, advice, first, pages };
    program.edit_steps(|_, _, step| match step {
        ProgramStep::Map { mapping } if *mapping == number => StepEdit::InsertAfter(ask.clone()),
        _ if is_due && step.mapping() == Some(number) => {
            is_due = false;
            StepEdit::InsertBefore(ask.clone())
        }
        _ => StepEdit::Keep,
    });
}

/// Inserts advice for an open file before the first read in each thread.
fn advise_open(program: &mut Job, number: usize, hint: ReadHint) {
    let advice = match hint {
        ReadHint::Normal => Fadvise::Normal,
        ReadHint::Random => Fadvise::Random,
        ReadHint::Sequential => Fadvise::Sequential,
    };
    let advise = ProgramStep::Fadvise { open: number, advice, offset_bytes: 0, len_bytes: None };
    let mut last_advised = None;
    program.edit_steps(|_, thread, step| match step {
        ProgramStep::Read { open, .. } if *open == number && last_advised != Some(thread) => {
            last_advised = Some(thread);
            StepEdit::InsertBefore(advise.clone())
        }
        _ => StepEdit::Keep,
    });
}

#[cfg(test)]
mod tests {
    use filemap_job::program::{Thread, ThreadStep};
    use filemap_model::{Profile, trace};

    use super::super::tests::{self, target};
    use super::*;

    fn program() -> Job {
        tests::program(
            "[[mapping]]\nname = 'n'\nopen = 'a'\n",
            "[[thread.phase]]\nmapping = 'm'\nmadvise = 'random'\n\
             [[thread.phase]]\nmap = 'n'\n[[thread.phase]]\nmapping = 'n'\npages = [1]\n\
             [[thread.phase]]\nunmap = 'n'\n[[thread.phase]]\nmap = 'n'\n\
             [[thread.phase]]\nmapping = 'n'\npages = [2]\n\
             [[thread.phase]]\nmapping = 'm'\npages = [3]\n\
             [[thread.phase]]\nopen = 'a'\nworkload = 'read-sequential'\naccesses = 1\n",
        )
    }

    fn steps(program: &Job) -> Vec<String> {
        program.threads[0].steps.iter().map(|step| program.describe_step(step)).collect()
    }

    #[test]
    fn trial_advice_overrides_program_advice() {
        let own = program();
        assert_eq!(steps(&own)[0], "madvise m: random");
        let changed = with(&own, &[AdviceChange::Madvise(target(&[0]), ReadHint::Sequential)]);
        assert_eq!(steps(&changed), steps(&own)[1..]);
        let hints = changed.mappings.iter().map(|mapping| mapping.mapping.advice.read);
        assert_eq!(hints.collect::<Vec<_>>(), [ReadHint::Sequential, ReadHint::Normal]);
    }

    #[test]
    fn threads_wait_for_the_same_steps_after_a_change() {
        let mut program = program();
        let steps = |text: &str| {
            let more = "[[mapping]]\nname = 'n'\nopen = 'a'\n";
            tests::program(more, text).threads.remove(0).steps
        };
        program.threads[0].steps = steps(
            "[[thread.phase]]\nmapping = 'm'\nmadvise = 'willneed'\n\
             [[thread.phase]]\nmapping = 'm'\npages = [1]\n",
        );
        let mut other = Thread::from_steps(steps("[[thread.phase]]\nmapping = 'm'\npages = [2]\n"));
        other.after = vec![(0, vec![ThreadStep { thread: 0, step: 1 }])];
        program.threads.push(other);
        let first = |changed: &Job| changed.threads[1].after.clone();
        let changed = with(&program, &[AdviceChange::OmitPrefetch(target(&[0]))]);
        assert_eq!(first(&changed), [(0, vec![ThreadStep { thread: 0, step: 0 }])]);
        assert!(trace(&changed, &Profile::DEFAULT, &mut ()).is_ok());
        let asked = AdviceChange::Ask(target(&[0]), Madvise::WillNeed, vec![(0, 1)]);
        let changed = with(&program, &[asked]);
        assert_eq!(first(&changed), [(0, vec![ThreadStep { thread: 0, step: 2 }])]);
    }

    #[test]
    fn prefetch_follows_each_map() {
        let parts = vec![(3, 1), (1, 2)];
        let changed = steps(&with(
            &program(),
            &[AdviceChange::Ask(target(&[0, 1]), Madvise::WillNeed, parts)],
        ));
        let asked = |name: &str| {
            let begin = format!("madvise {name}: willneed");
            let asks = |step: &&String| step.starts_with(&begin);
            changed.iter().filter(asks).count()
        };
        assert_eq!((asked("m"), asked("n")), (1, 2), "{changed:?}");
    }

    #[test]
    fn an_open_is_advised_before_it_is_read() {
        let changed =
            steps(&with(&program(), &[AdviceChange::Fadvise(target(&[0]), ReadHint::Random)]));
        let end = &changed[changed.len() - 2..];
        assert_eq!(end, ["fadvise a: random", "read a: read-sequential"]);
    }
}
