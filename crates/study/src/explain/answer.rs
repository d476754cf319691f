//! The answer of `explain`: why readahead stopped or continued, in one paragraph.

use filemap_core::units::PageCount;
use filemap_job::Job;

use super::counter::{Counter, CounterVisibility};
use super::explainer::Explanation;
use super::origin::Origin;
use filemap_report::units::number;

/// Maximum number of open files with stopped readahead that are named.
const MAX_NAMED: usize = 3;

/// The answer for a run of `job`.
pub(super) fn explain_answer(explanation: &Explanation, job: &Job) -> String {
    let consulted = explanation.counters.iter().filter(|(_, counter)| counter.moves.misses > 0);
    let consulted: Vec<(usize, &Counter)> =
        consulted.map(|(open, counter)| (*open, counter)).collect();
    match consulted.as_slice() {
        [] => describe_without_counter(explanation, job),
        [(open, counter)] => {
            let subject = match job.opens.len() {
                1 => "Readahead".to_string(),
                _ => format!("Readahead of open file {}", job.opens[*open].name),
            };
            describe_counter(&subject, counter, explanation.history.accesses)
        }
        counters => describe_counters(counters, explanation, job),
    }
}

/// The answer if misses of one open file consulted its counter, in a run of `accesses` accesses.
fn describe_counter(subject: &str, counter: &Counter, accesses: u64) -> String {
    match counter.visibility {
        CounterVisibility::Every if counter.moves.misses_above == 0 => {
            describe_continued(subject, counter)
        }
        CounterVisibility::Every => describe_stopped(subject, counter, accesses),
        CounterVisibility::Entered | CounterVisibility::Hidden => describe_traced(subject, counter),
    }
}

/// The answer if misses of several open files consulted their counters.
fn describe_counters(
    counters: &[(usize, &Counter)],
    explanation: &Explanation,
    job: &Job,
) -> String {
    let mut stopped: Vec<_> =
        counters.iter().filter(|(_, counter)| counter.moves.misses_above > 0).collect();
    stopped.sort_by_key(|(_, counter)| std::cmp::Reverse(counter.moves.misses_above));
    let accesses = explanation.history.accesses;
    let mut sentences: Vec<String> = Vec::new();
    for (open, counter) in stopped.iter().take(MAX_NAMED) {
        let at = counter.first_above.map_or(0, |(access, _)| access);
        sentences.push(format!(
            "Readahead of open file {} stopped at access {} of {} (counted from 0){}: {} of {} \
             misses read their single page.",
            job.opens[*open].name,
            count(at),
            count(accesses),
            stop_reason(counter),
            count(counter.moves.misses_above),
            count(counter.moves.misses),
        ));
    }
    let threshold = counters[0].1.threshold;
    let went_on: Vec<_> =
        counters.iter().filter(|(_, counter)| counter.moves.misses_above == 0).collect();
    let highest = went_on.iter().map(|(_, counter)| counter.max).max().unwrap_or(0);
    let is_shown = counters[0].1.visibility == CounterVisibility::Every;
    let none_rose =
        if is_shown { format!(", and none rose above {highest}") } else { String::new() };
    match (stopped.len(), went_on.len()) {
        (0, _) => sentences.push(format!(
            "Readahead did not stop: a miss reads a single page only when the mmap_miss of its open \
             file is above {threshold}{none_rose}."
        )),
        (stopped, went_on) => {
            if stopped > MAX_NAMED {
                let more = count((stopped - MAX_NAMED) as u64);
                sentences.push(format!("It stopped for {more} more open files."));
            }
            if went_on > 0 {
                let others = count(went_on as u64);
                sentences.push(format!("It did not stop for {others} others."));
            }
        }
    }
    sentences.join(" ")
}

/// The answer if no miss consulted a counter.
fn describe_without_counter(explanation: &Explanation, job: &Job) -> String {
    let sources = explanation.sources();
    let calls: u64 = sources.iter().map(|(_, total)| total.calls).sum();
    let off: u64 = explanation.counters.values().map(|counter| counter.off).sum();
    let windows = calls - sources.get(Origin::Single).calls;
    if off > 0 {
        let why = match job.machine.read_ahead {
            PageCount(0) => "the readahead size is 0",
            _ if job.is_governed() => "the governor advised the mapping RANDOM",
            _ => "the mapping is advised RANDOM",
        };
        let rest = match windows {
            0 => String::new(),
            windows if job.is_governed() => {
                format!(" The governor asked for {} windows after these misses.", count(windows))
            }
            windows => format!(" {} windows were read all the same.", count(windows)),
        };
        return format!(
            "Readahead was off, because {why}: {} misses read their single page each, and none of \
             them looked at mmap_miss.{rest}",
            count(off)
        );
    }
    if calls == 0 {
        return "Nothing missed the page cache, so there was nothing to read ahead.".to_string();
    }
    // The huge-page rule takes precedence.
    let reasons = [
        (Origin::HugePage, "faults in a mapping advised HUGEPAGE"),
        (Origin::Executable, "faults in an executable mapping with exec-bypass"),
        (Origin::WillNeed, "advice WILLNEED"),
    ];
    let is_read = |origin| sources.get(origin).calls > 0;
    let sequential = job.mappings.iter().any(|mapping| mapping.mapping.advice.is_sequential());
    let why = match reasons.into_iter().find(|(origin, _)| is_read(*origin)) {
        Some((_, reason)) => reason,
        None if sequential => "faults in a mapping advised SEQUENTIAL",
        None => "read(2)",
    };
    format!(
        "Readahead did not stop, because nothing looked at mmap_miss: all {} windows were asked \
         for by {why} and by marked folios.",
        count(windows)
    )
}

