//! Runs a program under a trace, and reads the kernel's decisions.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use filemap_core::decision::Decision;
use filemap_job::ShownKinds;
use filemap_job::program::Job;

use super::event::Inode;
use super::files::{FileStore, TracedFiles};
use super::packed::PackedEvents;
use super::probes;
use super::recording::Recording;
use super::tracefs::{Trace, TraceFs};
use crate::Error;
use crate::clock::now_ns;
use crate::cold_cache::drop_file;
use crate::engine::{self, JobNeeds};
use crate::image::Incident;
use crate::interference::{pageout_interval, pause_before};
use crate::journal::Journal;
use crate::probe::{PhaseCost, Probe, ProbeProcess};
use crate::residency::cached_pages;

/// Maximum number of discarded runs, after which a job is given up because other processes take its
/// pages.
const MAX_DISTURBED: u32 = 12;

/// Maximum number of runs, when other processes evict pages in some.
const MAX_RUNS: u32 = 8;

/// Spare trace space, in events, in addition to twice the expected number.
const SPARE_EVENTS: u64 = 1 << 16;

/// Runs programs under a trace. Files that a program does not name are created.
#[derive(Debug)]
pub struct Observer {
    // Fields drop in order.
    trace: Option<(Trace, u64)>,
    tracefs: TraceFs,
    store: FileStore,
    journal: Journal,
}

impl Observer {
    /// An observer that creates files on scratch filesystems, and records its changes in `journal`.
    ///
    /// # Errors
    /// Not root; no tracefs; a kernel without the tracepoints.
    pub fn open(journal: &Journal) -> Result<Self, Error> {
        Self::with_files_in(FileStore::scratches(journal), journal)
    }

    /// An observer that creates files in `directory`, whatever its filesystem: for a guest, whose
    /// disk belongs to the job. Kprobes show its readahead if tracepoints do not.
    ///
    /// # Errors
    /// As for [`Observer::open`].
    pub fn in_directory(journal: &Journal, directory: &Path) -> Result<Self, Error> {
        let observer = Self::with_files_in(FileStore::directory(journal, directory), journal)?;
        probes::install(observer.tracefs.root())?;
        Ok(observer)
    }

    fn with_files_in(places: FileStore, journal: &Journal) -> Result<Self, Error> {
        let tracefs = TraceFs::open(journal)?;
        tracefs.check()?;
        Ok(Observer { trace: None, tracefs, store: places, journal: journal.clone() })
    }

    /// What this kernel shows.
    pub fn shown_kinds(&self) -> ShownKinds {
        self.tracefs.shown_kinds()
    }

    /// Opens or creates the files of `program`: new ones on a filesystem of its type and readahead
    /// size. A program whose segments are mapped is copied there.
    ///
    /// # Errors
    /// This kernel cannot run the program; no scratch filesystem fits; no loop device; no space.
    pub fn create_files(&mut self, program: &Job) -> Result<TracedFiles, Error> {
        if program.starts_warm() {
            return Err(Error::unavailable(
                "a trace of a run whose files are cached at the beginning",
                "give --start cold, or --on model",
            ));
        }
        self.store.create_files(&JobNeeds::from(program))
    }

    /// Runs `program` on cold files without settling. Repeats a run in which other processes evict
    /// pages, and returns the one with the fewest. `expected` is the approximate number of events.
    ///
    /// # Errors
    /// No probe can run it; the trace is incomplete.
    pub fn observe(
        &mut self,
        program: &Job,
        subject: &TracedFiles,
        expected: u64,
    ) -> Result<Observation, Error> {
        let recording = self.record_run(program, subject, expected)?;
        Ok(recording.process_observation(program, &engine::process(program, &subject.paths)?))
    }

    /// Makes the recording for [`Observer::observe`].
    ///
    /// # Errors
    /// As there.
    pub fn record_run(
        &mut self,
        program: &Job,
        subject: &TracedFiles,
        expected: u64,
    ) -> Result<Recording, Error> {
        let (process, inodes) = (engine::process(program, &subject.paths)?, subject.inodes()?);
        let run = |observer: &mut Observer| {
            let recording = observer.record_once(&process, &inodes, expected);
            recording.map_err(|error| engine::with_job_names(program, error))
        };
        let mut best = run(self)?;
        for repeated in 1..MAX_RUNS {
            if best.evicted_by_others() == 0 {
                break;
            }
            let next = run(self)?;
            if next.evicted_by_others() < best.evicted_by_others() {
                best = next;
            }
            best.repeated = repeated;
        }
        Ok(best)
    }

