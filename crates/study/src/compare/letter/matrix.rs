//! Comparisons of several jobs: one table per figure, one row per job.

use std::path::Path;

use filemap_report::{ComparisonTable, Figure, Part, Sample};

use super::{Fact, by_seed, facts, runs_text};
use crate::compare::parts::{conditions, regressions, times};
use crate::compare::{Comparison, Variants, no_effect};

/// The figure that is shown even if no job differs in it.
const ALWAYS: &str = "read from device";

/// The sections of a letter about several jobs.
pub(super) fn parts(comparison: &Comparison, jobs: &[Variants]) -> Vec<Part> {
    let names = names(jobs);
    let against = &jobs[0].cells[0].variant;
    let heading = format!("{} jobs: changes against {against}", jobs.len());
    let mut parts = vec![Part::Heading(heading)];
    parts.extend(job_descriptions(jobs, &names));
    parts.extend(tables(jobs, &names));
    let named: Vec<(String, &Variants)> = names.iter().cloned().zip(jobs).collect();
    parts.extend(by_seed::parts(&named));
    let of_job = |(name, variants): &(String, &Variants)| {
        regressions(variants, |_| true)
            .into_iter()
            .map(|line| format!("{name}, {line}"))
            .collect::<Vec<_>>()
    };
    let worse: Vec<String> = named.iter().flat_map(of_job).collect();
    if !worse.is_empty() {
        let against = format!("Regressions against {against}:");
        parts.extend([Part::Paragraph(against), Part::List(worse)]);
    }
    let times = named.iter().flat_map(|(name, variants)| {
        times(variants).into_iter().map(move |text| format!("{name}: {text}"))
    });
    parts.extend(times.map(Part::Paragraph));
    let warnings = jobs.iter().map(|job| comparison.warnings_of(job.cells));
    let warnings = names.iter().map(String::as_str).zip(warnings);
    parts.extend(Part::warnings(&no_effect::merge_warnings(&warnings.collect::<Vec<_>>())));
    let mut texts: Vec<String> = Vec::new();
    for note in jobs.iter().flat_map(conditions) {
        if !texts.contains(&note) {
            texts.push(note);
        }
    }
    parts.extend(texts.into_iter().map(Part::Paragraph));
    parts
}

/// Row labels: the stems of the job files' names if they are distinct, otherwise the paths.
fn names(jobs: &[Variants]) -> Vec<String> {
    let paths = jobs.iter().filter_map(|job| job.cells[0].job_file.clone());
    let paths: Vec<String> = paths.collect();
    let stem = |path: &String| Path::new(path).file_stem().map(|stem| stem.display().to_string());
    let stems: Vec<String> = paths.iter().filter_map(stem).collect();
    let repeats = (1..stems.len()).any(|at| stems[..at].contains(&stems[at]));
    if repeats || stems.len() < paths.len() { paths } else { stems }
}

/// Describes each job; facts that all jobs share are listed once.
fn job_descriptions(jobs: &[Variants], names: &[String]) -> Vec<Part> {
    let all: Vec<Vec<Fact>> = jobs
        .iter()
        .map(|variants| {
            let (job, settings) = facts(variants);
            let runs = ("Runs".to_string(), runs_text(&variants.records[0]));
            job.into_iter().chain([runs]).chain(settings).collect()
        })
        .collect();
    let is_common = |fact: &Fact| all.iter().all(|own| own.contains(fact));
    let items = names.iter().zip(jobs).zip(&all).map(|((name, variants), facts)| {
        let own = facts.iter().filter(|fact| !is_common(fact));
        let own = own.map(|(label, text)| format!("{}: {text}", label.to_lowercase()));
        let facts = std::iter::once(crate::record::record_heading(&variants.records[0])).chain(own);
        format!("{name} - {}", facts.collect::<Vec<_>>().join("; "))
    });
    let common: Vec<Fact> = all[0].iter().filter(|fact| is_common(fact)).cloned().collect();
    vec![Part::Paragraph("Jobs:".to_string()), Part::List(items.collect()), Part::Facts(common)]
}

/// One table for each headline figure that differs in any job, with a row for each job.
fn tables(jobs: &[Variants], names: &[String]) -> Vec<Part> {
    let all: Vec<ComparisonTable> = jobs.iter().map(Variants::figures).collect();
    let mut figures: Vec<(String, String, &Figure)> = Vec::new();
    for (own_table, figure) in
        all.iter().flat_map(|table| table.figures.iter().map(move |own| (table, own)))
    {
        let name = own_table.full_name(figure);
        if !figures.iter().any(|(known, ..)| *known == name) {
            figures.push((name, own_table.title(figure).replace(": ", ", "), figure));
        }
    }
    let mut parts = all[0].legends();
    let (mut same, mut others) = (Vec::new(), Vec::new());
    for (name, title, figure) in figures {
        let own = all.iter().zip(names).map(|(table, job)| {
            let own = table.figures.iter().find(|own| table.full_name(own) == name);
            let none = || vec![None; table.variants.len()];
            let samples = own.map_or_else(none, |own| own.samples.clone());
            Figure { name: job.clone(), samples, ..figure.clone() }
        });
        let table = ComparisonTable { variants: all[0].variants.clone(), figures: own.collect() };
        match (differs(&table), figure.rank) {
            (true, Some(_)) => parts.extend(table.job_tables(&title)),
            _ if figure.name == ALWAYS => parts.extend(table.job_tables(&title)),
            (true, None) => others.push(name),
            (false, _) => same.push(name),
        }
    }
    let lists = [("The same in every row", same), ("Not shown, but different", others)];
    let shared = lists.into_iter().filter(|(_, names)| !names.is_empty());
    parts.extend(
        shared.map(|(fact, names)| Part::Paragraph(format!("{fact}: {}.", names.join("; ")))),
    );
    parts
}

/// Whether in any job a variant differs from the first of its group. Unjudged figures do not count.
fn differs(table: &ComparisonTable) -> bool {
    let first = |at: usize| {
        let group = &table.variants[at].group;
        table.variants.iter().position(|own| own.group == *group).unwrap_or(at)
    };
    let is_judged = |own: &Sample| own.mark.is_empty();
    let of_variant = |figure: &Figure, at: usize| {
        let judged = |at: usize| figure.samples[at].filter(is_judged);
        judged(first(at)).zip(judged(at)).is_some_and(|(first, own)| {
            (first.median, first.min, first.max) != (own.median, own.min, own.max)
        })
    };
    table.figures.iter().any(|figure| (0..figure.samples.len()).any(|at| of_variant(figure, at)))
}
