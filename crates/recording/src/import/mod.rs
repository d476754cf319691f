//! Recordings of what other tools have written down: the faults of a program.
//!
//! Such a recording has faults only. The time between two of them is mostly that of the faults
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

/// Longest line of a trace, in bytes.
const MAX_LINE_BYTES: u64 = 1 << 16;

/// What wrote a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// `perf script`, of faults with their addresses.
    PerfScript,
    /// Lines of the stated format.
    Lines,
}

impl TraceFormat {
    /// Every one.
    pub const ALL: [TraceFormat; 2] = [TraceFormat::PerfScript, TraceFormat::Lines];

    /// The name that users give.
    pub fn name(self) -> &'static str {
        match self {
            TraceFormat::PerfScript => "perf-script",
            TraceFormat::Lines => "lines",
        }
    }
}

/// What came of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportStats {
    /// Lines of the trace.
    pub lines: u64,
    /// Lines that are of no known kind.
    pub unknown_lines: u64,
    /// Faults on pages of files: touches of the recording.
    pub faults: u64,
    /// Those of them of which only major ones are told.
    pub major_faults: u64,
    /// Touches without a fault that are assumed, since faults follow each other window by window.
    pub assumed: u64,
    /// Faults on other memory.
    pub other_faults: u64,
    /// Faults whose address is not told.
    pub without_address: u64,
    /// Mappings of memory of any kind that were told.
    pub mappings: u64,
}

/// Why nothing came of a trace: one line that names it, the line and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The trace cannot be read.
    #[error("trace '{name}', line {line}: it cannot be read: {reason}; give a readable file")]
    Read {
        /// The trace.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What the system says.
        reason: String,
    },
    /// It has no fault on a file.
    #[error("trace '{name}': {what}; {remedy}")]
    NoFaults {
        /// The trace.
        name: String,
        /// What it has instead.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The recording cannot be written.
    #[error(transparent)]
    Recording(#[from] crate::error::Error),
}

/// What a command says that prints a trace of perf as it is read here.
const PERF_REMEDY: &str = "print it with perf script --show-mmap-events --show-task-events --ns -F \
    comm,pid,tid,time,event,addr, of perf record -e page-faults -c 1 -d";

/// What a line of the simple format has.
const LINES_REMEDY: &str = "give lines of PID TID NANOSECONDS r|w PAGE SIZE NAME";

/// Reads the trace that `kind` wrote from `trace`, called `name`, and writes a recording of it to
/// `output`, called `out`. `existing` looks for a file that can be read.
///
/// # Errors
/// When the trace has no fault on a page of a file, cannot be read, or the recording cannot be
/// written.
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
    let what = match kind {
        _ if lines == 0 => "it is empty".to_string(),
        _ if without_address > 0 => format!("its {without_address} faults have no address"),
        TraceFormat::PerfScript if mappings == 0 => "it has no line about a mapping".to_string(),
        _ => format!("of its {lines} lines none is a fault on a file ({other_faults} are others)"),
    };
    let remedy = match kind {
        TraceFormat::PerfScript => PERF_REMEDY,
        TraceFormat::Lines => LINES_REMEDY,
    };
    ImportError::NoFaults { name: name.to_string(), what, remedy }
}

/// Calls `of` with each line of `trace`, without its end and with what is no text replaced; what is
/// beyond the longest line is another.
fn each_line(
    mut trace: impl BufRead,
    name: &str,
    mut of: impl FnMut(&str) -> Result<(), ImportError>,
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
        of(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']))?;
    }
}
