//! One run of a job under a trace, as it comes: its decision log, with what left the cache.

mod reader;

use std::fs;
use std::path::Path;

use filemap_core::decision::Decision;
use filemap_job::Job;

use crate::Error;
use crate::cold::drop_file;
use crate::decisions::{Event, FileId, Seen};
use crate::engine::plan;
use crate::journal::Journal;
use crate::probe::Probe;
use crate::tracefs::{Trace, TraceFs};

/// Runs in which others evict pages of the file are repeated, up to so many in all.
const MAX_RUNS: u32 = 8;

/// What a trace shows of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The kernel's decisions, as far as tracepoints show them. They do not name the cause of a
    /// window: what no mark and no stream asked for is that of a fault in an executable or
    /// HUGEPAGE mapping where the job has one, else read-around. `mmap_miss` is that of
    /// [`Decision::Entered`]; elsewhere it is not shown, and 0.
    pub decisions: Vec<Decision>,
    /// Bytes fetched from storage on the child's behalf, where the kernel accounts that.
    pub read_bytes: Option<u64>,
    /// How long the accesses took, traced.
    pub elapsed_ns: u64,
    /// Pages that others evicted meanwhile: in the run with the fewest of them.
    pub evicted_by_others: u64,
    /// Runs that were thrown away for one with fewer.
    pub repeated: u32,
}

/// Runs `job` on the file at `path`, cold, under a trace with room for `events` events.
///
/// # Errors
/// Not root; no tracepoints; what no probe can do; a trace that is not complete.
pub fn traced(journal: &Journal, job: &Job, path: &Path, events: u64) -> Result<Traced, Error> {
    let tracefs = TraceFs::open(journal)?;
    let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
    let trace = Trace::create(&tracefs, journal, &[FileId::of(&metadata)], events)?;
    let mut best = once(&trace, job, path)?;
    for repeated in 1..MAX_RUNS {
        if best.evicted_by_others == 0 {
            break;
        }
        let next = once(&trace, job, path)?;
        if next.evicted_by_others < best.evicted_by_others {
            best = next;
        }
        best.repeated = repeated;
    }
    Ok(best)
}

fn once(trace: &Trace, job: &Job, path: &Path) -> Result<Traced, Error> {
    let plan = plan(job, path)?;
    let probe = Probe::start(&plan)?;
    let pid = probe.pid();
    if !trace.watch_faults(pid)? {
        return Err(Error::unavailable(
            "the tracepoint exceptions/page_fault_user",
            "use a kernel that has it (x86-64)",
        ));
    }
    drop_file(path)?;
    trace.start()?;
    let outcome = probe.run();
    let events = trace.stop()?;
    let outcome = outcome?;
    Ok(Traced {
        decisions: reader::decisions(&events, job, &plan, pid, outcome.address),
        read_bytes: outcome.phases.iter().map(|phase| phase.read_bytes).sum(),
        elapsed_ns: outcome.phases.iter().map(|phase| phase.elapsed_ns).sum(),
        evicted_by_others: events.iter().map(|event| evicted_by_others(event, pid)).sum(),
        repeated: 0,
    })
}

fn evicted_by_others(event: &Event, pid: u32) -> u64 {
    match event.seen {
        Seen::Removed { order, .. } if event.pid != pid => order.pages(),
        _ => 0,
    }
}
