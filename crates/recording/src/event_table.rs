//! The events of a recording as rows of a table, for other tools.

use std::io::Read;

use crate::convert::advice;
use crate::error::Error;
use crate::event::{Event, EventKind, MappingPages};
use crate::header::NO_CLOCK;
use crate::reader::Reader;

/// The columns of a table of events: names, and whether they hold numbers.
pub const EVENT_COLUMNS: [(&str, bool); 11] = [
    ("process", true),
    ("thread", true),
    ("kind", false),
    ("file", false),
    ("mapping", true),
    ("open", true),
    ("offset_bytes", true),
    ("length_bytes", true),
    ("advice", false),
    ("time_ns", true),
    ("wait_ns", true),
];

/// A value of a row; `None` where the event has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventCell<'a> {
    /// A number.
    Number(Option<u64>),
    /// A text.
    Text(Option<&'a str>),
}

/// An event of a thread on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow<'a> {
    /// Number of the process.
    pub process: u32,
    /// Number of the thread.
    pub thread: u32,
    /// What happened: `touch` and `write` are accesses through a mapping, the others system calls.
    pub kind: &'static str,
    /// Path of the file.
    pub file: &'a str,
    /// Index of the mapping.
    pub mapping: Option<u32>,
    /// Index of the open file description.
    pub open: Option<u32>,
    /// Offset in the file.
    pub offset_bytes: Option<u64>,
    /// Length of the range.
    pub length_bytes: Option<u64>,
    /// The advice, as job files name it.
    pub advice: Option<&'a str>,
    /// User time of the thread up to the event; `None` if the recording has no times.
    pub time_ns: Option<u64>,
    /// User time of the thread since its previous event.
    pub wait_ns: Option<u64>,
}

impl EventRow<'_> {
    /// The values in the order of [`EVENT_COLUMNS`].
    pub fn cells(&self) -> [EventCell<'_>; EVENT_COLUMNS.len()] {
        let index = |index: Option<u32>| EventCell::Number(index.map(u64::from));
        [
            index(Some(self.process)),
            index(Some(self.thread)),
            EventCell::Text(Some(self.kind)),
            EventCell::Text(Some(self.file)),
            index(self.mapping),
            index(self.open),
            EventCell::Number(self.offset_bytes),
            EventCell::Number(self.length_bytes),
            EventCell::Text(self.advice),
            EventCell::Number(self.time_ns),
            EventCell::Number(self.wait_ns),
        ]
    }
}

