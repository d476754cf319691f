//! Records the file accesses of processes: reads kernel events while they run and writes them as a
//! recording.

mod cpu_time;
mod file_filter;
mod process_memory;
mod single_pages;
mod targets;
mod tracker;

use std::collections::BTreeSet;
use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use filemap_attach::{EventSource, MAX_OPEN_PAGES, MappedRange};
use filemap_job::format_size;
use filemap_kernel::cold_cache::drop_pages;
use filemap_recording::assembly::{Action, Assembly, Observation, ProcessImage};
use filemap_recording::{Event, EventKind, GapKind, Header, RecordingMode, Totals, Writer};

use cpu_time::CpuTimes;
use file_filter::Exclusion;
use process_memory::MemorySampler;
use single_pages::LateFile;
use tracker::ProcessTracker;

pub use file_filter::{DEFAULT_MIN_FILE_BYTES, FileFilter};
pub use targets::{check_program, record_processes, record_program};

/// How often the user time of threads is read.
const CPU_TIME_INTERVAL: Duration = Duration::from_millis(50);

/// How often a block is flushed to the file, so that a recorder that is killed leaves it readable.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum observations buffered until the CPU times are read.
const MAX_BUFFERED: usize = 1 << 16;

/// Maximum files named with the reason why they are not recorded.
const MAX_REASONS: usize = 3;

/// Maximum files named whose touches may be missing.
const MAX_NAMED: usize = 3;

/// Pages that stayed in their process are not reported below one in this many touches.
const MIN_STAYED_PART: u64 = 100;

/// The `clock` of recordings.
const CLOCK: &str = "user time of the thread, sampled every 50 ms";

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The processes cannot be followed.
    #[error(transparent)]
    Attach(#[from] filemap_attach::Error),
    /// A setting of the kernel cannot be changed, or its journal cannot be written.
    #[error(transparent)]
    Kernel(#[from] filemap_kernel::Error),
    /// The program cannot be run.
    #[error(transparent)]
    Program(#[from] filemap_attach::program::LaunchError),
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] filemap_recording::Error),
    /// This machine or this program does not permit it; the message has the remedy.
    #[error("{0}")]
    CannotRun(String),
}

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The files whose accesses are recorded.
    pub files: FileFilter,
    /// Records every change of page instead of first touches only.
    pub changes: bool,
    /// Ends the recording after this time.
    pub duration: Option<Duration>,
}

impl RecordOptions {
    /// The header of a recording of `command`, which is empty if unknown.
    fn header(&self, command: Vec<OsString>) -> Header {
        let system = rustix::system::uname();
        let text = |text: &CStr| text.to_string_lossy().into_owned();
        let mode = if self.changes { RecordingMode::Changes } else { RecordingMode::FirstTouches };
        Header {
            open_pages: if self.changes { MAX_OPEN_PAGES } else { 0 },
            command,
            page_size: rustix::param::page_size() as u64,
            clock: CLOCK.to_string(),
            kernel: text(system.release()),
            machine: text(system.machine()),
            ..Header::new(mode)
        }
    }

    /// Refuses to record changes of page without tracepoints: other sources miss touches.
    fn check(&self, source: &EventSource) -> Result<(), RecordError> {
        if self.changes && !source.reports_syscalls() {
            return Err(RecordError::CannotRun(
                "--changes needs the tracepoints of page faults, which root of the machine has on \
                 x86-64 with tracefs; leave it out for first touches"
                    .to_string(),
            ));
        }
        Ok(())
    }
}

/// A recording that has ended.
pub struct RecordOutcome<W> {
    /// The output and the totals, until [`RecordOutcome::take_output`] takes them.
    output: Option<Result<(W, Totals), filemap_recording::Error>>,
    /// Observations that refer to objects whose own observation was lost.
    unknown: u64,
    /// Reads of files.
    pub reads: u64,
    /// Paths of the recorded files.
    pub files: Vec<OsString>,
    tracker: ProcessTracker,
    /// Mappings that are still advised MADV_RANDOM, with their processes.
    unrestored: Vec<(u32, MappedRange)>,
    /// The error that ended the recording early.
    pub failed: Option<RecordError>,
    /// Another program changed fault-around while the recording needed it off.
    fault_around_changed: bool,
}

impl<W> RecordOutcome<W> {
    /// The output and its totals.
    ///
    /// # Errors
    /// When the recording could not be written.
    ///
    /// # Panics
    /// When called twice.
    pub fn take_output(&mut self) -> Result<(W, Totals), RecordError> {
        Ok(self.output.take().expect("the output is taken once")?)
    }

