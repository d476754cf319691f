//! Pages by cause, and by file if there are several: as a table, as bars, and as CSV rows.

use filemap_report::units::{bytes, number};
use filemap_report::{Bar, BarTable, Column, Table, Unit, csv_table, text_table};

use super::origin::{CausePages, Origin};
use super::record::{ExplainRecord, FileRecord};

/// Maximum number of bars of a chart; JSON has all.
const MAX_BARS: usize = 200;

/// Maximum number of files listed by name, by pages read. The others are summed.
pub(super) const MAX_NAMED_FILES: usize = 8;

/// Pages of a file, or of all files, that were read for one cause.
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
    Column::new("file", "file", Unit::Text, |row| row.file.as_str().into());
const NAME: Column<CauseRow> =
    Column::new("name", "cause", Unit::Text, |row| row.name.as_str().into());
const PAGES: Column<CauseRow> = Column::new("pages", "pages", Unit::Count, |row| row.pages.into());
const BYTES: Column<CauseRow> = Column::new("bytes", "bytes", Unit::Bytes, |row| row.bytes.into());
const SHARE: Column<CauseRow> = Column::new("share", "%", Unit::Share, |row| row.share.into());
const AGAIN: Column<CauseRow> = Column::new("again", "again", Unit::Count, |row| row.again.into());
const ENGINE: Column<CauseRow> =
    Column::new("engine", "engine", Unit::Text, |row| row.engine.as_str().into());
const CAUSE: Column<CauseRow> =
    Column::new("cause", "cause", Unit::Text, |row| row.key.as_str().into());

impl CauseRow {
    /// The row of `causes`; `all` is the number of pages read for all causes.
    fn new(causes: &CausePages, page_bytes: u64, all: u64) -> CauseRow {
        CauseRow {
            engine: String::new(),
            file: String::new(),
            key: causes.cause.clone(),
            name: Origin::name_for_key(&causes.cause),
            pages: causes.pages,
            bytes: match causes.bytes {
                0 => causes.pages.saturating_mul(page_bytes),
                bytes => bytes,
            },
            again: causes.again,
            share: 100.0 * causes.pages as f64 / all.max(1) as f64,
        }
    }
}

/// The row of `causes` of `file`.
fn row(record: &ExplainRecord, file: &str, causes: &CausePages) -> CauseRow {
    CauseRow {
        engine: record.engine.clone(),
        file: file.to_string(),
        ..CauseRow::new(causes, record.page_bytes, record.pages_read)
    }
}

/// A row for each cause, per file if there are several.
fn rows(record: &ExplainRecord) -> Vec<CauseRow> {
    if !record.has_several_files() {
        return record.causes.iter().map(|causes| row(record, "", causes)).collect();
    }
    let file_rows =
        |file: &FileRecord| file.causes.iter().map(|own| row(record, &file.name, own)).collect();
    record.files.iter().flat_map(|file| -> Vec<CauseRow> { file_rows(file) }).collect()
}

/// Rows of the files with the most pages read, and of all others together.
fn summed_rows(record: &ExplainRecord) -> Vec<CauseRow> {
    if !record.has_several_files() {
        return rows(record);
    }
    let mut files: Vec<&FileRecord> = record.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.pages_read));
    let (named, others) = files.split_at(files.len().min(MAX_NAMED_FILES));
    let named = named.iter().flat_map(|file| file.causes.iter().map(|own| (&*file.name, own)));
    let mut rows: Vec<CauseRow> = named.map(|(name, own)| row(record, name, own)).collect();
    let name = format!("{} others", number(others.len() as f64));
    for cause in others.first().map_or(&[][..], |file| &file.causes) {
        let of_cause = others.iter().flat_map(|file| &file.causes);
        let of_cause = of_cause.filter(|own| own.cause == cause.cause);
        let mut sum = CausePages { pages: 0, bytes: 0, again: 0, ..cause.clone() };
        for own in of_cause {
            sum.pages = sum.pages.saturating_add(own.pages);
            sum.bytes = sum.bytes.saturating_add(own.bytes);
            sum.again = sum.again.saturating_add(own.again);
        }
        rows.push(row(record, &name, &sum));
    }
    rows
}

/// The rows of CSV.
pub(super) fn cause_rows(record: &ExplainRecord) -> Table {
    if record.has_several_files() {
        return csv_table(&[ENGINE, FILE, CAUSE, PAGES, BYTES, AGAIN], &rows(record));
    }
    csv_table(&[ENGINE, CAUSE, PAGES, BYTES, AGAIN], &rows(record))
}

/// Pages by cause as a table for text reports.
pub(super) fn cause_table(record: &ExplainRecord) -> Table {
    let mut rows = summed_rows(record);
    let has_files = record.has_several_files();
    rows.retain(|row| row.pages > 0 || (!has_files && row.key == Origin::Used.key()));
    let sum = CausePages {
        cause: "bytes read".to_string(),
        pages: record.pages_read,
        bytes: record.bytes_read,
        again: record.causes.iter().map(|own| own.again).fold(0, u64::saturating_add),
    };
    let file = if has_files { "all files" } else { "" };
    rows.push(row(record, file, &sum));
    if !has_files {
        return text_table("", &[NAME, PAGES, BYTES, SHARE, AGAIN], &rows);
    }
    grouped(text_table("", &[FILE, NAME, PAGES, BYTES, SHARE, AGAIN], &rows))
}

/// Blanks the first cell of rows that repeat the first cell of the row above.
pub(super) fn grouped(mut table: Table) -> Table {
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

/// Bytes by cause as bars.
pub(super) fn cause_bars(record: &ExplainRecord) -> BarTable {
    let first = if record.has_several_files() { "file and cause" } else { "cause" };
    let note = format!("{} in all.", bytes(record.bytes_read as f64));
    bars(format!("Bytes read, by {first}"), first, &summed_rows(record)).with_note(note)
}

/// Bytes of one file by cause as bars; `prefix` names the file where there are several.
pub(super) fn file_bars(prefix: &str, causes: &[CausePages], page_bytes: u64) -> BarTable {
    let all = causes.iter().map(|own| own.pages).fold(0, u64::saturating_add);
    let rows: Vec<CauseRow> =
        causes.iter().map(|own| CauseRow::new(own, page_bytes, all)).collect();
    let note = match all {
        0 => format!("{prefix}nothing was read."),
        all => format!(
            "Each page that entered the page cache is counted once: as used, if the program \
             accessed it before it left, or else by what it was read for. {} in all.",
            bytes(all as f64 * page_bytes as f64)
        ),
    };
    bars(format!("{prefix}Bytes read, by cause"), "cause", &rows).with_note(note)
}

fn bars(title: String, first: &str, rows: &[CauseRow]) -> BarTable {
    let bar = |row: &CauseRow| Bar {
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
    let shown = rows.iter().filter(|row| row.pages > 0).take(MAX_BARS);
    let heads = [first, "bytes", "pages", "share", "in before"];
    BarTable::new(title, &heads, shown.map(bar).collect())
}