/// Calls `row` for each event of a thread on a file that `reader` reads, in order.
///
/// # Errors
/// If the recording cannot be read, or an error of `row`.
pub fn for_each_row<R: Read, E: From<Error>>(
    reader: &mut Reader<R>,
    mut row: impl FnMut(&EventRow<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut table = EventTable {
        page_size: reader.header().page_size,
        has_times: reader.header().clock != NO_CLOCK,
        ..EventTable::default()
    };
    for event in reader.by_ref() {
        if let Some(next) = table.row(&event?) {
            row(&next)?;
        }
    }
    Ok(())
}

/// What the references in events mean.
#[derive(Debug, Default)]
struct EventTable {
    page_size: u64,
    has_times: bool,
    /// Number of each process.
    processes: Vec<u32>,
    threads: Vec<ThreadTime>,
    /// Path of each file.
    files: Vec<String>,
    /// File of each open file description.
    opens: Vec<u32>,
    mappings: Vec<MappedRange>,
}

/// A thread, and its user time so far.
#[derive(Debug)]
struct ThreadTime {
    process: u32,
    tid: u32,
    time_ns: u64,
}

/// A mapping of a recording.
#[derive(Debug)]
struct MappedRange {
    open: u32,
    offset_bytes: u64,
    length_bytes: u64,
}

/// What an event refers to, and its range.
struct Subject {
    kind: &'static str,
    mapping: Option<u32>,
    open: Option<u32>,
    file: u32,
    range: Option<(u64, u64)>,
}

impl EventTable {
    /// The row of `event`; `None` if no thread used a file in it.
    fn row(&mut self, event: &Event) -> Option<EventRow<'_>> {
        self.add(event);
        if !event.kind.is_of_thread() {
            return None;
        }
        let thread = &mut self.threads[event.thread as usize];
        thread.time_ns = thread.time_ns.saturating_add(event.wait_ns);
        let thread = &self.threads[event.thread as usize];
        let subject = self.subject(&event.kind)?;
        let advice = match event.kind {
            EventKind::Madvise { advice, .. } => Some(advice::madvise(advice).unwrap_or("other")),
            EventKind::Fadvise { advice, .. } => Some(advice::fadvise(advice).unwrap_or("other")),
            _ => None,
        };
        Some(EventRow {
            process: thread.process,
            thread: thread.tid,
            kind: subject.kind,
            file: &self.files[subject.file as usize],
            mapping: subject.mapping,
            open: subject.open,
            offset_bytes: subject.range.map(|(offset, _)| offset),
            length_bytes: subject.range.map(|(_, length)| length),
            advice,
            time_ns: self.has_times.then_some(thread.time_ns),
            wait_ns: self.has_times.then_some(event.wait_ns),
        })
    }

    /// Adds what `event` introduces or changes.
    fn add(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Process { pid, .. } => self.processes.push(*pid),
            EventKind::Thread { process, tid } => {
                let process = self.processes[*process as usize];
                self.threads.push(ThreadTime { process, tid: *tid, time_ns: 0 });
            }
            EventKind::File { path, .. } => self.files.push(path.to_string_lossy().into_owned()),
            EventKind::Open { file } => self.opens.push(*file),
            EventKind::Map { open, offset_bytes, length_bytes, .. } => {
                let (open, offset_bytes, length_bytes) = (*open, *offset_bytes, *length_bytes);
                self.mappings.push(MappedRange { open, offset_bytes, length_bytes });
            }
            EventKind::Move { mapping, length_bytes, .. } => {
                self.mappings[*mapping as usize].length_bytes = *length_bytes;
            }
            _ => {}
        }
    }

    fn subject(&self, kind: &EventKind) -> Option<Subject> {
        let of_open = |kind, open: u32, range| Subject {
            kind,
            mapping: None,
            open: Some(open),
            file: self.opens[open as usize],
            range,
        };
        let of_mapping = |kind, mapping: u32, part: Option<MappingPages>| {
            let mapped = &self.mappings[mapping as usize];
            let range = match part {
                None => (mapped.offset_bytes, mapped.length_bytes),
                Some(MappingPages { first, pages }) => {
                    let start = first.saturating_mul(self.page_size);
                    let length_bytes = pages.saturating_mul(self.page_size);
                    (mapped.offset_bytes.saturating_add(start), length_bytes)
                }
            };
            Subject { mapping: Some(mapping), ..of_open(kind, mapped.open, Some(range)) }
        };
        Some(match *kind {
            EventKind::Open { .. } => of_open("open", self.opens.len() as u32 - 1, None),
            EventKind::Close { open } => of_open("close", open, None),
            EventKind::Map { .. } => of_mapping("map", self.mappings.len() as u32 - 1, None),
            EventKind::Unmap { mapping, part } => of_mapping("unmap", mapping, part),
            EventKind::Protect { mapping, pages, .. } => {
                of_mapping("protect", mapping, Some(pages))
            }
            EventKind::Move { mapping, .. } => of_mapping("move", mapping, None),
            EventKind::Madvise { mapping, pages, .. } => {
                of_mapping("madvise", mapping, Some(pages))
            }
            EventKind::Fadvise { open, offset_bytes, length_bytes, .. } => {
                of_open("fadvise", open, Some((offset_bytes, length_bytes)))
            }
            EventKind::Readahead { open, offset_bytes, length_bytes } => {
                of_open("readahead", open, Some((offset_bytes, length_bytes)))
            }
            EventKind::Read { open, offset_bytes, length_bytes } => {
                of_open("read", open, Some((offset_bytes, length_bytes)))
            }
            EventKind::Truncate { file, size_bytes } => {
                let range = Some((0, size_bytes));
                Subject { kind: "truncate", mapping: None, open: None, file, range }
            }
            EventKind::Unseen { mapping, pages } => of_mapping("unseen", mapping, Some(pages)),
            EventKind::Touch { mapping, page, is_write } => {
                let kind = if is_write { "write" } else { "touch" };
                of_mapping(kind, mapping, Some(MappingPages { first: page, pages: 1 }))
            }
            _ => return None,
        })
    }
}
