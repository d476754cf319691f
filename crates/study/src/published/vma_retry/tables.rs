//! The tables of the series.

use filemap_job::waits::Cause;
use filemap_report::units::time;
use filemap_report::{Column, Head, Part, Table, Value, csv, digits, figures, raw, table, words};

use super::notes;
use super::plan::{CPUS, ONE_VMA, READ_AHEAD, SENSITIVITY, SMALLER, THREADS_OF};
use super::{NAME, PAGE_KIB, PUBLISHED_JOB};
use crate::published::cell::Cell;
use crate::published::data::{PUBLISHED, RetryRow};
use crate::stats::Sample;

/// Less than this share of all time is not worth a row, in percent.
const LEAST_PERCENT: f64 = 0.1;

/// An experiment without the series and with it.
#[derive(Clone, Copy)]
pub struct Tried<'a> {
    pub before: &'a Cell,
    pub after: &'a Cell,
}

impl<'a> Tried<'a> {
    /// Those of one kind.
    pub fn of(cells: &'a [Cell], experiment: &str) -> Vec<Tried<'a>> {
        let own: Vec<&Cell> = cells.iter().filter(|cell| cell.is_of(experiment)).collect();
        let (pairs, _) = own.as_chunks::<2>();
        pairs.iter().map(|[before, after]| Tried { before, after }).collect()
    }

    /// Rounds with the series for each without it.
    pub fn ratio(&self) -> Option<f64> {
        let [before, after] = [self.before, self.after].map(|cell| cell.number("rounds_s"));
        before.filter(|before| *before > 0.0).zip(after).map(|(before, after)| after / before)
    }
}

impl Cell {
    /// Whether nothing came of it: it ended early, or completed no round.
    pub fn jams(&self) -> bool {
        self.at("ended_early").is_some_and(serde_json::Value::is_string)
            || self.number("rounds_s") == Some(0.0)
    }

    pub fn condition(&self, name: &str) -> u64 {
        self.count(&format!("conditions/{name}"))
    }

    pub fn pressure(&self) -> f64 {
        self.number("conditions/pressure").unwrap_or(f64::NAN)
    }

    /// A count of it in a second.
    fn a_second(&self, path: &str) -> Option<f64> {
        Some(self.number(path)? / self.condition("seconds").max(1) as f64)
    }

