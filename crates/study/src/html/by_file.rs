//! What a job with tables did by file.

use filemap_job::{FileSummary, Record, Spread};
use maud::{Markup, html};

use crate::explain::{FileHistory, ProgramHistory};
use crate::record::MAX_ROWS;
use filemap_report::units::number;

use super::{run, waited};
use filemap_report::Bar;
use filemap_report::html::bars;

/// Pages read of each file of `record`.
pub(super) fn bars_of(record: &Record) -> Markup {
    let of_file = |file: &FileSummary| {
        let spread = file.data_pages_read?;
        let (faults, cached) = (file.major_faults, file.cached);
        let text = |of: Option<Spread>| of.map_or("-".into(), |of| number(of.median));
        Some(Bar {
            name: file.name.clone(),
            value: Some(spread.median),
            class: "u4",
            texts: vec![number(spread.median), text(faults), text(cached)],
        })
    };
    let shown: Vec<Bar> = record.summary.files.iter().filter_map(of_file).collect();
    let (shown, rest) = shown.split_at(shown.len().min(MAX_ROWS));
    let heads = ["file", "pages read", "major faults", "cached at the end"];
    html! {
        @if !shown.is_empty() { (bars("Pages read, by file", &heads, shown)) }
        @if !rest.is_empty() { p { "and " (rest.len()) " more, in JSON." } }
    }
}

/// The course of each file, and what was waited for.
pub(super) fn of_history(history: &ProgramHistory) -> Markup {
    html! {
        (waited::section(history))
        @for file in &history.files { (of_file(file)) }
        @if history.other_files > 0 {
            p {
                "Of " (number(history.other_files as f64)) " more files something was read. Only "
                "those of which most is read are drawn."
            }
        }
    }
}

fn of_file(file: &FileHistory) -> Markup {
    html! {
        section.file aria-label=(file.name) {
            h2.file { "File " (file.name) }
            @if let Some(causes) = &file.history.causes {
                (run::bars_of_causes(causes, file.history.page_bytes))
            }
            (run::of_course(&file.history))
            @if let Some(open) = &file.counter_of {
                p.small {
                    "mmap_miss is the counter of the open file " (open) ". Accesses are those of "
                    "the whole program."
                }
            }
        }
    }
}
