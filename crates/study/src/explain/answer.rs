//! Why readahead stopped, or why it did not, in one paragraph.

use filemap_core::readahead::miss::{CAP, THRESHOLD};
use filemap_core::series::Switch;
use filemap_core::units::PageCount;
use filemap_job::Job;

use super::Explanation;
use super::counter::{Moves, Sight};
use super::origin::{Brought, Origin};
use filemap_report::units::number;

/// The answer for a run of `job`.
pub(super) fn answer(explanation: &Explanation, job: &Job) -> String {
    let moves = &explanation.moves;
    let mut sentences = match (explanation.sight, explanation.first_above) {
        _ if moves.misses == 0 => vec![uncounted(explanation, job)],
        (Sight::Entered, None) if explanation.moves.misses_above == 0 => {
            seen_in_places(explanation)
        }
        (Sight::Entered, _) => vec![format!(
            "Readahead stopped for {} of {} misses, which read their single page. The tracepoints \
             show mmap_miss only where a mark or a stream enters readahead, so not what moved it; \
             the highest value seen is {}.",
            count(moves.misses_above),
            count(moves.misses),
            explanation.mmap_miss_max,
        )],
        (Sight::Nothing, _) => vec![unseen(explanation)],
        (Sight::Every, None) => went_on(explanation),
        (Sight::Every, Some((done, before))) => stopped(explanation, done, &before),
    };
    if moves.misses > 0 {
        sentences.extend(series(explanation, job));
    }
    sentences.join(" ")
}

