//! Runs a job under a trace, and reads what the kernel decided.

use std::fs::File;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Instant;

use filemap_core::decision::Decision;
use rustix::time::{ClockId, clock_gettime};

use super::decisions::{Child, decisions};
use super::event::{Event, Inode, Tracepoint};
use super::subject::{Scratches, Subject};
use super::tracefs::{Trace, TraceFs};
use crate::Error;
use crate::cold::drop_file;
use crate::engine::Runnable;
use crate::interference::{pageout_interval, pause_before};
use crate::journal::Journal;
use crate::probe::{Ended, PhaseCost, Probe, Process};
use crate::residency::CacheStat;

/// Runs that are thrown away before a job is given up because others take its pages.
const MAX_DISTURBED: u32 = 12;

/// Where others may take pages: runs in which they do are repeated, up to so many in all.
const MAX_RUNS: u32 = 8;

/// Events for which there is room beyond twice as many as are expected.
const SPARE_EVENTS: u64 = 1 << 16;

/// Runs jobs under a trace, on scratch filesystems of its own where they name no file.
#[derive(Debug)]
pub struct Observer {
    // Undone from the first to the last.
    trace: Option<(Trace, Vec<Inode>, u64)>,
    tracefs: TraceFs,
    scratches: Scratches,
    journal: Journal,
}

/// What was observed of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The kernel's decisions about all files of the job, as far as tracepoints show them. They do
    /// not name the cause of a window: what no mark and no stream asked for is that of a fault in
    /// an executable or HUGEPAGE mapping where it is in one, else read-around. `mmap_miss` is that
    /// of [`Decision::Entered`]; elsewhere it is not shown, and 0. A look-up missed where something
    /// was read for it.
    pub decisions: Vec<Decision>,
    /// Bytes fetched from storage on the child's behalf, where the kernel accounts that.
    pub read_bytes: Option<u64>,
    /// How long the accesses took, traced.
    pub elapsed_ns: u64,
    /// Pages of the files that others evicted meanwhile.
    pub evicted_by_others: u64,
    /// Runs that were thrown away for this one because others took or added pages.
    pub repeated: u32,
}

impl Observer {
    /// An observer that writes down in `journal` what it changes.
    ///
    /// # Errors
    /// Not root; no tracefs; a kernel without the tracepoints.
    pub fn open(journal: &Journal) -> Result<Self, Error> {
        let tracefs = TraceFs::open(journal)?;
        if let Some(event) = tracefs.missing_events().first() {
            return Err(Error::unavailable(
                format!("the tracepoint {event}"),
                "use a kernel that has it (6.18)",
            ));
        }
        let scratches = Scratches::new(journal);
        Ok(Observer { trace: None, tracefs, scratches, journal: journal.clone() })
    }

    /// Makes the files of `job`: its own, or some on a scratch filesystem of its kind and readahead
    /// size; of a program whose segments are mapped a copy there.
    ///
    /// # Errors
    /// What this kernel cannot run; what no scratch filesystem can be; no loop device; no space.
    pub fn subject<W: Runnable>(&mut self, job: &W) -> Result<Subject, Error> {
        self.scratches.subject(&job.needs())
    }

    /// Runs `job` on cold files as it comes. A run in which others evict pages is repeated; of
    /// several, this is the one with the fewest of them. `expected` is about how many events there
    /// will be.
    ///
    /// # Errors
    /// What no probe can do; a trace that is not complete.
    pub fn observe<W: Runnable<Process = Process>>(
        &mut self,
        job: &W,
        subject: &Subject,
        expected: u64,
    ) -> Result<Observed, Error> {
        let (process, inodes) = (job.process(&subject.paths)?, subject.inodes()?);
        let run = |observer: &mut Observer| {
            let recording = observer.record(&process, &inodes, expected);
            recording.map(|it| it.observed(job, &process)).map_err(|error| job.named(error))
        };
        let mut best = run(self)?;
        for repeated in 1..MAX_RUNS {
            if best.evicted_by_others == 0 {
                break;
            }
            let next = run(self)?;
            if next.evicted_by_others < best.evicted_by_others {
                best = next;
            }
            best.repeated = repeated;
        }
        Ok(best)
    }

