//! Why readahead stopped, or why it did not, in one paragraph.

use filemap_core::readahead::miss::{CAP, THRESHOLD};
use filemap_core::series::Switch;
use filemap_core::units::PageCount;
use filemap_job::{Counters, Job, Run};

use super::counter::{Misses, Moves, Sight};
use super::origin::{Brought, Origin, PerOrigin};
use crate::record::MAX_ROWS;
use filemap_report::units::number;

/// The answer for a run of `job`, which has one file.
pub(super) fn of_one_file(misses: &Misses, brought: &PerOrigin<Brought>, job: &Job) -> String {
    let moves = &misses.moves;
    let mut sentences = match (misses.sight, misses.first_above) {
        _ if moves.misses == 0 => vec![uncounted(misses, brought, job)],
        (Sight::Entered, None) if misses.moves.misses_above == 0 => seen_in_places(misses, brought),
        (Sight::Entered, _) => vec![format!(
            "Readahead stopped for {} of {} misses, which read their single page. The tracepoints \
             show mmap_miss only where a mark or a stream enters readahead, so not what moved it; \
             the highest value seen is {}.",
            count(moves.misses_above),
            count(moves.misses),
            misses.max,
        )],
        (Sight::Nothing, _) => vec![unseen(misses)],
        (Sight::Every, None) => went_on(misses),
        (Sight::Every, Some((done, before))) => stopped(misses, brought, done, &before),
    };
    if moves.misses > 0 {
        sentences.extend(series(misses, job));
    }
    sentences.join(" ")
}

/// The answer for a `run` of `job`, which has tables.
pub(super) fn of_tables(job: &Job, run: &Run) -> String {
    let highest = |counters: &Counters| counters.mmap_miss_max.unwrap_or(0);
    // One table can stand for several mappings, of which the record has the sum.
    let named = run.mappings.iter().zip(&job.spec.mapping);
    let stopped = named.filter(|(own, _)| highest(&own.counters) > THRESHOLD.into());
    let texts = stopped.map(|(own, of)| {
        format!(
            "Readahead of open file {} stopped through mapping {}: mmap_miss rose to {}, and above \
             {THRESHOLD} a miss reads a single page.",
            of.open,
            own.name,
            highest(&own.counters)
        )
    });
    let texts: Vec<String> = texts.take(MAX_ROWS).collect();
    if !texts.is_empty() {
        return texts.join(" ");
    }
    format!(
        "Readahead did not stop: a miss reads a single page only when the mmap_miss of its open file \
         is above {THRESHOLD}, and none rose above {}.",
        highest(&run.counters)
    )
}

/// No miss looked at the counter.
fn uncounted(misses: &Misses, brought: &PerOrigin<Brought>, job: &Job) -> String {
    let calls: u64 = brought.iter().map(|(_, brought)| brought.calls).sum();
    let off = misses.off;
    let windows = calls - brought.get(Origin::Single).calls;
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
fn went_on(misses: &Misses) -> Vec<String> {
    let moves = &misses.moves;
    let mut sentences = vec![format!(
        "Readahead did not stop: a miss reads a single page only when mmap_miss is above \
         {THRESHOLD}, and it never rose above {}. {} misses added {}.",
        misses.max,
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

fn stopped(
    misses: &Misses,
    brought: &PerOrigin<Brought>,
    done: u64,
    before: &Moves,
) -> Vec<String> {
    let moves = &misses.moves;
    let windows: u64 = [Origin::ReadAround, Origin::Executable]
        .map(|origin| brought.get(origin).calls)
        .iter()
        .sum();
    let taken = before.taken_by_retries + before.taken_by_arounds + before.hits_taking;
    let mut sentences = vec![format!(
        "Readahead stopped at access {} of {}, where mmap_miss rose above {THRESHOLD}: {} misses \
         had added to it, and hits had taken {}.",
        count(done + 1),
        count(misses.course.accesses()),
        count(before.misses + 1),
        count(taken),
    )];
    sentences.push(format!(
        "In all {} of {} misses read their single page, and {windows} read a window; the counter \
         ended at {} after a maximum of {}.",
        count(moves.misses_above),
        count(moves.misses),
        misses.last,
        misses.max,
    ));
    if misses.rises > 1 {
        sentences.push(format!(
            "Hits brought it back to {THRESHOLD} or below {} times, and readahead came back with \
             it.",
            count(misses.rises - u64::from(misses.last > THRESHOLD))
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
fn seen_in_places(misses: &Misses, brought: &PerOrigin<Brought>) -> Vec<String> {
    let moves = &misses.moves;
    let Brought { calls: marks, .. } = *brought.get(Origin::Async);
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
        misses.max,
    ));
    sentences
}

/// What is told of a counter that no tracepoint shows.
fn unseen(misses: &Misses) -> String {
    let moves = &misses.moves;
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
fn series(misses: &Misses, job: &Job) -> Option<String> {
    let has = |switch| job.rules.series.has(switch);
    let retries = misses.moves.retries;
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
