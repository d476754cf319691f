//! Recording what a program does with its files: the tapes on which the library tells it are read
//! while the program runs, and written as a recording.

mod assembly;
mod firsts;
mod followed;
mod space;
mod stacks;
mod tapes;

use std::ffi::OsString;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use filemap_control::layout::Reason;
use filemap_recording::{Error as RecordingError, Event, Header, Totals, What, Writer};

use assembly::Assembly;
use tapes::Told;

pub use followed::{Followed, WantedFiles};
pub use tapes::Tapes;

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

/// Where it is told what programs do.
pub trait Source {
    /// What was told since this was asked last, in order of time. Nothing is told any more where it
    /// `is_over`.
    fn told(&mut self, is_over: bool) -> Vec<Told>;

    /// Entries that were lost.
    fn lost(&self) -> u64;
}

/// Records what is told by `source` to `output`, which errors call `name`, until `is_over`, of
/// which whoever sets it wakes this thread. A page that is told again is left out where touches
/// may be `repeated`. Where the recording cannot be written, the source is read all the same, so
/// that no program waits.
pub fn record<W: Write>(
    source: &mut dyn Source,
    output: W,
    name: &str,
    header: &Header,
    repeated: bool,
    is_over: &AtomicBool,
) -> Recorded<W> {
    let mut recording = Recording {
        writer: Writer::new(output, name, header),
        assembly: Assembly::new(header.page_size, repeated),
    };
    loop {
        // What was told before the end is read after it.
        let was_over = is_over.load(Ordering::Acquire);
        let told = source.told(was_over);
        recording.take(&told);
        if was_over {
            break;
        }
        if told.is_empty() {
            thread::park_timeout(PAUSE);
        }
    }
    recording.end(source.lost())
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
