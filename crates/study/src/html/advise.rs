//! The record of what one could do about a program: the answer, what was tried, what to write, and
//! what would break it.

mod tried;

use filemap_report::Card;
use maud::{Markup, html};
use serde::Deserialize;

use crate::error::Error;
use filemap_report::Part;
use filemap_report::units::{bytes, number, time};
use filemap_report::{Head, Table};

use super::{Shown, read};

#[derive(Deserialize)]
struct Advised {
    #[serde(default)]
    name: String,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    to_write: Vec<Written>,
    #[serde(default)]
    governed: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    page_bytes: u64,
    read_ahead_kb: u64,
    latency_ns: u64,
    files: Vec<OfFile>,
    answer: Answer,
    now: Outcome,
    tried: Vec<Tried>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Written {
    change: String,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    place: String,
    text: String,
}

#[derive(Deserialize)]
struct OfFile {
    pages_used: u64,
}

#[derive(Deserialize)]
struct Answer {
    best: Option<usize>,
}

/// What a run of the model came to.
#[derive(Deserialize)]
struct Outcome {
    data_pages_read: u64,
    major_faults: u64,
    elapsed_ns: u64,
    elapsed_ns_at_half_latency: u64,
    elapsed_ns_at_double_latency: u64,
}

#[derive(Deserialize)]
struct Tried {
    changes: Vec<String>,
    verdict: String,
    outcome: Outcome,
}

#[derive(Deserialize)]
struct Condition {
    name: String,
    now: Option<Outcome>,
    answer: Option<Outcome>,
    best: Option<String>,
}

impl Outcome {
    fn bytes(&self, page_bytes: u64) -> f64 {
        self.data_pages_read as f64 * page_bytes as f64
    }

    /// The least and the most of its times.
    fn range_ns(&self) -> (f64, f64) {
        let all =
            [self.elapsed_ns, self.elapsed_ns_at_half_latency, self.elapsed_ns_at_double_latency];
        let (least, most) = (all.into_iter().min(), all.into_iter().max());
        (least.unwrap_or(0) as f64, most.unwrap_or(0) as f64)
    }
}

impl Tried {
    fn label(&self) -> String {
        self.changes.join(" + ")
    }
}

/// The page of advice for a program.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let advised: Advised = read(json)?;
    let warnings: Vec<Part> = Part::warnings(&advised.warnings).collect();
    let body = html! {
        @match advised.words.as_slice() {
            [only] => p.answer { (only) },
            several => ul.answer { @for line in several { li { (line) } } },
        }
        (filemap_report::html::cards(&cards(&advised)))
        (filemap_report::html::all(&warnings))
        (tried::section(&advised))
        @if !advised.to_write.is_empty() || advised.governed.is_some() {
            h2 { "What to write" }
            (to_write(&advised))
        }
        @if !advised.conditions.is_empty() {
            h2 { "What would break it" }
            p {
                "The same program with other readahead sizes and other memory: what it reads and "
                "how long it takes as it is, with the answer, and what is best there."
            }
            (filemap_report::html::table(&conditions(&advised)))
        }
    };
    let title = match advised.name.as_str() {
        "" => "What would help a program".to_string(),
        name => format!("What would help {name}"),
    };
    Ok(Shown { title, body })
}

/// Figures that matter first: as it is, and with the answer.
fn cards(advised: &Advised) -> Vec<Card> {
    let page_bytes = advised.page_bytes;
    let used = advised.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.pages_used));
    let card = |name: &str, figure: String, more: String| Card::new(name, figure, more);
    let now = &advised.now;
    let mut cards = vec![
        card(
            "read as it is",
            bytes(now.bytes(page_bytes)),
            format!("the program uses {}", bytes(used as f64 * page_bytes as f64)),
        ),
        card("time as it is", time(now.elapsed_ns as f64), "predicted, on a cold cache".into()),
    ];
    if let Some(best) = advised.answer.best.and_then(|best| advised.tried.get(best)) {
        let (label, outcome) = (best.label(), &best.outcome);
        cards.push(card("read with the answer", bytes(outcome.bytes(page_bytes)), label));
        let (least, most) = outcome.range_ns();
        let range = format!("from {} to {} as the latency goes", time(least), time(most));
        cards.push(card("time with the answer", time(outcome.elapsed_ns as f64), range));
    }
    cards
}

fn to_write(advised: &Advised) -> Markup {
    html! {
        @for written in &advised.to_write {
            h3 { (written.change) }
            dl.facts {
                @for line in &written.lines {
                    div { dt { (line.place) } dd { code { (line.text) } } }
                }
            }
        }
        @if let Some(governed) = &advised.governed { p { (governed) } }
    }
}

fn conditions(advised: &Advised) -> Table {
    let figures = |outcome: &Outcome| {
        let read = bytes(outcome.bytes(advised.page_bytes));
        format!("{read}, {}", time(outcome.elapsed_ns as f64))
    };
    let row = |condition: &Condition| {
        let name = condition.name.clone();
        let Some(now) = &condition.now else {
            let nothing = "the program does not run so".to_string();
            return vec![name, "-".to_string(), "-".to_string(), nothing];
        };
        let answer = condition.answer.as_ref().map_or("-".to_string(), figures);
        let best = condition.best.clone().unwrap_or("nothing".to_string());
        vec![name, figures(now), answer, best]
    };
    let columns = vec![
        Head::left("with"),
        Head::right("as it is"),
        Head::right("with the answer"),
        Head::left("best there"),
    ];
    let rows = advised.conditions.iter().map(row).collect();
    Table { title: String::new(), columns, rows }
}

/// A trial with all of its figures, in words.
fn told(label: &str, outcome: &Outcome, page_bytes: u64) -> String {
    let (least, most) = outcome.range_ns();
    format!(
        "{label}: {} pages read ({}), {} major faults, {}; {} to {} with half and double latency",
        number(outcome.data_pages_read as f64),
        bytes(outcome.bytes(page_bytes)),
        number(outcome.major_faults as f64),
        time(outcome.elapsed_ns as f64),
        time(least),
        time(most)
    )
}
