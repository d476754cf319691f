//! One run of a process: on cold files, within limits, with the settings of its job.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_job::Run;

use super::file::JobFiles;
use super::limits::MemoryLimits;
use super::needs;
use super::needs::JobNeeds;
use super::settings::MachineSettings;
use crate::Error;
use crate::cgroup::MemoryCgroup;
use crate::cold_cache::drop_open_file;
use crate::journal::Journal;
use crate::probe::{Probe, ProbeProcess, ProbeResult};
use crate::procstat::VmStat;
use crate::residency::CacheStat;
use crate::trace::{TraceFs, TracedWaits, WaitTrace};

/// Maximum number of repeats of a disturbed run.
const MAX_REPEATS: u32 = 6;

/// No run is repeated after this time: long runs would be disturbed every time.
const REPEAT_TIMEOUT: Duration = Duration::from_secs(60);

/// The files, limits and settings of a job; all are removed or restored on drop.
#[derive(Debug)]
pub struct RunSetup {
    journal: Journal,
    limits: MemoryLimits,
    pub(super) files: JobFiles,
    _settings: MachineSettings,
    /// Whether all files fit into memory.
    pub(super) fits: bool,
    /// Discarded runs in which other processes evicted pages of the files.
    pub(super) disturbed: u64,
    /// Disturbed runs that were kept.
    pub(super) kept_disturbed: u64,
}

/// One run, and whether it was disturbed.
#[derive(Debug)]
pub(super) struct RunAttempt {
    /// The run.
    pub(super) run: Run,
    /// Whether other processes evicted pages of the files.
    pub(super) is_disturbed: bool,
    /// Accesses begun at each flush of the cgroup statistics, if known and relevant for eviction.
    pub(super) flushes: Option<Vec<u64>>,
}

/// Results of one run.
#[derive(Debug)]
pub(super) struct ProcessRun {
    pub(super) ended: ProbeResult,
    /// Changes of `/proc/vmstat` during the run.
    pub(super) vmstat: Option<VmStat>,
    /// `pgmajfault` of the cgroup, if any.
    pub(super) major_events: Option<u64>,
    /// Waits of its threads, if there are several and they were recorded.
    pub(super) traced: Option<TracedWaits>,
    /// See [`RunAttempt::flushes`].
    pub(super) flushes: Option<Vec<u64>>,
    /// The pages of each file that were cached at the beginning; empty for a cold start.
    pub(super) start: Vec<Option<CacheStat>>,
}

impl RunSetup {
    /// Prepares what `needs` lists, with temporary files in `directory`.
    pub(super) fn prepare(
        needs: &JobNeeds,
        journal: &Journal,
        directory: &Path,
        may_change_settings: bool,
    ) -> Result<Self, Error> {
        needs::check_machine(needs)?;
        let limits = MemoryLimits::from_machine(&needs.machine);
        limits.check(needs)?;
        let settings = MachineSettings::apply(&needs.machine, journal, may_change_settings)?;
        let files = JobFiles::create(needs, journal, directory)?;
        let fits = limits.fits(needs);
        let (disturbed, unsettled) = (0, 0);
        let journal = journal.clone();
        Ok(RunSetup {
            journal,
            limits,
            files,
            _settings: settings,
            fits,
            disturbed,
            kept_disturbed: unsettled,
        })
    }

    /// Repeats `run` until it is undisturbed, up to a limit.
    pub(super) fn repeat_while_disturbed(
        &mut self,
        mut run: impl FnMut(&RunSetup) -> Result<RunAttempt, Error>,
    ) -> Result<RunAttempt, Error> {
        let start = Instant::now();
        for attempt in 0.. {
            let done = run(self)?;
            if !done.is_disturbed {
                return Ok(done);
            }
            if attempt == MAX_REPEATS || start.elapsed() > REPEAT_TIMEOUT {
                self.kept_disturbed += 1;
                return Ok(done);
            }
            self.disturbed += 1;
        }
        unreachable!("the loop ends after a few repeats")
    }

