//! What a page shows of a record: its figures that matter most, its bytes by cause, and its course.

use filemap_job::{EngineKind, Record};
use filemap_report::units::{bytes, factor};
use filemap_report::{Card, Part};
use maud::html;

use crate::explain::{Courses, pictures};
use crate::figures::{self, ELAPSED, FigureInput, MISSES_PER_DROP, ROUNDS_A_SECOND};
use crate::measures::Measures;
use crate::record::{outcomes, runs_are};
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
    let mut parts = Vec::new();
    let runs = record.runs.len();
    if history.is_some() && runs > 1 {
        let text =
            format!("The cause of its bytes and its course are those of the first of {runs} runs.");
        parts.push(said(&text));
    }
    match history {
        Some(courses) => parts.extend(pictures::of_courses(courses)),
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
