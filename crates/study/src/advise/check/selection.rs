//! Selects the changes to measure, and how the program runs with each.

use filemap_job::program::Job;

use crate::advise::rules;
use crate::advise::{AdviceChange, AdviceTrial, AdviseRecord};
use crate::trial::Treatment;

/// Maximum number of changes to measure.
const MAX_MEASURED: usize = 5;

/// Maximum number of ties with the answer among them.
const MAX_TIES: usize = 2;

/// The changes to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The best answer that can be measured; `None` if it is to change nothing.
    pub answer: Option<usize>,
    /// Indexes into `tried`, with how the program runs.
    pub trials: Vec<(usize, Treatment)>,
    /// Answers that cannot be measured, each with the reason as the end of a sentence.
    pub left_out: Vec<(usize, String)>,
}

/// How `program` runs with `changes`. With `may_apply`, machine settings may be changed for it. The
/// error is the end of a sentence.
fn treatment(
    program: &Job,
    changes: &[AdviceChange],
    may_apply: bool,
) -> Result<Treatment, String> {
    let mut fault_around_bytes = None;
    for change in changes {
        let reason = match change {
            AdviceChange::Governor => return Ok(Treatment::Governed { flags: Vec::new() }),
            AdviceChange::ReadAhead(_) => {
                "it is a setting of the device, for every program on it; set it as root and check \
                 again: the program as it is then has it"
            }
            AdviceChange::FaultAround(_) if !may_apply => {
                "it is a setting of the whole machine, which is changed with --change-settings only"
            }
            AdviceChange::FaultAround(bytes) => {
                fault_around_bytes = Some(*bytes);
                continue;
            }
            AdviceChange::Madvise(..)
            | AdviceChange::Ask(..)
            | AdviceChange::Fadvise(..)
            | AdviceChange::OmitPrefetch(_) => continue,
        };
        return Err(reason.to_string());
    }
    Ok(Treatment::Advised { rules: rules::advice_rules(program, changes)?, fault_around_bytes })
}

impl Selection {
    /// Selects from `advice`: the answer, its ties, and then the fastest of the other changes.
    pub fn new(advice: &AdviseRecord, program: &Job, may_apply: bool) -> Selection {
        let trials = &advice.tried;
        let treatments: Vec<Result<Treatment, String>> =
            trials.iter().map(|trial| treatment(program, &trial.does, may_apply)).collect();
        let named = advice.answer.named_candidates(MAX_TIES).into_iter();
        let left_out = named.filter_map(|at| Some((at, treatments[at].as_ref().err()?.clone())));
        let answer = advice.answer_among(|at| treatments[at].is_ok());
        let mut order = answer.named_candidates(MAX_TIES);
        let is_rest = |at: &usize| !order.contains(at);
        let mut rest: Vec<usize> = (0..trials.len()).filter(is_rest).collect();
        let now = advice.now.figures();
        let helps = |trial: &AdviceTrial| trial.outcome.figures().helps(now);
        rest.sort_by_key(|at| (!helps(&trials[*at]), trials[*at].outcome.elapsed_ns));
        order.extend(rest);
        let mut selected: Vec<(usize, Treatment)> = Vec::new();
        for at in order {
            let is_same =
                |(number, _): &(usize, Treatment)| trials[*number].outcome == trials[at].outcome;
            let Ok(treatment) = &treatments[at] else { continue };
            // Changes with equal predictions behave alike, except that a governor reads ahead by
            // its own timing.
            let is_new =
                matches!(treatment, Treatment::Governed { .. }) || !selected.iter().any(is_same);
            if selected.len() < MAX_MEASURED && is_new {
                selected.push((at, treatment.clone()));
            }
        }
        let is_withdrawn = advice.unseen.as_ref().is_some_and(|unseen| unseen.is_decisive);
        let answer = answer.best.filter(|_| !is_withdrawn);
        Selection { answer, trials: selected, left_out: left_out.collect() }
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::ReadHint;

    use super::*;
    use crate::advise::TrialOutcome;
    use crate::advise::tests::{on, outcome, program, tried};

    fn hint(hint: ReadHint) -> AdviceChange {
        AdviceChange::Madvise(on("a"), hint)
    }

    fn selected(
        trials: Vec<(AdviceChange, TrialOutcome)>,
        may_apply: bool,
    ) -> (Option<usize>, Vec<usize>, Vec<usize>) {
        let program = program("", "[[thread.phase]]\nmapping = 'm'\npages = [1]\n");
        let advice = tried(outcome(1000, 100), trials).with_conclusions("", None);
        let Selection { answer, trials, left_out } = Selection::new(&advice, &program, may_apply);
        let places = trials.into_iter().map(|(at, _)| at).collect();
        (answer, places, left_out.into_iter().map(|(at, _)| at).collect())
    }

    #[test]
    fn leaves_out_settings_of_the_machine() {
        let trials = || {
            vec![
                (AdviceChange::ReadAhead(64), outcome(10, 20)),
                (hint(ReadHint::Random), outcome(10, 40)),
                (AdviceChange::FaultAround(4096), outcome(900, 90)),
                (AdviceChange::Governor, outcome(12, 60)),
                (hint(ReadHint::Sequential), outcome(2000, 200)),
            ]
        };
        // The best answer is named as not run; the best of the others is the one that is checked.
        assert_eq!(selected(trials(), false), (Some(1), vec![1, 3, 4], vec![0]));
        assert_eq!(selected(trials(), true), (Some(1), vec![1, 3, 2, 4], vec![0]));
    }

    #[test]
    fn measures_equal_predictions_once() {
        let same = outcome(10, 40);
        let trials = vec![
            (AdviceChange::Governor, same.clone()),
            (hint(ReadHint::Random), same.clone()),
            (hint(ReadHint::Sequential), same),
        ];
        assert_eq!(selected(trials, false), (Some(1), vec![1, 0], vec![]));
    }

    #[test]
    fn measures_fastest_where_nothing_helps() {
        let trials = vec![
            (hint(ReadHint::Random), outcome(1000, 900)),
            (AdviceChange::Governor, outcome(1000, 110)),
        ];
        assert_eq!(selected(trials, false), (None, vec![1, 0], vec![]));
    }
}
