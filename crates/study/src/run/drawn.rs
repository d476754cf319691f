//! What a page shows of a record: its figures that matter most, its bytes by cause, and its course.

use filemap_job::{EngineKind, FileSummary, Record, Spread};
use filemap_report::units::{bytes, factor, number};
use filemap_report::{Bar, Bars, Card, Part};
use maud::html;

use super::Courses;
use crate::explain::{CausePages, FileHistory, History, Origin, ProgramHistory};
use crate::figures::{self, ELAPSED, FigureInput, MISSES_PER_DROP, ROUNDS_A_SECOND};
use crate::html::{course, waited, windows};
use crate::measures::Measures;
use crate::record::{MAX_ROWS, outcomes, runs_are};
use crate::spread::bytes_read;
use crate::stats::Sample;

/// Figures that are shown first, where a job has them.
const CARDS: [&str; 7] = [
    ROUNDS_A_SECOND,
    MISSES_PER_DROP,
    "bytes_read",
    "major_faults",
    ELAPSED,
    "cached_bytes",
    "evicted_bytes",
];

/// Most of them.
const MOST_CARDS: usize = 5;

/// The figures of `record` that matter first.
pub(crate) fn cards(record: &Record, measures: &Measures, used_pages: Option<u64>) -> Vec<Card> {
    let card = |key: &&str| {
        let (figure, own) = measures.get(key)?;
        let is_shown = figure.key != "evicted_bytes" || own.max > 0.0;
        let name = figure.row_name([record.engine.as_str()]).trim().to_string();
        let text = |value: f64| figure.unit.text(value);
        let range = (own.min < own.max)
            .then(|| format!("median; from {} to {}", text(own.min), text(own.max)));
        is_shown.then(|| Card::new(name, text(own.median), range.unwrap_or_default()))
    };
    let mut cards: Vec<Card> = CARDS.iter().filter_map(card).collect();
    let read = Sample::of(bytes_read(record)).map(|read| read.median);
    let page = figures::seen(record, None).first().map(FigureInput::page_bytes);
    let used = used_pages.zip(page).map(|(pages, page)| pages as f64 * page);
    if let (Some(read), Some(used)) = (read, used.filter(|&used| used > 0.0)) {
        let more = format!("the job accesses {}", bytes(used));
        let card = Card::new("read, against what is used", factor(read / used), more);
        cards.insert(1.min(cards.len()), card);
    }
    cards.truncate(MOST_CARDS);
    cards
}

/// All that is drawn of `record`, whose first run had this course.
pub(super) fn parts(record: &Record, history: Option<&Courses>) -> Vec<Part> {
    let mut parts: Vec<Part> = files(record).into_iter().map(Part::Bars).collect();
    let runs = record.runs.len();
    if history.is_some() && runs > 1 {
        let text =
            format!("The cause of its bytes and its course are those of the first of {runs} runs.");
        parts.push(said(&text));
    }
    match history {
        Some(Courses::OneFile(history)) => {
            parts.extend(history.causes.iter().map(|of| causes(of, history.page_bytes)));
            parts.extend(course(history));
        }
        Some(Courses::Files(history)) => parts.extend(of_program(history)),
        None if record.engine == EngineKind::Kernel.name() => parts.push(said(
            "A run on a kernel keeps no log of decisions, so that its windows are not shown. \
             filemap explain --on kernel has them, and so has the same job in the model.",
        )),
        None => {}
    }
    let outcomes = [outcomes("this job".to_string(), record)];
    parts.extend(filemap_report::spread(&outcomes, runs_are(record)).map(Part::Plot));
    parts
}

/// What is said of pictures.
fn said(text: &str) -> Part {
    Part::Drawn(html! { p { (text) } })
}

/// Pages read of each file of `record`.
fn files(record: &Record) -> Option<Bars> {
    let text = |of: Option<Spread>| of.map_or("-".into(), |of| number(of.median));
    let of_file = |file: &FileSummary| {
        let read = file.data_pages_read?.median;
        Some(Bar {
            name: file.name.clone(),
            value: Some(read),
            class: "u4",
            texts: vec![number(read), text(file.major_faults), text(file.cached)],
        })
    };
    let mut shown: Vec<Bar> = record.summary.files.iter().filter_map(of_file).collect();
    let rest = shown.len().saturating_sub(MAX_ROWS);
    shown.truncate(MAX_ROWS);
    let title = match rest {
        0 => "Pages read, by file".to_string(),
        _ => format!("Pages read, by file; {rest} more are in JSON"),
    };
    let heads = ["file", "pages read", "major faults", "cached at the end"];
    (!shown.is_empty()).then(|| Bars::new(title, &heads, shown))
}

/// Bytes read by cause.
pub(crate) fn causes(causes: &[CausePages], page_bytes: u64) -> Part {
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
    let heads = ["cause", "bytes", "pages", "share", "in before"];
    let note = match all {
        0 => "Nothing was read.".to_string(),
        all => format!(
            "Each page that entered the page cache is counted once: as used, if the program \
             accessed it before it left, or else by what it was read for. {} in all.",
            bytes(all as f64 * page)
        ),
    };
    let bars = Bars::new("Bytes read, by cause", &heads, shown);
    Part::Bars(bars.with_note(note))
}

/// What a history shows along the run.
fn course(history: &History) -> Vec<Part> {
    let counter = history.mmap_miss.as_ref();
    let counter = counter.and_then(|of| course::counter(of, history.accesses, true));
    let plots = [windows::picture(history), course::residency(history), counter];
    plots.into_iter().flatten().map(Part::Plot).collect()
}

/// The course of each file, and what was waited for.
fn of_program(history: &ProgramHistory) -> Vec<Part> {
    let mut parts = vec![Part::Drawn(waited::section(history))];
    parts.extend(history.files.iter().map(of_file));
    if history.other_files > 0 {
        parts.push(said(&format!(
            "Of {} more files something was read. Only those of which most is read are drawn.",
            number(history.other_files as f64)
        )));
    }
    parts
}

fn of_file(file: &FileHistory) -> Part {
    let own = &file.history;
    let mut parts: Vec<Part> = own.causes.iter().map(|of| causes(of, own.page_bytes)).collect();
    parts.extend(course(own));
    parts.extend(file.counter_of.iter().map(|open| {
        Part::Paragraph(format!(
            "mmap_miss is the counter of the open file {open}. Accesses are those of the whole \
             program."
        ))
    }));
    Part::Drawn(html! {
        section.file aria-label=(file.name) {
            h2.file { "File " (file.name) }
            (filemap_report::html::all(&parts))
        }
    })
}
