//! Why readahead stopped, or why it did not, in one paragraph.

use filemap_core::readahead::miss::{CAP, THRESHOLD};
use filemap_core::units::PageCount;
use filemap_job::{Counters, Job, Run};

use super::counter::{Misses, Moves, Sight};
use super::origin::{Brought, Origin, PerOrigin};
use crate::record::MAX_ROWS;
use filemap_report::units::number;

/// The answer for a run of `job`, which has one file.
pub(super) fn of_one_file(misses: &Misses, brought: &PerOrigin<Brought>, job: &Job) -> String {
    match (misses.sight, misses.first_above) {
        _ if misses.moves.misses == 0 => uncounted(misses, brought, job),
        (Sight::Every, None) => went_on(misses),
        (Sight::Every, Some((done, before))) => stopped(misses, brought, done, &before),
        (Sight::Entered | Sight::Nothing, _) => traced(misses),
    }
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
fn went_on(misses: &Misses) -> String {
    let moves = &misses.moves;
    let mut text = format!(
        "Readahead did not stop: a miss reads a single page only when mmap_miss is above \
         {THRESHOLD}, and it never rose above {}. {} misses added {}.",
        misses.max,
        count(moves.misses),
        count(moves.misses - moves.misses_at_cap),
    );
    if moves.misses <= THRESHOLD.into() {
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

/// The counter rose above the threshold after `done` accesses, moved by what was `before`.
fn stopped(misses: &Misses, brought: &PerOrigin<Brought>, done: u64, before: &Moves) -> String {
    let moves = &misses.moves;
    let windows = [Origin::ReadAround, Origin::Executable].map(|by| brought.get(by).calls);
    let taken = before.taken_by_retries + before.taken_by_arounds + before.hits_taking;
    let mut text = format!(
        "Readahead stopped at access {} of {}, where mmap_miss rose above {THRESHOLD}: {} misses \
         had added to it, and hits had taken {}. In all {} of {} misses read their single page, \
         and {} read a window; the counter ended at {} after a maximum of {}.",
        count(done + 1),
        count(misses.course.accesses()),
        count(before.misses + 1),
        count(taken),
        count(moves.misses_above),
        count(moves.misses),
        windows.iter().sum::<u64>(),
        misses.last,
        misses.max,
    );
    if misses.rises > 1 {
        text += &format!(
            " Hits brought it back to {THRESHOLD} or below {} times, and readahead came back with \
             it.",
            count(misses.rises - u64::from(misses.last > THRESHOLD))
        );
    }
    if moves.misses_at_cap > 0 {
        let at_cap = count(moves.misses_at_cap);
        text += &format!(" {at_cap} misses found it at its cap of {CAP} and added nothing.");
    }
    text
}

/// What the log of a kernel tells of the counter.
fn traced(misses: &Misses) -> String {
    let moves = &misses.moves;
    let all = count(moves.misses);
    let what = match moves.misses_above {
        0 => format!("did not stop: each of {all} misses that look at mmap_miss read a window"),
        above => format!(
            "stopped for {} of {all} misses that look at mmap_miss, which read their single page",
            count(above)
        ),
    };
    let shown = match misses.sight {
        Sight::Nothing => "This kernel has no tracepoint that shows mmap_miss.".to_string(),
        _ => format!(
            "The tracepoints show mmap_miss only where a mark or a stream enters readahead, so \
             not what moved it; the highest value seen is {}.",
            misses.max
        ),
    };
    format!(
        "Readahead {what}. {} of them were followed by a fault-around of the same fault, its \
         retry. {shown}",
        count(moves.retries)
    )
}

fn count(value: u64) -> String {
    number(value as f64)
}
