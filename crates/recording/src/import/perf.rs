//! The text of `perf script`.
//!
//! A line is the program's name, its thread, a CPU in brackets if asked for, a time with a colon,
//! and then a record (`PERF_RECORD_MMAP2` and the like) or an event: a period if asked for, its
//! name with a colon, and its fields.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use super::regions::Regions;
use super::sink::{Mapping, Sink};
use super::{Error, Imported, each_line};

/// Events that are faults.
const FAULTS: [&str; 4] = [MAJOR_FAULTS, "minor-faults", "page-faults", "faults"];

/// Faults that read from a disk: what the page cache served is not among them.
const MAJOR_FAULTS: &str = "major-faults";

/// Pages that a fault maps with its own, where nobody has set another number: a window begins at a
/// multiple of it.
const WINDOW_PAGES: u64 = 16;

/// The most pages that one fault maps: those of a huge page.
const MOST_MAPPED_PAGES: u64 = 512;

/// The pages between two faults of a thread on one mapping that were touched without a fault, as
/// far as it can be told: a thread that goes on faults where the next window, or the next folio,
/// begins. One that touches a page here and there seldom comes to its first page.
fn hidden(before: u64, page: u64) -> std::ops::Range<u64> {
    let is_next = page.is_multiple_of(WINDOW_PAGES)
        && page.checked_sub(before).is_some_and(|pages| pages <= MOST_MAPPED_PAGES);
    if is_next { before + 1..page } else { page..page }
}

/// Paths of what is no file on a disk.
const NO_FILES: [&str; 5] = ["//", "/dev/", "/memfd:", "/SYSV", "/anon_hugepage"];

/// A line, as far as all have it.
struct Line<'a> {
    program: &'a str,
    /// The process, where the line tells it.
    pid: Option<u32>,
    tid: u32,
    /// What stands after the time.
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let is_time = |word: &&str| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            word.strip_suffix(':')
                .and_then(|word| word.split_once('.'))
                .is_some_and(|(seconds, part)| digits(seconds) && digits(part))
        };
        let time = line.split_whitespace().find(is_time)?;
        let at = time.as_ptr() as usize - line.as_ptr() as usize;
        let (before, rest) = (line[..at].trim(), line[at + time.len()..].trim());
        let before = match before.rsplit_once(char::is_whitespace) {
            Some((before, cpu)) if cpu.starts_with('[') => before.trim_end(),
            _ => before,
        };
        let (program, ids) = before.rsplit_once(char::is_whitespace)?;
        let (pid, tid) = match ids.split_once('/') {
            Some((pid, tid)) => (Some(pid.parse().ok()?), tid),
            None => (None, ids),
        };
        Some(Line { program: program.trim(), pid, tid: tid.parse().ok()?, rest })
    }
}

/// What a line is about.
enum Said {
    Mmap {
        pid: u32,
        mapping: Option<Mapping>,
        start: u64,
        end: u64,
    },
    Fork {
        pid: u32,
        tid: u32,
        parent: u32,
    },
    Exec {
        pid: u32,
    },
    Fault {
        address: Option<u64>,
        is_major: bool,
    },
    /// Something that changes nothing.
    Other,
}

fn said(line: &Line<'_>) -> Option<Said> {
    if let Some(record) = line.rest.strip_prefix("PERF_RECORD_") {
        return of_record(record);
    }
    let mut words = line.rest.split_whitespace().peekable();
    // A period.
    words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let event = words.next()?.strip_suffix(':')?;
    let name = event.split(':').next().unwrap_or(event);
    if !FAULTS.contains(&name) {
        return None;
    }
    let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
    // One place with its file in brackets is where the program was; the address comes with two.
    let places = line.rest.matches(" (").count();
    let is_major = name == MAJOR_FAULTS;
    Some(Said::Fault { address: address.filter(|_| places != 1), is_major })
}

fn of_record(record: &str) -> Option<Said> {
    if let Some(text) = record.strip_prefix("MMAP2 ").or(record.strip_prefix("MMAP ")) {
        return mmap(text);
    }
    // (child:thread):(parent:thread)
    if let Some(text) = record.strip_prefix("FORK(") {
        let (child, parent) = text.split_once("):(")?;
        let (pid, tid) = child.split_once(':')?;
        let parent = parent.split_once(':')?.0.parse().ok()?;
        return Some(Said::Fork { pid: pid.parse().ok()?, tid: tid.parse().ok()?, parent });
    }
    if let Some(text) = record.strip_prefix("COMM exec: ") {
        let (_, ids) = text.rsplit_once(':')?;
        return Some(Said::Exec { pid: ids.split('/').next()?.parse().ok()? });
    }
    Some(Said::Other)
}

