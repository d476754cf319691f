//! What was read for which cause: as it is written, as a table, as bars, and as rows of CSV.

use filemap_report::units::{bytes, number};
use filemap_report::{Bar, Bars, Column, Table, Unit, csv, table};

use super::origin::{CausePages, Origin};
use super::record::Explained;
use crate::record::MAX_ROWS;

/// Bars that are drawn at most; JSON has all.
const MOST_BARS: usize = 200;

/// Pages of one file, or of all of them, that were read for one cause.
struct Row {
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

const FILE: Column<Row> = Column::of("file", "file", Unit::Text, |row| row.file.as_str().into());
const NAME: Column<Row> = Column::of("name", "cause", Unit::Text, |row| row.name.as_str().into());
const PAGES: Column<Row> = Column::of("pages", "pages", Unit::Count, |row| row.pages.into());
const BYTES: Column<Row> = Column::of("bytes", "bytes", Unit::Bytes, |row| row.bytes.into());
const SHARE: Column<Row> = Column::of("share", "%", Unit::Share, |row| row.share.into());
const AGAIN: Column<Row> = Column::of("again", "again", Unit::Count, |row| row.again.into());
const ENGINE: Column<Row> =
    Column::of("engine", "engine", Unit::Text, |row| row.engine.as_str().into());
const CAUSE: Column<Row> = Column::of("cause", "cause", Unit::Text, |row| row.key.as_str().into());

impl Row {
    /// That of `own`, of `all` pages that were read.
    fn of(own: &CausePages, page_bytes: u64, all: u64) -> Row {
        Row {
            engine: String::new(),
            file: String::new(),
            key: own.cause.clone(),
            name: Origin::name_of(&own.cause),
            pages: own.pages,
            bytes: match own.bytes {
                0 => own.pages.saturating_mul(page_bytes),
                bytes => bytes,
            },
            again: own.again,
            share: 100.0 * own.pages as f64 / all.max(1) as f64,
        }
    }
}

/// Every cause, of a job with tables those of each file.
fn rows(of: &Explained) -> Vec<Row> {
    let row = |file: &str, own: &CausePages| Row {
        engine: of.engine.clone(),
        file: file.to_string(),
        ..Row::of(own, of.page_bytes(), of.pages_read)
    };
    if of.is_of_tables() {
        let of_file = |(file, own): (&str, _)| row(file, own);
        let all = of.files.iter().flat_map(|file| file.causes.iter().map(|own| (&*file.name, own)));
        all.map(of_file).collect()
    } else {
        of.causes.iter().map(|own| row("", own)).collect()
    }
}

/// The results for CSV.
pub(super) fn as_csv(of: &Explained) -> Table {
    let columns = [ENGINE, FILE, CAUSE, PAGES, BYTES, AGAIN];
    if of.is_of_tables() {
        return csv(&columns, &rows(of));
    }
    csv(&[ENGINE, CAUSE, PAGES, BYTES, AGAIN], &rows(of))
}

/// What was read, as a table.
pub(super) fn as_table(of: &Explained) -> Table {
    let mut rows = rows(of);
    if of.is_of_tables() {
        rows.retain(|row| row.pages > 0);
        return by_group(table("", &[FILE, NAME, PAGES, BYTES, SHARE, AGAIN], &rows));
    }
    rows.retain(|row| row.pages > 0 || row.key == Origin::Used.key());
    let sum = CausePages {
        cause: "bytes read".to_string(),
        pages: of.pages_read,
        bytes: of.bytes_read,
        again: of.causes.iter().map(|own| own.again).sum(),
    };
    rows.push(Row::of(&sum, of.page_bytes(), of.pages_read));
    table("", &[NAME, PAGES, BYTES, SHARE, AGAIN], &rows)
}

/// The rows that a page has room for. What stands first in several of them stands there once.
pub(super) fn by_group(table: Table) -> Table {
    let mut table = table.at_most(MAX_ROWS, 0);
    let mut group = String::new();
    for row in &mut table.rows {
        if row[0] == group {
            row[0].clear();
        } else {
            group.clone_from(&row[0]);
        }
    }
    table
}

/// What was read, as bars.
pub(super) fn as_bars(of: &Explained) -> Bars {
    let first = if of.is_of_tables() { "file and cause" } else { "cause" };
    let note = format!("{} in all.", bytes(of.bytes_read as f64));
    bars(format!("Bytes read, by {first}"), first, &rows(of)).with_note(note)
}

/// What was read of the file that is called so, as bars.
pub(super) fn of_file(file: &str, own: &[CausePages], page_bytes: u64) -> Bars {
    let all = own.iter().map(|own| own.pages).fold(0, u64::saturating_add);
    let rows: Vec<Row> = own.iter().map(|own| Row::of(own, page_bytes, all)).collect();
    let note = match all {
        0 => format!("{file}nothing was read."),
        all => format!(
            "Each page that entered the page cache is counted once: as used, if the program \
             accessed it before it left, or else by what it was read for. {} in all.",
            bytes(all as f64 * page_bytes as f64)
        ),
    };
    bars(format!("{file}Bytes read, by cause"), "cause", &rows).with_note(note)
}

fn bars(title: String, first: &str, rows: &[Row]) -> Bars {
    let bar = |row: &Row| Bar {
        name: match row.file.as_str() {
            "" => row.name.clone(),
            file => format!("{file}: {}", row.name),
        },
        value: Some(row.pages as f64),
        class: match Origin::with_key(&row.key) {
            Some(Origin::Used) => "u4",
            Some(Origin::Refetched) => "again",
            _ => "u0",
        },
        texts: vec![
            bytes(row.bytes as f64),
            number(row.pages as f64),
            format!("{:.1} %", row.share),
            number(row.again as f64),
        ],
    };
    let shown = rows.iter().filter(|row| row.pages > 0).take(MOST_BARS);
    let heads = [first, "bytes", "pages", "share", "in before"];
    Bars::new(title, &heads, shown.map(bar).collect())
}
