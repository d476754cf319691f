//! Recording what processes do with their files: what the kernel tells of them is read while they
//! run, and written as a recording.

mod asked;
mod followed;
mod program;
mod running;
mod told;
mod user_times;
mod wanted;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use filemap_attach::MappedRange;
use filemap_govern::SinglePages;
use filemap_kernel::cold::drop_pages;
use filemap_recording::assembly::{Assembly, Told};
use filemap_recording::{Error as RecordingError, Event, Header, Mode, Totals, What, Writer};

use crate::error::Error;
use followed::Followed;
use user_times::UserTimes;

pub use asked::Asked;
pub use program::{check_program, of_program};
pub use running::of_processes;
pub use wanted::{SMALLEST, WantedFiles};

/// The user time of threads is looked at this often.
const BETWEEN_TIMES: Duration = Duration::from_millis(50);

/// What is written is in the file this often, so that a recorder that is killed leaves it.
const BETWEEN_BLOCKS: Duration = Duration::from_secs(1);

/// So much is kept at most until then.
const MOST_KEPT: usize = 1 << 16;

/// What became of a recording.
pub struct Recorded<W> {
    /// What it was written to, and what it has, until it is asked for.
    written: Option<Result<(W, Totals), RecordingError>>,
    /// Events that name what was not told before, as what had told it was lost.
    unknown: u64,
    /// The files that are in it.
    pub files: Vec<OsString>,
    /// What was followed, which says what may be missing.
    followed: Followed,
    /// The mappings that stay advised RANDOM, with their processes.
    left: Vec<(u32, MappedRange)>,
    /// Why it ends early.
    pub failed: Option<Error>,
    /// Nobody has changed fault-around meanwhile, where it was switched off.
    is_whole: bool,
}

impl<W> Recorded<W> {
    /// What it was written to, and what it has.
    ///
    /// # Errors
    /// When it could not be written.
    ///
    /// # Panics
    /// The second time.
    pub fn end(&mut self) -> Result<(W, Totals), Error> {
        Ok(self.written.take().expect("it is asked for once")?)
    }
}

/// Drops a file from the page cache, as far as nobody has it mapped.
fn drop_cached(path: impl AsRef<Path>) {
    if let Ok(file) = File::open(path.as_ref()) {
        drop_pages(&file);
    }
}

/// Records what `followed` tells to `output`, which errors call `name`, until `is_over`. Where the
/// recording cannot be written, it is read all the same.
fn record<W: Write>(
    mut followed: Followed,
    output: W,
    name: &str,
    header: &Header,
    is_over: &dyn Fn() -> bool,
) -> Recorded<W> {
    let has_changes = header.mode == Mode::Changes;
    if has_changes {
        followed.tell_changes();
    }
    let mut recording = Recording {
        writer: Writer::new(output, name, header),
        assembly: Assembly::new(header.page_size, has_changes),
        times: UserTimes::default(),
        kept: Vec::new(),
    };
    let (mut timed, mut flushed) = (Instant::now(), Instant::now());
    let failed = loop {
        // What was told before the end is read after it.
        let was_over = is_over();
        match followed.told(was_over) {
            Ok(told) => recording.kept.extend(told),
            Err(error) => break Some(error),
        }
        let is_time = timed.elapsed() >= BETWEEN_TIMES || recording.kept.len() >= MOST_KEPT;
        if was_over || is_time {
            recording.take();
            timed = Instant::now();
        }
        if was_over {
            break None;
        }
        if flushed.elapsed() >= BETWEEN_BLOCKS {
            recording.with_writer(Writer::flush);
            flushed = Instant::now();
        }
    };
    let left = followed.end_advice();
    let (written, unknown, files) = recording.end(followed.lost());
    let written = Some(written);
    Recorded { written, unknown, files, followed, left, failed, is_whole: true }
}

struct Recording<W: Write> {
    writer: Result<Writer<W>, RecordingError>,
    assembly: Assembly,
    times: UserTimes,
    /// What was told, and has no times yet.
    kept: Vec<Told>,
}

impl<W: Write> Recording<W> {
    fn take(&mut self) {
        let mut kept = std::mem::take(&mut self.kept);
        self.times.share_out(&mut kept);
        for told in &kept {
            for event in self.assembly.take(told) {
                self.with_writer(|writer| writer.write(&event));
            }
        }
    }

    /// Does something that may fail, unless something has failed before.
    fn with_writer(&mut self, does: impl FnOnce(&mut Writer<W>) -> Result<(), RecordingError>) {
        if let Ok(writer) = &mut self.writer
            && let Err(error) = does(writer)
        {
            self.writer = Err(error);
        }
    }

    /// What it was written to, how many events name what was not told, and the files.
    fn end(mut self, lost: u64) -> (Result<(W, Totals), RecordingError>, u64, Vec<OsString>) {
        self.take();
        if lost > 0 {
            let lost = Event { thread: 0, wait_ns: 0, what: What::Lost { events: lost } };
            self.with_writer(|writer| writer.write(&lost));
        }
        let Assembly { unknown, paths, .. } = self.assembly;
        (self.writer.and_then(Writer::finish), unknown, paths)
    }
}