    /// The two variants of the published job without published figures beside them.
    pub fn variants(cells: &[Cell]) -> Vec<&Cell> {
        let is_own = |cell: &&Cell| cell.is_of(PUBLISHED_JOB) && cell.at("seeds").is_some();
        cells.iter().filter(is_own).collect()
    }
}

/// The pages of the published job's readahead.
pub fn read_ahead_pages(cells: &[Cell]) -> u64 {
    cells.first().and_then(|cell| cell.read_ahead_kb).unwrap_or_default() / PAGE_KIB
}

pub fn parts(cells: &[Cell]) -> Vec<Part> {
    let of = |experiment: &str| Tried::of(cells, experiment);
    let pages = read_ahead_pages(cells);
    let (sweep, cpus) = (of(READ_AHEAD), of(CPUS));
    let beside: Vec<Cell> = cells.iter().filter(|cell| cell.assumed.is_some()).cloned().collect();
    let mut parts: Vec<Part> = [notes::form(cells), notes::read_ahead(&sweep, pages)]
        .into_iter()
        .chain([notes::evicting(cells, !cpus.is_empty())])
        .map(Part::Paragraph)
        .collect();
    parts.extend(published(cells).map(Part::Table));
    let title = "The medians of the model beside the published figures";
    parts.push(Part::Table(table(title, &JUDGED, &beside)));
    parts.push(Part::Paragraph(notes::verdicts(&beside, &Cell::variants(cells))));
    parts.push(Part::Paragraph(notes::ratio(cells, &cpus)));
    parts.push(Part::Table(causes(&Cell::variants(cells))));
    parts.push(Part::Paragraph(notes::plain("causes")));
    let title = "Over readahead sizes; x = threads x readahead / high";
    parts.push(Part::Table(pairs(title, "pages", &sweep, pages)));
    parts.push(Part::Paragraph(notes::sweep(&sweep)));
    if !cpus.is_empty() {
        parts.push(Part::Table(pairs("Over CPUs", "CPUs", &cpus, 0)));
        let title = "Over threads, with as much memory for each";
        parts.push(Part::Table(pairs(title, "threads", &of(THREADS_OF), 0)));
        let title = format!("One large VMA under writers, a job {SMALLER} times smaller");
        parts.push(Part::Table(table(title, &one_vma_columns(), &of(ONE_VMA))));
        parts.push(Part::Paragraph(notes::plain("one_vma")));
    }
    let sensitivity = of(SENSITIVITY);
    if !sensitivity.is_empty() {
        parts.push(Part::Table(costs(&sensitivity, cells)));
    }
    parts.push(Part::Paragraph(notes::costs(!sensitivity.is_empty())));
    parts
}

/// The published rows and the model's two, as ranges over seeds.
fn published(cells: &[Cell]) -> [Table; 2] {
    let of_row = |row: &RetryRow| {
        let [drops, misses] = [row.retry_mmap_drop, row.retry_io_miss];
        let figures = [
            row.rounds.to_string(),
            format!("{:.1}", row.rounds_s),
            format!("{:.2}", row.miss_drop_pct),
            format!("{:.1}", row.drops_per_round()),
        ];
        let a_second = |count: u64| format!("{:.0}", row.a_second(count));
        let counters = [drops.to_string(), a_second(drops), misses.to_string(), a_second(misses)];
        (row.case.clone(), [figures, counters])
    };
    let of_variant = |cell: &Cell| {
        let seconds = cell.condition("seconds").max(1) as f64;
        let range = |path: &str, factor: f64, digits: usize| {
            let sample = cell.sample(path);
            sample.map_or("-".to_string(), |sample| span(&sample, factor, digits))
        };
        let figures = [
            range("rounds_s", seconds, 0),
            range("rounds_s", 1.0, 1),
            range("misses_per_100_drops", 1.0, 2),
            range("drops_per_round", 1.0, 1),
        ];
        let counters = ["retry_mmap_drop", "retry_io_miss"];
        let [drops, misses] =
            counters.map(|path| [range(path, 1.0, 0), range(path, 1.0 / seconds, 0)]);
        let ([drops, drops_s], [misses, misses_s]) = (drops, misses);
        (format!("model, {}", cell.variant()), [figures, [drops, drops_s, misses, misses_s]])
    };
    let rows = PUBLISHED.vma_retry.rows.iter().map(of_row);
    let rows: Vec<_> = rows.chain(Cell::variants(cells).into_iter().map(of_variant)).collect();
    let of = |number: usize, title: &str, names: [&str; 4]| {
        let columns = [Head::left("")].into_iter().chain(names.map(Head::right)).collect();
        let row = |(name, figures): &(String, [[String; 4]; 2])| {
            [name.clone()].into_iter().chain(figures[number].clone()).collect()
        };
        Table { title: title.to_string(), columns, rows: rows.iter().map(row).collect() }
    };
    let figures = ["rounds", "rounds/s", "misses of\n100 drops", "drops\na round"];
    let counters = ["retry_mmap_\ndrop", "a\nsecond", "retry_io_\nmiss", "a\nsecond"];
    [
        of(0, "Published rows, and the model's as ranges over seeds", figures),
        of(1, "Their counters", counters),
    ]
}

const JUDGED: [Column<Cell>; 5] = [
    words("row", |cell| cell.name().into()),
    words("figure", |cell| cell.unit.clone().into()),
    figures("published", |cell| digits(cell.published, 2)),
    figures("model", |cell| digits(cell.number("median"), 2)),
    words("verdict", |cell| match (cell.ok, &cell.tolerance) {
        (Some(true), Some(tolerance)) => format!("ok: {tolerance}").into(),
        _ => cell.said().into(),
    }),
];

/// What 100 seconds of a thread went into, before and after.
fn causes(variants: &[&Cell]) -> Table {
    let [before, after] = variants else { return Table::default() };
    let of = |cause: Cause| {
        let name = cause.name();
        let both = |of: &str| {
            [before, after].map(|cell| cell.number(&format!("time/{name}/{of}")).unwrap_or(0.0))
        };
        let [percent, p99, max] = ["percent", "p99_ns", "max_ns"].map(both);
        let mut row = vec![name.to_string()];
        row.extend(percent.map(|percent| format!("{percent:.1}")));
        row.extend(p99.into_iter().chain(max).map(time));
        (percent[0].max(percent[1]) >= LEAST_PERCENT).then_some(row)
    };
    let names = ["before\n%", "after\n%", "before\np99", "after\np99", "before\nmax", "after\nmax"];
    Table {
        title: "Where the threads' time went, before and after the series".to_string(),
        columns: [Head::left("cause")].into_iter().chain(names.map(Head::right)).collect(),
        rows: Cause::ALL.into_iter().filter_map(of).collect(),
    }
}

fn misses(cell: &Cell) -> Value {
    let mark = if cell.jams() { "!" } else { "" };
    cell.number("misses_per_100_drops").map(|misses| format!("{misses:.2}{mark}")).into()
}

fn drops(cell: &Cell) -> Value {
    digits(cell.number("drops_per_round"), 1)
}

fn rounds(cell: &Cell) -> Value {
    digits(cell.number("rounds_s"), 1)
}

/// Experiments of one kind; those with `inferred` pages of readahead have a star.
fn pairs(title: &str, first: &'static str, tried: &[Tried], inferred: u64) -> Table {
    let columns: [Column<(Tried, bool)>; 9] = [
        figures(first, |(of, is_inferred)| {
            format!("{}{}", of.before.name(), if *is_inferred { "*" } else { "" }).into()
        }),
        figures("x", |(of, _)| digits(Some(of.before.pressure()), 2)),
        figures("misses %\nbefore", |(of, _)| misses(of.before)),
        figures("after", |(of, _)| misses(of.after)),
        figures("drops/\nround\nbefore", |(of, _)| drops(of.before)),
        figures("after", |(of, _)| drops(of.after)),
        figures("rounds/s\nbefore", |(of, _)| rounds(of.before)),
        figures("after", |(of, _)| rounds(of.after)),
        figures("ratio", |(of, _)| digits(of.ratio(), 2)),
    ];
    let row = |of: &Tried<'_>| of.before.condition("read_ahead_pages") == inferred;
    let rows: Vec<(Tried, bool)> = tried.iter().map(|of| (*of, row(of))).collect();
    table(title, &columns, &rows)
}

/// Threads in one large VMA, and those that write to it.
fn one_vma_columns<'a>() -> [Column<Tried<'a>>; 8] {
    [
        figures("writers", |of| of.before.name().into()),
        figures("misses %\nbefore", |of| misses(of.before)),
        figures("after", |of| misses(of.after)),
        figures("rounds/s\nbefore", |of| rounds(of.before)),
        figures("after", |of| rounds(of.after)),
        figures("ratio", |of| digits(of.ratio(), 2)),
        figures("mprotect/s\nbefore", |of| digits(of.before.a_second("protections"), 0)),
        figures("after", |of| digits(of.after.a_second("protections"), 0)),
    ]
}