    /// Why the recording in the file `name` may be incomplete; `None` if it is complete. Files
    /// whose pages were read before their mappings could be advised are dropped from the page
    /// cache, so that a second run starts cold.
    pub fn incomplete_reason(&self, name: &str, totals: Totals) -> Option<String> {
        let lost = totals.lost + self.unknown;
        let (stayed, reclaim_error) = self.tracker.unreclaimed();
        let gaps = self.tracker.gaps();
        let gap = |kind: GapKind| {
            let (_, count) = gaps.iter().find(|(own, _)| *own == kind)?;
            let text = || format!("the recording in '{name}' {}", kind.text(*count));
            kind.matters(*count, totals.touches + self.reads).then(text)
        };
        Some(if lost > 0 {
            format!(
                "the recording in '{name}' is incomplete: at least {lost} events were lost; run it \
                 again on a less busy machine"
            )
        } else if self.fault_around_changed {
            format!(
                "the recording in '{name}' may lack touches, as something else changed \
                 fault-around meanwhile; run it again alone"
            )
        } else if let Some(gap) = gap(GapKind::LockedPages) {
            gap
        } else if gap(GapKind::TouchedPages).is_some() {
            self.files.iter().for_each(drop_cached);
            self.late_message(name, totals)
        } else if let Some(gap) = gap(GapKind::Advice).or_else(|| gap(GapKind::ReadPages)) {
            gap
        } else if let Some(error) = reclaim_error {
            format!(
                "the recording in '{name}' lacks touches of pages that were touched before: {error}"
            )
        } else if stayed > 0 && stayed.saturating_mul(MIN_STAYED_PART) >= totals.touches {
            format!(
                "the recording in '{name}' may lack touches: {stayed} times a page stayed in its \
                 process while more than {MAX_OPEN_PAGES} others were touched, as another mapping \
                 has it, it was written to or locked, or the machine is too busy"
            )
        } else {
            return None;
        })
    }

    /// The message for mappings whose pages came together with others: their files, what they are
    /// worth, the reason and the remedy.
    fn late_message(&self, name: &str, totals: Totals) -> String {
        let mut late = self.tracker.late();
        late.files.sort_by_key(|file| std::cmp::Reverse(file.pages));
        let file = |file: &LateFile| format!("'{}'", file.path.display());
        let mut named = late.files.iter().take(MAX_NAMED).map(file).collect::<Vec<_>>().join(", ");
        if late.files.len() > MAX_NAMED {
            named += &format!(" and {} more files", late.files.len() - MAX_NAMED);
        }
        let reason = match self.tracker.refused() {
            Some(refused) => format!("a process could not be made to read single pages: {refused}"),
            None if self.tracker.has_fault_around() => {
                "they were mapped with others before each could be recorded alone; as root, \
                 --change-settings prevents that"
                    .to_string()
            }
            None => "they were mapped with others before each could be recorded alone; commands \
                     take them as not touched"
                .to_string(),
        };
        format!(
            "the recording in '{name}' may lack the touches of {} pages of {named} ({} touches of \
             pages were recorded): {reason}",
            late.pages(),
            totals.touches
        )
    }

    /// The message for a recording without a single touch or read.
    pub fn no_touch_message(&self, options: &RecordOptions) -> String {
        let nothing = "no touch of a mapped page and no read was recorded";
        let excluded = self.tracker.excluded();
        // Memory and devices that have a path, too.
        let is_expected = |exclusion: &Exclusion, path: &Path| {
            matches!(exclusion, Exclusion::LoaderFile | Exclusion::NoFile)
                || ["/memfd:", "/dev/", "/SYSV"]
                    .iter()
                    .any(|start| path.as_os_str().as_encoded_bytes().starts_with(start.as_bytes()))
        };
        let reasons: Vec<String> = excluded
            .iter()
            .filter(|(exclusion, path)| !is_expected(exclusion, path))
            .take(MAX_REASONS)
            .map(|(exclusion, path)| format!("'{}' {exclusion}", path.display()))
            .collect();
        if let Some(file) = self.files.first() {
            let file = file.display();
            return format!(
                "{nothing}: '{file}' is mapped, and its pages were touched before the recording \
                 began (--cold drops them), are used by others too, or were not touched"
            );
        }
        if !reasons.is_empty() {
            return format!("{nothing}: {}", reasons.join("; "));
        }
        let min_size = format_size(options.files.min_bytes);
        let files =
            if options.files.patterns.is_empty() { "" } else { " whose path matches --include" };
        format!(
            "{nothing}; only files of {min_size} (--min-size) or more{files} on a disk are \
             recorded, and the program used none"
        )
    }

    /// A message that names the processes whose advice could not be restored, if there are any.
    pub fn unrestored_message(&self) -> Option<String> {
        let pids: BTreeSet<u32> = self.unrestored.iter().map(|(pid, _)| *pid).collect();
        let flags: String = pids.iter().map(|pid| format!(" --pid {pid}")).collect();
        (!pids.is_empty()).then(|| {
            format!(
                "{} mappings stay advised MADV_RANDOM, as no thread of their process could be \
                 held; run filemap govern --release{flags}",
                self.unrestored.len()
            )
        })
    }
}

