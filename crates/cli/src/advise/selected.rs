//! Which of the things that were tried are run for real, and how.

use filemap_job::program::Job;
use filemap_study::advise::check::LeftOut;
use filemap_study::advise::{Beside, Change, Choice, Study, answer, answer_among};

use super::rule::Rule;
use super::rules;

/// Most answers that are run beside the program as it is.
const MOST: usize = 5;

/// Most of what is tied with the answer that is run: the rest of the places is for what differs.
const MOST_TIES: usize = 2;

/// How a program is run with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It gets this advice from outside, in place of the program's own.
    Advised(Vec<Rule>),
    /// The program is governed.
    Governed,
    /// The machine has this fault-around size in bytes, and the program this advice.
    FaultAround(u64, Vec<Rule>),
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The answer among what can be run, as an index of the study's trials; `None` is to leave the
    /// program as it is.
    pub answer: Option<usize>,
    /// What is run beside the program as it is, as indexes of trials.
    pub trials: Vec<(usize, How)>,
    /// Answers that cannot be run.
    pub left_out: Vec<LeftOut>,
}

/// How `changes` of `program` are made for a run; with `applies`, settings of the machine may be
/// changed for it. The end of a sentence that says why they cannot.
fn how(program: &Job, changes: &[Change], applies: bool) -> Result<How, String> {
    let mut size = None;
    for change in changes {
        match change {
            Change::Governor => return Ok(How::Governed),
            Change::ReadAhead(_) => {
                return Err("it is a setting of the device, which every program on it would get; \
                            set it as root and check again, and what runs as it is has it"
                    .to_string());
            }
            Change::Series(_) => return Err("it needs a patched kernel".to_string()),
            Change::FaultAround(_) if !applies => {
                return Err("it is a setting of the whole machine, which is changed with --apply \
                            only"
                    .to_string());
            }
            Change::FaultAround(bytes) => size = Some(*bytes),
            Change::Madvise(..)
            | Change::Part(..)
            | Change::WillNeed(..)
            | Change::Populate(..)
            | Change::Fadvise(..) => {}
        }
    }
    let rules = rules::of(program, changes)?;
    Ok(size.map_or(How::Advised(rules.clone()), |bytes| How::FaultAround(bytes, rules)))
}

/// What of `study` of `program` is run: the answer, what is tied with it, and then what is fastest
/// of the rest.
pub fn of(study: &Study, program: &Job, applies: bool) -> Selected {
    let trials = &study.trials;
    let hows: Vec<Result<How, String>> =
        trials.iter().map(|trial| how(program, &trial.changes, applies)).collect();
    let mut left_out = Vec::new();
    if let Choice::Best { best, ties, .. } = answer(&study.now, trials) {
        let named = [best].into_iter().chain(ties.into_iter().take(MOST_TIES));
        left_out.extend(named.filter_map(|trial| {
            let reason = hows[trial].as_ref().err()?.clone();
            Some(LeftOut { trial, reason })
        }));
    }
    let (answer, mut order) = match answer_among(&study.now, trials, |at| hows[at].is_ok()) {
        Choice::Nothing => (None, Vec::new()),
        Choice::Best { best, ties, .. } => {
            (Some(best), [best].into_iter().chain(ties.into_iter().take(MOST_TIES)).collect())
        }
    };
    let mut rest: Vec<usize> =
        (0..trials.len()).filter(|at| trials[*at].is_for_users() && !order.contains(at)).collect();
    let helps =
        |at: usize| trials[at].outcome.figures().verdict(study.now.figures()) == Beside::Better;
    let ns = |at: usize| trials[at].outcome.figures().ns[0];
    rest.sort_by(|a, b| helps(*b).cmp(&helps(*a)).then(ns(*a).total_cmp(&ns(*b))));
    order.extend(rest);
    let mut selected: Vec<(usize, How)> = Vec::new();
    for at in order {
        let is_known = |(known, _): &(usize, How)| trials[*known].outcome == trials[at].outcome;
        let Ok(how) = &hows[at] else { continue };
        // What comes to the same in the model shows nothing new, but where a governor reads ahead.
        let is_new = *how == How::Governed || !selected.iter().any(is_known);
        if selected.len() < MOST && is_new {
            selected.push((at, how.clone()));
        }
    }
    Selected { answer, trials: selected, left_out }
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::ReadHint;
    use filemap_job::ProgramSpec;
    use filemap_study::advise::{Outcome, Target, Trial};

    use super::*;

    fn program() -> Job {
        let text = "[[file]]\nname = 'a'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'a'\n\
            [[mapping]]\nname = 'm'\nopen = 'a'\n[[thread]]\n[[thread.phase]]\nmapping = 'm'\n\
            pages = [1]\n";
        let mut program = ProgramSpec::from_toml(text).unwrap().validate(None).unwrap();
        program.files[0].file.path = Some("/data/a".to_string());
        program
    }

    fn outcome(pages: u64, ms: f64) -> Outcome {
        Outcome { pages: vec![pages], major_faults: 1, ns: [ms * 1e6; 3] }
    }

    fn study(trials: Vec<(Change, Outcome)>) -> Study {
        let trial = |(change, outcome)| Trial { changes: vec![change], outcome };
        Study {
            name: String::new(),
            program: None,
            files: Vec::new(),
            now: outcome(1000, 100.0),
            trials: trials.into_iter().map(trial).collect(),
            conditions: Vec::new(),
            page_bytes: 4096,
            read_ahead_kb: 128,
            latency_ns: 1,
            warnings: Vec::new(),
            check: None,
        }
    }

    fn hint(hint: ReadHint) -> Change {
        Change::Madvise(Target { file: 0, name: "a".to_string(), numbers: vec![0] }, hint)
    }

    fn selected(
        trials: Vec<(Change, Outcome)>,
        applies: bool,
    ) -> (Option<usize>, Vec<usize>, Vec<usize>) {
        let Selected { answer, trials, left_out } = of(&study(trials), &program(), applies);
        let places = trials.into_iter().map(|(at, _)| at).collect();
        (answer, places, left_out.into_iter().map(|of| of.trial).collect())
    }

    #[test]
    fn what_every_program_would_get_is_not_run() {
        let trials = || {
            vec![
                (Change::ReadAhead(64), outcome(10, 20.0)),
                (hint(ReadHint::Random), outcome(10, 40.0)),
                (Change::FaultAround(4096), outcome(900, 90.0)),
                (Change::Governor, outcome(12, 60.0)),
                (Change::Series("mmap-miss"), outcome(5, 5.0)),
                (hint(ReadHint::Sequential), outcome(2000, 200.0)),
            ]
        };
        // The best answer is named as not run; the best of the others is the one that is checked.
        assert_eq!(selected(trials(), false), (Some(1), vec![1, 3, 5], vec![0]));
        assert_eq!(selected(trials(), true), (Some(1), vec![1, 3, 2, 5], vec![0]));
    }

    #[test]
    fn what_comes_to_the_same_is_run_once() {
        let same = outcome(10, 40.0);
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
            (hint(ReadHint::Random), outcome(1000, 900.0)),
            (Change::Governor, outcome(1000, 110.0)),
        ];
        assert_eq!(selected(trials, false), (None, vec![1, 0], vec![]));
    }
}
