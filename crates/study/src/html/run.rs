//! The record of one job.

use filemap_job::{EngineKind, Record};
use filemap_report::Card;
use maud::{Markup, html};
use serde::Deserialize;

use crate::error::Error;
use crate::explain::{CausePages, History, Origin};
use crate::figures::{self, ELAPSED, FIGURES, MISSES_PER_DROP, ROUNDS_A_SECOND};
use crate::record;
use crate::spread::bytes_read;
use crate::stats::Sample;
use filemap_report::Part;
use filemap_report::units::{bytes, factor, number};

use super::{Shown, by_file, course, history, program_history, read, windows};
use filemap_report::Bar;
use filemap_report::Outcomes;
use filemap_report::html::bars;

/// Figures that are shown first, where a job has them.
const CARDS: [&str; 7] = [
    ROUNDS_A_SECOND,
    MISSES_PER_DROP,
    "read from device",
    "major faults",
    ELAPSED,
    "cached at the end",
    "evicted",
];

/// Most of them.
const MOST_CARDS: usize = 5;

/// What a record says beside its runs.
#[derive(Deserialize)]
struct Beside {
    #[serde(default)]
    used_pages: Option<u64>,
}

/// The page of the record of a job.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let record: Record = read(json)?;
    if record.runs.is_empty() {
        return Err(Error::NoRecord { reason: "it has no runs".to_string() });
    }
    let Beside { used_pages } = read(json)?;
    let history = course_of(&record, json)?;
    let report = record::report(&record, None, None, false, String::new());
    let (facts, below) = split(report.parts);
    let (warnings, below) = warnings_first(below);
    let body = html! {
        (filemap_report::html::cards(&cards(&record, used_pages)))
        (filemap_report::html::all(&warnings))
        (filemap_report::html::all(&facts))
        (by_file::bars_of(&record))
        @if let Some(history) = &history {
            @if record.runs.len() > 1 {
                p {
                    "The cause of its bytes and its course are those of the first of "
                    (record.runs.len()) " runs."
                }
            }
            (history)
        }
        @let outcomes = [outcomes("this job", &record)];
        @if let Some(spread) = filemap_report::spread(&outcomes, runs_are(&record)) { (spread.markup()) }
        @if history.is_none() && record.engine == EngineKind::Kernel.name() {
            p {
                "A run on a kernel keeps no log of decisions, so that its windows are not shown. "
                "filemap explain --on kernel has them, and so has the same job in the model."
            }
        }
        h2 { "Figures" }
        (filemap_report::html::all(&below))
    };
    Ok(Shown { title: record::title(&record), body })
}

/// The course of the first run of `record`, whose JSON is `json`, where it has one.
fn course_of(record: &Record, json: &str) -> Result<Option<Markup>, Error> {
    Ok(match record.job.tables() {
        None => history(json)?.map(|history| of_history(&history)),
        Some(_) => program_history(json)?.map(|history| by_file::of_history(&history)),
    })
}

/// All that a history shows.
pub(super) fn of_history(history: &History) -> Markup {
    html! {
        @if let Some(causes) = &history.causes { (causes_of(causes, history.page_bytes)) }
        (of_course(history))
    }
}

/// What a history shows along the run.
pub(super) fn of_course(history: &History) -> Markup {
    html! {
        @if let Some(windows) = windows::picture(history) { (windows) }
        @if let Some(residency) = course::residency(history) { (residency) }
        @if let Some(points) = &history.mmap_miss {
            @if let Some(counter) = course::counter(points, history.accesses, true) { (counter) }
        }
    }
}

/// Bytes read by cause, under a heading.
pub(super) fn causes_of(causes: &[CausePages], page_bytes: u64) -> Markup {
    html! {
        h2 { "Bytes read, by cause" }
        (bars_of_causes(causes, page_bytes))
    }
}

