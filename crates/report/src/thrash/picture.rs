//! Where the time of the threads went in the course of a run, as a picture.

use std::fmt::Write;

use filemap_job::thrash::WaitCourse;
use filemap_job::{Record, Run, ThrashRun};

use crate::canvas::{Anchor, Axis, HEADING, Picture, SMALL, tick_text, ticks};
use crate::units::{number, time_unit};

const LEFT: f64 = 86.0;
const PLOT: f64 = 560.0;
const HEIGHT: f64 = 250.0;

/// Where the causes are named, and how far the lines of that are apart.
const NAMES: f64 = LEFT + PLOT + 22.0;
const LINE: f64 = 14.0;

/// A cause that took less than this share of the time is shown with others of that kind.
const LEAST_SHARE: f64 = 0.005;

/// What those are called together, and the colour of theirs and of causes without one.
const OTHERS: &str = "all others";
const GREY: &str = "#bbbbbb";

/// The colours of causes: greens for work, reds for reclaim, blues for `mmap_lock`.
const COLOURS: [(&str, &str); 19] = [
    ("work", "#2a7f62"),
    ("fill windows", "#8cc5a8"),
    ("reclaim for max", "#7a2318"),
    ("repay in charge", "#c8553d"),
    ("repay on return", "#e8947f"),
    ("throttled", "#f2c4b8"),
    ("list lock", "#7d5ba6"),
    ("mmap_lock: writer", "#16304f"),
    ("mmap_lock: window", "#33507a"),
    ("mmap_lock: readers", "#5f86b8"),
    ("mmap_lock to read", "#33507a"),
    ("mmap_write: writer", "#6cb2d6"),
    ("mmap_write: window", "#97cde6"),
    ("mmap_write: readers", "#c3e4f2"),
    ("mmap_lock to write", "#97cde6"),
    ("faults in the VMA", "#b08fc7"),
    ("device", "#c99a2e"),
    ("run queue", "#ead48f"),
    ("idle", "#eeeeee"),
];

/// A picture of `records`, one below the other, each under its name: how many threads were at what
/// in the course of the first run of each that tells it, on one scale.
pub fn svg(title: &str, records: &[(&str, &Record)]) -> String {
    let panels: Vec<Panel> = records.iter().map(|(name, record)| Panel::of(name, record)).collect();
    let most = panels.iter().filter_map(Panel::most).fold(0.0, f64::max);
    let mut picture = Picture::new(title);
    picture.note(
        "How many threads were at what, on average over each interval: the seconds that all of \
         them together spent on it per second of the run.",
    );
    panels.iter().for_each(|panel| picture.panel(panel, most));
    picture.svg()
}

/// What one record shows.
pub(crate) struct Panel {
    pub(crate) heading: String,
    /// `None` where no run tells its course.
    pub(crate) course: Option<Stacked>,
}

/// A course, its causes one on top of the other.
pub(crate) struct Stacked {
    /// Where each interval ends, from the beginning of the first, in nanoseconds.
    pub(crate) ends_ns: Vec<f64>,
    pub(crate) causes: Vec<Layer>,
    /// Since when times are told.
    pub(crate) from: &'static str,
}

/// One cause.
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    /// Its share of all time.
    pub(crate) share: f64,
    /// Threads in each interval.
    pub(crate) threads: Vec<f64>,
}

impl Panel {
    /// That of `record`.
    pub(crate) fn of(name: &str, record: &Record) -> Panel {
        let told = |(number, run): (usize, &Run)| {
            let thrash = run.thrash.as_ref()?;
            let stacked = Stacked::new(thrash, run.elapsed_ns, thrash.course.as_ref()?);
            Some((number, stacked))
        };
        let found = record.runs.iter().enumerate().find_map(told);
        let heading = match (&found, record.runs.len()) {
            (Some((number, _)), runs) if runs > 1 => {
                format!("{name} (run {} of {runs})", number + 1)
            }
            _ => name.to_string(),
        };
        let warmed = record.job.warm_up.as_deref().is_some_and(|time| time != "0s");
        let from = if warmed { "the end of the warm-up" } else { "the beginning" };
        Panel { heading, course: found.map(|(_, course)| Stacked { from, ..course }) }
    }

    /// The most threads of any interval.
    pub(crate) fn most(&self) -> Option<f64> {
        let course = self.course.as_ref()?;
        let all = |at| course.causes.iter().map(|layer| layer.threads[at]).sum::<f64>();
        Some((0..course.ends_ns.len()).map(all).fold(0.0, f64::max))
    }
}

impl Stacked {
    fn new(run: &ThrashRun, elapsed_ns: Option<u64>, course: &WaitCourse) -> Stacked {
        let count = course.causes.iter().map(|cause| cause.spent_ns.len()).max().unwrap_or(0);
        let interval_ns = course.interval_ns as f64;
        let end_ns = run.traced_ns.or(elapsed_ns).map_or(f64::MAX, |ns| ns as f64);
        let ends = (0..count).map(|at| (interval_ns * (at + 1) as f64).min(end_ns));
        let ends_ns: Vec<f64> = ends.collect();
        let sum = |spent: &[u64]| spent.iter().sum::<u64>() as f64;
        let all: f64 = course.causes.iter().map(|cause| sum(&cause.spent_ns)).sum();
        let mut causes: Vec<Layer> = Vec::new();
        let mut others = Layer::new(OTHERS, count);
        for cause in &course.causes {
            let share = sum(&cause.spent_ns) / all.max(1.0);
            let mut own = Layer::new(&cause.cause, count);
            let layer = if share < LEAST_SHARE { &mut others } else { &mut own };
            layer.share += share;
            for (at, &spent_ns) in cause.spent_ns.iter().enumerate() {
                let length_ns = ends_ns[at] - interval_ns * at as f64;
                layer.threads[at] += spent_ns as f64 / length_ns.max(1.0);
            }
            if own.share > 0.0 {
                causes.push(own);
            }
        }
        if others.share > 0.0 {
            causes.push(others);
        }
        Stacked { ends_ns, causes, from: "" }
    }
}

