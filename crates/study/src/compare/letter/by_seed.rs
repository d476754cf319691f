//! Paired changes: each figure before and after with the same seed.

use filemap_report::Part;
use filemap_report::units::percent;

use crate::compare::Variants;
use crate::compare::emulated::is_emulated;
use crate::figures::{ELAPSED, FIGURES};
use crate::spread;
use crate::stats::SampleStats;

/// Keys of the figures that are paired by seed.
const PAIRED: [&str; 3] = ["bytes_read", "major_faults", ELAPSED];

/// Maximum number of seeds whose changes are listed individually.
const MAX_LISTED_SEEDS: usize = 30;

/// The changes of all variants of `jobs`, prefixed by the job's name unless that is empty.
pub(super) fn parts(jobs: &[(String, &Variants)]) -> Vec<Part> {
    let lines: Vec<String> = jobs.iter().flat_map(|(job, variants)| lines(job, variants)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let heading = "Change with the same seed before and after:".to_string();
    vec![Part::Paragraph(heading), Part::List(lines)]
}

fn lines(job: &str, variants: &Variants) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, own) in variants.records.iter().enumerate() {
        let first =
            variants.records.iter().position(|first| first.engine == own.engine).unwrap_or(at);
        if first == at || spread::seeds(own) < 2 {
            continue;
        }
        for figure in FIGURES.iter().filter(|figure| PAIRED.contains(&figure.key)) {
            let is_no_time = figure.key == ELAPSED && is_emulated(own);
            let [before, after] =
                [&variants.records[first], own].map(|record| figure.values_by_seed(record));
            // A job without random draws gives the same figures with every seed.
            let varies =
                |values: &[(u64, f64)]| values.iter().any(|(_, value)| *value != values[0].1);
            let is_said = !is_no_time && (varies(&before) || varies(&after));
            if let Some(changes_text) = list_changes(changes(&before, after)).filter(|_| is_said) {
                let job = if job.is_empty() { String::new() } else { format!("{job}, ") };
                lines.push(format!("{job}{}, {}: {changes_text}", variants.name(at), figure.name));
            }
        }
    }
    lines
}

/// The change for each seed that both sides have, in percent.
fn changes(before: &[(u64, f64)], after: Vec<(u64, f64)>) -> Vec<f64> {
    let change = |(seed, after): (u64, f64)| {
        let (_, before) = before.iter().find(|(known, _)| *known == seed)?;
        if *before == 0.0 && after == 0.0 { Some(0.0) } else { percent(after, *before) }
    };
    after.into_iter().filter_map(change).collect()
}

/// Lists the changes, with their median and range.
fn list_changes(changes: Vec<f64>) -> Option<String> {
    let written = |change: f64| format!("{change:+.1}");
    let SampleStats { median, min, max, samples, .. } = SampleStats::from_sorted(changes)?;
    let [median, least, most] = [median, min, max].map(written);
    let seeds = samples.len();
    if least == most {
        let change = if median == "+0.0" { "none".to_string() } else { format!("{median} %") };
        return Some(format!("{change} with each of {seeds} seeds"));
    }
    let all = if seeds <= MAX_LISTED_SEEDS {
        let all: Vec<String> = samples.into_iter().map(written).collect();
        format!("; {} %", all.join(", "))
    } else {
        String::new()
    };
    Some(format!("median {median} %, from {least} to {most} % over {seeds} seeds{all}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_median_and_a_range() {
        assert_eq!(list_changes(Vec::new()), None);
        assert_eq!(list_changes(vec![0.0, 0.0]).as_deref(), Some("none with each of 2 seeds"));
        assert_eq!(
            list_changes(vec![-50.0, -50.01]).as_deref(),
            Some("-50.0 % with each of 2 seeds")
        );
        assert_eq!(
            list_changes(vec![-50.0, 0.0, 10.0]).as_deref(),
            Some("median +0.0 %, from -50.0 to +10.0 % over 3 seeds; -50.0, +0.0, +10.0 %")
        );
    }
}
