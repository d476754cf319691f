//! Recording what a program does with its files: the tapes on which the library tells it are read
//! while the program runs, and written as a recording.

mod assembly;
mod space;
mod stacks;
mod tapes;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use filemap_control::layout::Reason;
use filemap_recording::{Error as RecordingError, Event, Header, Totals, What, Writer};

use assembly::Assembly;
use tapes::{Tapes, Told};

/// Between two looks at tapes on which nothing was found.
const PAUSE: Duration = Duration::from_millis(2);

/// What became of a recording.
pub struct Recorded<W> {
    /// What it was written to, and what it has.
    pub written: Result<(W, Totals), RecordingError>,
    /// Entries that name what was not told before, as what had told it was lost.
    pub unknown: u64,
    /// The files that are in it.
    pub files: Vec<OsString>,
    /// A process that stopped to tell before its end, and why.
    pub stopped: Option<(u32, Reason)>,
}

/// Records what is told in `directory` to `output`, which errors call `name`, until `is_over`.
/// Where it cannot be written, tapes are read all the same, so that no program waits.
pub fn record<W: Write>(
    directory: PathBuf,
    output: W,
    name: &str,
    header: &Header,
    is_over: &AtomicBool,
) -> Recorded<W> {
    let mut recording = Recording {
        writer: Writer::new(output, name, header),
        assembly: Assembly::new(header.page_size),
    };
    let mut tapes = Tapes::of(&directory);
    loop {
        // What was told before the end is read after it.
        let was_over = is_over.load(Ordering::Acquire);
        let told = tapes.told();
        let is_idle = told.is_empty();
        recording.take(&told);
        recording.take(&tapes.let_go(was_over));
        if was_over {
            break;
        }
        if is_idle {
            thread::sleep(PAUSE);
        }
    }
    recording.end(tapes.lost())
}

struct Recording<W: Write> {
    writer: Result<Writer<W>, RecordingError>,
    assembly: Assembly,
}

impl<W: Write> Recording<W> {
    fn take(&mut self, all: &[Told]) {
        for told in all {
            for event in self.assembly.take(told) {
                self.write(&event);
            }
        }
    }

    fn write(&mut self, event: &Event) {
        if let Ok(writer) = &mut self.writer
            && let Err(error) = writer.write(event)
        {
            self.writer = Err(error);
        }
    }

    fn end(mut self, lost: u64) -> Recorded<W> {
        if lost > 0 {
            self.write(&Event { thread: 0, wait_ns: 0, what: What::Lost { events: lost } });
        }
        let Assembly { unknown, paths: files, stopped, .. } = self.assembly;
        Recorded { written: self.writer.and_then(Writer::finish), unknown, files, stopped }
    }
}
