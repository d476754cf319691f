//! Imports fault traces of other tools as recordings.
//!
//! Such a recording has faults only. Most of the time between two faults is spent in the faults
//! themselves, so it has no think times.

mod lines;
mod perf;
mod sink;

use std::io::{BufRead, Read, Write};
use std::path::Path;

use crate::convert::ExistingFile;
use crate::frame::reason;
use crate::header::{Header, RecordingMode};
use crate::writer::{Totals, Writer};

use self::sink::RecordingSink;

/// Maximum length of a line of a trace, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// The output of `perf script` for page faults with addresses.
    PerfScript,
    /// One fault per line: `PID TID NANOSECONDS r|w PAGE SIZE NAME`.
    Lines,
}

impl TraceFormat {
    /// All formats.
    pub const ALL: [TraceFormat; 2] = [TraceFormat::PerfScript, TraceFormat::Lines];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::PerfScript => "perf-script",
            TraceFormat::Lines => "lines",
        }
    }
}

/// Statistics of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportStats {
    /// Lines in the trace.
    pub lines: u64,
    /// Lines of unknown kind.
    pub unknown_lines: u64,
    /// Faults on pages of files, which become touches.
    pub faults: u64,
    /// Of these, the faults of events that count major faults only.
    pub major_faults: u64,
    /// Touches without a fault, inferred from faults at consecutive windows.
    pub assumed: u64,
    /// Faults on memory other than files.
    pub other_faults: u64,
    /// Faults without an address.
    pub without_address: u64,
    /// Mappings of any kind of memory.
    pub mappings: u64,
}

/// Why an import failed. Displays as one line with the trace, the line number and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The trace cannot be read.
    #[error("trace '{name}', line {line}: it cannot be read: {reason}; give a readable file")]
    Read {
        /// Name of the trace.
        name: String,
        /// The line, from 1.
        line: u64,
        /// The error message of the operating system.
        reason: String,
    },
    /// The trace has no fault on a file.
    #[error("trace '{name}': {what}; {remedy}")]
    NoFaults {
        /// Name of the trace.
        name: String,
        /// What it contains instead.
        what: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] crate::error::Error),
}

/// How to produce a perf trace that can be imported.
const PERF_REMEDY: &str = "print it with perf script --show-mmap-events --show-task-events --ns -F \
    comm,pid,tid,time,event,addr, of perf record -e page-faults -c 1 -d";

/// The syntax of [`TraceFormat::Lines`].
const LINES_REMEDY: &str = "give lines of PID TID NANOSECONDS r|w PAGE SIZE NAME";

/// Reads `trace` in format `kind` and writes it as a recording to `output`. Error messages call
/// them `name` and `out`. `existing` looks up readable regular files, for their current sizes.
///
/// # Errors
/// The trace cannot be read or has no fault on a file, or the recording cannot be written.
pub fn import(
    kind: TraceFormat,
    (trace, name): (impl BufRead, &str),
    (output, out): (impl Write, &str),
    existing: &dyn Fn(&Path) -> Option<ExistingFile>,
) -> Result<(ImportStats, Totals), ImportError> {
    let writer = Writer::new(output, out, &Header::new(RecordingMode::Import))?;
    let mut sink = RecordingSink::new(writer, existing);
    let imported = match kind {
        TraceFormat::PerfScript => perf::read(trace, name, &mut sink)?,
        TraceFormat::Lines => lines::read(trace, name, &mut sink)?,
    };
    if imported.faults == 0 {
        return Err(no_faults_error(kind, name, &imported));
    }
    let (_, totals) = sink.writer.finish()?;
    Ok((imported, totals))
}

fn no_faults_error(kind: TraceFormat, name: &str, imported: &ImportStats) -> ImportError {
    let ImportStats { lines, without_address, other_faults, mappings, .. } = *imported;
    let reason = match kind {
        _ if lines == 0 => "it is empty".to_string(),
        _ if without_address > 0 => format!("its {without_address} faults have no address"),
        TraceFormat::PerfScript if mappings == 0 => "it has no line about a mapping".to_string(),
        _ => format!("of its {lines} lines none is a fault on a file ({other_faults} are others)"),
    };
    let remedy = match kind {
        TraceFormat::PerfScript => PERF_REMEDY,
        TraceFormat::Lines => LINES_REMEDY,
    };
    ImportError::NoFaults { name: name.to_string(), what: reason, remedy }
}

/// Calls `add_line` with each line of `trace`, without terminator and with invalid UTF-8 replaced.
/// Overlong lines are split. Returns the number of lines.
fn each_line(
    mut trace: impl BufRead,
    name: &str,
    mut add_line: impl FnMut(&str) -> Result<(), ImportError>,
) -> Result<u64, ImportError> {
    let mut lines = 0;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = (&mut trace).take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes);
        let failed = |error: std::io::Error| ImportError::Read {
            name: name.to_string(),
            line: lines + 1,
            reason: reason(&error),
        };
        if read.map_err(failed)? == 0 {
            return Ok(lines);
        }
        lines += 1;
        add_line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']))?;
    }
}
