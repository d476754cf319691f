//! Which of the things that were tried are run for real, and how.

use filemap_govern::Rule;
use filemap_job::program::Job;

use crate::advise::rules;
use crate::advise::{Advice, Change, Tried};

/// Most answers that are run beside the program as it is.
const MOST: usize = 5;

/// Most of what is tied with the answer that is run: the rest of the places is for what differs.
const MOST_TIES: usize = 2;

/// How a program is run with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It gets advice from outside, in place of its own, on a machine that has this fault-around
    /// size in bytes, where one is named.
    Advised(Vec<Rule>, Option<u64>),
    /// The program is governed.
    Governed,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The answer among what can be run; `None` is to leave the program as it is.
    pub answer: Option<usize>,
    /// What is run beside the program as it is: trials by their positions.
    pub trials: Vec<(usize, How)>,
    /// Answers that cannot be run, each with the end of a sentence that says why.
    pub left_out: Vec<(usize, String)>,
}

/// How `changes` of `program` are made for a run; with `applies`, settings of the machine may be
/// changed for it. The end of a sentence that says why they cannot.
fn how(program: &Job, changes: &[Change], applies: bool) -> Result<How, String> {
    let mut size = None;
    for change in changes {
        let refused = match change {
            Change::Governor => return Ok(How::Governed),
            Change::ReadAhead(_) => {
                "it is a setting of the device, which every program on it would get; set it as \
                 root and check again, and what runs as it is has it"
            }
            Change::FaultAround(_) if !applies => {
                "it is a setting of the whole machine, which is changed with --change-settings only"
            }
            Change::FaultAround(bytes) => {
                size = Some(*bytes);
                continue;
            }
            Change::Madvise(..) | Change::Ask(..) | Change::Fadvise(..) => continue,
        };
        return Err(refused.to_string());
    }
    Ok(How::Advised(rules::of(program, changes)?, size))
}

impl Selected {
    /// What of `advice` for `program` is run: the answer, what is tied with it, and then what is
    /// fastest of the rest.
    pub fn of(advice: &Advice, program: &Job, applies: bool) -> Selected {
        let trials = &advice.tried;
        let hows: Vec<Result<How, String>> =
            trials.iter().map(|trial| how(program, &trial.does, applies)).collect();
        let named = advice.answer.named(MOST_TIES).into_iter();
        let left_out = named.filter_map(|at| Some((at, hows[at].as_ref().err()?.clone())));
        let answer = advice.answer_among(|at| hows[at].is_ok());
        let mut order = answer.named(MOST_TIES);
        let is_rest = |at: &usize| !order.contains(at);
        let mut rest: Vec<usize> = (0..trials.len()).filter(is_rest).collect();
        let now = advice.now.figures();
        let helps = |trial: &Tried| trial.outcome.figures().helps(now);
        rest.sort_by_key(|at| (!helps(&trials[*at]), trials[*at].outcome.elapsed_ns));
        order.extend(rest);
        let mut selected: Vec<(usize, How)> = Vec::new();
        for at in order {
            let is_same = |(of, _): &(usize, How)| trials[*of].outcome == trials[at].outcome;
            let Ok(how) = &hows[at] else { continue };
            // What comes to the same in the model shows nothing new, but where a governor reads
            // ahead.
            let is_new = *how == How::Governed || !selected.iter().any(is_same);
            if selected.len() < MOST && is_new {
                selected.push((at, how.clone()));
            }
        }
        Selected { answer: answer.best, trials: selected, left_out: left_out.collect() }
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::ReadHint;

    use super::*;
    use crate::advise::Outcome;
    use crate::advise::tests::{on, outcome, program, tried};

    fn hint(hint: ReadHint) -> Change {
        Change::Madvise(on("a"), hint)
    }

    fn selected(
        trials: Vec<(Change, Outcome)>,
        applies: bool,
    ) -> (Option<usize>, Vec<usize>, Vec<usize>) {
        let program = program("", "[[thread.phase]]\nmapping = 'm'\npages = [1]\n");
        let advice = tried(outcome(1000, 100), trials).concluded("", None);
        let Selected { answer, trials, left_out } = Selected::of(&advice, &program, applies);
        let places = trials.into_iter().map(|(at, _)| at).collect();
        (answer, places, left_out.into_iter().map(|(at, _)| at).collect())
    }

    #[test]
    fn what_every_program_would_get_is_not_run() {
        let trials = || {
            vec![
                (Change::ReadAhead(64), outcome(10, 20)),
                (hint(ReadHint::Random), outcome(10, 40)),
                (Change::FaultAround(4096), outcome(900, 90)),
                (Change::Governor, outcome(12, 60)),
                (hint(ReadHint::Sequential), outcome(2000, 200)),
            ]
        };
        // The best answer is named as not run; the best of the others is the one that is checked.
        assert_eq!(selected(trials(), false), (Some(1), vec![1, 3, 4], vec![0]));
        assert_eq!(selected(trials(), true), (Some(1), vec![1, 3, 2, 4], vec![0]));
    }

    #[test]
    fn what_comes_to_the_same_is_run_once() {
        let same = outcome(10, 40);
        let trials = vec![
            (Change::Governor, same.clone()),
            (hint(ReadHint::Random), same.clone()),
            (hint(ReadHint::Sequential), same),
        ];
        assert_eq!(selected(trials, false), (Some(1), vec![1, 0], vec![]));
    }

    #[test]
    fn where_nothing_helps_the_fastest_are_run_all_the_same() {
        let trials = vec![
            (hint(ReadHint::Random), outcome(1000, 900)),
            (Change::Governor, outcome(1000, 110)),
        ];
        assert_eq!(selected(trials, false), (None, vec![1, 0], vec![]));
    }
}
