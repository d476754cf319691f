//! Runs a job under a trace, and returns what the kernel decided in the form that is compared.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use filemap_core::units::PageIndex;
use filemap_job::{Filesystem, Job, Shown, ShownLog};
use rustix::time::{ClockId, clock_gettime};

use crate::cold::drop_file;
use crate::contents::check_calls;
use crate::decisions::{Event, FileId, Seen};
use crate::engine::{Needs, check, may_drop, place_of, plan, scratch_directory};
use crate::interference::{pageout_interval, pause_before};
use crate::journal::{Guard, Journal, Undo};
use crate::probe::{Plan, Probe};
use crate::residency::CacheStat;
use crate::scratch::{self, Room, Scratch};
use crate::temporary::{self, require_space};
use crate::tracefs::{Trace, TraceFs};
use crate::{Error, page_size};

/// Runs that are thrown away before a job is given up because others take its pages.
const MAX_DISTURBED: u32 = 12;

/// Room of a scratch filesystem in bytes, unless one file needs more.
const SCRATCH_BYTES: u64 = 256 << 20;

/// Runs jobs under a trace, on scratch filesystems of its own where they name no file.
#[derive(Debug)]
pub struct Observer {
    // Undone from the first to the last.
    trace: Option<(Trace, FileId, u64)>,
    tracefs: TraceFs,
    scratches: Vec<(Filesystem, u64, Scratch)>,
    journal: Journal,
}

/// What was observed of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The kernel's decisions.
    pub log: Vec<Shown>,
    /// Runs before this one in which others took pages of the file.
    pub disturbed: u32,
}

/// The file of a job. When this drops it goes, or, of the user's, its pages in the page cache.
#[derive(Debug)]
pub struct Subject {
    path: PathBuf,
    io_bytes: u64,
    _guard: Guard,
}

impl Subject {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Largest request of the file's device in bytes: one `read(2)` may read as much at once.
    pub fn io_bytes(&self) -> u64 {
        self.io_bytes
    }
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
        Ok(Observer { trace: None, tracefs, scratches: Vec::new(), journal: journal.clone() })
    }

    /// Makes the file of `job`: its own, or one on a scratch filesystem of its kind and readahead
    /// size; of a program whose segments are mapped a copy there.
    ///
    /// # Errors
    /// What this kernel cannot run; what no scratch filesystem can be; no loop device; no space.
    pub fn subject(&mut self, job: &Job) -> Result<Subject, Error> {
        let needs = Needs::from(job);
        check(&needs)?;
        if job.machine.cache_limit.is_some() {
            return Err(Error::unavailable(
                "a comparison by the line with less memory than the file takes",
                "leave out the memory's limit, or compare counters with filemap compare",
            ));
        }
        let needed = &needs.files[0];
        if let Some(path) = needed.users_path() {
            let path = path.to_owned();
            let file = File::open(&path).map_err(|error| Error::os("open", &path, error))?;
            place_of(&job.machine, &path)?;
            let guard = may_drop(&job.file, &self.journal, &file, &path)?;
            check_calls(&needed.called, &file, &path)?;
            return Ok(Subject { io_bytes: io_bytes(&path)?, path, _guard: guard });
        }
        let journal = self.journal.clone();
        let scratch = self.scratch(&needs)?;
        let path = scratch.root().join("file");
        let (file, guard) = journal.change(Undo::RemoveFile(path.clone()), || {
            File::create_new(&path).map_err(|error| Error::os("create", &path, error))
        })?;
        temporary::write(&file, scratch.directory(), job.file.size_bytes, &needed.contents)?;
        Ok(Subject { io_bytes: io_bytes(&path)?, path, _guard: guard })
    }

    /// Runs `job` on a cold file, waiting after each access until nothing is being read, as often
    /// as others disturb it; where they are known to come at intervals, in between. `expected` is
    /// about how many events there will be.
    ///
    /// # Errors
    /// What no probe can do; a trace that is not complete; [`Error::Disturbed`] on a machine that
    /// does not leave the file's pages alone.
    pub fn observe(
        &mut self,
        job: &Job,
        subject: &Subject,
        expected: u64,
    ) -> Result<Observed, Error> {
        let plan = Plan { settle: true, ..plan(job, &subject.path)? };
        let metadata =
            fs::metadata(&subject.path).map_err(|error| Error::os("open", &subject.path, error))?;
        let file = FileId::of(&metadata);
        for disturbed in 0..MAX_DISTURBED {
            let start = Instant::now();
            let once = self.trace_once(&plan, file, expected)?;
            let Some(at_ns) = once.disturbed_at_ns() else {
                return Ok(Observed { log: once.shown(&plan), disturbed });
            };
            if let Some(interval) = pageout_interval() {
                sleep(pause_before(start.elapsed(), at_ns, now_ns(), interval));
            }
        }
        Err(Error::Disturbed { path: subject.path.clone(), runs: MAX_DISTURBED })
    }

    fn trace_once(&mut self, plan: &Plan, file: FileId, expected: u64) -> Result<Once, Error> {
        let probe = Probe::start(plan)?;
        let pid = probe.pid();
        let trace = self.trace(file, expected)?;
        if !trace.watch_faults(pid)? {
            return Err(Error::unavailable(
                "the tracepoint exceptions/page_fault_user",
                "use a kernel that has it (x86-64)",
            ));
        }
        let opened =
            File::open(&plan.path).map_err(|error| Error::os("open", &plan.path, error))?;
        drop_file(&plan.path)?;
        trace.start()?;
        // From here on the events show what others do.
        let warm_at_ns = (CacheStat::of(&opened, ..)?.cached > 0).then(now_ns);
        let outcome = probe.run();
        let events = trace.stop()?;
        Ok(Once { pid, address: outcome?.address, warm_at_ns, events })
    }

    /// A trace of `file` with room for so many events and more; the last one, if it is that.
    fn trace(&mut self, file: FileId, expected: u64) -> Result<&Trace, Error> {
        let events = (expected * 2).max(1 << 16);
        let suits = |(_, known, room): &(Trace, FileId, u64)| *known == file && *room >= events;
        if !self.trace.as_ref().is_some_and(suits) {
            self.trace = None;
            let trace = Trace::create(&self.tracefs, &self.journal, &[file], events)?;
            self.trace = Some((trace, file, events));
        }
        Ok(&self.trace.as_ref().expect("there is one now").0)
    }

    fn scratch(&mut self, needs: &Needs) -> Result<&Scratch, Error> {
        let filesystem = needs.machine.fs;
        let kind = match filesystem {
            Filesystem::Ext4 => scratch::Filesystem::Ext4,
            Filesystem::Xfs => scratch::Filesystem::Xfs,
            Filesystem::BasePages => {
                return Err(Error::unavailable(
                    "a scratch filesystem without large folios",
                    "give --fs ext4 or xfs, or the --file to be read",
                ));
            }
        };
        let kib = needs.machine.read_ahead.bytes(page_size()) / 1024;
        let (bytes, written) = (needs.file_bytes(), needs.written_bytes());
        let suits =
            |(known, room, _): &&(Filesystem, u64, Scratch)| *known == filesystem && *room >= bytes;
        match self.scratches.iter().find(suits) {
            Some((.., scratch)) => require_space(scratch.directory(), written)?,
            None => {
                let room = bytes.max(SCRATCH_BYTES);
                let directory = scratch_directory(&self.journal)?;
                let space = Room { files: 1, bytes: room, disk_bytes: written };
                let scratch = Scratch::create(&self.journal, &directory, kind, space, kib)?;
                self.scratches.push((filesystem, room, scratch));
            }
        }
        let (.., scratch) = self.scratches.iter().find(suits).expect("there is one now");
        scratch.set_read_ahead(kib)?;
        Ok(scratch)
    }
}

