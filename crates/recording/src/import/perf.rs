//! Parser for the output of `perf script`.
//!
//! A line has the program name, PID/TID or TID, optionally the CPU in brackets, the time with a
//! colon, and then either a record (such as `PERF_RECORD_MMAP2`) or an event: optionally its
//! period, its name with a colon, and its fields.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::path::PathBuf;

use super::sink::{RecordingSink, TracedMapping};
use super::{ImportError, ImportStats, each_line};

/// Names of fault events.
const FAULTS: [&str; 4] = [MAJOR_FAULTS, "minor-faults", "page-faults", "faults"];

/// Faults that waited for I/O; pages already in the page cache cause none.
const MAJOR_FAULTS: &str = "major-faults";

/// Default size of the fault-around window (`fault_around_bytes`) in 4 KiB pages; windows are
/// aligned to it.
const WINDOW_PAGES: u64 = 16;

/// Maximum pages mapped by one fault: a PMD-sized folio.
const MAX_MAPPED_PAGES: u64 = 512;

/// The pages between two consecutive faults of a thread on one mapping that were probably touched
/// without a fault. A sequential scan faults at the start of the next fault-around window or folio,
/// whereas random accesses seldom hit the first page of one.
fn untraced_pages(before: u64, page: u64) -> std::ops::Range<u64> {
    let is_next = page.is_multiple_of(WINDOW_PAGES)
        && page.checked_sub(before).is_some_and(|pages| pages <= MAX_MAPPED_PAGES);
    if is_next { before + 1..page } else { page..page }
}

/// Path prefixes of mappings without a file on disk.
const NON_FILE_PREFIXES: [&str; 5] = ["//", "/dev/", "/memfd:", "/SYSV", "/anon_hugepage"];

/// The fields that all lines have.
struct TraceLine<'a> {
    program: &'a str,
    /// The PID, if printed.
    pid: Option<u32>,
    tid: u32,
    /// The text after the time.
    rest: &'a str,
}

impl<'a> TraceLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
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
        Some(TraceLine { program: program.trim(), pid, tid: tid.parse().ok()?, rest })
    }
}

