//! What brought the pages in, and what is said of the sums by cause.

use filemap_job::Record;
use filemap_report::units::{bytes, bytes_range, number};
use filemap_report::{Part, Table, counted};

use super::causes::{self, by_group};
use super::origin::Origin;
use super::record::{BroughtPages, Explained};
use crate::spread;
use crate::stats::Sample;

/// What was read and what brought it in.
pub(super) fn parts(of: &Explained) -> Vec<Part> {
    let mut parts = vec![Part::Table(causes::as_table(of)), Part::Paragraph(note(of))];
    let brought = if of.is_of_tables() { through(of) } else { brought(&of.brought_in) };
    parts.extend(Some(brought).filter(|brought| !brought.rows.is_empty()).map(Part::Table));
    parts
}

/// What the sums are, and whether they are all.
fn note(of: &Explained) -> String {
    let (own, counted, unit) = if of.is_of_tables() {
        (of.pages_read, of.counters.data_pages_read, "pages")
    } else {
        (of.bytes_read, of.bytes_counted, "bytes")
    };
    let shown = |value: u64| number(value as f64);
    let engine = &of.engine;
    let counted = match counted {
        None => String::new(),
        Some(counted) if counted == own => {
            let all =
                if unit == "bytes" { bytes(own as f64) } else { format!("{} pages", shown(own)) };
            format!(" They add up to the {all} that the {engine} counts.")
        }
        Some(counted) => format!(
            " They add up to {} {unit}; the {engine} counts {} that were read.",
            shown(own),
            shown(counted)
        ),
    };
    let what = if of.is_of_tables() && of.through.is_empty() {
        "Each page that entered the cache is counted by what brought it in, accessed or not: \
             the log of several threads does not say which access it belongs to."
    } else {
        "Each page that entered the cache is counted once, when it left or at the end; 'again' \
             are pages that had been in before."
    };
    format!("{what}{counted}")
}

/// What brought the pages in, and how many of them were accessed.
fn brought(entries: &[BroughtPages]) -> Table {
    let row = |own: &BroughtPages| {
        let accessed = own.accessed.unwrap_or(0);
        let share = 100.0 * accessed as f64 / own.pages.max(1) as f64;
        let mut row = counted(Origin::name_of(&own.by), [own.calls, own.pages, accessed]);
        row.push(format!("{share:.1}"));
        row
    };
    let rows = entries.iter().filter(|own| own.is_any()).map(row);
    Table::of(["brought in by"], ["calls", "pages", "accessed", "%"], rows)
}

/// What each mapping and open file brought in.
fn through(of: &Explained) -> Table {
    let rows = of.through.iter().flat_map(|through| {
        let some = through.brought_in.iter().filter(|own| own.is_any());
        some.map(move |own| {
            let mut row = counted(Origin::name_of(&own.by), [own.calls, own.pages]);
            row.insert(0, format!("{} {}", through.what, through.name));
            row
        })
    });
    by_group(Table::of(["through", "by"], ["calls", "pages added"], rows))
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
