//! Traces with one fault per line: `PID TID NANOSECONDS r|w PAGE SIZE NAME`.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use super::sink::{RecordingSink, TracedMapping};
use super::{ImportError, ImportStats, each_line};

/// Maximum pages of a file, so that its size in bytes fits 64 bits.
const MAX_PAGES: u64 = 1 << 48;

/// A parsed line.
struct FaultLine<'a> {
    pid: u32,
    tid: u32,
    is_write: bool,
    page: u64,
    size_bytes: u64,
    name: &'a str,
}

impl<'a> FaultLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(7, ' ');
        let pid = words.next()?.parse().ok()?;
        let tid = words.next()?.parse().ok()?;
        let _ns: u64 = words.next()?.parse().ok()?;
        let is_write = match words.next()? {
            "r" => false,
            "w" => true,
            _ => return None,
        };
        let page = words.next()?.parse().ok().filter(|page| *page < MAX_PAGES)?;
        let size_bytes = words.next()?.parse().ok()?;
        let name = words.next().filter(|name| !name.is_empty())?;
        Some(FaultLine { pid, tid, is_write, page, size_bytes, name })
    }
}

/// Reads a trace. Each process is taken to map each of its files once, as a whole.
pub fn read<W: Write>(
    trace: impl BufRead,
    name: &str,
    sink: &mut RecordingSink<'_, W>,
) -> Result<ImportStats, ImportError> {
    let mut imported = ImportStats::default();
    let mut mappings: HashMap<(u32, String), TracedMapping> = HashMap::new();
    let mut last: HashMap<u32, (String, u64)> = HashMap::new();
    imported.lines = each_line(trace, name, |line| {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let Some(fault) = FaultLine::parse(line) else {
            imported.unknown_lines += 1;
            return Ok(());
        };
        let FaultLine { pid, tid, is_write, page, size_bytes, name } = fault;
        // A retried fault (VM_FAULT_RETRY) is reported twice.
        if last.get(&tid).is_some_and(|(file, at)| (file.as_str(), *at) == (name, page)) {
            return Ok(());
        }
        last.insert(tid, (name.to_string(), page));
        let mapping = mappings.entry((pid, name.to_string())).or_insert_with(|| {
            let length = size_bytes.max((page + 1) * 4096);
            let mapping = TracedMapping::new(PathBuf::from(name), 0, length, 0);
            TracedMapping { size_bytes: Some(size_bytes.max(1)), ..mapping }
        });
        if page >= mapping.length_bytes.div_ceil(4096) {
            // The file has grown since it was mapped.
            imported.other_faults += 1;
            return Ok(());
        }
        imported.faults += 1;
        Ok(sink.write_fault((pid, tid, &format!("process {pid}")), mapping, page, is_write)?)
    })?;
    imported.mappings = mappings.len() as u64;
    Ok(imported)
}