/// Bytes read by cause.
pub(super) fn bars_of_causes(causes: &[CausePages], page_bytes: u64) -> Markup {
    let all = causes.iter().fold(0, |sum: u64, cause| sum.saturating_add(cause.pages));
    let page = page_bytes as f64;
    let bar = |cause: &CausePages| {
        let origin = Origin::with_key(&cause.cause);
        let pages = cause.pages as f64;
        Bar {
            name: origin.map_or(cause.cause.clone(), |origin| origin.name().to_string()),
            value: Some(pages),
            class: match origin {
                Some(Origin::Used) => "u4",
                Some(Origin::Refetched) => "again",
                _ => "u0",
            },
            texts: vec![
                bytes(pages * page),
                number(pages),
                windows::percent(cause.pages, all),
                number(cause.again as f64),
            ],
        }
    };
    let shown: Vec<Bar> = causes.iter().filter(|cause| cause.pages > 0).map(bar).collect();
    html! {
        @if shown.is_empty() { p { "Nothing was read." } }
        @else {
            p {
                "Each page that entered the page cache is counted once: as used, if the program "
                "accessed it before it left, or else by what it was read for. "
                strong { (bytes(all as f64 * page)) } " in all."
            }
            (bars("By cause", &["cause", "bytes", "pages", "share", "in before"], &shown))
        }
    }
}

/// The parts behind the heading: the facts on the job, and what is said below.
pub(super) fn split(parts: Vec<Part>) -> (Vec<Part>, Vec<Part>) {
    parts.into_iter().skip(1).partition(|part| matches!(part, Part::Facts(_)))
}

/// What warns, and what does not.
pub(super) fn warnings_first(parts: Vec<Part>) -> (Vec<Part>, Vec<Part>) {
    let warns = |part: &Part| matches!(part, Part::Warning(_));
    parts.into_iter().partition(warns)
}

/// The figures of `record` that matter first.
pub(super) fn cards(record: &Record, used_pages: Option<u64>) -> Vec<Card> {
    let samples = figures::samples(record, None);
    let named = |name: &&str| {
        let at = FIGURES.iter().position(|figure| figure.name == *name)?;
        let (figure, sample) = (&FIGURES[at], samples[at].as_ref()?);
        let shown = figure.name != "evicted" || sample.max > 0.0;
        shown.then(|| {
            let name = figures::row_name(figure, [record.engine.as_str()]).trim().to_string();
            let range = match sample.min < sample.max {
                true => format!(
                    "median; from {} to {}",
                    figure.unit.text(sample.min),
                    figure.unit.text(sample.max)
                ),
                false => String::new(),
            };
            Card::new(name, figure.unit.text(sample.median), range)
        })
    };
    let mut cards: Vec<_> = CARDS.iter().filter_map(named).collect();
    let read = Sample::of(bytes_read(record)).map(|read| read.median);
    let page = figures::seen(record, None).first().map(figures::FigureInput::page_bytes);
    let used = used_pages.zip(page).map(|(pages, page)| pages as f64 * page);
    if let (Some(read), Some(used)) = (read, used.filter(|&used| used > 0.0)) {
        let more = format!("the job accesses {}", bytes(used));
        let card = Card::new("read, against what is used", factor(read / used), more);
        cards.insert(1.min(cards.len()), card);
    }
    cards.truncate(MOST_CARDS);
    cards
}

/// What each run of `record` read.
pub(super) fn outcomes(name: &str, record: &Record) -> Outcomes {
    let seen = figures::seen(record, None);
    let is_seed = runs_are(record) == "seed";
    let runs = record.runs.iter().zip(&seen).enumerate().filter_map(|(number_of, (run, seen))| {
        let name = if is_seed { run.seed.to_string() } else { (number_of + 1).to_string() };
        Some((format!("{} {name}", runs_are(record)), seen.read_bytes()?))
    });
    Outcomes { name: name.to_string(), runs: runs.collect() }
}

/// What tells the runs of `record` apart.
pub(super) fn runs_are(record: &Record) -> &'static str {
    let first = record.runs.first().map(|run| run.seed);
    match record.runs.iter().any(|run| Some(run.seed) != first) {
        true => "seed",
        false => "run",
    }
}
