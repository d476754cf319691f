//! An explanation as a report.

use filemap_job::{Job, Record, Run, Written};
use serde::Serialize;
use serde_json::{Map as Object, Value, json};

use super::Explanation;
use super::answer::answer;
use super::counter::{Moves, Point, Sight};
use super::history::History;
use super::map::{Cell, Map};
use super::origin::Origin;
use super::remedies::Remedies;
use crate::footer::Footer;
use crate::json::{in_one_line, to_json};
use crate::record::{elapsed_note, title};
use crate::setup;
use crate::spread;
use crate::stats::Sample;
use filemap_report::units::{bytes, bytes_range, number};
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// Cells in a line of text.
const LINE_CELLS: usize = 62;

/// The report on `explanation`, which is of the first run of `record`, of `job`; with what
/// `remedies` there are. `command` repeats it.
pub fn report(
    explanation: &Explanation,
    job: &Job,
    record: &Record,
    remedies: &Remedies,
    command: String,
) -> Report {
    let footer = Footer::new(std::slice::from_ref(record), command);
    let page_size = job.page_size();
    let answer = answer(explanation, job);
    let mut parts = vec![
        Part::Heading(format!("{}: bytes by cause", title(record))),
        setup::of_record(record),
        Part::Table(causes(explanation, page_size)),
        Part::Paragraph(causes_note(explanation, record, page_size)),
        Part::Table(brought(explanation)),
    ];
    parts.extend(over_seeds(record));
    parts.extend(Part::warnings(&record.warnings));
    parts.extend([Part::Heading("mmap_miss".to_string()), Part::Paragraph(answer.clone())]);
    if explanation.sight != Sight::Nothing {
        parts.push(Part::Table(course(explanation)));
    }
    if explanation.sight == Sight::Every {
        parts.push(Part::Table(moves(&explanation.moves)));
    }
    parts.push(Part::Heading("Pages".to_string()));
    parts.push(Part::Table(map(&explanation.map)));
    parts.push(Part::Paragraph(MAP_NOTE.to_string()));
    parts.extend(remedies.parts(page_size));
    let of_model = "The times of what was tried are predicted by the model.".to_string();
    parts.push(Part::Paragraph(elapsed_note(record).unwrap_or(of_model)));
    let texts = Texts { answer: &answer, footer: &footer };
    let json = Json::new(explanation, record, page_size, remedies.json(page_size), &texts);
    Report {
        parts,
        rows: rows(explanation, record, page_size),
        json: to_json(&json),
        footer: footer.footer(),
    }
}

/// What the runs read, where each has a seed of its own.
fn over_seeds(record: &Record) -> Vec<Part> {
    let seeds = spread::seeds(record);
    let Some(read) = Sample::of(spread::bytes_read(record)).filter(|_| seeds > 1) else {
        return Vec::new();
    };
    let text = format!(
        "This is the first of {seeds} seeds. Over all of them the job reads {} (median), from {}.",
        bytes(read.median),
        bytes_range(read.min, read.max)
    );
    let note = spread::note("The job", &read);
    [Some(text), note].into_iter().flatten().map(Part::Paragraph).collect()
}

/// The bytes read, by origin.
fn causes(explanation: &Explanation, page_size: u64) -> Table {
    let total = explanation.pages_read();
    let row = |name: &str, pages: u64, again: u64| {
        let share = if total == 0 { 0.0 } else { 100.0 * pages as f64 / total as f64 };
        vec![
            name.to_string(),
            number(pages as f64),
            bytes((pages * page_size) as f64),
            format!("{share:.1}"),
            number(again as f64),
        ]
    };
    let amounts = explanation.amounts.iter();
    let some = amounts.filter(|(origin, amount)| *origin == Origin::Used || amount.pages > 0);
    let mut rows: Vec<_> =
        some.map(|(origin, amount)| row(origin.name(), amount.pages, amount.again)).collect();
    let again = explanation.amounts.iter().map(|(_, amount)| amount.again).sum();
    rows.push(row("bytes read", total, again));
    Table {
        title: String::new(),
        columns: vec![
            Head::left("cause"),
            Head::right("pages"),
            Head::right("bytes"),
            Head::right("%"),
            Head::right("again"),
        ],
        rows,
    }
}

