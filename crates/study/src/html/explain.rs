//! The record of an explanation, of a job or of a program.

use filemap_job::{Record, Run, Summary, Written};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::explain::{CausePages, Origin, Point};
use crate::measures::Measures;
use crate::record;
use crate::run;
use crate::setup;
use filemap_report::Part;
use filemap_report::units::{bytes, number, time};
use filemap_report::{Head, Table};

use super::{Shown, course, history, read, windows};
use filemap_report::Bar;
use filemap_report::html::bars;

#[derive(Deserialize)]
struct Explained {
    job: Written,
    engine: String,
    environment: Map<String, Value>,
    causes: Vec<CausePages>,
    #[serde(default)]
    brought_in: Vec<Brought>,
    runs: Vec<Run>,
    #[serde(default)]
    remedies: Option<Remedies>,
    #[serde(default)]
    warnings: Vec<String>,
    mmap_miss: Counter,
    answer: String,
}

#[derive(Deserialize)]
struct Brought {
    by: String,
    calls: u64,
    pages: u64,
    #[serde(default)]
    accessed: u64,
}

#[derive(Deserialize)]
struct Counter {
    #[serde(default)]
    complete: bool,
    course: Vec<Point>,
}

#[derive(Deserialize)]
struct Remedies {
    now: Cost,
    tried: Vec<Remedy>,
}

#[derive(Deserialize)]
struct Remedy {
    setting: String,
    rank: Option<u64>,
    figures: Cost,
}

#[derive(Clone, Copy, Deserialize)]
struct Cost {
    bytes_read: Option<u64>,
    major_faults: Option<u64>,
    elapsed_ns: Option<u64>,
}

/// The page of the explanation of a job.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let explained: Explained = read(json)?;
    let history = history(json)?;
    let record = Record {
        schema: record_schema(),
        job: explained.job,
        engine: explained.engine,
        environment: explained.environment,
        summary: Summary::of(&explained.runs),
        runs: explained.runs,
        warnings: explained.warnings,
    };
    let page_bytes = history.as_ref().map_or(4096, |history| history.page_bytes);
    let accesses = history.as_ref().map(|history| history.accesses);
    let counted = record.runs.first().and_then(|run| run.counters.accesses);
    let accesses = accesses.or(counted).unwrap_or(0);
    let Counter { complete, course } = &explained.mmap_miss;
    let warnings: Vec<Part> = Part::warnings(&record.warnings).collect();
    let body = html! {
        p.answer { (explained.answer) }
        (filemap_report::html::cards(&run::cards(&record, &Measures::of(&record, None), None)))
        (filemap_report::html::all(&warnings))
        (filemap_report::html::all(&[setup::of_record(&record)]))
        (filemap_report::html::all(&[run::causes(&explained.causes, page_bytes)]))
        @if let Some(history) = &history {
            @if let Some(windows) = windows::picture(history) { (windows.markup()) }
            @if let Some(residency) = course::residency(history) { (residency.markup()) }
        }
        @if let Some(counter) = course::counter(course, accesses, *complete) { (counter.markup()) }
        @if let Some(remedies) = &explained.remedies { (of_remedies(remedies)) }
        h2 { "What brought pages in" }
        (filemap_report::html::table(&brought_in(&explained.brought_in, page_bytes)))
    };
    Ok(Shown { title: format!("{}: why it was read", record::title(&record)), body })
}

fn record_schema() -> u32 {
    filemap_job::record::SCHEMA
}

fn of_remedies(remedies: &Remedies) -> Markup {
    let bar = |name: String, cost: Cost, rank: Option<u64>, class| {
        let text = |value: Option<u64>, unit: fn(f64) -> String| {
            value.map_or("-".to_string(), |value| unit(value as f64))
        };
        Bar {
            name,
            value: cost.bytes_read.map(|read| read as f64),
            class,
            texts: vec![
                text(cost.bytes_read, bytes),
                text(cost.major_faults, number),
                text(cost.elapsed_ns, time),
                rank.map_or("-".to_string(), |rank| rank.to_string()),
            ],
        }
    };
    let tried = remedies.tried.iter().map(|remedy| {
        let class = if remedy.rank.is_some() { "u4" } else { "none" };
        bar(remedy.setting.clone(), remedy.figures, remedy.rank, class)
    });
    let now = bar("as it is".to_string(), remedies.now, None, "u0");
    let rows: Vec<Bar> = [now].into_iter().chain(tried).collect();
    let heads = ["setting", "read", "major faults", "elapsed, predicted", "rank"];
    html! {
        h2 { "What would help" }
        p { "Settings that were tried in the model; the best has rank 1, and those without a rank "
            "do not help." }
        (bars("Bytes read, by setting", &heads, &rows))
    }
}