/// The answer if no miss read a single page because of the counter.
fn describe_continued(subject: &str, counter: &Counter) -> String {
    let (moves, threshold) = (&counter.moves, counter.threshold);
    let mut text = format!(
        "{subject} did not stop: a miss reads a single page only when mmap_miss is above \
         {threshold}, and it never rose above {}. {} misses added {}.",
        counter.max,
        count(moves.misses),
        count(moves.misses - moves.misses_at_cap),
    );
    if moves.misses <= threshold.into() {
        text += " So few misses cannot stop it.";
    }
    if moves.retries_taking > 0 {
        let which = if moves.retries_taking == moves.misses {
            "Each miss was".to_string()
        } else {
            format!("{} of them were", count(moves.retries_taking))
        };
        text += &format!(
            " {which} cancelled by the miss's own retry: that finds the window in the cache, and \
             its fault-around counts the pages there as hits ({} taken, {} more lost because the \
             counter stops at 0).",
            count(moves.taken_by_retries),
            count(moves.lost_at_zero),
        );
    }
    text
}

/// Why the first miss read a single page: `, where mmap_miss rose above 100`.
fn stop_reason(counter: &Counter) -> String {
    if counter.rises > 0 {
        format!(", where mmap_miss rose above {}", counter.threshold)
    } else if counter.visibility == CounterVisibility::Every {
        " by a rule that does not count misses".to_string()
    } else {
        String::new()
    }
}

/// The answer if misses read single pages because of the counter, in a run of `accesses` accesses.
fn describe_stopped(subject: &str, counter: &Counter, accesses: u64) -> String {
    let moves = &counter.moves;
    let (access, before) = counter.first_above.unwrap_or((0, *moves));
    let mut text = format!(
        "{subject} stopped at access {} of {} (counted from 0)",
        count(access),
        count(accesses)
    );
    text += &stop_reason(counter);
    if counter.rises > 0 {
        text += &format!(
            ": {} misses had added to it, and hits had taken {}",
            count(before.misses - before.misses_at_cap),
            count(before.decrements()),
        );
    }
    text += &format!(
        ". In all {} of {} misses read their single page, and {} read a window",
        count(moves.misses_above),
        count(moves.misses),
        count(moves.misses - moves.misses_above),
    );
    if counter.rises > 0 {
        let Counter { last, max, .. } = counter;
        text += &format!("; the counter ended at {last} after a maximum of {max}");
    }
    text += ".";
    if counter.rises > 1 {
        text += &format!(
            " Hits brought it back to {} or below {} times, and readahead resumed.",
            counter.threshold,
            count(counter.rises - u64::from(counter.last > counter.threshold))
        );
    }
    if moves.misses_at_cap > 0 {
        let at_cap = count(moves.misses_at_cap);
        text +=
            &format!(" {at_cap} misses found it at its cap of {} and added nothing.", counter.max);
    }
    text
}

/// The answer from a kernel's log, which does not show every change of the counter.
fn describe_traced(subject: &str, counter: &Counter) -> String {
    let moves = &counter.moves;
    let all = count(moves.misses);
    let outcome = match (moves.misses_above, counter.first_above) {
        (above, Some((access, _))) => format!(
            "stopped at access {} (counted from 0): {} of {all} misses that look at mmap_miss read \
             their single page",
            count(access),
            count(above)
        ),
        _ => format!("did not stop: each of {all} misses that look at mmap_miss read a window"),
    };
    let shown = match counter.visibility {
        CounterVisibility::Hidden => {
            "This kernel has no tracepoint that shows mmap_miss.".to_string()
        }
        _ => format!(
            "The tracepoints show mmap_miss only where a mark or a stream enters readahead, so \
             not what moved it; the highest value seen is {}.",
            counter.max
        ),
    };
    format!(
        "{subject} {outcome}. {} of them were followed by a fault-around of the same fault, its \
         retry. {shown}",
        count(moves.retries)
    )
}

fn count(value: u64) -> String {
    number(value as f64)
}
