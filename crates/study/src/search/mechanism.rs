//! The mechanism by which two runs of a job diverge: the first decision that differs.

use filemap_core::decision::Decision;
use filemap_job::{Job, ShownKind, ShownLog};
use filemap_model::{Profile, trace};

use crate::error::Error;

/// The mechanism by which a job's variants differ; `None` if their logs are equal.
///
/// # Errors
/// Errors of the model.
pub fn find_mechanism(jobs: [&Job; 2], profile: &Profile) -> Result<Option<String>, Error> {
    let mut logs = jobs.map(|job| ShownLog::default().under(&job.rules));
    for (job, log) in jobs.iter().zip(&mut logs) {
        trace(job, profile, log)?;
    }
    let [first, second] = logs.map(ShownLog::into_lines);
    if let Some(mechanism) = first_difference(&first, &second) {
        return Ok(Some(mechanism));
    }
    let mut all: [Vec<Decision>; 2] = Default::default();
    for (job, log) in jobs.iter().zip(&mut all) {
        trace(job, profile, log)?;
    }
    Ok(untraced_difference(&all[0], &all[1]))
}

/// Wording of the first difference of two logs; `None` if they are equal.
///
/// Windows and folios added to the cache are compared first, other decisions only if these are
/// equal: a different window changes later faults, and which of those comes first is incidental.
fn first_difference(first: &[Decision], second: &[Decision]) -> Option<String> {
    let reads = |log: &[Decision]| -> Vec<(Decision, &'static str)> {
        let with_entry = log.iter().scan("", |entered, line| {
            *entered = entry(line).unwrap_or(entered);
            Some((*line, *entered))
        });
        with_entry.filter(|(line, _)| read_range(line).is_some()).collect()
    };
    let (one, two) = (reads(first), reads(second));
    let same = one.iter().zip(&two).take_while(|(a, b)| a.0 == b.0).count();
    match (one.get(same), two.get(same)) {
        (Some((a, _)), Some((b, entry))) => {
            return Some(format!("{}{entry}", words(Some(a), Some(b))));
        }
        (Some((_, entry)), None) => return Some(format!("only the first reads more{entry}")),
        (None, Some((_, entry))) => return Some(format!("only the second reads more{entry}")),
        (None, None) => {}
    }
    let same = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let (a, b) = (first.get(same), second.get(same));
    (a.is_some() || b.is_some()).then(|| words(a, b))
}

/// Likewise for decisions without a tracepoint: locks, credits and mmap_miss.
fn untraced_difference(first: &[Decision], second: &[Decision]) -> Option<String> {
    let (a, b) = first.iter().zip(second).find(|(a, b)| a != b)?;
    let name = |decision: &Decision| {
        let line = serde_json::to_value(decision).ok()?;
        Some(line.get("decision")?.as_str()?.to_string())
    };
    let (a, b) = (name(a)?, name(b)?);
    let how = if a == b {
        format!("'{a}' with other values")
    } else {
        format!("'{b}' in place of '{a}'")
    };
    Some(format!("only what no tracepoint shows differs: {how}"))
}

/// The readahead entry point, if `line` is one.
fn entry(line: &Decision) -> Option<&'static str> {
    match line {
        Decision::Entered { cause, .. } if cause.is_async() => Some(", at a mark"),
        Decision::Entered { .. } => Some(", after a miss"),
        Decision::Faulted { .. } => Some(", in a fault"),
        _ => None,
    }
}

/// The range of `line` if it reads or adds pages: first page, end, and the marked page counted from
/// the end (0 for added folios).
fn read_range(line: &Decision) -> Option<(u64, u64, u64)> {
    match *line {
        Decision::Added { start, order, folios, .. } => {
            Some((start.0, start.0 + (folios << order.0), 0))
        }
        Decision::Readahead { start, size, async_size, .. }
        | Decision::BasePages { start, size, async_size } => {
            Some((start.0, start.0 + size.0, async_size.0))
        }
        _ => None,
    }
}

