//! What was read, by cause and by what brought it in: as tables, as bars, and as rows of CSV.

use filemap_report::units::{bytes, bytes_range, number};
use filemap_report::{Bars, Column, Head, Part, Table, Unit, csv, table};

use super::origin::Origin;
use super::pictures;
use super::record::{BroughtEntry, CauseEntry, Explained};
use crate::record::MAX_ROWS;
use crate::spread;
use crate::stats::Sample;
use filemap_job::Record;

/// Pages of one file, or of all of them, that were read for one cause.
struct CauseRow {
    engine: String,
    file: String,
    key: String,
    name: String,
    pages: u64,
    bytes: u64,
    again: u64,
    /// In percent.
    share: f64,
}

const FILE: Column<CauseRow> =
    Column::of("file", "file", Unit::Text, |row| row.file.as_str().into());
const NAME: Column<CauseRow> =
    Column::of("name", "cause", Unit::Text, |row| row.name.as_str().into());
const PAGES: Column<CauseRow> = Column::of("pages", "pages", Unit::Count, |row| row.pages.into());
const BYTES: Column<CauseRow> = Column::of("bytes", "bytes", Unit::Bytes, |row| row.bytes.into());
const SHARE: Column<CauseRow> = Column::of("share", "%", Unit::Share, |row| row.share.into());
const AGAIN: Column<CauseRow> = Column::of("again", "again", Unit::Count, |row| row.again.into());
const ENGINE: Column<CauseRow> =
    Column::of("engine", "engine", Unit::Text, |row| row.engine.as_str().into());
const CAUSE: Column<CauseRow> =
    Column::of("cause", "cause", Unit::Text, |row| row.key.as_str().into());

/// The results for CSV.
pub(super) fn rows(of: &Explained) -> Table {
    let rows = cause_rows(of);
    match of.is_of_tables() {
        true => csv(&[ENGINE, FILE, CAUSE, PAGES, BYTES, AGAIN], &rows),
        false => csv(&[ENGINE, CAUSE, PAGES, BYTES, AGAIN], &rows),
    }
}

/// Every cause, of a job with tables those of each file.
fn cause_rows(of: &Explained) -> Vec<CauseRow> {
    let row = |file: &str, entry: &CauseEntry| CauseRow {
        engine: of.engine.clone(),
        file: file.to_string(),
        key: entry.cause.clone(),
        name: Origin::name_of(&entry.cause),
        pages: entry.pages,
        bytes: match entry.bytes {
            0 => entry.pages.saturating_mul(of.page_bytes()),
            bytes => bytes,
        },
        again: entry.again,
        share: 100.0 * entry.pages as f64 / of.pages_read.max(1) as f64,
    };
    match of.is_of_tables() {
        true => {
            let files = of.files.iter();
            files.flat_map(|file| file.causes.iter().map(|entry| row(&file.name, entry))).collect()
        }
        false => of.causes.iter().map(|entry| row("", entry)).collect(),
    }
}

/// What was read, as bars.
pub(super) fn bars(of: &Explained) -> Part {
    let has_files = of.is_of_tables();
    let rows = cause_rows(of).into_iter().filter(|row| row.pages > 0);
    let bar = |row: CauseRow| {
        let name = if has_files { format!("{}: {}", row.file, row.name) } else { row.name };
        let numbers = [row.pages, row.again].map(|pages| number(pages as f64));
        let [pages, again] = numbers;
        let share = format!("{:.1} %", row.share);
        let texts = vec![bytes(row.bytes as f64), pages, share, again];
        pictures::cause_bar(&row.key, name, row.pages, texts)
    };
    let first = if has_files { "file and cause" } else { "cause" };
    let heads = [first, "bytes", "pages", "share", "in before"];
    let bars = rows.take(pictures::MOST_BARS).map(bar).collect();
    let all = format!("{} in all.", bytes(of.bytes_read as f64));
    Part::Bars(Bars::new(format!("Bytes read, by {first}"), &heads, bars).with_note(all))
}