    /// Runs `program` on cold files, waiting after each access until nothing is being read. Repeats
    /// disturbed runs, between the intervals of DAMON if it evicts. `expected` is the approximate
    /// number of events.
    ///
    /// # Errors
    /// No probe can run it; the trace is incomplete; [`Error::Disturbed`] if other processes keep
    /// evicting the files' pages.
    pub fn observe_settled(
        &mut self,
        program: &Job,
        subject: &TracedFiles,
        expected: u64,
    ) -> Result<Observation, Error> {
        let recording = self.record_settled_run(program, subject, expected)?;
        Ok(recording.process_observation(program, &engine::process(program, &subject.paths)?))
    }

    /// Makes the recording for [`Observer::observe_settled`].
    ///
    /// # Errors
    /// As there.
    pub fn record_settled_run(
        &mut self,
        program: &Job,
        subject: &TracedFiles,
        expected: u64,
    ) -> Result<Recording, Error> {
        let process = ProbeProcess { settle: true, ..engine::process(program, &subject.paths)? };
        let inodes = subject.inodes()?;
        for repeated in 0..MAX_DISTURBED {
            let start = Instant::now();
            let recording = self.record_once(&process, &inodes, expected);
            let recording = recording.map_err(|error| engine::with_job_names(program, error))?;
            let Some(at_ns) = recording.disturbed_at_ns() else {
                return Ok(Recording { repeated, ..recording });
            };
            if let Some(interval) = pageout_interval() {
                sleep(pause_before(start.elapsed(), at_ns, now_ns(), interval));
            }
        }
        Err(Error::Disturbed { path: subject.path().to_owned(), runs: MAX_DISTURBED })
    }

    /// Runs `process` once on cold files, under a trace.
    fn record_once(
        &mut self,
        process: &ProbeProcess,
        inodes: &[Inode],
        expected: u64,
    ) -> Result<Recording, Error> {
        let probe = Probe::start(process)?;
        let pid = probe.pid();
        let seen = self.shown_kinds();
        let trace = self.trace(inodes, expected)?;
        trace.watch_faults(pid)?;
        let open = |path: &PathBuf| File::open(path).map_err(|e| Error::os("open", path, e));
        let opened = process.files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        process.files.iter().try_for_each(|path| drop_file(path))?;
        trace.start()?;
        // From here on the events show what other processes do.
        let mut cached = 0;
        for file in &opened {
            cached += cached_pages(file)?;
        }
        let warm_at_ns = (cached > 0).then(now_ns);
        let addresses = probe.addresses().to_vec();
        let ended = probe.run();
        let mut events = PackedEvents::default();
        trace.stop(|event| events.push(&event))?;
        let ended = ended?;
        let steps = || ended.threads.iter().flat_map(|thread| &thread.steps);
        Ok(Recording {
            shown: seen,
            pid,
            addresses,
            files: inodes.len(),
            warm_at_ns,
            read_bytes: ended.read_bytes,
            elapsed_ns: steps().map(|step: &PhaseCost| step.elapsed_ns).sum(),
            repeated: 0,
            events,
            warnings: Vec::new(),
        })
    }

    /// A trace of `inodes` with space for at least `expected` events: the previous one, if large
    /// enough.
    fn trace(&mut self, inodes: &[Inode], expected: u64) -> Result<&Trace, Error> {
        let events = expected.saturating_mul(2).saturating_add(SPARE_EVENTS);
        if self.trace.as_ref().is_some_and(|(_, room)| *room < events) {
            self.trace = None;
        }
        match &mut self.trace {
            Some((trace, _)) => trace.watch(inodes)?,
            none => {
                let trace = Trace::create(&self.tracefs, &self.journal, inodes, events)?;
                *none = Some((trace, events));
            }
        }
        Ok(&self.trace.as_ref().expect("there is one now").0)
    }
}

/// The decisions of one traced run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What this kernel shows.
    pub shown: ShownKinds,
    /// The kernel's decisions about all files of the job, as far as tracepoints show them.
    /// Tracepoints do not show the cause of a window: without a mark and a stream it is inferred
    /// from the mapping of the fault (executable, HUGEPAGE), else it is read-around. `mmap_miss` is
    /// known in [`Decision::Entered`] only, and 0 elsewhere. A lookup missed if a read followed. On
    /// a kernel without readahead tracepoints, consecutive added pages are one window, whose mark
    /// is unknown.
    pub decisions: Vec<Decision>,
    /// Bytes read from storage on the child's behalf, if the kernel accounts them.
    pub read_bytes: Option<u64>,
    /// Duration of the accesses, traced.
    pub elapsed_ns: u64,
    /// Pages of the files that other processes evicted.
    pub evicted_by_others: u64,
    /// Runs discarded before this one because other processes took or added pages.
    pub repeated: u32,
    /// Warnings of a booted kernel.
    pub warnings: Vec<Incident>,
}
