//! Explains the first difference: the model's decisions at that access, and their rule.

use std::cmp::Ordering;

use filemap_core::decision::{Decision, Log};
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::Job;
use filemap_job::{ShownKind, ShownKinds, ShownLog};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::LogComparison;
use super::decision_text::describe_decision;
use super::rule::Rule;
use crate::error::Error;
use crate::traced_job::{empty_file_log, trace_settled};

/// Maximum number of decisions shown; the last ones are the nearest to the difference.
const MAX_SHOWN_DECISIONS: usize = 12;

/// The access at a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessDescription {
    /// First page in the file.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
    /// Step of its thread, from 1.
    pub step: u64,
    /// The step in words.
    pub does: String,
}

/// Key that groups similar differences: kinds of the first differing lines, rule, and which engine
/// has more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceKey {
    rule: Rule,
    model: Option<String>,
    kernel: Option<String>,
    more: Ordering,
}

/// All decisions of the model about a file, with the positions of those that tracepoints show.
struct FullLog {
    file: usize,
    /// The file.
    about: usize,
    access: u64,
    shown: ShownLog,
    /// Index into `decisions` of each shown line.
    places: Vec<usize>,
    /// Index of the access, and the decision.
    decisions: Vec<(u64, Decision)>,
    /// Accesses to the file: index, first page, number of pages.
    accessed: Vec<(u64, PageIndex, PageCount)>,
}

impl Log for FullLog {
    fn record(&mut self, decision: Decision) {
        if let Decision::File { file } = decision {
            self.about = file.number();
        }
        if self.about != self.file {
            return;
        }
        self.decisions.push((self.access, decision));
        self.shown.record(decision);
        self.places.resize(self.shown.accesses().len(), self.decisions.len() - 1);
    }

    fn access(&mut self, number: u64) {
        self.access = number;
        self.shown.access(number);
    }

    fn describe_access(&mut self, start: PageIndex, pages: PageCount) {
        if self.about == self.file {
            self.accessed.push((self.access, start, pages));
        }
    }
}

impl FullLog {
    /// The access at which the logs diverge: of the model's line `at`, or an earlier one that has
    /// more lines in one of the logs.
    fn diverging_access(&self, at: usize, kernel: Option<&Decision>, seen: ShownKinds) -> u64 {
        let of_line = |line: usize| self.places.get(line).map(|place| self.decisions[*place].0);
        let before = at.checked_sub(1).and_then(of_line);
        let next = of_line(at);
        let goes_on = match kernel {
            None | Some(Decision::Faulted { .. } | Decision::Entered { .. }) => false,
            Some(Decision::Lookup { .. } | Decision::MapPages { .. }) => {
                seen.has(ShownKind::Faulted)
            }
            Some(_) => true,
        };
        if let (Some(before), true) = (before, goes_on) {
            return before;
        }
        // The kernel faults on a page that is mapped in the model.
        let mapped = match kernel {
            Some(Decision::Faulted { index }) => self.accessed.iter().find(|(number, page, _)| {
                let is_between = before.is_none_or(|before| *number > before)
                    && next.is_none_or(|next| *number < next);
                is_between && page == index
            }),
            _ => None,
        };
        mapped.map(|(number, ..)| *number).or(next).or(before).unwrap_or(0)
    }

    /// Describes access `number` of `job`.
    fn describe_access(&self, number: u64, job: &Job) -> Option<AccessDescription> {
        let (_, page, pages) = self.accessed.iter().find(|(own, ..)| *own == number)?;
        let thread = job.threads.first()?;
        let of_round: u64 = thread.steps.iter().map(|step| step.accesses()).sum();
        let mut left = number % of_round.max(1);
        let step = thread.steps.iter().position(|step| {
            let is_it = left < step.accesses();
            left = left.saturating_sub(step.accesses());
            is_it
        })?;
        Some(AccessDescription {
            page: page.0,
            pages: pages.0,
            step: step as u64 + 1,
            does: job.describe_step(&thread.steps[step]),
        })
    }
}