/// What was read and what brought it in.
pub(super) fn parts(of: &Explained) -> Vec<Part> {
    let has_files = of.is_of_tables();
    let mut rows = cause_rows(of);
    rows.retain(|row| row.pages > 0 || !has_files && row.key == Origin::Used.key());
    let causes = if has_files {
        by_group(table("", &[FILE, NAME, PAGES, BYTES, SHARE, AGAIN], &rows))
    } else {
        rows.push(CauseRow {
            engine: of.engine.clone(),
            file: String::new(),
            key: String::new(),
            name: "bytes read".to_string(),
            pages: of.pages_read,
            bytes: of.bytes_read,
            again: of.causes.iter().map(|entry| entry.again).sum(),
            share: if of.pages_read == 0 { 0.0 } else { 100.0 },
        });
        table("", &[NAME, PAGES, BYTES, SHARE, AGAIN], &rows)
    };
    let mut parts = vec![Part::Table(causes), Part::Paragraph(note(of))];
    let brought = if has_files { through(of) } else { brought(&of.brought_in) };
    if !brought.rows.is_empty() {
        parts.push(Part::Table(brought));
    }
    parts
}

/// What the sums are, and whether they are all.
fn note(of: &Explained) -> String {
    let (sum, engine) = (of.pages_read as f64, &of.engine);
    let (read, counted_pages) = (of.bytes_read, of.counters.data_pages_read);
    let counted = match (of.is_of_tables(), of.bytes_counted, counted_pages) {
        (false, Some(counted), _) if counted == read => {
            format!(" They add up to the {} that the {engine} counts.", bytes(read as f64))
        }
        (false, Some(counted), _) => format!(
            " They add up to {} bytes; the {engine} counts {} read from the device.",
            number(read as f64),
            number(counted as f64)
        ),
        (true, _, Some(counted)) if counted == of.pages_read => {
            format!(" They add up to the {} pages that the {engine} counts.", number(sum))
        }
        (true, _, Some(counted)) => format!(
            " They add up to {} pages; the {engine} counts {}.",
            number(sum),
            number(counted as f64)
        ),
        _ => String::new(),
    };
    let what = match of.is_of_tables() && of.through.is_empty() {
        false => {
            "Each page that entered the cache is counted once, when it left or at the end; 'again' \
             are pages that had been in before."
        }
        true => {
            "Each page that entered the cache is counted by what brought it in, accessed or not: \
             the log of several threads does not say which access it belongs to."
        }
    };
    format!("{what}{counted}")
}

/// What brought the pages in, and how many of them were accessed.
fn brought(entries: &[BroughtEntry]) -> Table {
    let some = entries.iter().filter(|own| own.pages > 0 || own.calls > 0);
    let row = |own: &BroughtEntry| {
        let accessed = own.accessed.unwrap_or(0);
        let share = 100.0 * accessed as f64 / own.pages.max(1) as f64;
        let numbers = [own.calls, own.pages, accessed].map(|value| number(value as f64));
        let name = [Origin::name_of(&own.by)].into_iter();
        name.chain(numbers).chain([format!("{share:.1}")]).collect()
    };
    let heads = ["calls", "pages", "accessed", "%"].map(Head::right);
    Table {
        title: String::new(),
        columns: [Head::left("brought in by")].into_iter().chain(heads).collect(),
        rows: some.map(row).collect(),
    }
}

/// What each mapping and open file brought in.
fn through(of: &Explained) -> Table {
    let rows = of.through.iter().flat_map(|through| {
        let some = through.brought_in.iter().filter(|own| own.calls > 0 || own.pages > 0);
        some.map(move |own| {
            let named = [format!("{} {}", through.what, through.name), Origin::name_of(&own.by)];
            let numbers = [own.calls, own.pages].map(|value| number(value as f64));
            named.into_iter().chain(numbers).collect()
        })
    });
    let heads = [Head::left("through"), Head::left("by"), Head::right("calls")];
    by_group(Table {
        title: String::new(),
        columns: heads.into_iter().chain([Head::right("pages added")]).collect(),
        rows: rows.collect(),
    })
}

/// The rows that a page has room for. What stands first in several of them stands there once.
fn by_group(mut table: Table) -> Table {
    let left_out = table.rows.len().saturating_sub(MAX_ROWS);
    table.rows.truncate(MAX_ROWS);
    let mut group = String::new();
    for row in &mut table.rows {
        if row[0] == group {
            row[0].clear();
        } else {
            group.clone_from(&row[0]);
        }
    }
    if left_out > 0 {
        let mut last = vec![String::new(); table.columns.len()];
        last[0] = format!("and {left_out} more (in JSON)");
        table.rows.push(last);
    }
    table
}

/// What the runs read, where each has a seed of its own.
pub(super) fn over_seeds(record: &Record) -> Vec<Part> {
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