/// What each assumed cost does at half and twice its value.
fn costs(tried: &[Tried], cells: &[Cell]) -> Table {
    let (halves, _) = tried.as_chunks::<2>();
    let columns: [Column<(&[Tried; 2], Option<u64>)>; 8] = [
        words("cost", |([of, _], _)| {
            let (name, _) = of.before.name().split_once(" at ").unwrap_or_default();
            name.trim_end_matches("_ns").into()
        }),
        figures("ns", |(_, ns)| ns.map(|ns| ns.to_string()).into()),
        figures("misses %\nx 0.5", |(of, _)| misses(of[0].before)),
        figures("x 2", |(of, _)| misses(of[1].before)),
        figures("drops/\nround\nx 0.5", |(of, _)| drops(of[0].before)),
        figures("x 2", |(of, _)| drops(of[1].before)),
        figures("rounds/s,\nafter/before\nx 0.5", |(of, _)| digits(of[0].ratio(), 2)),
        figures("x 2", |(of, _)| digits(of[1].ratio(), 2)),
    ];
    let ns = |of: &[Tried; 2]| {
        let (name, _) = of[0].before.name().split_once(" at ")?;
        cells.first()?.assumed.as_ref()?.get(name)?.as_u64()
    };
    let rows: Vec<_> = halves.iter().map(|of| (of, ns(of))).collect();
    table("Each assumed cost at half and at twice its value", &columns, &rows)
}

/// `factor` times the smallest and the largest, or the one that there is.
pub fn span(sample: &Sample, factor: f64, digits: usize) -> String {
    let [least, most] =
        [sample.min, sample.max].map(|value| format!("{:.digits$}", value * factor));
    if least == most { least } else { format!("{least}-{most}") }
}

/// A figure of a cell, with its path or with that of its distribution.
type Line<'a> = (&'a Cell, &'static str, &'static str);

/// Every figure as one row.
pub fn rows(cells: &[Cell]) -> Table {
    let columns: [Column<Line>; 11] = [
        raw("series", |_| NAME.into()),
        raw("experiment", |(cell, ..)| cell.experiment.clone().into()),
        raw("name", |(cell, ..)| match cell.name() {
            PUBLISHED_JOB => "counters".into(),
            name => name.into(),
        }),
        raw("variant", |(cell, ..)| cell.variant().into()),
        raw("figure", |(cell, name, _)| match *name {
            "" => cell.unit.clone().into(),
            name => name.into(),
        }),
        raw("published", |(cell, ..)| cell.published.into()),
        raw("model", |(cell, _, path)| cell.number(path).into()),
        raw("min", |(cell, name, _)| of_sample(cell, name, |sample| sample.min)),
        raw("max", |(cell, name, _)| of_sample(cell, name, |sample| sample.max)),
        raw("ok", |(cell, ..)| cell.ok.map(|ok| ok.to_string()).into()),
        raw("verdict", |(cell, ..)| cell.verdict.clone().into()),
    ];
    let lines = |cell| -> Vec<Line> {
        let cell: &Cell = cell;
        match (cell.name(), &cell.assumed) {
            (_, Some(_)) => vec![(cell, "", "median")],
            (PUBLISHED_JOB, _) => vec![
                (cell, "retry_mmap_drop", "retry_mmap_drop/median"),
                (cell, "retry_arrival", "retry_arrival/median"),
                (cell, "retry_io_miss", "retry_io_miss/median"),
            ],
            _ if cell.is_of(PUBLISHED_JOB) => Vec::new(),
            _ => vec![
                (cell, "misses of 100 drops", "misses_per_100_drops"),
                (cell, "drops a round", "drops_per_round"),
                (cell, "rounds a second", "rounds_s"),
            ],
        }
    };
    csv(&columns, &cells.iter().flat_map(lines).collect::<Vec<_>>())
}

/// A bound of the figures that a published one stands beside.
fn of_sample(cell: &Cell, name: &str, of: fn(Sample) -> f64) -> Value {
    cell.sample("distribution").filter(|_| name.is_empty()).map(of).into()
}
