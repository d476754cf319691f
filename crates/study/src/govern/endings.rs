//! How runs of a program ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::measured::{Measured, Variant};
use crate::trial::{Ran, ended};

/// Runs of one kind that ended alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// How they were run.
    pub variant: Variant,
    /// Their exit code; null where a signal ended them.
    pub exit_code: Option<i32>,
    /// The signal that ended them.
    pub signal: Option<i32>,
    /// How many they are.
    pub runs: usize,
}

impl Ending {
    fn of(run: &Measured) -> Ending {
        let Ran { exit_code, signal, .. } = run.ran;
        Ending { variant: run.variant, exit_code, signal, runs: 1 }
    }

    /// Whether `other` ended in the same way, however it was run.
    fn is_as(&self, other: &Ending) -> bool {
        (self.exit_code, self.signal) == (other.exit_code, other.signal)
    }

    /// How they ended, as the end of a sentence.
    fn how(&self) -> String {
        ended(self.exit_code, self.signal)
    }
}

/// How `runs` ended, the plain ones first.
pub fn endings(runs: &[Measured]) -> Vec<Ending> {
    let mut all: Vec<Ending> = runs.iter().map(Ending::of).collect();
    all.sort();
    all.dedup_by(|next, kept| {
        let is_same = next.variant == kept.variant && next.is_as(kept);
        kept.runs += usize::from(is_same);
        is_same
    });
    all
}

/// `endings` of both kinds in words: `plain 5 with exit code 0; governed 4 with exit code 0 and 1
/// by signal 11`.
pub fn in_words(endings: &[Ending]) -> String {
    let of = |name: &str, variant: Variant| {
        let own = endings.iter().filter(|ending| ending.variant == variant);
        let own = own.map(|ending| format!("{} {}", ending.runs, ending.how()));
        format!("{name} {}", own.collect::<Vec<_>>().join(" and "))
    };
    [of("plain", Variant::Plain), of("governed", Variant::Governed)].join("; ")
}

/// Whether governed runs ended in a way in which no plain run did.
pub fn differ(endings: &[Ending]) -> bool {
    let plain = || endings.iter().filter(|ending| ending.variant == Variant::Plain);
    let mut governed = endings.iter().filter(|ending| ending.variant == Variant::Governed);
    governed.any(|own| !plain().any(|plain| plain.is_as(own)))
}

/// What is to be said of `endings` where the program failed: `first` is a run before.
pub fn failure(endings: &[Ending], first: Option<&Measured>) -> Option<String> {
    let first = first.map(Ending::of);
    let first = first.filter(|first| !endings.iter().any(|ending| ending.is_as(first)));
    let failed = endings.iter().filter(|ending| ending.exit_code != Some(0));
    let failed: usize = failed.map(|ending| ending.runs).sum();
    if failed == 0 && first.is_none() {
        return None;
    }
    let some = match endings.iter().map(|ending| ending.runs).sum::<usize>() {
        _ if failed == 0 => "none of the runs".to_string(),
        all if failed == all => "all runs".to_string(),
        all => format!("{failed} of {all} runs"),
    };
    let mut text = format!(
        "The program failed in {some}: {}. The figures are those of what it did until then.",
        in_words(endings)
    );
    if let Some(first) = first {
        text += &format!(
            " A governed run before them, which told the files, ended {}: what a run leaves behind \
             may change the next.",
            first.how()
        );
    }
    Some(text)
}
