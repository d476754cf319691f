//! The differences that jobs show: those that are alike together, with a small job for each.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bench::Bench;
use super::case::Case;
use super::comparison::First;
use super::smaller::{Smallest, Trying, smallest};
use crate::error::Error;

/// No more jobs are made smaller after this time.
const LONGEST: Duration = Duration::from_secs(180);

/// Patterns in which a kernel differs from the model alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Their names. The job is that of the first of them, made smaller.
    pub patterns: Vec<String>,
    /// The job as a job file.
    pub job: String,
    /// Whether there was time to try all jobs that are smaller.
    pub is_smallest: bool,
    /// Where kernel and model differ in it.
    pub first: First,
}

/// Of those of `cases` that differ: each kind of difference, with the smallest job that shows it.
///
/// # Errors
/// Those of the bench.
pub(super) fn differences(
    bench: &mut Bench,
    cases: &[Case],
    trying: Trying,
) -> Result<Vec<Difference>, Error> {
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    for case in cases.iter().filter(|case| case.differs()) {
        match groups.iter_mut().find(|group| group[0].found.alike == case.found.alike) {
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    let begun = Instant::now();
    let mut differences: Vec<Difference> = Vec::new();
    for mut group in groups {
        // The shortest is the quickest to make smaller.
        group.sort_by_key(|case| case.found.decisions);
        let shortest = group[0];
        let Smallest { text, found, is_all } = if begun.elapsed() < LONGEST {
            smallest(bench, shortest, trying)?
        } else {
            let text = shortest.text.to_string();
            Smallest { text, found: shortest.found.clone(), is_all: false }
        };
        differences.extend(found.first.map(|first| Difference {
            patterns: group.iter().map(|case| case.name.to_string()).collect(),
            job: text,
            is_smallest: is_all,
            first: *first,
        }));
    }
    Ok(differences)
}