    /// Runs `job` on cold files, waiting after each access until nothing is being read, as often
    /// as others disturb it; where they are known to come at intervals, in between. `expected` is
    /// about how many events there will be.
    ///
    /// # Errors
    /// What no probe can do; a trace that is not complete; [`Error::Disturbed`] on a machine that
    /// does not leave the files' pages alone.
    pub fn observe_settled<W: Runnable<Process = Process>>(
        &mut self,
        job: &W,
        subject: &Subject,
        expected: u64,
    ) -> Result<Observed, Error> {
        let process = Process { settle: true, ..job.process(&subject.paths)? };
        let inodes = subject.inodes()?;
        for repeated in 0..MAX_DISTURBED {
            let start = Instant::now();
            let recording = self.record(&process, &inodes, expected);
            let recording = recording.map_err(|error| job.named(error))?;
            let Some(at_ns) = recording.disturbed_at_ns() else {
                return Ok(Observed { repeated, ..recording.observed(job, &process) });
            };
            if let Some(interval) = pageout_interval() {
                sleep(pause_before(start.elapsed(), at_ns, now_ns(), interval));
            }
        }
        Err(Error::Disturbed { path: subject.path().to_owned(), runs: MAX_DISTURBED })
    }

    /// Runs `process` once on its files, cold, under a trace.
    fn record(
        &mut self,
        process: &Process,
        inodes: &[Inode],
        expected: u64,
    ) -> Result<Recording, Error> {
        let probe = Probe::start_process(process)?;
        let pid = probe.pid();
        let trace = self.trace(inodes, expected)?;
        if !trace.watch_faults(pid)? {
            return Err(Error::unavailable(
                "the tracepoint exceptions/page_fault_user",
                "use a kernel that has it (x86-64)",
            ));
        }
        let open = |path: &PathBuf| File::open(path).map_err(|e| Error::os("open", path, e));
        let opened = process.files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        process.files.iter().try_for_each(|path| drop_file(path))?;
        trace.start()?;
        // From here on the events show what others do.
        let mut cached = 0;
        for file in &opened {
            cached += CacheStat::of(file, ..)?.cached;
        }
        let warm_at_ns = (cached > 0).then(now_ns);
        let addresses = probe.addresses().to_vec();
        let ended = probe.run_process();
        let events = trace.stop()?;
        Ok(Recording { pid, addresses, warm_at_ns, events, ended: ended? })
    }

    /// A trace of `inodes` with room for so many events and more; the last one, if it is that.
    fn trace(&mut self, inodes: &[Inode], expected: u64) -> Result<&Trace, Error> {
        let events = expected.saturating_mul(2).saturating_add(SPARE_EVENTS);
        let suits =
            |(_, known, room): &(Trace, Vec<Inode>, u64)| *known == inodes && *room >= events;
        if !self.trace.as_ref().is_some_and(suits) {
            self.trace = None;
            let trace = Trace::create(&self.tracefs, &self.journal, inodes, events)?;
            self.trace = Some((trace, inodes.to_owned(), events));
        }
        Ok(&self.trace.as_ref().expect("there is one now").0)
    }
}

/// What the trace recorded of one run, and how that ended.
struct Recording {
    pid: u32,
    /// Where the child mapped the files.
    addresses: Vec<u64>,
    /// When the run began, if others had brought in pages again.
    warm_at_ns: Option<u64>,
    events: Vec<Event>,
    ended: Ended,
}

impl Recording {
    /// When somebody else last changed what the child met, if anybody did.
    fn disturbed_at_ns(&self) -> Option<u64> {
        let is_of_others = |event: &&Event| {
            let moves =
                matches!(event.tracepoint, Tracepoint::Removed { .. } | Tracepoint::Added { .. });
            moves && event.pid != self.pid
        };
        let of_others = self.events.iter().rfind(is_of_others);
        of_others.map(|event| event.at_ns).or(self.warm_at_ns)
    }

    /// What it shows of `job`, which ran as `process`.
    fn observed<W: Runnable<Process = Process>>(&self, job: &W, process: &Process) -> Observed {
        let needs = job.needs();
        let Recording { pid, addresses, events, ended, .. } = self;
        let (rules, pmd_order) = (&needs.rules, needs.machine.arch.pmd_order());
        let child = Child { pid: *pid, process, addresses, rules, pmd_order };
        let steps = || ended.threads.iter().flat_map(|thread| &thread.steps);
        Observed {
            decisions: decisions(events, &child),
            read_bytes: steps().map(|step: &PhaseCost| step.read_bytes).sum(),
            elapsed_ns: steps().map(|step| step.elapsed_ns).sum(),
            evicted_by_others: events.iter().map(|event| self.evicted_by_others(event)).sum(),
            repeated: 0,
        }
    }

    fn evicted_by_others(&self, event: &Event) -> u64 {
        match event.tracepoint {
            Tracepoint::Removed { order, .. } if event.pid != self.pid => order.pages(),
            _ => 0,
        }
    }
}

/// Now by the clock of the events.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