/// The record or event of a line.
enum TraceRecord {
    Mmap {
        pid: u32,
        mapping: Option<TracedMapping>,
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
    /// A record that does not matter here.
    Other,
}

fn parse_record(line: &TraceLine<'_>) -> Option<TraceRecord> {
    if let Some(record) = line.rest.strip_prefix("PERF_RECORD_") {
        return parse_perf_record(record);
    }
    let mut words = line.rest.split_whitespace().peekable();
    // The optional period.
    words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let event = words.next()?.strip_suffix(':')?;
    let name = event.split(':').next().unwrap_or(event);
    if !FAULTS.contains(&name) {
        return None;
    }
    let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
    // Each symbolized address is followed by its file in parentheses. With only one, it is the
    // instruction pointer, and the data address was not printed.
    let places = line.rest.matches(" (").count();
    let is_major = name == MAJOR_FAULTS;
    Some(TraceRecord::Fault { address: address.filter(|_| places != 1), is_major })
}

fn parse_perf_record(record: &str) -> Option<TraceRecord> {
    if let Some(text) = record.strip_prefix("MMAP2 ").or(record.strip_prefix("MMAP ")) {
        return parse_mmap(text);
    }
    // FORK(PID:TID):(PARENT PID:PARENT TID)
    if let Some(text) = record.strip_prefix("FORK(") {
        let (child, parent) = text.split_once("):(")?;
        let (pid, tid) = child.split_once(':')?;
        let parent = parent.split_once(':')?.0.parse().ok()?;
        return Some(TraceRecord::Fork { pid: pid.parse().ok()?, tid: tid.parse().ok()?, parent });
    }
    if let Some(text) = record.strip_prefix("COMM exec: ") {
        let (_, ids) = text.rsplit_once(':')?;
        return Some(TraceRecord::Exec { pid: ids.split('/').next()?.parse().ok()? });
    }
    Some(TraceRecord::Other)
}

/// `pid/tid: [start(length) @ offset major:minor inode generation]: rw-p path`. MMAP records lack
/// the fields after the offset.
fn parse_mmap(text: &str) -> Option<TraceRecord> {
    let (ids, text) = text.split_once(": [")?;
    // Mappings of the kernel have PID -1.
    let Ok(pid) = ids.split('/').next()?.parse() else { return Some(TraceRecord::Other) };
    let (start, text) = text.split_once('(')?;
    let (length, text) = text.split_once(") @ ")?;
    let (place, text) = text.split_once("]: ")?;
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    let offset = hex(place.split(' ').next()?)?;
    let (start, length) = (hex(start)?, hex(length)?);
    let end = start.checked_add(length)?;
    let (bits, path) = text.split_once(' ')?;
    let is_file = path.starts_with('/') && !NON_FILE_PREFIXES.iter().any(|no| path.starts_with(no));
    let mapping = (is_file && length > 0).then(|| {
        let mapping = TracedMapping::new(PathBuf::from(path), start, length, offset);
        let bit = |letter, bit| if bits.contains(letter) { bit } else { 0 };
        TracedMapping {
            protection: bit('r', 1) | bit('w', 2) | bit('x', 4),
            flags: if bits.contains('s') { 1 } else { 2 },
            ..mapping
        }
    });
    Some(TraceRecord::Mmap { pid, mapping, start, end })
}

/// Reads a trace.
pub fn read<W: Write>(
    trace: impl BufRead,
    name: &str,
    sink: &mut RecordingSink<'_, W>,
) -> Result<ImportStats, ImportError> {
    let mut imported = ImportStats::default();
    let mut mappings: Vec<TracedMapping> = Vec::new();
    let mut spaces: HashMap<u32, MappedRegions> = HashMap::new();
    let mut pids: HashMap<u32, u32> = HashMap::new();
    // Mapping and page of the last fault of each thread.
    let mut last: HashMap<u32, (usize, u64)> = HashMap::new();
    imported.lines = each_line(trace, name, |text| {
        if text.trim().is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let line = TraceLine::parse(text);
        let Some((line, parsed)) =
            line.and_then(|line| parse_record(&line).map(|record| (line, record)))
        else {
            imported.unknown_lines += 1;
            return Ok(());
        };
        let pid = line.pid.or(pids.get(&line.tid).copied()).unwrap_or(line.tid);
        match parsed {
            TraceRecord::Mmap { pid, mapping, start, end } => {
                imported.mappings += 1;
                pids.insert(line.tid, pid);
                let index = mapping.map(|mapping| {
                    mappings.push(mapping);
                    mappings.len() - 1
                });
                spaces.entry(pid).or_default().map(start, end, index);
            }
            TraceRecord::Fork { pid, tid, parent } => {
                pids.insert(tid, pid);
                if pid != parent {
                    let space = spaces.get(&parent).cloned().unwrap_or_default();
                    spaces.insert(pid, space);
                    sink.start_process(pid, Some(parent), line.program)?;
                }
            }
            TraceRecord::Exec { pid } => {
                spaces.remove(&pid);
                sink.start_process(pid, Some(pid), line.program)?;
            }
            TraceRecord::Fault { address: None, .. } => imported.without_address += 1,
            TraceRecord::Fault { address: Some(address), is_major } => {
                let found = spaces.get(&pid).and_then(|space| space.at(address));
                let Some(found) = found else {
                    imported.other_faults += 1;
                    return Ok(());
                };
                let mapping = &mut mappings[found];
                let page = (address - mapping.address) / 4096;
                imported.faults += 1;
                imported.major_faults += u64::from(is_major);
                let before =
                    last.insert(line.tid, (found, page)).filter(|(mapping, _)| *mapping == found);
                let hidden =
                    before.filter(|_| !is_major).map(|(_, before)| untraced_pages(before, page));
                for page in hidden.into_iter().flatten() {
                    imported.assumed += 1;
                    sink.write_fault((pid, line.tid, line.program), mapping, page, false)?;
                }
                sink.write_fault((pid, line.tid, line.program), mapping, page, false)?;
            }
            TraceRecord::Other => {}
        }
        Ok(())
    })?;
    Ok(imported)
}

/// The address space of a process.
#[derive(Clone, Debug, Default)]
struct MappedRegions {
    /// By start address: end address and mapping; `None` for mappings of other memory than files.
    regions: BTreeMap<u64, (u64, Option<usize>)>,
}

impl MappedRegions {
    /// Maps `start..end`, replacing overlapping regions.
    fn map(&mut self, start: u64, end: u64, mapping: Option<usize>) {
        let before = self.regions.range(..end).rev();
        let hit: Vec<(u64, u64, Option<usize>)> = before
            .take_while(|(_, (behind, _))| *behind > start)
            .map(|(first, (behind, mapping))| (*first, *behind, *mapping))
            .collect();
        for (first, behind, mapping) in hit {
            self.regions.remove(&first);
            if first < start {
                self.regions.insert(first, (start, mapping));
            }
            if behind > end {
                self.regions.insert(end, (behind, mapping));
            }
        }
        self.regions.insert(start, (end, mapping));
    }

    /// The file mapping at `address`.
    fn at(&self, address: u64) -> Option<usize> {
        let (_, (end, mapping)) = self.regions.range(..=address).next_back()?;
        mapping.filter(|_| address < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_later_is_on_top() {
        let mut regions = MappedRegions::default();
        regions.map(10, 50, Some(1));
        regions.map(60, 70, Some(2));
        regions.map(20, 30, Some(3));
        regions.map(45, 65, None);
        let at = |address| regions.at(address);
        assert_eq!(
            [9, 10, 19, 20, 29, 30, 44].map(at),
            [None, Some(1), Some(1), Some(3), Some(3), Some(1), Some(1)]
        );
        assert_eq!([45, 64, 65, 69, 70].map(at), [None, None, Some(2), Some(2), None]);
        regions.map(0, 100, Some(4));
        assert_eq!(
            [0, 25, 99, 100].map(|address| regions.at(address)),
            [Some(4), Some(4), Some(4), None]
        );
    }
}
