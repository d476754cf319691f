//! What a recording says of itself, and which files it has.

use std::ffi::OsString;

use filemap_attach::MOST_OPEN;
use filemap_recording::{Header, Mode};

use crate::args::RecordArgs;
use filemap_study::recorder::{self, WantedFiles};

/// The header of a recording of the program with these `words`, where they are known.
pub fn header(args: &RecordArgs, words: Vec<OsString>) -> Header {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let mode = if args.changes { Mode::Changes } else { Mode::FirstTouches };
    Header {
        open_pages: if args.changes { MOST_OPEN } else { 0 },
        command: words,
        page_size: rustix::param::page_size() as u64,
        clock: recorder::CLOCK.to_string(),
        kernel: text(system.release()),
        machine: text(system.machine()),
        ..Header::new(mode)
    }
}

pub fn files(args: &RecordArgs) -> WantedFiles {
    let min_bytes = args.min_size.unwrap_or(recorder::SMALLEST);
    WantedFiles { min_bytes, patterns: args.files.clone() }
}