/// `pid/tid: [start(length) @ offset major:minor inode generation]: rw-p path`; without what stands
/// after the offset in an older record.
fn mmap(text: &str) -> Option<Said> {
    let (ids, text) = text.split_once(": [")?;
    // The kernel's own has -1.
    let Ok(pid) = ids.split('/').next()?.parse() else { return Some(Said::Other) };
    let (start, text) = text.split_once('(')?;
    let (length, text) = text.split_once(") @ ")?;
    let (place, text) = text.split_once("]: ")?;
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    let offset = hex(place.split(' ').next()?)?;
    let (start, length) = (hex(start)?, hex(length)?);
    let end = start.checked_add(length)?;
    let (bits, path) = text.split_once(' ')?;
    let is_file = path.starts_with('/') && !NO_FILES.iter().any(|no| path.starts_with(no));
    let mapping = (is_file && length > 0).then(|| {
        let mapping = Mapping::new(PathBuf::from(path), start, length, offset);
        let bit = |letter, bit| if bits.contains(letter) { bit } else { 0 };
        Mapping {
            protection: bit('r', 1) | bit('w', 2) | bit('x', 4),
            flags: if bits.contains('s') { 1 } else { 2 },
            ..mapping
        }
    });
    Some(Said::Mmap { pid, mapping, start, end })
}

/// Reads a trace.
pub fn read<W: Write>(
    trace: impl BufRead,
    name: &str,
    sink: &mut Sink<'_, W>,
) -> Result<Imported, Error> {
    let mut imported = Imported::default();
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut spaces: HashMap<u32, Regions> = HashMap::new();
    let mut pids: HashMap<u32, u32> = HashMap::new();
    // The last fault of each thread: its mapping and page.
    let mut last: HashMap<u32, (usize, u64)> = HashMap::new();
    imported.lines = each_line(trace, name, |text| {
        if text.trim().is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let line = Line::of(text);
        let Some((line, said)) = line.and_then(|line| said(&line).map(|said| (line, said))) else {
            imported.unknown_lines += 1;
            return Ok(());
        };
        let pid = line.pid.or(pids.get(&line.tid).copied()).unwrap_or(line.tid);
        match said {
            Said::Mmap { pid, mapping, start, end } => {
                imported.mappings += 1;
                pids.insert(line.tid, pid);
                let index = mapping.map(|mapping| {
                    mappings.push(mapping);
                    mappings.len() - 1
                });
                spaces.entry(pid).or_default().map(start, end, index);
            }
            Said::Fork { pid, tid, parent } => {
                pids.insert(tid, pid);
                if pid != parent {
                    let space = spaces.get(&parent).cloned().unwrap_or_default();
                    spaces.insert(pid, space);
                    sink.begin(pid, Some(parent), line.program)?;
                }
            }
            Said::Exec { pid } => {
                spaces.remove(&pid);
                sink.begin(pid, Some(pid), line.program)?;
            }
            Said::Fault { address: None, .. } => imported.without_address += 1,
            Said::Fault { address: Some(address), is_major } => {
                let found = spaces.get(&pid).and_then(|space| space.at(address));
                let Some(found) = found else {
                    imported.other_faults += 1;
                    return Ok(());
                };
                let mapping = &mut mappings[found];
                let page = (address - mapping.address) / 4096;
                imported.faults += 1;
                imported.major_faults += u64::from(is_major);
                let before = last.insert(line.tid, (found, page)).filter(|(of, _)| *of == found);
                let hidden = before.filter(|_| !is_major).map(|(_, before)| hidden(before, page));
                for page in hidden.into_iter().flatten() {
                    imported.assumed += 1;
                    sink.fault((pid, line.tid, line.program), mapping, page, false)?;
                }
                sink.fault((pid, line.tid, line.program), mapping, page, false)?;
            }
            Said::Other => {}
        }
        Ok(())
    })?;
    Ok(imported)
}