/// Adds the model's decisions and rule to the first difference in `found`, about `file` of `job`.
///
/// # Errors
/// Errors of the model.
pub(super) fn explain_difference(
    found: &mut LogComparison,
    job: &Job,
    file: usize,
    seen: ShownKinds,
) -> Result<(), Error> {
    let Some(first) = &mut found.first else { return Ok(()) };
    let mut log = FullLog {
        file,
        about: 0,
        access: 0,
        shown: empty_file_log(job, seen),
        places: Vec::new(),
        decisions: Vec::new(),
        accessed: Vec::new(),
    };
    trace_settled(job, found.io_bytes, &mut log)?;
    let (at, theirs) = found.at;
    let kernel = found.kernel.as_ref().and_then(|kernel| kernel.get(theirs));
    let access = log.diverging_access(at, kernel, seen);
    let place = log.places.get(at).copied();
    let is_of_access = |place: &usize| log.decisions[*place].0 == access;
    let model = place.filter(is_of_access).map(|place| log.decisions[place].1);
    let until = if model.is_some() { place.map_or(0, |place| place + 1) } else { usize::MAX };
    let own = log.decisions.iter().take(until).filter(|(number, _)| *number == access);
    let own: Vec<Decision> = own.map(|(_, decision)| *decision).collect();
    let before = if model.is_some() { &own[..own.len() - 1] } else { &own[..] };
    let accessed = log.describe_access(access, job);
    // Only decisions with tracepoints can be compared with the kernel's.
    let lines = log.shown.into_lines();
    let rest = if model.is_some() { &lines[at..] } else { &[] };
    // No tracepoint shows the cause of a readahead; the model knows it.
    let line = rest.first().map(|line| match (*line, model) {
        (Decision::Readahead { .. }, Some(own @ Decision::Readahead { .. })) => own,
        (Decision::Entered { found, .. }, Some(Decision::Entered { cause, .. })) => {
            Decision::Entered { cause, found }
        }
        (line, _) => line,
    });
    let theirs = found.kernel.as_ref().map_or(&[][..], |kernel| &kernel[theirs..]);
    let rule = Rule::diverging_rule(before, line.as_ref(), kernel, &job.rules, seen);
    let texts: Vec<String> = own.iter().filter_map(describe_decision).collect();
    first.access = Some(access);
    first.accessed = accessed;
    first.reason = texts[texts.len().saturating_sub(MAX_SHOWN_DECISIONS)..].to_vec();
    first.rule = Some(rule.rule_name());
    found.alike = Some(DifferenceKey {
        rule,
        model: line.as_ref().map(kind),
        kernel: kernel.map(kind),
        more: amount(rest).cmp(&amount(theirs)),
    });
    Ok(())
}

/// Name of a line's kind.
fn kind(line: &Decision) -> String {
    line.to_string().split(' ').next().unwrap_or_default().to_string()
}

/// Number of pages of the first of `lines`; a window may consist of folios of several orders.
fn amount(lines: &[Decision]) -> u64 {
    match lines.first() {
        Some(Decision::Added { .. }) => {
            let pages = lines.iter().map_while(|line| match line {
                Decision::Added { order, folios, .. } => Some(folios << order.0),
                _ => None,
            });
            pages.sum()
        }
        Some(Decision::Readahead { size, .. } | Decision::BasePages { size, .. }) => size.0,
        Some(Decision::MapPages { from, last, .. }) => last.0.saturating_sub(from.0),
        Some(Decision::Entered { found, .. }) => found.mmap_miss.into(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use filemap_job::JobFlags;

    use super::super::comparison::compare;
    use super::*;
    use crate::traced_job::model_logs;

    /// A window's line shows only its pages.
    #[test]
    fn window_rule_follows_its_cause() {
        let spec = "workload = 'sequential'\naccesses = 100\nfile_size = '8m'";
        let job = JobFlags::from_toml(spec).unwrap().validate(None).unwrap();
        let model = model_logs(&job, 1 << 20, ShownKinds::ALL).unwrap().remove(0).into_lines();
        let windows = model.iter().enumerate().filter_map(|(at, line)| match line {
            Decision::Readahead { .. } => Some(at),
            _ => None,
        });
        // The first window is read around a miss, the others begin at marks.
        let rules = windows.take(2).map(|at| {
            let mut kernel = model.clone();
            let Decision::Readahead { size, .. } = &mut kernel[at] else { unreachable!() };
            *size = PageCount(size.0 + 1);
            let mut found = compare(&model, &kernel, ShownKinds::ALL, &[]);
            found.io_bytes = 1 << 20;
            explain_difference(&mut found, &job, 0, ShownKinds::ALL).unwrap();
            found.first.unwrap().rule.unwrap().ours
        });
        let expected = ["readahead::sync::on_miss", "readahead::marked::next_window"];
        assert_eq!(rules.collect::<Vec<_>>(), expected);
    }
}
