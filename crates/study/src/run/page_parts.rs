//! The parts of a record's HTML page: headline figures, bytes read by cause, and the history.

use filemap_job::{EngineKind, Record};
use filemap_report::{Card, Part};
use maud::html;

use crate::explain::{RunHistory, pictures};
use crate::figures::{Figure, READ_OF_USED};
use crate::measure::Measurement;
use crate::measures::RecordMeasurements;
use crate::record::{outcomes, runs_word};

/// Maximum number of headline figures.
const MAX_CARDS: usize = 5;

/// The headline figures of `record`.
pub(crate) fn cards(record: &Record, measures: &RecordMeasurements) -> Vec<Card> {
    let known = measures.iter().filter_map(|(figure, own)| Some((figure.rank()?, figure, own?)));
    let is_shown =
        |figure: &Figure, own: &Measurement| figure.key != "evicted_bytes" || own.max > 0.0;
    let mut ranked: Vec<_> = known.filter(|(_, figure, own)| is_shown(figure, own)).collect();
    ranked.sort_by_key(|(rank, ..)| *rank);
    let card = |(_, figure, own): (usize, &Figure, &Measurement)| {
        let name = match figure.key {
            READ_OF_USED => "read, against what is used".to_string(),
            _ => figure.row_name([record.engine.as_str()]).trim().to_string(),
        };
        let text = |value: f64| figure.unit.text(value);
        let range = (own.min < own.max)
            .then(|| format!("median; from {} to {}", text(own.min), text(own.max)));
        Card::new(name, text(own.median), range.unwrap_or_default())
    };
    ranked.into_iter().take(MAX_CARDS).map(card).collect()
}

/// All charts of `record`; `history` is the history of its first run.
pub(super) fn parts(record: &Record, history: Option<&RunHistory>) -> Vec<Part> {
    let mut parts = Vec::new();
    let runs = record.runs.len();
    if history.is_some() && runs > 1 {
        let text =
            format!("The cause of its bytes and its course are those of the first of {runs} runs.");
        parts.push(paragraph(&text));
    }
    match history {
        Some(history) => parts.extend(pictures::history_parts(history)),
        None if record.engine == EngineKind::Kernel.name() => parts.push(paragraph(
            "A run on a kernel keeps no log of decisions, so that its windows are not shown. \
             filemap explain --on kernel has them, and so has the same job in the model.",
        )),
        None => {}
    }
    let outcomes = [outcomes("this job".to_string(), record)];
    parts.extend(filemap_report::spread_plot(&outcomes, runs_word(record)).map(Part::Plot));
    parts
}

/// A paragraph about charts.
fn paragraph(text: &str) -> Part {
    Part::Drawn(html! { p { (text) } })
}