/// Drops the unmapped pages of a file from the page cache; errors are ignored.
fn drop_cached(path: impl AsRef<Path>) {
    if let Ok(file) = File::open(path.as_ref()) {
        drop_pages(&file);
    }
}

/// Writes what `tracker` observes to `output` until `is_over`; `name` is the output in error
/// messages. After a write error events are still drained, so that the processes are not disturbed.
fn record<W: Write>(
    mut tracker: ProcessTracker,
    output: W,
    name: &str,
    header: &Header,
    is_over: &dyn Fn() -> bool,
) -> RecordOutcome<W> {
    let has_changes = header.mode == RecordingMode::Changes;
    if has_changes {
        tracker.record_changes();
    }
    let mut recording = RecordingWriter {
        writer: Writer::new(output, name, header),
        assembly: Assembly::new(header.page_size, has_changes),
        cpu_times: CpuTimes::new(),
        memory: MemorySampler::new(CPU_TIME_INTERVAL),
        buffered: Vec::new(),
        reads: 0,
    };
    let (mut last_times, mut last_flush) = (Instant::now(), Instant::now());
    let failed = loop {
        // Events from before the end are read after it.
        let was_over = is_over();
        match tracker.observe(was_over) {
            Ok(observations) => recording.buffered.extend(observations),
            Err(error) => break Some(error.into()),
        }
        let is_due =
            last_times.elapsed() >= CPU_TIME_INTERVAL || recording.buffered.len() >= MAX_BUFFERED;
        if was_over || is_due || recording.has_new_process() {
            recording.write_buffered();
            recording.write_memory(&tracker.recorded_processes());
            last_times = Instant::now();
        }
        if was_over {
            break None;
        }
        if last_flush.elapsed() >= FLUSH_INTERVAL {
            recording.with_writer(Writer::flush);
            last_flush = Instant::now();
        }
    };
    let unrestored = tracker.restore_advice();
    recording.finish(tracker, unrestored, failed)
}

struct RecordingWriter<W: Write> {
    writer: Result<Writer<W>, filemap_recording::Error>,
    assembly: Assembly,
    cpu_times: CpuTimes,
    memory: MemorySampler,
    /// Observations without CPU times yet.
    buffered: Vec<Observation>,
    /// Reads written.
    reads: u64,
}

impl<W: Write> RecordingWriter<W> {
    fn write_buffered(&mut self) {
        let mut buffered = std::mem::take(&mut self.buffered);
        self.cpu_times.distribute(&mut buffered);
        for observation in &buffered {
            for event in self.assembly.add(observation) {
                self.reads += u64::from(matches!(event.kind, EventKind::Read { .. }));
                self.with_writer(|writer| writer.write(&event));
            }
        }
    }

    /// Whether a process began in the buffered observations: its memory is sampled at once, before
    /// it has touched much.
    fn has_new_process(&self) -> bool {
        let is_start =
            |observation: &Observation| matches!(observation.action, Action::Start { .. });
        self.buffered.iter().any(is_start)
    }

    /// Writes the memory of `processes`, if it has changed.
    fn write_memory(&mut self, processes: &[ProcessImage]) {
        for observation in self.memory.sample(processes) {
            for event in self.assembly.add(&observation) {
                self.with_writer(|writer| writer.write(&event));
            }
        }
    }

    /// Runs `write` unless an earlier write has failed.
    fn with_writer(
        &mut self,
        write: impl FnOnce(&mut Writer<W>) -> Result<(), filemap_recording::Error>,
    ) {
        if let Ok(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.writer = Err(error);
        }
    }

    /// Writes the gaps and losses of `tracker`, and completes the recording.
    fn finish(
        mut self,
        tracker: ProcessTracker,
        unrestored: Vec<(u32, MappedRange)>,
        failed: Option<RecordError>,
    ) -> RecordOutcome<W> {
        self.write_buffered();
        let gaps = tracker.gaps().into_iter();
        let gaps = gaps.map(|(kind, count)| EventKind::Gap { kind, count });
        let lost = (tracker.lost() > 0).then(|| EventKind::Lost { events: tracker.lost() });
        for kind in gaps.chain(lost) {
            self.with_writer(|writer| writer.write(&Event { thread: 0, wait_ns: 0, kind }));
        }
        let Assembly { unknown, paths: files, .. } = self.assembly;
        RecordOutcome {
            output: Some(self.writer.and_then(Writer::finish)),
            unknown,
            reads: self.reads,
            files,
            tracker,
            unrestored,
            failed,
            fault_around_changed: false,
        }
    }
}
