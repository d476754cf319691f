//! Which other series a kernel has that does not do what it should.

use filemap_core::rules::Rules;
use filemap_core::series::{Series, Switch};
use filemap_job::Seen;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::comparison::compare;
use super::switched::lines;
use crate::error::Error;

/// Switches that are tried together at most, besides any part of the series in question.
const MOST_TOGETHER: usize = 3;

/// What other series explain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Likeness {
    /// Combinations of switches that were tried: the smallest first, up to the first that explains
    /// all jobs and others of its size.
    pub tried: u64,
    /// Jobs that each has to explain.
    pub jobs: u64,
    /// The smallest that do, by the names of `--with`.
    pub does: Vec<String>,
}

impl Likeness {
    /// What it is, in a sentence, beside `with`, the series in question.
    pub(super) fn sentence(&self, with: &str) -> String {
        let Likeness { tried, jobs, does } = self;
        let baseline = Series::BASELINE.to_string();
        let plural = if *jobs == 1 { "" } else { "s" };
        match does.as_slice() {
            [] => format!(
                "None of {tried} other combinations of series explains what this kernel does in \
                 {jobs} job{plural}."
            ),
            [one] if *one == baseline => format!(
                "This kernel does what it does without {with}: the model without any series \
                 decides {jobs} job{plural} as the kernel does, all that were compared."
            ),
            several => format!(
                "This kernel does what {} alone does: the model with that decides {jobs} \
                 job{plural} as the kernel does, all that were compared.",
                several.join(", or ")
            ),
        }
    }
}

/// A likeness, and the first of the series that make it.
pub(super) type Found = (Likeness, Option<Series>);

/// The fewest switches with which the model decides as the kernel does in all `cases`, where it
/// does not with those in question; `None` where no case differs.
///
/// # Errors
/// Those of the model.
pub(super) fn likeness(cases: &[Case], seen: Seen) -> Result<Option<Found>, Error> {
    let mut told: Vec<&Case> = cases.iter().filter(|case| case.found.kernel.is_some()).collect();
    let Some(rules) = told.first().map(|case| case.job.rules) else { return Ok(None) };
    // What differs soonest is looked at first.
    told.sort_by_key(|case| case.found.decisions);
    told.extend(cases.iter().filter(|case| !case.differs()));
    let (mut tried, mut size, mut does) = (0, 0, Vec::new());
    for series in candidates(&rules) {
        if !does.is_empty() && series.switches().count() > size {
            break;
        }
        tried += 1;
        if explains(series, &told, seen)? {
            size = series.switches().count();
            does.push(series);
        }
    }
    let jobs = told.len() as u64;
    let names = does.iter().map(|series| name(*series)).collect();
    Ok(Some((Likeness { tried, jobs, does: names }, does.first().copied())))
}

/// Whether the model with `series` decides as the kernel does in all `cases`. Where kernel and
/// model agree, the model with the series in question says what the kernel does.
fn explains(series: Series, cases: &[&Case], seen: Seen) -> Result<bool, Error> {
    for case in cases {
        let model = lines(case, series, seen)?;
        let found = match &case.found.kernel {
            Some(kernel) => compare(&model, kernel, seen, &[]),
            None => compare(&model, &lines(case, case.job.rules.series, seen)?, seen, &[]),
        };
        if found.mismatches > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is tried beside the series of `rules`, the fewest switches first.
fn candidates(rules: &Rules) -> Vec<Series> {
    let has_place = |switch: &Switch| rules.lacks(*switch).is_none();
    let mut all = vec![Series::BASELINE];
    for switch in Switch::ALL.into_iter().filter(has_place) {
        let more: Vec<Series> = all.iter().map(|series| series.with(switch)).collect();
        let is_tried = |series: &Series| {
            series.switches().count() <= MOST_TOGETHER || series.union(rules.series) == rules.series
        };
        all.extend(more.into_iter().filter(is_tried));
    }
    all.retain(|series| *series != rules.series);
    // Of as many switches, those of the series in question first.
    let is_other = |series: &Series| series.union(rules.series) != rules.series;
    all.sort_by_key(|series| (series.switches().count(), is_other(series)));
    all
}

/// `series` by all of its names.
fn name(series: Series) -> String {
    let text = series.to_string();
    let is_same = |name: &&str| **name != *text && name.parse() == Ok(series);
    let others: Vec<&str> = Series::names().filter(is_same).collect();
    if others.is_empty() { text } else { format!("{text} ({})", others.join(", ")) }
}

#[cfg(test)]
mod tests {
    use filemap_core::rules::Kernel;

    use super::*;

    #[test]
    fn the_fewest_switches_are_tried_first() {
        let series: Series = "mmap-miss".parse().unwrap();
        let all = candidates(&Rules::new(Kernel::V6_12, series));
        assert_eq!(all[0], Series::BASELINE);
        assert!(all[1..3].iter().all(|own| own.union(series) == series), "{:?}", &all[..3]);
        assert!(!all.contains(&series));
        let mut sizes = all.iter().map(|series| series.switches().count());
        assert!(sizes.clone().is_sorted() && sizes.all(|size| size <= MOST_TOGETHER));
        // VMAs have no lock there.
        let old = candidates(&Rules::new(Kernel::V6_1, Series::BASELINE));
        assert!(!old.iter().any(|series| series.has(Switch::VmaRetry)));
    }

    #[test]
    fn a_published_name_is_said_too() {
        assert_eq!(name("p1".parse().unwrap()), "miss-fault-address (p1)");
        assert_eq!(name(Series::BASELINE), "baseline");
        assert!(name("mmap-miss".parse().unwrap()).contains("(mmap-miss)"));
    }
}
