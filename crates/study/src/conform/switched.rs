//! Of how many jobs the series in question changes the decisions at all.

use filemap_core::decision::Decision;
use filemap_core::series::Series;
use filemap_job::Seen;
use filemap_job::program::Job;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::Case;
use crate::error::Error;
use crate::parallel;
use crate::traced_job::decided;

/// What jobs say of a series: in the model, and only what the kernel shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Switched {
    /// The series.
    pub series: String,
    /// Jobs that were compared.
    pub jobs: u64,
    /// Of these, those that are decided otherwise without the series.
    pub changed: u64,
    /// Each switch of a series of several.
    pub parts: Vec<OfSwitch>,
}

/// What jobs say of one switch of a series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfSwitch {
    /// Its name.
    pub switch: String,
    /// Jobs that are decided otherwise without it, the others of the series being there.
    pub changed: u64,
    /// Whether the model has a rule for it.
    pub decides: bool,
}

impl Switched {
    /// Whether jobs were compared and say nothing about the series: a kernel without it would agree
    /// too.
    pub fn shows_nothing(&self) -> bool {
        self.jobs > 0 && self.changed == 0
    }

    /// Whether jobs were compared, and a kernel without a part of the series would agree too.
    pub fn leaves_open(&self) -> bool {
        let is_open = |part: &OfSwitch| part.changed == 0 && part.decides;
        self.shows_nothing() || self.jobs > 0 && self.parts.iter().any(is_open)
    }

    /// What is said of it, in a sentence each.
    pub(super) fn sentences(&self) -> Vec<String> {
        let Switched { series, jobs, changed, parts } = self;
        if self.shows_nothing() {
            return vec![format!(
                "This shows nothing about {series}: without it the model decides the same in all \
                 {jobs} jobs that were compared, as far as this kernel shows. Give other jobs, \
                 such as more --fuzz or the built-in patterns."
            )];
        }
        let untold = parts.iter().filter(|part| part.changed == 0);
        let untold: Vec<&str> = untold.map(|part| part.switch.as_str()).collect();
        let all = format!("{series} changes the decisions of {changed} of {jobs} jobs.");
        let none = (!untold.is_empty()).then(|| {
            let remedy = if self.leaves_open() { " Give more jobs." } else { "" };
            format!("No job tells whether the kernel has {}.{remedy}", untold.join(", nor "))
        });
        [all].into_iter().chain(none).collect()
    }
}

/// What `cases`, of a kernel of which so much is `seen`, say of their series, which was asked for
/// as `name`; `None` where they have none.
///
/// # Errors
/// Those of the model.
pub(super) fn switched(
    cases: &[Case],
    name: Option<&str>,
    seen: Seen,
) -> Result<Option<Switched>, Error> {
    let series = cases.first().map_or(Series::BASELINE, |case| case.job.rules.series);
    if series == Series::BASELINE {
        return Ok(None);
    }
    let parts: Vec<_> = series.switches().collect();
    let parts = if parts.len() > 1 { parts } else { Vec::new() };
    let less = parts.iter().map(|part| {
        let others = series.switches().filter(|switch| switch != part);
        others.fold(Series::BASELINE, Series::with)
    });
    let without: Vec<Series> = [Series::BASELINE].into_iter().chain(less).collect();
    let is_changed = |case: &Case| -> Result<Vec<bool>, Error> {
        let own = lines(case, series, seen)?;
        without.iter().map(|without| Ok(lines(case, *without, seen)? != own)).collect()
    };
    let changed = parallel::map(cases.to_vec(), |case| is_changed(&case))?;
    let count = |at: usize| changed.iter().filter(|of| of[at]).count() as u64;
    let of_part = |(at, part): (usize, &filemap_core::series::Switch)| OfSwitch {
        switch: part.name().to_string(),
        changed: count(at + 1),
        decides: part.decides(),
    };
    Ok(Some(Switched {
        series: name.map_or(series.to_string(), str::to_string),
        jobs: cases.len() as u64,
        changed: count(0),
        parts: parts.iter().enumerate().map(of_part).collect(),
    }))
}

/// `job` with these series.
pub(super) fn with(job: &Job, series: Series) -> Job {
    let mut job = job.clone();
    job.rules.series = series;
    job
}

/// What the model decides about the file of `case` with these series.
///
/// # Errors
/// Those of the model.
pub(super) fn lines(case: &Case, series: Series, seen: Seen) -> Result<Vec<Decision>, Error> {
    let mut logs = decided(&with(case.job, series), case.found.io_bytes, seen)?;
    Ok(logs.swap_remove(case.file).into_lines())
}