/// What the sums are, and whether they are all.
fn causes_note(explanation: &Explanation, record: &Record, page_size: u64) -> String {
    let sum = explanation.pages_read() * page_size;
    let text = |sum: u64| number(sum as f64);
    let counted = match counted(record) {
        None => String::new(),
        Some(counted) if counted == sum => {
            format!(" They add up to the {} that the {} counts.", bytes(sum as f64), record.engine)
        }
        Some(counted) => format!(
            " They add up to {} bytes; the {} counts {} read from the device.",
            text(sum),
            record.engine,
            text(counted)
        ),
    };
    format!(
        "Each page that entered the cache is counted once, when it left or at the end; 'again' are \
         pages that had been in before.{counted}"
    )
}

/// The bytes read by the engine's own count.
fn counted(record: &Record) -> Option<u64> {
    record.runs.first()?.counters.bytes_read
}

/// What brought the pages in, and how many of them were accessed.
fn brought(explanation: &Explanation) -> Table {
    let some = explanation.brought.iter().filter(|(_, brought)| brought.pages + brought.calls > 0);
    let rows = some.map(|(origin, brought)| {
        let share = 100.0 * brought.used as f64 / brought.pages.max(1) as f64;
        vec![
            origin.name().to_string(),
            number(brought.calls as f64),
            number(brought.pages as f64),
            number(brought.used as f64),
            format!("{share:.1}"),
        ]
    });
    Table {
        title: String::new(),
        rows: rows.collect(),
        columns: vec![
            Head::left("brought in by"),
            Head::right("calls"),
            Head::right("pages"),
            Head::right("accessed"),
            Head::right("%"),
        ],
    }
}

/// What moved the counter.
fn moves(moves: &Moves) -> Table {
    let row = |event: &str, times: u64, by: i64| {
        let sign = if by > 0 {
            "+"
        } else if by < 0 {
            "-"
        } else {
            ""
        };
        let by = format!("{sign}{}", number(by.unsigned_abs() as f64));
        vec![event.to_string(), number(times as f64), by]
    };
    let added = moves.misses - moves.misses_at_cap;
    Table {
        title: String::new(),
        columns: vec![Head::left("what moved mmap_miss"), Head::right("times"), Head::right("by")],
        rows: vec![
            row("miss", moves.misses, added as i64),
            row(
                "fault-around on the retry of a miss",
                moves.retries_taking,
                -(moves.taken_by_retries as i64),
            ),
            row(
                "fault-around of another fault",
                moves.arounds_taking,
                -(moves.taken_by_arounds as i64),
            ),
            row("page found by the fault itself", moves.hits_taking, -(moves.hits_taking as i64)),
        ],
    }
}

/// The highest value of the counter along the run.
fn course(explanation: &Explanation) -> Table {
    let highest = explanation.mmap_miss_max.max(1);
    let bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = (explanation.course.accesses() as usize).clamp(1, LINE_CELLS);
    let bar = |value: u16| match value {
        0 => '·',
        value => bars[(usize::from(value) * bars.len()).div_ceil(usize::from(highest)) - 1],
    };
    let line = explanation.course.highs(columns).into_iter().map(bar).collect();
    Table {
        title: String::new(),
        columns: vec![Head::left("highest"), Head::left("along the accesses")],
        rows: vec![vec![explanation.mmap_miss_max.to_string(), line]],
    }
}

fn map(map: &Map) -> Table {
    let cells = map.coarse(LINE_CELLS);
    let strip = |name: &str, part: fn(&Cell) -> (u64, u64)| {
        let mark = |cell: &Cell| {
            let (pages, of) = part(cell);
            match pages {
                0 => '·',
                pages if pages * 3 < of => '-',
                pages if pages * 3 < of * 2 => '+',
                _ => '#',
            }
        };
        vec![name.to_string(), cells.iter().map(mark).collect()]
    };
    Table {
        title: String::new(),
        columns: vec![
            Head::left("pages"),
            Head::left(format!("{} to {}", map.start, map.start + map.pages - 1)),
        ],
        rows: vec![
            strip("mapped", |cell| (cell.mapped, cell.pages)),
            strip("came in", |cell| (cell.came, cell.pages)),
            strip("accessed", |cell| (cell.used, cell.came)),
            strip("left", |cell| (cell.left, cell.came)),
        ],
    }
}

