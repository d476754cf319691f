//! Runs a job under a trace, and returns what the kernel decided in the form that is compared.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use filemap_core::units::PageIndex;
use filemap_job::{Filesystem, Shown, ShownLog};
use rustix::time::{ClockId, clock_gettime};

use crate::cold::drop_file;
use crate::contents::check_calls;
use crate::decisions::{Event, FileId, Seen};
use crate::engine::{Needed, Needs, Runnable, check, may_drop, place_of, scratch_directory};
use crate::interference::{pageout_interval, pause_before};
use crate::journal::{Guard, Journal, Undo};
use crate::probe::{Probe, Process};
use crate::residency::CacheStat;
use crate::scratch::{self, Room, Scratch};
use crate::temporary::{self, require_space};
use crate::tracefs::{Trace, TraceFs};
use crate::{Error, page_size};

/// Runs that are thrown away before a job is given up because others take its pages.
const MAX_DISTURBED: u32 = 12;

/// Files of a trace: its filter names each of them.
const MAX_FILES: usize = 64;

/// Room of a scratch filesystem in bytes, unless one file needs more.
const SCRATCH_BYTES: u64 = 256 << 20;

/// Runs jobs under a trace, on scratch filesystems of its own where they name no file.
#[derive(Debug)]
pub struct Observer {
    // Undone from the first to the last.
    trace: Option<(Trace, Vec<FileId>, u64)>,
    tracefs: TraceFs,
    scratches: Vec<(Filesystem, u64, Scratch)>,
    journal: Journal,
}

/// What was observed of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The kernel's decisions about each of its files.
    pub logs: Vec<Vec<Shown>>,
    /// Runs before this one in which others took pages of the files.
    pub disturbed: u32,
}

/// The files of a job. When this drops they go, or, of the user's, their pages in the page cache.
#[derive(Debug)]
pub struct Subject {
    paths: Vec<PathBuf>,
    io_bytes: u64,
    _guards: Vec<Guard>,
}

impl Subject {
    /// Where the first file is.
    pub fn path(&self) -> &Path {
        &self.paths[0]
    }

    /// Largest request of the first file's device in bytes: one `read(2)` may read as much at once.
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

    /// Makes the files of `job`: its own, or some on a scratch filesystem of its kind and readahead
    /// size; of a program whose segments are mapped a copy there.
    ///
    /// # Errors
    /// What this kernel cannot run; what no scratch filesystem can be; no loop device; no space.
    pub fn subject<W: Runnable>(&mut self, job: &W) -> Result<Subject, Error> {
        let needs = job.needs();
        check(&needs)?;
        if needs.machine.cache_limit.is_some() {
            return Err(Error::unavailable(
                "a comparison by the line with less memory than the file takes",
                "leave out the memory's limit, or compare counters with filemap compare",
            ));
        }
        if needs.files.len() > MAX_FILES {
            return Err(Error::unavailable(
                format!("a trace of {} files", needs.files.len()),
                format!("use {MAX_FILES} files or less, or filemap compare"),
            ));
        }
        let (mut paths, mut guards) = (Vec::new(), Vec::new());
        for (number, needed) in needs.files.iter().enumerate() {
            let (path, guard) = match needed.users_path() {
                Some(path) => self.users_file(&needs, needed, path)?,
                None => self.made_file(&needs, needed, number)?,
            };
            paths.push(path);
            guards.push(guard);
        }
        Ok(Subject { io_bytes: io_bytes(&paths[0])?, paths, _guards: guards })
    }

    fn users_file(
        &self,
        needs: &Needs,
        needed: &Needed,
        path: &Path,
    ) -> Result<(PathBuf, Guard), Error> {
        let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
        place_of(&needs.machine, path)?;
        let guard = may_drop(&needed.file, &self.journal, &file, path)?;
        check_calls(&needed.called, &file, path)?;
        Ok((path.to_owned(), guard))
    }

    fn made_file(
        &mut self,
        needs: &Needs,
        needed: &Needed,
        number: usize,
    ) -> Result<(PathBuf, Guard), Error> {
        let journal = self.journal.clone();
        let scratch = self.scratch(needs)?;
        let path = scratch.root().join(format!("file{number}"));
        let (file, guard) = journal.change(Undo::RemoveFile(path.clone()), || {
            File::create_new(&path).map_err(|error| Error::os("create", &path, error))
        })?;
        let (directory, bytes) = (scratch.directory(), needed.file.size_bytes);
        temporary::write(&file, directory, bytes, &needed.contents)?;
        Ok((path, guard))
    }