/// No miss looked at the counter.
fn uncounted(explanation: &Explanation, job: &Job) -> String {
    let calls: u64 = explanation.brought.iter().map(|(_, brought)| brought.calls).sum();
    let off = explanation.misses_off;
    let windows = calls - explanation.brought.get(Origin::Single).calls;
    if off > 0 {
        let why = match job.machine.read_ahead {
            PageCount(0) => "the readahead size is 0",
            _ if job.is_governed() => "the governor advised the mapping RANDOM",
            _ => "the mapping is advised RANDOM",
        };
        let rest = match windows {
            0 => String::new(),
            windows if job.is_governed() => {
                format!(" The governor asked for {} windows behind these misses.", count(windows))
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
    let why = match job.mappings[0].mapping.advice {
        // The huge-page rule comes first, where it applies.
        advice if advice.is_huge() => "faults in a mapping advised HUGEPAGE",
        advice if advice.is_sequential() => "faults in a mapping advised SEQUENTIAL",
        _ if job.mappings[0].mapping.exec => "faults in an executable mapping with exec-bypass",
        _ => "read(2)",
    };
    format!(
        "Readahead did not stop, because nothing looked at mmap_miss: all {} windows were asked \
         for by {why} and by marked folios.",
        count(windows)
    )
}

/// The counter never rose above the threshold.
fn went_on(explanation: &Explanation) -> Vec<String> {
    let moves = &explanation.moves;
    let mut sentences = vec![format!(
        "Readahead did not stop: a miss reads a single page only when mmap_miss is above \
         {THRESHOLD}, and it never rose above {}. {} misses added {}.",
        explanation.mmap_miss_max,
        count(moves.misses),
        count(moves.misses - moves.misses_at_cap),
    )];
    if moves.misses <= THRESHOLD.into() {
        sentences.push("So few misses cannot stop it.".to_string());
    }
    let cancelled = if moves.retries_taking == moves.misses {
        "Each miss was cancelled by its own retry".to_string()
    } else {
        format!("{} of them were cancelled by their own retry", count(moves.retries_taking))
    };
    if moves.retries_taking > 0 {
        sentences.push(format!(
            "{cancelled}: {} misses, {} retry credits. The retry of a fault that missed finds the \
             window in the cache; its fault-around counts the pages there as hits ({} taken, {} \
             more lost because the counter stops at 0).",
            count(moves.misses),
            count(moves.retries_taking),
            count(moves.taken_by_retries),
            count(moves.lost_at_zero),
        ));
    }
    sentences.extend(other_credits(moves));
    sentences
}

fn stopped(explanation: &Explanation, done: u64, before: &Moves) -> Vec<String> {
    let moves = &explanation.moves;
    let windows: u64 = [Origin::ReadAround, Origin::Executable]
        .map(|origin| explanation.brought.get(origin).calls)
        .iter()
        .sum();
    let taken = before.taken_by_retries + before.taken_by_arounds + before.hits_taking;
    let mut sentences = vec![format!(
        "Readahead stopped at access {} of {}, where mmap_miss rose above {THRESHOLD}: {} misses \
         had added to it, and hits had taken {}.",
        count(done + 1),
        count(explanation.course.accesses()),
        count(before.misses + 1),
        count(taken),
    )];
    sentences.push(format!(
        "In all {} of {} misses read their single page, and {windows} read a window; the counter \
         ended at {} after a maximum of {}.",
        count(moves.misses_above),
        count(moves.misses),
        explanation.mmap_miss,
        explanation.mmap_miss_max,
    ));
    if explanation.rises > 1 {
        sentences.push(format!(
            "Hits brought it back to {THRESHOLD} or below {} times, and readahead came back with \
             it.",
            count(explanation.rises - u64::from(explanation.mmap_miss > THRESHOLD))
        ));
    }
    if moves.misses_at_cap > 0 {
        sentences.push(format!(
            "{} misses found it at its cap of {CAP} and added nothing.",
            count(moves.misses_at_cap)
        ));
    }
    if moves.taken_by_retries > 0 {
        sentences.push(format!(
            "{} retries of misses took {} from it.",
            count(moves.retries_taking),
            count(moves.taken_by_retries)
        ));
    } else {
        sentences.push("No miss was cancelled by its own retry.".to_string());
    }
    sentences.extend(other_credits(moves));
    sentences
}

fn other_credits(moves: &Moves) -> Option<String> {
    (moves.taken_by_arounds + moves.hits_taking > 0).then(|| {
        format!(
            "Faults on cached pages took {}: {} by fault-around, {} one by one.",
            count(moves.taken_by_arounds + moves.hits_taking),
            count(moves.taken_by_arounds),
            count(moves.hits_taking),
        )
    })
}

/// What tracepoints say of a counter that stayed low.
fn seen_in_places(explanation: &Explanation) -> Vec<String> {
    let moves = &explanation.moves;
    let Brought { calls: marks, .. } = *explanation.brought.get(Origin::Async);
    let mut sentences = vec![format!(
        "Readahead did not stop: each of {} misses that look at mmap_miss read a window. {} of \
         them were followed by a fault-around of the same fault, its retry, which counts the pages \
         that the window brought as hits.",
        count(moves.misses),
        count(moves.retries),
    )];
    sentences.push(format!(
        "The tracepoints show mmap_miss only where a mark or a stream enters readahead ({} windows \
         by marks): {} there at most.",
        count(marks),
        explanation.mmap_miss_max,
    ));
    sentences
}

/// What is told of a counter that no tracepoint shows.
fn unseen(explanation: &Explanation) -> String {
    let moves = &explanation.moves;
    let what = match moves.misses_above {
        0 => "Readahead did not stop: each of".to_string(),
        above => format!("Readahead stopped for {} of", count(above)),
    };
    let then = match moves.misses_above {
        0 => "read more than its own page",
        _ => "which read their single page",
    };
    format!(
        "{what} {} misses that look at mmap_miss {then}. This kernel has no tracepoint that shows \
         mmap_miss.",
        count(moves.misses)
    )
}

/// What the patch series in force have to do with it.
fn series(explanation: &Explanation, job: &Job) -> Option<String> {
    let has = |switch| job.rules.series.has(switch);
    let retries = explanation.moves.retries;
    let text = match (has(Switch::MissFaultAddress), has(Switch::MissNoRetry)) {
        (false, false) => return None,
        (true, true) => format!(
            "With miss-no-retry the {} retries of misses take nothing, and with miss-fault-address \
             another fault-around takes at most one, for its own page.",
            count(retries)
        ),
        (false, true) => {
            format!("With miss-no-retry the {} retries of misses take nothing.", count(retries))
        }
        (true, false) => "With miss-fault-address a fault-around takes at most one, for its own \
                          page; the retry of a miss still does, and that is all a miss adds."
            .to_string(),
    };
    Some(text)
}

fn count(value: u64) -> String {
    number(value as f64)
}