    /// Runs `process` once on cold files.
    pub(super) fn run(&self, process: &ProbeProcess) -> Result<ProcessRun, Error> {
        self.check_sizes()?;
        let reclaims = self.has_cgroup() && !self.fits;
        let mut probe =
            if reclaims { Probe::start_at_flush(process)? } else { Probe::start(process)? };
        let cgroup = self.make_cold(&probe.pids())?;
        if let (Some(cgroup), Some(pid)) = (&cgroup, probe.governor_pid()) {
            // Pages it reads are charged to its own cgroup.
            cgroup.add(pid)?;
        }
        let oom = |error| match &cgroup {
            Some(cgroup) if cgroup.has_killed() => self.limits.oom_error().unwrap_or(error),
            _ => error,
        };
        let mut start = Vec::new();
        if process.starts_warm() {
            probe.read_cached().map_err(oom)?;
            start = self.stats()?;
        }
        let begins_with_flush = match cgroup.as_ref().filter(|_| reclaims) {
            Some(cgroup) => await_flush(&mut probe, cgroup)?,
            None => false,
        };
        let tracer = match process.threads.len() {
            0 | 1 => None,
            _ => WaitTracer::open(self.journal(), &probe.pids()),
        };
        tracer.as_ref().map(WaitTracer::start).transpose()?;
        let before = VmStat::now().ok();
        let ended = probe.run().map_err(oom)?;
        let vmstat = VmStat::now().ok().zip(before).map(|(after, before)| after.since(&before));
        let traced = tracer.map(|tracer| tracer.finish(ended.ended_ns)).transpose()?;
        // Filling the page cache at the beginning causes no faults.
        let major_events = cgroup.as_ref().and_then(major_events);
        let are_known = begins_with_flush && process.is_alone();
        let flushes = are_known.then(|| ended.begun_at_flushes.clone());
        Ok(ProcessRun { ended, vmstat, major_events, traced, flushes, start })
    }

    /// Makes the files cold, and moves the processes `pids` into a new cgroup if they have limits.
    pub(super) fn make_cold(&self, pids: &[u32]) -> Result<Option<MemoryCgroup>, Error> {
        self.files.files.iter().try_for_each(|file| drop_open_file(&file.file, &file.name))?;
        let cgroup = self.limits.cgroup(&self.journal)?;
        if let Some(cgroup) = &cgroup {
            pids.iter().try_for_each(|&pid| cgroup.add(pid))?;
        }
        Ok(cgroup)
    }

    /// The journal of changes.
    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// `cachestat` of each file, if permitted. Fails if a file's size changed.
    pub(super) fn stats(&self) -> Result<Vec<Option<CacheStat>>, Error> {
        let stats = self.files.files.iter().map(|file| CacheStat::query(&file.file, ..).ok());
        let stats = stats.collect();
        self.check_sizes()?;
        Ok(stats)
    }

    /// Whether each run has its own memory cgroup.
    pub(super) fn has_cgroup(&self) -> bool {
        self.limits.is_some()
    }

    fn check_sizes(&self) -> Result<(), Error> {
        self.files.files.iter().try_for_each(super::file::JobFile::check_size)
    }
}

/// The event counts each miss. The process's own counter counts faults: a fault whose page is
/// evicted before it is mapped misses again, but counts once.
fn major_events(cgroup: &MemoryCgroup) -> Option<u64> {
    u64::try_from(cgroup.stat().ok()?.get("pgmajfault")?).ok()
}

/// The kernel flushes every 2 s, or a little later under load. The wait is limited to this.
pub(super) const MAX_FLUSH_WAIT: Duration = Duration::from_millis(3000);

/// Interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Waits for a flush of the statistics of `cgroup`, of which `probe` is a member. Reclaim uses the
/// list sizes of the last flush, so evictions would otherwise depend on when the run begins.
///
/// Reading the statistics flushes them only after many changes. A single page of the child is below
/// that threshold, so it becomes visible at a periodic flush. A kernel that flushes at each read
/// shows it immediately.
///
/// Returns whether a flush was seen. If not, the time of the next one is unknown.
///
/// # Errors
/// The statistics cannot be read.
pub(super) fn await_flush(probe: &mut Probe, cgroup: &MemoryCgroup) -> Result<bool, Error> {
    let before = cgroup.stat()?;
    probe.hold_own_page();
    let start = Instant::now();
    while start.elapsed() < MAX_FLUSH_WAIT {
        if cgroup.stat()? != before {
            return Ok(true);
        }
        sleep(POLL_INTERVAL);
    }
    Ok(false)
}

/// Records the waits of threads.
pub(super) struct WaitTracer {
    // Fields drop in order: the trace before the tracefs mount that it needs.
    trace: WaitTrace,
    _tracefs: TraceFs,
}

impl WaitTracer {
    /// Traces the current threads of the processes `pids`; `None` without permission or
    /// tracepoints.
    pub(super) fn open(journal: &Journal, pids: &[u32]) -> Option<WaitTracer> {
        let tracefs = TraceFs::open(journal).ok()?;
        let trace = WaitTrace::create(&tracefs, journal, pids).ok()?;
        Some(WaitTracer { trace, _tracefs: tracefs })
    }

    /// Starts recording.
    pub(super) fn start(&self) -> Result<(), Error> {
        self.trace.start()
    }

    /// Stops, and returns what was recorded until `ended_ns` of `CLOCK_MONOTONIC`: exiting threads
    /// also wait for locks.
    pub(super) fn finish(&self, ended_ns: u64) -> Result<TracedWaits, Error> {
        self.trace.stop()?;
        self.trace.read(ended_ns)
    }
}
