//! What the measured runs say of the answer.

use super::{Check, CheckRun, Checked, label};
use crate::advise::Study;
use crate::explain::remedies::LEAST_SHARE;
use crate::verdict::{LEVEL, Margin, Tested, Verdict as Beside, least_p_value, median_of, samples};
use filemap_report::units::{number, time};

/// An answer is as good as another that is faster by no more than this share.
const AS_GOOD: f64 = 0.10;

/// Differences of fewer pages are none: what the program itself needs to start, and metadata.
const FEW_PAGES: f64 = 64.0;

/// Differences of less time are none: to advise a program takes about as long.
const SHORT_NS: f64 = 2e6;

/// What the check says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer is the best of what was run, or within 10 % of it.
    Confirmed,
    /// Chance may be all that tells it from another, or from doing nothing.
    Tie,
    /// Something else is faster.
    NotConfirmed,
    /// The program reads more or takes longer with it than as it is.
    Refuted,
    /// There were too few runs.
    NotTested,
}

impl Verdict {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Tie => "tie",
            Verdict::NotConfirmed => "not-confirmed",
            Verdict::Refuted => "refuted",
            Verdict::NotTested => "not-tested",
        }
    }
}

/// The verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// What a reader is told.
    pub text: String,
}

/// How `own` is beside `other`, where a difference of `slack` is none.
fn beside(own: &[f64], other: &[f64], slack: f64) -> Beside {
    Tested::unpaired(other, own, Margin { least: slack, share: LEAST_SHARE }).verdict
}

impl Checked {
    /// One figure of each run.
    pub(super) fn all(&self, value: fn(&CheckRun) -> u64) -> Vec<u64> {
        self.runs.iter().map(value).collect()
    }

    fn pages(&self) -> Vec<f64> {
        samples(self.all(|run| run.pages_read))
    }

    pub(super) fn ns(&self) -> Vec<f64> {
        samples(self.all(|run| run.elapsed_ns))
    }

    /// How what is read is beside what `other` reads, and how the times are.
    pub(super) fn beside(&self, other: &Checked) -> [Beside; 2] {
        [
            beside(&self.pages(), &other.pages(), FEW_PAGES),
            beside(&self.ns(), &other.ns(), SHORT_NS),
        ]
    }
}

/// What [`Checked::beside`] has found, in words.
pub(super) fn in_words([pages, ns]: [Beside; 2]) -> String {
    let pages = match pages {
        Beside::Less => "reads less",
        Beside::More => "reads more",
        Beside::NoDifference => "",
        Beside::NotTested => "not tested",
    };
    let ns = match ns {
        Beside::Less => "faster",
        Beside::More => "slower",
        Beside::NoDifference => "",
        Beside::NotTested => "not tested",
    };
    match (pages, ns) {
        ("", "") => "no difference".to_string(),
        (one, "") | ("", one) => one.to_string(),
        ("not tested", _) | (_, "not tested") => "not tested".to_string(),
        (pages, ns) => format!("{pages}, {ns}"),
    }
}

/// Why the runs of the program as it is tell nothing of what was recorded, if that is so: a signal
/// ended one, or they read next to nothing of what was predicted, as a program does that does not
/// find its input.
pub(super) fn other_work(study: &Study, plain: &Checked) -> Option<String> {
    if let Some(signal) = plain.runs.iter().find_map(|run| run.signal) {
        return Some(format!("Not checked: signal {signal} ended the program as it is."));
    }
    let code = plain.runs.iter().find_map(|run| run.exit_code.filter(|code| *code != 0));
    let (predicted, read) = (study.now.figures().pages, median_of(&plain.pages()));
    let is_next_to_nothing = match code {
        Some(_) => read < predicted * LEAST_SHARE,
        None => read < FEW_PAGES && predicted * LEAST_SHARE > FEW_PAGES,
    };
    (predicted > FEW_PAGES && is_next_to_nothing).then(|| {
        format!(
            "Not checked: as it is the program read {} of the {} pages that the model has, and \
             ended with exit code {}. It does not do what was recorded: run the check in the same \
             directory, with the same files and without input from a pipe.",
            number(read),
            number(predicted),
            code.unwrap_or(0)
        )
    })
}