/// One run under a trace.
struct Once {
    pid: u32,
    /// Where the child mapped the file.
    address: u64,
    /// When the run began, if others had brought in pages again.
    warm_at_ns: Option<u64>,
    events: Vec<Event>,
}

impl Once {
    /// When somebody else last changed what the child met, if anybody did.
    fn disturbed_at_ns(&self) -> Option<u64> {
        let foreign = self.events.iter().rfind(|event| is_foreign(event, self.pid));
        foreign.map(|event| event.at_ns).or(self.warm_at_ns)
    }

    /// What is compared of the child's events.
    fn shown(&self, plan: &Plan) -> Vec<Shown> {
        let mut log = ShownLog::default();
        for event in self.events.iter().filter(|event| event.pid == self.pid) {
            if let Some(line) = line(&event.seen, plan, self.address) {
                log.push(line);
            }
        }
        log.into_lines()
    }
}

/// Now by the clock of the events.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether somebody else changed what the child met.
fn is_foreign(event: &Event, pid: u32) -> bool {
    event.pid != pid && matches!(event.seen, Seen::Removed { .. } | Seen::Added { .. })
}

fn line(seen: &Seen, plan: &Plan, address: u64) -> Option<Shown> {
    Some(match *seen {
        Seen::UserFault { address: at } => {
            let page = PageIndex(at.checked_sub(address)? / page_size());
            Shown::Faulted { index: plan.file_page(page)? }
        }
        Seen::Fault { index } => Shown::LookedUp { index },
        Seen::MapPages { from, last } => Shown::MapPages { from, last },
        Seen::SyncReadahead(found) => Shown::Sync(found),
        Seen::AsyncReadahead(found) => Shown::Async(found),
        Seen::Window { start, order, size, async_size, .. } => {
            Shown::Window { start, order, size, async_size }
        }
        Seen::BasePages { start, size, async_size } => Shown::BasePages { start, size, async_size },
        Seen::Added { start, order } => Shown::Added { start, order, folios: 1 },
        Seen::Removed { .. } | Seen::Read { .. } => return None,
    })
}

/// Largest request of the device that `path` lies on, in bytes.
pub fn io_bytes(path: &Path) -> Result<u64, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
    let FileId { major, minor, .. } = FileId::of(&metadata);
    let block = format!("/sys/dev/block/{major}:{minor}");
    // A partition shares the queue of its disk.
    let queues = [format!("{block}/queue"), format!("{block}/../queue")];
    let kib = queues.iter().find_map(|queue| {
        fs::read_to_string(format!("{queue}/max_sectors_kb")).ok()?.trim().parse::<u64>().ok()
    });
    kib.map(|kib| kib << 10).ok_or_else(|| {
        Error::unavailable(
            format!("the request size of the device of '{}'", path.display()),
            "give a --file on a block device",
        )
    })
}
