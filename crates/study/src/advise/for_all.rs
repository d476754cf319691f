//! The part of the answer that is a setting of every program on the device or the machine.

use filemap_report::units::{number, time};

use super::answer::Answer;
use super::record::AdviceTrial;
use super::words::{TIES_WITH_NOW, change_text, together};
use super::{AdviceChange, AdviseRecord};

/// The trials that are worth a setting of every program: the readahead size, and the best of all if
/// it has such a setting. None of them is worth a tie with doing nothing.
pub fn named(advice: &AdviseRecord) -> Vec<usize> {
    let size = advice.read_ahead_answer();
    let size = size.best.filter(|_| !size.ties_with_now);
    let best = advice.answer.best.filter(|_| !advice.answer.ties_with_now);
    let best = best.filter(|best| advice.tried[*best].is_for_all());
    let mut named: Vec<usize> = size.into_iter().chain(best).collect();
    named.dedup();
    named
}

/// A line for the readahead size of the device, and one for another setting of every program if the
/// best change has one.
pub fn lines(advice: &AdviseRecord) -> Vec<String> {
    let Answer { best: size, ties_with_now, .. } = advice.read_ahead_answer();
    let size = size.map(|at| &advice.tried[at]);
    let best = named(advice).last().map(|at| &advice.tried[*at]);
    let is_with_size = |trial: &&AdviceTrial| {
        trial.does.len() > 1 && size.is_some_and(|size| trial.does.contains(&size.does[0]))
    };
    let pair = best.filter(is_with_size);
    let other = best.filter(|best| pair.is_none() && size.is_none_or(|size| size != *best));
    let mut lines = Vec::new();
    lines.extend(size.map(|size| read_ahead_line(advice, (size, ties_with_now), pair)));
    lines.extend(other.map(|other| match &other.does[..] {
        [_] => format!(
            "{}, a setting of every program on the machine: {} pages, {}.",
            other.label(),
            number(other.outcome.data_pages_read as f64),
            change_text(&other.outcome, &advice.now)
        ),
        _ => format!(
            "{} The size is a setting of every program on the machine.",
            together(advice, other)
        ),
    }));
    lines
}

/// The line for the readahead size of trial `size`, which may tie with doing nothing, and for
/// `pair`, which has another change besides.
fn read_ahead_line(
    advice: &AdviseRecord,
    (size, ties_with_now): (&AdviceTrial, bool),
    pair: Option<&AdviceTrial>,
) -> String {
    let devices: Vec<&str> =
        advice.read_ahead_devices.iter().map(|device| device.device.as_str()).collect();
    let files: usize = advice.read_ahead_devices.iter().map(|device| device.files).sum();
    let of = match devices[..] {
        [] => "its device".to_string(),
        _ => devices.join(" and "),
    };
    let on = if files > 1 { format!(" for the {files} files on it") } else { String::new() };
    let AdviceChange::ReadAhead(kb) = &size.does[0] else { return String::new() };
    let mut line = format!(
        "The readahead size of {of}, a setting of every program there, is best as {kb} KiB{on} ({} \
         KiB now): {} pages, {}.",
        advice.read_ahead_kb,
        number(size.outcome.data_pages_read as f64),
        change_text(&size.outcome, &advice.now)
    );
    if ties_with_now {
        line += TIES_WITH_NOW;
    }
    if let Some(pair) = pair {
        let others = pair.does.iter().filter(|change| **change != size.does[0]);
        let others: Vec<String> = others.map(AdviceChange::label).collect();
        line += &format!(
            " Together with {}: {} pages, {}.",
            others.join(" and "),
            number(pair.outcome.data_pages_read as f64),
            time(pair.outcome.elapsed_ns as f64)
        );
    }
    line
}
