//! Charts of a run's history: reads, contents of the page cache, and waits.

mod counter;
mod grid;
mod intervals;
mod map;
mod residency;
mod waits;
mod windows;

use filemap_report::units::number;
use filemap_report::{Part, Plot};

use super::causes;
use super::history::{FileHistory, RunHistory};

pub(super) use counter::plot as counter_plot;
pub(super) use map::plot as map_plot;

/// The charts of a run: waits, and then each file.
pub fn history_parts(history: &RunHistory) -> Vec<Part> {
    let mut parts = waits::parts(history);
    let has_several_files = history.files.len() > 1 || history.other_files > 0;
    for file in &history.files {
        parts.extend(file_parts(file, has_several_files));
    }
    let note = parts.iter_mut().rev().find_map(|part| match part {
        Part::Bars(bars) => Some(&mut bars.note),
        Part::Plot(plot) => Some(&mut plot.note),
        _ => None,
    });
    if let Some(note) = note.filter(|_| history.other_files > 0) {
        *note += &format!(
            " {} more files were read. Only those with the most pages read are drawn.",
            number(history.other_files as f64)
        );
    }
    parts
}

/// The charts of a file, titled with its name if there are several.
fn file_parts(file: &FileHistory, has_several_files: bool) -> Vec<Part> {
    let FileHistory { name, counter_of, history } = file;
    let prefix = if has_several_files { format!("File {name}: ") } else { String::new() };
    let points = history.mmap_miss.as_ref().filter(|points| !points.is_empty());
    let threshold = history.mmap_miss_threshold;
    let counter = points.map(|points| counter_plot(points, history.accesses, true, threshold));
    let plots = [windows::plot(history), residency::plot(history), counter];
    let mut plots: Vec<Plot> = plots.into_iter().flatten().collect();
    for plot in &mut plots {
        plot.title = format!("{prefix}{}", plot.title);
    }
    if let (Some(last), Some(open), true) = (plots.last_mut(), counter_of, has_several_files) {
        last.note += &format!(
            " mmap_miss is the counter of the open file {open}. Accesses are those of the whole \
             program."
        );
    }
    let bars = history.causes.as_ref();
    let bars =
        bars.map(|causes| Part::Bars(causes::file_bars(&prefix, causes, history.page_bytes)));
    bars.into_iter().chain(plots.into_iter().map(Part::Plot)).collect()
}