fn brought_in(brought: &[Brought], page_bytes: u64) -> Table {
    let row = |own: &Brought| {
        let name = Origin::with_key(&own.by).map_or(own.by.clone(), |by| by.name().to_string());
        let read = bytes(own.pages as f64 * page_bytes as f64);
        let share = windows::percent(own.accessed, own.pages);
        let numbers = [own.calls, own.pages].map(|n| number(n as f64));
        [name].into_iter().chain(numbers).chain([read, share]).collect()
    };
    let heads = ["windows and single pages", "pages", "read", "accessed"].map(Head::right);
    let shown = brought.iter().filter(|own| own.calls > 0 || own.pages > 0);
    Table {
        title: String::new(),
        columns: [Head::left("by")].into_iter().chain(heads).collect(),
        rows: shown.map(row).collect(),
    }
}

#[derive(Deserialize)]
struct ExplainedProgram {
    engine: String,
    pages_read: u64,
    bytes_read: u64,
    files: Vec<OfFile>,
    through: Vec<OfThrough>,
    answer: String,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct OfFile {
    name: String,
    causes: Vec<CausePages>,
}

#[derive(Deserialize)]
struct OfThrough {
    what: String,
    name: String,
    brought_in: Vec<Brought>,
}

/// Files of which each cause is drawn; JSON has all.
const MOST_FILES: usize = 40;

/// The page of the explanation of a program.
pub(super) fn program(json: &str) -> Result<Shown, Error> {
    let explained: ExplainedProgram = read(json)?;
    let page_bytes = explained.bytes_read.checked_div(explained.pages_read).unwrap_or(4096);
    let all = explained.pages_read;
    let of_file = |file: &OfFile| {
        let bar = |cause: &CausePages| {
            let origin = Origin::with_key(&cause.cause);
            let known = origin.map_or(cause.cause.clone(), |origin| origin.name().to_string());
            Bar {
                name: format!("{}: {known}", file.name),
                value: Some(cause.pages as f64),
                class: match origin {
                    Some(Origin::Used) => "u4",
                    Some(Origin::Refetched) => "again",
                    _ => "u0",
                },
                texts: vec![
                    bytes(cause.pages as f64 * page_bytes as f64),
                    windows::percent(cause.pages, all),
                    number(cause.again as f64),
                ],
            }
        };
        file.causes.iter().filter(|cause| cause.pages > 0).map(bar).collect::<Vec<Bar>>()
    };
    let shown: Vec<Bar> = explained.files.iter().take(MOST_FILES).flat_map(of_file).collect();
    let through = explained.through.iter().take(MOST_FILES).flat_map(|through| {
        let some = through.brought_in.iter().filter(|own| own.calls > 0 || own.pages > 0);
        some.map(move |own| {
            let by = Origin::with_key(&own.by).map_or(own.by.clone(), |by| by.name().to_string());
            let numbers = [own.calls, own.pages].map(|n| number(n as f64));
            let named = [format!("{} {}", through.what, through.name), by];
            named.into_iter().chain(numbers).collect::<Vec<String>>()
        })
    });
    let columns = vec![
        Head::left("through"),
        Head::left("by"),
        Head::right("windows and single pages"),
        Head::right("pages"),
    ];
    let through = Table { title: String::new(), columns, rows: through.collect() };
    let left_out = explained.files.len().saturating_sub(MOST_FILES);
    let warnings: Vec<Part> = Part::warnings(&explained.warnings).collect();
    let body = html! {
        p.answer { (explained.answer) }
        (filemap_report::html::all(&warnings))
        h2 { "Bytes read, by file and cause" }
        p { strong { (bytes(explained.bytes_read as f64)) } " in all." }
        (bars("By file and cause", &["file and cause", "bytes", "share", "in before"], &shown))
        @if left_out > 0 { p { "and " (left_out) " more files, in JSON." } }
        @if !through.rows.is_empty() {
            h2 { "What brought pages in" }
            (filemap_report::html::table(&through))
        }
    };
    let title = format!(
        "program of {} files, on the {}: why it was read",
        explained.files.len(),
        explained.engine
    );
    Ok(Shown { title, body })
}
