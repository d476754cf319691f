//! A log that stops a run at the first line that no comparison can pass over.

use std::panic;

use filemap_core::decision::{Decision, Log};
use filemap_job::{Job, ShownLog, trace_view};

/// What a run decides, beside what the right one did.
pub struct Watched<'a> {
    /// What is compared.
    pub log: ShownLog,
    /// Each line by itself as it came, of the right run.
    pub lines: Vec<Decision>,
    /// The lines of the right run; `None` in that one.
    right: Option<&'a [Decision]>,
    next: usize,
}

impl<'a> Watched<'a> {
    /// Of `job`, with what a booted kernel shows since 6.12, by tracepoints or by kprobes: all.
    pub fn new(job: &Job, right: Option<&'a [Decision]>) -> Self {
        let log = ShownLog::default().under(&job.rules);
        Watched { log, lines: Vec::new(), right, next: 0 }
    }

    /// A line that shows.
    fn line(&mut self, line: Decision) {
        let Some(right) = self.right else {
            self.lines.push(line);
            return;
        };
        let expected = right.get(self.next);
        if expected == Some(&line) {
            self.next += 1;
            return;
        }
        if expected.is_some_and(|expected| is_difference(expected, &line)) {
            panic::resume_unwind(Box::new(()));
        }
        // What comes now stands beside other lines: only the comparison tells.
        self.right = Some(&[]);
        self.next = 0;
    }
}

/// Whether lines at one place are a difference, whatever follows: neither is of a fault that a log
/// may lack, and they are not parts of one line that was cut elsewhere.
fn is_difference(right: &Decision, wrong: &Decision) -> bool {
    let of_fault =
        |line: &Decision| matches!(line, Decision::Faulted { .. } | Decision::MapPages { .. });
    match (right, wrong) {
        (Decision::Added { start, order, .. }, Decision::Added { start: other, order: of, .. }) => {
            (start, order) != (other, of)
        }
        // A kernel may not show all that is found.
        (Decision::Entered { .. }, Decision::Entered { .. }) => false,
        _ => !of_fault(right) && !of_fault(wrong),
    }
}

impl Log for Watched<'_> {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::Locked { .. } => {}
            Decision::Served { index, .. } => self.line(Decision::Faulted { index }),
            other => {
                if let Some(line) = trace_view::shown(other) {
                    self.line(line);
                }
            }
        }
        self.log.record(decision);
    }

    fn access(&mut self, number: u64) {
        self.log.access(number);
    }
}