/// Why so few runs can show nothing, if that is so.
fn too_few(check: &Check) -> Option<String> {
    let runs = check.variants[0].runs.len();
    match check.variants.len() {
        1 => Some("Not tested: nothing was run beside the program as it is.".to_string()),
        _ => (least_p_value(runs, runs) > LEVEL).then(|| {
            format!(
                "Not tested: {runs} runs of each are too few to tell a difference from chance; \
                 give --runs 4 or more."
            )
        }),
    }
}

/// What `check` says of the answer of `study`.
///
/// # Panics
/// Without runs of the program as it is.
pub fn judge(study: &Study, check: &Check) -> Judged {
    let plain = &check.variants[0];
    let name = |of: &Checked| label(study, of.trial);
    let cost = |of: &Checked| {
        format!("{} pages in {}", number(median_of(&of.pages())), time(median_of(&of.ns())))
    };
    let with = |of: &Checked| match of.trial {
        None => format!("{} as it is", cost(of)),
        Some(_) => format!("{} with {}", cost(of), name(of)),
    };
    let own = check.variants.iter().find(|of| of.trial == check.answer);
    let Some(own) = own else {
        let reason = check.left_out.iter().find(|of| Some(of.trial) == check.answer);
        let reason = reason.map_or("it was not run", |of| of.reason.as_str());
        let text = format!("Not tested: {}: {reason}.", label(study, check.answer));
        return Judged { verdict: Verdict::NotTested, text };
    };
    if let Some(text) = other_work(study, plain).or_else(|| too_few(check)) {
        return Judged { verdict: Verdict::NotTested, text };
    }
    let is_plain = own.trial.is_none();
    let found = own.beside(plain);
    let reads_more = |of: &&Checked| of.beside(plain)[0] == Beside::More;
    let others = || check.variants.iter().filter(|of| !reads_more(of));
    let by_time = |a: &&Checked, b: &&Checked| median_of(&a.ns()).total_cmp(&median_of(&b.ns()));
    let fastest = others().min_by(by_time).unwrap_or(plain);
    let ratio = |of: &Checked| median_of(&own.ns()) / median_of(&of.ns()).max(1.0);
    let is_as_good = ratio(fastest) <= 1.0 + AS_GOOD;
    let beside_others = |of: &Checked| beside(&own.ns(), &of.ns(), SHORT_NS);
    let beats = |of: &&Checked| ratio(of) > 1.0 + AS_GOOD && beside_others(of) == Beside::More;
    let faster = others().filter(beats).min_by(by_time);
    let (verdict, text) = match () {
        () if found.contains(&Beside::More) => (
            Verdict::Refuted,
            format!(
                "Refuted: the program {} with {}: {}; as it is {}.",
                if found[0] == Beside::More { "reads more" } else { "is slower" },
                name(own),
                cost(own),
                cost(plain)
            ),
        ),
        () if is_as_good && is_plain => (
            Verdict::Confirmed,
            format!(
                "Confirmed: nothing that was run is faster than the program as it is ({}) by 10 % \
                 without reading more.",
                cost(plain)
            ),
        ),
        () if is_as_good && found == [Beside::NoDifference; 2] => {
            (Verdict::Tie, format!("A tie with doing nothing: {}, {}.", with(own), with(plain)))
        }
        () if is_as_good => (
            Verdict::Confirmed,
            format!(
                "Confirmed: {}, {}. Nothing else that was run is faster by 10 % without reading \
                 more than it does as it is.",
                with(own),
                with(plain)
            ),
        ),
        () => match faster {
            None => (
                Verdict::Tie,
                format!("A tie: {}, {}, which chance explains.", with(own), with(fastest)),
            ),
            Some(faster) => (
                Verdict::NotConfirmed,
                format!(
                    "Not confirmed: {} is faster: {}, {}.",
                    name(faster),
                    with(faster),
                    with(own)
                ),
            ),
        },
    };
    Judged { verdict, text }
}