fn words(a: Option<&Decision>, b: Option<&Decision>) -> String {
    if let (Some(one), Some(two)) = (a.and_then(read_range), b.and_then(read_range)) {
        return window_difference(one, two);
    }
    match (a, b) {
        (
            Some(Decision::Entered { cause, found: one }),
            Some(Decision::Entered { cause: other, found: two }),
        ) if cause.is_async() == other.is_async() => {
            if one.mmap_miss == two.mmap_miss {
                "readahead finds another state of its stream".to_string()
            } else {
                let which = if two.mmap_miss < one.mmap_miss { "fewer" } else { "more" };
                format!("readahead finds {which} misses")
            }
        }
        (Some(Decision::MapPages { .. }), Some(Decision::MapPages { .. })) => {
            "fault-around maps another range".to_string()
        }
        (Some(Decision::Faulted { .. }), Some(Decision::Faulted { .. })) => {
            "another page faults next".to_string()
        }
        (one, two) => match (one.map(decision_kind), two.map(decision_kind)) {
            (one, two) if one == two => "the same kind of decision has other values".to_string(),
            (one, None) => format!("only the first {}", one.unwrap_or("goes on")),
            (None, two) => format!("only the second {}", two.unwrap_or("goes on")),
            (Some(one), Some(two)) => format!("the first {one}, the second {two}"),
        },
    }
}

/// Wording of how window `two` differs from `one`.
fn window_difference(one: (u64, u64, u64), two: (u64, u64, u64)) -> String {
    let mut parts = Vec::new();
    if one.0 != two.0 {
        parts.push(if two.0 > one.0 { "begins later" } else { "begins earlier" });
    }
    if one.1 != two.1 {
        parts.push(if two.1 > one.1 { "ends later" } else { "ends earlier" });
    }
    if parts.is_empty() {
        let mark = if one.2 == two.2 { "has other folios" } else { "has another mark" };
        parts.push(mark);
    }
    format!("what the second reads {}", parts.join(" and "))
}

/// Wording of a decision's kind.
fn decision_kind(line: &Decision) -> &'static str {
    match ShownKind::from_decision(line) {
        Some(ShownKind::Faulted) => "goes on with another fault",
        Some(ShownKind::LookedUp) => "looks a page up",
        Some(ShownKind::MapPages) => "maps around the fault",
        Some(ShownKind::Sync) => "enters readahead after a miss",
        Some(ShownKind::Async) => "enters readahead at a mark",
        Some(ShownKind::Window | ShownKind::BasePages) => "lays out a window",
        Some(ShownKind::Added) => "adds pages to the cache",
        None => "goes on",
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::Cause;
    use filemap_core::units::{Order, PageCount, PageIndex};

    use super::*;

    fn window(start: u64, size: u64, mark: u64) -> Decision {
        let start = PageIndex(start);
        Decision::Readahead {
            cause: Cause::ReadAround,
            index: start,
            order: Order(0),
            start,
            size: PageCount(size),
            async_size: PageCount(mark),
            mmap_miss: 0,
        }
    }

    #[test]
    fn mechanism_names_clipped_side() {
        let fault = Decision::Faulted { index: PageIndex(9) };
        let log = |second: Decision| vec![fault, second];
        let found = |second| first_difference(&log(window(0, 32, 8)), &log(second)).unwrap();
        assert_eq!(found(window(4, 28, 8)), "what the second reads begins later, in a fault");
        assert_eq!(found(window(0, 16, 8)), "what the second reads ends earlier, in a fault");
        let both = "what the second reads begins later and ends earlier, in a fault";
        assert_eq!(found(window(4, 8, 8)), both);
        assert_eq!(found(window(0, 32, 4)), "what the second reads has another mark, in a fault");
        let found = first_difference(&log(window(0, 32, 8)), &[fault]).unwrap();
        assert_eq!(found, "only the first reads more, in a fault");
        assert_eq!(first_difference(&[fault], &[fault]), None);
    }
}