impl Layer {
    fn new(name: &str, count: usize) -> Layer {
        let colour = COLOURS.into_iter().find(|(cause, _)| *cause == name);
        let colour = colour.map_or(GREY, |(_, colour)| colour);
        Layer { name: name.to_string(), colour, share: 0.0, threads: vec![0.0; count] }
    }
}

impl Picture {
    /// Small lines.
    fn note(&mut self, text: &str) {
        self.y += 6.0;
        self.lines(text, SMALL, 1.4);
    }

    fn panel(&mut self, panel: &Panel, most: f64) {
        self.y += 14.0;
        self.lines(&panel.heading, HEADING, 1.4);
        let Some(course) = &panel.course else {
            self.note("Where the time of its threads went is not known.");
            return;
        };
        let (top, bottom) = (self.y + 28.0, self.y + 28.0 + HEIGHT);
        let length_ns = course.ends_ns.last().copied().unwrap_or(0.0).max(1.0);
        let (unit, unit_ns) = time_unit(length_ns);
        let axis = Axis { left: LEFT, width: PLOT, first: 0.0, last: length_ns / unit_ns };
        let height = |threads: f64| bottom - threads / most.max(f64::MIN_POSITIVE) * HEIGHT;
        let marks = ticks(0.0, axis.last, 5.0, 0.01).into_iter();
        let marks: Vec<_> = marks.map(|value| (value, tick_text(value))).collect();
        let name = format!("{unit} since {}", course.from);
        self.canvas.horizontal(&axis, (top, bottom), &marks, &name);
        let mut below = vec![0.0; course.ends_ns.len()];
        for layer in &course.causes {
            let above: Vec<f64> = below.iter().zip(&layer.threads).map(|(a, b)| a + b).collect();
            let ends = course.ends_ns.iter().map(|&end_ns| axis.at(end_ns / unit_ns));
            let ends: Vec<f64> = ends.collect();
            self.canvas.area(&between(&ends, &below, &above, height), layer.colour);
            below = above;
        }
        let least = if most < 4.0 { 0.01 } else { 1.0 };
        let text = |value: f64| if most < 4.0 { tick_text(value) } else { number(value) };
        let values = ticks(0.0, most, 5.0, least).into_iter();
        let marks: Vec<_> = values.map(|value| (height(value), text(value))).collect();
        self.canvas.vertical(LEFT, (top, bottom), &marks);
        self.canvas.text(LEFT - 8.0, top - 8.0, SMALL, Anchor::End, "threads");
        self.names(&course.causes, top);
        self.y = bottom + 36.0;
    }

    /// The causes beside their plot, in its order from above.
    fn names(&mut self, layers: &[Layer], top: f64) {
        for (line, layer) in layers.iter().rev().enumerate() {
            let y = top + 9.0 + LINE * line as f64;
            self.canvas.rect((NAMES, y - 9.0), (12.0, 10.0), layer.colour, 1.0);
            let text = format!("{} {:.1} %", layer.name, layer.share * 100.0);
            self.canvas.text(NAMES + 17.0, y, SMALL, Anchor::Start, &text);
        }
    }
}

/// The area between two courses of steps.
fn between(ends: &[f64], below: &[f64], above: &[f64], height: impl Fn(f64) -> f64) -> String {
    let mut path = format!("M{LEFT:.1} {:.1}", height(below.first().copied().unwrap_or(0.0)));
    for (end, threads) in ends.iter().zip(above) {
        let _ = write!(path, "V{:.1}H{end:.1}", height(*threads));
    }
    let begins = ends.iter().rev().skip(1).copied().chain([LEFT]);
    for (begin, threads) in begins.zip(below.iter().rev()) {
        let _ = write!(path, "V{:.1}H{begin:.1}", height(*threads));
    }
    path + "Z"
}

#[cfg(test)]
mod tests {
    use filemap_job::thrash::CauseCourse;

    use super::*;

    fn course(causes: &[(&str, &[u64])]) -> WaitCourse {
        let cause = |(cause, spent_ns): &(&str, &[u64])| CauseCourse {
            cause: (*cause).to_string(),
            spent_ns: spent_ns.to_vec(),
        };
        WaitCourse { interval_ns: 100, causes: causes.iter().map(cause).collect() }
    }

    #[test]
    fn time_spent_is_shown_as_threads() {
        let course = course(&[("work", &[100, 50]), ("device", &[300, 50]), ("idle", &[1, 0])]);
        // The last interval is half as long.
        let stacked = Stacked::new(&ThrashRun::default(), Some(150), &course);
        assert_eq!(stacked.ends_ns, [100.0, 150.0]);
        let layers: Vec<_> =
            stacked.causes.iter().map(|layer| (layer.name.as_str(), &layer.threads[..])).collect();
        let expected: [(&str, &[f64]); 3] =
            [("work", &[1.0, 1.0]), ("device", &[3.0, 1.0]), (OTHERS, &[0.01, 0.0])];
        assert_eq!(layers, expected);
        assert!((stacked.causes.iter().map(|layer| layer.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_area_has_two_courses_of_steps() {
        let path = between(&[10.0, 20.0], &[1.0, 2.0], &[3.0, 4.0], |threads| 9.0 - threads);
        assert_eq!(path, "M86.0 8.0V6.0H10.0V5.0H20.0V7.0H10.0V8.0H86.0Z");
    }
}