/// How to read the map.
const MAP_NOTE: &str = "· none, - up to a third, + up to two thirds, # more: of the cell's pages \
                        mapped and come in, of those that came in accessed and left.";

fn rows(explanation: &Explanation, record: &Record, page_size: u64) -> Table {
    let names = ["engine", "cause", "pages", "bytes", "again"];
    let row = |(number, (_, amount)): (usize, (Origin, &super::Amount))| {
        vec![
            record.engine.clone(),
            Origin::ALL[number].2.to_string(),
            amount.pages.to_string(),
            (amount.pages * page_size).to_string(),
            amount.again.to_string(),
        ]
    };
    Table {
        title: String::new(),
        columns: names.map(Head::left).into(),
        rows: explanation.amounts.iter().enumerate().map(row).collect(),
    }
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    job: &'a Written,
    engine: &'a str,
    pages_read: u64,
    bytes_read: u64,
    /// By the engine's own count.
    bytes_counted: Option<u64>,
    /// By origin; the sums are those of the whole.
    #[schemars(with = "Vec<crate::forms::CauseEntry>")]
    causes: Vec<Value>,
    #[schemars(with = "Vec<crate::forms::BroughtEntry>")]
    brought_in: Vec<Value>,
    runs: &'a [Run],
    #[schemars(with = "Option<crate::forms::Remedies>")]
    remedies: Value,
    warnings: &'a [String],
    evicted_pages: u64,
    #[schemars(with = "crate::forms::MissCounter")]
    mmap_miss: Object<String, Value>,
    answer: &'a str,
    map: &'a Map,
    /// The course of the run.
    #[serde(serialize_with = "in_one_line")]
    #[schemars(with = "History")]
    history: &'a History,
    scope: &'a str,
    command: &'a str,
    #[schemars(with = "crate::forms::Environments")]
    environment: &'a Object<String, Value>,
}

/// What is said of all of it.
struct Texts<'a> {
    answer: &'a str,
    footer: &'a Footer,
}

impl<'a> Json<'a> {
    fn new(
        explanation: &'a Explanation,
        record: &'a Record,
        page_size: u64,
        remedies: Value,
        texts: &Texts<'a>,
    ) -> Self {
        let causes = Origin::ALL.map(|(origin, _, key)| {
            let amount = explanation.amounts.get(origin);
            let bytes = amount.pages * page_size;
            json!({ "cause": key, "pages": amount.pages, "bytes": bytes, "again": amount.again })
        });
        let brought = Origin::ALL.map(|(origin, _, key)| {
            let by = explanation.brought.get(origin);
            json!({ "by": key, "calls": by.calls, "pages": by.pages, "accessed": by.used })
        });
        Json {
            schema: filemap_job::record::SCHEMA,
            job: &record.job,
            engine: &record.engine,
            pages_read: explanation.pages_read(),
            bytes_read: explanation.pages_read() * page_size,
            bytes_counted: counted(record),
            causes: causes.into(),
            brought_in: brought.into(),
            evicted_pages: explanation.evicted,
            mmap_miss: counter(explanation),
            runs: &record.runs,
            remedies,
            warnings: &record.warnings,
            answer: texts.answer,
            map: &explanation.map,
            history: &explanation.history,
            scope: &texts.footer.scope,
            command: &texts.footer.command,
            environment: &texts.footer.environment,
        }
    }
}

fn counter(explanation: &Explanation) -> Object<String, Value> {
    let every = explanation.sight == Sight::Every;
    let points: Vec<Point> = explanation.course.points().collect();
    let is_shown = explanation.sight != Sight::Nothing;
    let counter = json!({
        "complete": every,
        "last": is_shown.then_some(explanation.mmap_miss),
        "max": is_shown.then_some(explanation.mmap_miss_max),
        "moves": every.then_some(explanation.moves),
        "misses": explanation.moves.misses,
        "misses_above_threshold": explanation.moves.misses_above,
        "retries": explanation.moves.retries,
        "first_above_threshold": explanation.first_above.map(|(done, _)| done),
        "rises_above_threshold": explanation.rises,
        "course": if is_shown { points } else { Vec::new() },
    });
    match counter {
        Value::Object(map) => map,
        _ => unreachable!("an object literal"),
    }
}
