//! Groups similar differences, with a small job for each group.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bench::ConformBench;
use super::case::ConformCase;
use super::comparison::FirstDifference;
use super::shrink::{ShrinkContext, SmallestJob, shrink_job};
use crate::error::Error;

/// Time limit for shrinking the jobs of all groups.
const SHRINK_TIMEOUT: Duration = Duration::from_secs(180);

/// Patterns in which a kernel differs from the model in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Names of the patterns. The job is the first one's, shrunk.
    pub patterns: Vec<String>,
    /// The job as a job file.
    pub job: String,
    /// Whether all smaller jobs were tried within the time limit.
    pub is_smallest: bool,
    /// The first difference in the job.
    pub first: FirstDifference,
}

/// Groups the differing `cases` by kind of difference, each with the smallest job that shows it.
///
/// # Errors
/// Errors of the bench.
pub(super) fn group_differences(
    bench: &mut ConformBench,
    cases: &[ConformCase],
    trying: ShrinkContext,
) -> Result<Vec<Difference>, Error> {
    let mut groups: Vec<Vec<&ConformCase>> = Vec::new();
    for case in cases.iter().filter(|case| case.differs()) {
        match groups.iter_mut().find(|group| group[0].found.alike == case.found.alike) {
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    let begun = Instant::now();
    let mut differences: Vec<Difference> = Vec::new();
    for mut group in groups {
        // The shortest is the fastest to shrink.
        group.sort_by_key(|case| case.found.decisions);
        let shortest = group[0];
        let SmallestJob { text, found, is_all } = if begun.elapsed() < SHRINK_TIMEOUT {
            shrink_job(bench, shortest, trying)?
        } else {
            let text = shortest.text.to_string();
            SmallestJob { text, found: shortest.found.clone(), is_all: false }
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