    /// Runs `job` on cold files, waiting after each access until nothing is being read, as often
    /// as others disturb it; where they are known to come at intervals, in between. `expected` is
    /// about how many events there will be.
    ///
    /// # Errors
    /// What no probe can do; a trace that is not complete; [`Error::Disturbed`] on a machine that
    /// does not leave the files' pages alone.
    pub fn observe<W: Runnable>(
        &mut self,
        job: &W,
        subject: &Subject,
        expected: u64,
    ) -> Result<Observed, Error> {
        let process = Process { settle: true, ..job.process(&subject.paths)? };
        let files = subject.paths.iter().map(|path| {
            let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
            Ok(FileId::of(&metadata))
        });
        let files = files.collect::<Result<Vec<_>, Error>>()?;
        for disturbed in 0..MAX_DISTURBED {
            let start = Instant::now();
            let once = self.trace_once(&process, &files, expected)?;
            let Some(at_ns) = once.disturbed_at_ns() else {
                return Ok(Observed { logs: once.shown(&process), disturbed });
            };
            if let Some(interval) = pageout_interval() {
                sleep(pause_before(start.elapsed(), at_ns, now_ns(), interval));
            }
        }
        Err(Error::Disturbed { path: subject.path().to_owned(), runs: MAX_DISTURBED })
    }

    fn trace_once(
        &mut self,
        process: &Process,
        files: &[FileId],
        expected: u64,
    ) -> Result<Once, Error> {
        let probe = Probe::start_process(process)?;
        let pid = probe.pid();
        let trace = self.trace(files, expected)?;
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
        ended?;
        Ok(Once { pid, addresses, warm_at_ns, events })
    }

    /// A trace of `files` with room for so many events and more; the last one, if it is that.
    fn trace(&mut self, files: &[FileId], expected: u64) -> Result<&Trace, Error> {
        let events = (expected * 2).max(1 << 16);
        let suits =
            |(_, known, room): &(Trace, Vec<FileId>, u64)| *known == files && *room >= events;
        if !self.trace.as_ref().is_some_and(suits) {
            self.trace = None;
            let trace = Trace::create(&self.tracefs, &self.journal, files, events)?;
            self.trace = Some((trace, files.to_owned(), events));
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
        let (bytes, written) = (needs.made_bytes(), needs.written_bytes());
        let suits =
            |(known, room, _): &&(Filesystem, u64, Scratch)| *known == filesystem && *room >= bytes;
        match self.scratches.iter().find(suits) {
            Some((.., scratch)) => require_space(scratch.directory(), written)?,
            None => {
                let room = bytes.max(SCRATCH_BYTES);
                let directory = scratch_directory(&self.journal)?;
                let space = Room { files: MAX_FILES as u64, bytes: room, disk_bytes: written };
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
    /// Where the child mapped the files.
    addresses: Vec<u64>,
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

    /// What is compared of the child's events, by file.
    fn shown(&self, process: &Process) -> Vec<Vec<Shown>> {
        let mut logs = vec![ShownLog::default(); process.files.len()];
        for event in self.events.iter().filter(|event| event.pid == self.pid) {
            if let Seen::UserFault { address } = event.seen {
                if let Some((file, index)) = self.faulted(process, address) {
                    logs[file].push(Shown::Faulted { index });
                }
            } else if let Some(line) = line(&event.seen) {
                logs[event.file].push(line);
            }
        }
        logs.into_iter().map(ShownLog::into_lines).collect()
    }

    /// The file and the page of it that `address` shows; none outside of the mappings.
    fn faulted(&self, process: &Process, address: u64) -> Option<(usize, PageIndex)> {
        process.mappings.iter().zip(&self.addresses).find_map(|(area, start)| {
            let page = PageIndex(address.checked_sub(*start)? / page_size());
            Some((process.opens[area.open], area.file_page(page)?))
        })
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

fn line(seen: &Seen) -> Option<Shown> {
    Some(match *seen {
        Seen::Fault { index } => Shown::LookedUp { index },
        Seen::MapPages { from, last } => Shown::MapPages { from, last },
        Seen::SyncReadahead(found) => Shown::Sync(found),
        Seen::AsyncReadahead(found) => Shown::Async(found),
        Seen::Window { start, order, size, async_size, .. } => {
            Shown::Window { start, order, size, async_size }
        }
        Seen::BasePages { start, size, async_size } => Shown::BasePages { start, size, async_size },
        Seen::Added { start, order } => Shown::Added { start, order, folios: 1 },
        Seen::Removed { .. } | Seen::Read { .. } | Seen::UserFault { .. } => return None,
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
