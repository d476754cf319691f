//! What a search keeps in a file, so that a further one goes on from there.

use filemap_job::JobSpec;
use serde::{Deserialize, Serialize};

use super::ROUND;
use super::found::{Found, Known};
use super::record::{Case, Group};

/// The form of the file.
const FORM: u32 = 2;

/// What is in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    filemap_search: u32,
    /// The command, and the version of filemap, whose model and jobs it depends on.
    search: String,
    drawn: u64,
    left_out: u64,
    alike: u64,
    mechanisms: Vec<Mechanism>,
    /// What is known of the jobs of the round behind these, a letter each.
    #[serde(default)]
    begun: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mechanism {
    mechanism: String,
    jobs: u64,
    smallest: JobSpec,
    by_ratio: JobSpec,
    by_cost: JobSpec,
}

impl State {
    /// What whole rounds of `search` have `found`, and what is `known` of the jobs of the one
    /// behind them.
    pub fn of(search: &str, found: &Found, known: &[Known]) -> State {
        let mechanisms = found.mechanisms.iter().map(|(mechanism, kept)| {
            let [smallest, by_ratio, by_cost] = kept.cases.each_ref().map(|case| case.job.clone());
            let mechanism = mechanism.clone();
            Mechanism { mechanism, jobs: kept.jobs, smallest, by_ratio, by_cost }
        });
        State {
            filemap_search: FORM,
            search: search.to_string(),
            drawn: found.drawn,
            left_out: found.left_out,
            alike: found.alike,
            mechanisms: mechanisms.collect(),
            begun: letters(known),
        }
    }

    /// As the file has it.
    pub fn text(&self) -> String {
        let text = serde_json::to_string(self).expect("it has keys that are texts");
        format!("{text}\n")
    }

    /// The state of `search`, which tries so many jobs, in the text of a file.
    ///
    /// # Errors
    /// A file of something else, or of another search; the end of a sentence.
    pub fn read(text: &str, search: &str, jobs: Option<u64>) -> Result<State, String> {
        let state: State = serde_json::from_str(text)
            .map_err(|_| "the file is no state of a search; give a new one".to_string())?;
        if state.filemap_search != FORM {
            return Err("the file is of another version of filemap; give a new one".to_string());
        }
        if state.search != search {
            return Err(format!(
                "the file is of another search: {}; give its flags, or a new file",
                state.search
            ));
        }
        if let Some(jobs) = jobs.filter(|&jobs| jobs < state.drawn) {
            return Err(format!(
                "{} jobs were tried already; give --jobs more than that in place of {jobs}",
                state.drawn
            ));
        }
        Ok(state)
    }

    /// What whole rounds have found, of which only the jobs are known, and what is known of the one
    /// behind them; `None` where it does not show what it says.
    pub(super) fn begun(self) -> Option<(Found, Vec<Known>)> {
        let known = known(&self.begun)?;
        let group = |of: Mechanism| {
            let cases = [of.smallest, of.by_ratio, of.by_cost];
            let cases = cases.map(|job| Case { job, ..Case::default() });
            (of.mechanism.clone(), Group { mechanism: of.mechanism, jobs: of.jobs, cases })
        };
        let mechanisms = self.mechanisms.into_iter().map(group).collect();
        let State { drawn, left_out, alike, .. } = self;
        let found = Found { drawn, left_out, alike, mechanisms };
        drawn.is_multiple_of(ROUND).then_some((found, known))
    }
}

const LETTERS: [(Known, char); 3] =
    [(Known::Nothing, '.'), (Known::Same, '='), (Known::Tried, '!')];

/// What is known of the jobs of a round, as it is written.
fn letters(known: &[Known]) -> String {
    let letter = |known: &Known| LETTERS.iter().find(|(of, _)| of == known).map(|(_, own)| own);
    known.iter().filter_map(letter).collect()
}

/// The same as it is read; `None` for what is of no round.
fn known(text: &str) -> Option<Vec<Known>> {
    let known = |letter: char| Some(LETTERS.iter().find(|(_, own)| *own == letter)?.0);
    let known = text.chars().map(known).collect::<Option<Vec<_>>>()?;
    (known.len() as u64 <= ROUND).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_round_is_read_as_it_is_written() {
        let all = [Known::Same, Known::Nothing, Known::Tried, Known::Same];
        assert_eq!(letters(&all), "=.!=");
        assert_eq!(known("=.!="), Some(all.to_vec()));
        assert_eq!(known(""), Some(Vec::new()));
        assert_eq!(known("=x"), None);
        // All of a round may be known before it has ended.
        assert!(known(&"=".repeat(ROUND as usize)).is_some());
        assert_eq!(known(&"=".repeat(ROUND as usize + 1)), None);
    }
}
