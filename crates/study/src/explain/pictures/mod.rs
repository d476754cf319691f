//! The course of a run in pictures: what was read, what the page cache held, and what was waited
//! for.

mod grid;
mod map;
mod misses;
mod residency;
mod shares;
mod stacked;
mod waited;
mod windows;

use filemap_report::units::number;
use filemap_report::{Part, Plot};

use super::causes;
use super::courses::{Courses, FileHistory, ProgramHistory};
use super::history::History;

pub(super) use map::plot as map;
pub(super) use misses::plot as misses;

/// All that a course shows.
pub fn of_courses(courses: &Courses) -> Vec<Part> {
    match courses {
        Courses::OneFile(history) => of_history(history, "", ""),
        Courses::Files(history) => of_files(history),
    }
}

/// What was waited for, and the course of each file.
fn of_files(history: &ProgramHistory) -> Vec<Part> {
    let mut parts = waited::parts(history);
    for FileHistory { name, counter_of, history } in &history.files {
        let more = counter_of.as_ref().map_or(String::new(), |open| {
            format!(
                " mmap_miss is the counter of the open file {open}. Accesses are those of the \
                 whole program."
            )
        });
        parts.extend(of_history(history, &format!("File {name}: "), &more));
    }
    let last = parts.iter_mut().rev().find_map(|part| match part {
        Part::Bars(bars) => Some(&mut bars.note),
        _ => None,
    });
    if let Some(note) = last.filter(|_| history.other_files > 0) {
        *note += &format!(
            " Of {} more files something was read. Only those of which most is read are drawn.",
            number(history.other_files as f64)
        );
    }
    parts
}

/// The history of a file, whose pictures are called so. `more` is to be said of the counter, which
/// comes last.
fn of_history(history: &History, name: &str, more: &str) -> Vec<Part> {
    let misses = history.mmap_miss.as_ref().filter(|points| !points.is_empty());
    let misses = misses.map(|points| misses::plot(points, history.accesses, true));
    let plots = [windows::plot(history), residency::plot(history), misses];
    let mut plots: Vec<Plot> = plots.into_iter().flatten().collect();
    for plot in &mut plots {
        plot.title = format!("{name}{}", plot.title);
    }
    plots.last_mut().into_iter().for_each(|last| last.note += more);
    let bars = history.causes.as_ref();
    let bars = bars.map(|causes| Part::Bars(causes::of_file(name, causes, history.page_bytes)));
    bars.into_iter().chain(plots.into_iter().map(Part::Plot)).collect()
}
