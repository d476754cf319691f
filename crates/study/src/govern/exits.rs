//! How runs of a program ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compare::{GovernSample, GovernVariant};
use crate::trial::{RunSample, exit_text};

/// Runs of one variant that ended in the same way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ending")]
pub struct ExitCount {
    /// How the program was run.
    pub variant: GovernVariant,
    /// Its exit code; null where a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Number of such runs.
    pub runs: usize,
}

impl ExitCount {
    fn new(sample: &GovernSample) -> ExitCount {
        let RunSample { exit_code, signal, .. } = sample.run;
        ExitCount { variant: sample.variant, exit_code, signal, runs: 1 }
    }

    /// Whether the exits are the same, of whatever variant.
    fn is_same_exit(&self, other: &ExitCount) -> bool {
        (self.exit_code, self.signal) == (other.exit_code, other.signal)
    }

    fn text(&self) -> String {
        exit_text(self.exit_code, self.signal)
    }
}

/// The exits of `runs`, plain runs first.
pub fn count_exits(runs: &[GovernSample]) -> Vec<ExitCount> {
    let mut all: Vec<ExitCount> = runs.iter().map(ExitCount::new).collect();
    all.sort();
    all.dedup_by(|next, kept| {
        let is_same = next.variant == kept.variant && next.is_same_exit(kept);
        kept.runs += usize::from(is_same);
        is_same
    });
    all
}

/// The exits of both variants as text: `plain 5 with exit code 0; governed 4 with exit code 0 and 1
/// by signal 11`.
pub fn text(exits: &[ExitCount]) -> String {
    let of_variant = |name: &str, variant: GovernVariant| {
        let own = exits.iter().filter(|exit| exit.variant == variant);
        let own = own.map(|exit| format!("{} {}", exit.runs, exit.text()));
        format!("{name} {}", own.collect::<Vec<_>>().join(" and "))
    };
    let plain = of_variant("plain", GovernVariant::Plain);
    [plain, of_variant("governed", GovernVariant::Governed)].join("; ")
}

/// Whether governed runs ended in a way in which no plain run did.
pub fn differ(exits: &[ExitCount]) -> bool {
    let plain = || exits.iter().filter(|exit| exit.variant == GovernVariant::Plain);
    let mut governed = exits.iter().filter(|exit| exit.variant == GovernVariant::Governed);
    governed.any(|own| !plain().any(|plain| plain.is_same_exit(own)))
}

/// A paragraph about failed runs, if there are any. `first` is a run before the others.
pub fn failure_text(exits: &[ExitCount], first: Option<&GovernSample>) -> Option<String> {
    let first = first.map(ExitCount::new);
    let first = first.filter(|first| !exits.iter().any(|exit| exit.is_same_exit(first)));
    let failed = exits.iter().filter(|exit| exit.exit_code != Some(0));
    let failed: usize = failed.map(|exit| exit.runs).sum();
    if failed == 0 && first.is_none() {
        return None;
    }
    let which = match exits.iter().map(|exit| exit.runs).sum::<usize>() {
        _ if failed == 0 => "none of the runs".to_string(),
        all if failed == all => "all runs".to_string(),
        all => format!("{failed} of {all} runs"),
    };
    let mut paragraph = format!(
        "The program failed in {which}: {}. The figures are those of what it did until then.",
        text(exits)
    );
    if let Some(first) = first {
        paragraph += &format!(
            " A governed run before them, which told the files, ended {}: what a run leaves behind \
             may change the next.",
            first.text()
        );
    }
    Some(paragraph)
}
