//! The record of one program.

use filemap_job::program::{FileSummary, ProgramRecord};
use filemap_job::{EngineKind, Spread};
use maud::{Markup, html};

use crate::error::Error;
use crate::explain::{FileHistory, ProgramHistory};
use crate::program;
use crate::units::number;

use super::bars::{Bar, bars};
use super::{Shown, parts, program_history, read, run, waited};

/// The page of the record of a program.
pub(super) fn page(json: &str) -> Result<Shown, Error> {
    let record: ProgramRecord = read(json)?;
    let history = program_history(json)?;
    let report = program::report(&record, None, String::new());
    let (warnings, below) = run::warnings_first(report.parts.into_iter().skip(1).collect());
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
    let (shown, rest) = shown.split_at(shown.len().min(program::MAX_ROWS));
    let heads = ["file", "pages read", "major faults", "cached at the end"];
    let body = html! {
        (parts::all(&warnings))
        @if !shown.is_empty() { (bars("Pages read, by file", &heads, shown)) }
        @if !rest.is_empty() { p { "and " (rest.len()) " more, in JSON." } }
        @match &history {
            Some(history) => (of_history(history, record.runs.len())),
            None if record.engine == EngineKind::Kernel.name() => p {
                "A run on a kernel keeps no log of decisions, so that its windows are not shown. "
                "The same program in the model has them."
            },
            None => {},
        }
        h2 { "Figures" }
        (parts::all(&below))
    };
    Ok(Shown { title: program::title(&record), body })
}

/// The course of each file, and what was waited for.
fn of_history(history: &ProgramHistory, runs: usize) -> Markup {
    html! {
        @if runs > 1 {
            p { "What follows is the course of the first of " (runs) " runs." }
        }
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
