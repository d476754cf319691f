//! Records of perf events: see `enum perf_event_type` of `linux/perf_event.h`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::{Event, EventKind, FileId, MappedFile, MappedRange};

/// Size of `struct perf_event_header`: type in 4 bytes, misc in 2, size in 2.
const HEAD_BYTES: usize = 8;

/// `PERF_RECORD_MISC_COMM_EXEC`: the name changed by exec.
const MISC_COMM_EXEC: u16 = 1 << 13;

/// Record types (`PERF_RECORD_*`) that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Lost,
    Comm,
    Exit,
    Throttle,
    Fork,
    Sample,
    Mmap2,
    LostSamples,
    Other,
}

/// A record. Samples begin with TID and time, all others end with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerfRecord<'a> {
    pub(crate) kind: RecordKind,
    flags: u16,
    body: &'a [u8],
}

/// Parses the record at the start of `bytes`, and returns its size in bytes, too.
#[inline]
pub(crate) fn record_at(bytes: &[u8]) -> Option<(PerfRecord<'_>, usize)> {
    let head = bytes.first_chunk::<HEAD_BYTES>()?;
    let [a, b, c, d, flags_a, flags_b, length_a, length_b] = *head;
    let kind = match u32::from_ne_bytes([a, b, c, d]) {
        2 => RecordKind::Lost,
        3 => RecordKind::Comm,
        4 => RecordKind::Exit,
        5 => RecordKind::Throttle,
        7 => RecordKind::Fork,
        9 => RecordKind::Sample,
        10 => RecordKind::Mmap2,
        13 => RecordKind::LostSamples,
        _ => RecordKind::Other,
    };
    let length = usize::from(u16::from_ne_bytes([length_a, length_b]));
    let body = bytes.get(HEAD_BYTES..length)?;
    // Every record holds at least TID and time.
    let record = PerfRecord { kind, flags: u16::from_ne_bytes([flags_a, flags_b]), body };
    (body.len() >= ORIGIN_BYTES).then_some((record, length))
}

/// Size of PID, TID and time.
const ORIGIN_BYTES: usize = 16;

/// PID, TID and time of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordOrigin {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) at_ns: u64,
}

impl<'a> PerfRecord<'a> {
    #[inline]
    pub(crate) fn origin(&self) -> RecordOrigin {
        let begin = match self.kind {
            RecordKind::Sample => 0,
            _ => self.body.len() - ORIGIN_BYTES,
        };
        let word = |at: usize| u32_at(self.body, begin + at).expect("a record has an origin");
        let at_ns = u64_at(self.body, begin + 8).expect("a record has an origin");
        RecordOrigin { pid: word(0), tid: word(4), at_ns }
    }

    /// Contents of a sample after TID and time.
    #[inline]
    pub(crate) fn sampled(&self) -> &'a [u8] {
        &self.body[ORIGIN_BYTES..]
    }

    /// Address of a sample with `PERF_SAMPLE_ADDR`.
    #[inline]
    pub(crate) fn address(&self) -> Option<u64> {
        u64_at(self.sampled(), 0)
    }

    /// Raw tracepoint data of a sample with `PERF_SAMPLE_RAW`.
    pub(crate) fn raw(&self) -> Option<&'a [u8]> {
        let length = u32_at(self.sampled(), 0)?;
        self.sampled().get(4..)?.get(..length as usize)
    }

    /// Converts the record to an event; `None` for samples and irrelevant records.
    pub(crate) fn event(&self) -> Option<Event> {
        let RecordOrigin { pid, tid, at_ns } = self.origin();
        let event = |kind| Some(Event { at_ns, pid, tid, kind });
        match self.kind {
            RecordKind::Mmap2 => event(EventKind::Map(self.mapped_range()?)),
            RecordKind::Comm if self.flags & MISC_COMM_EXEC != 0 => event(EventKind::Exec),
            // The trailing TID is the parent's; the body has the child's.
            RecordKind::Fork | RecordKind::Exit => {
                let [pid, parent, tid] = [0, 4, 8].map(|at| u32_at(self.body, at));
                let change = if self.kind == RecordKind::Fork {
                    EventKind::Fork { parent: parent? }
                } else {
                    EventKind::Exit
                };
                Some(Event { at_ns, pid: pid?, tid: tid?, kind: change })
            }
            RecordKind::Lost => event(EventKind::Lost { records: u64_at(self.body, 8)? }),
            RecordKind::LostSamples => event(EventKind::Lost { records: u64_at(self.body, 0)? }),
            // The number of throttled samples is unknown.
            RecordKind::Throttle => event(EventKind::Lost { records: 1 }),
            RecordKind::Comm | RecordKind::Sample | RecordKind::Other => None,
        }
    }

    fn mapped_range(&self) -> Option<MappedRange> {
        let (long, word) = (|at| u64_at(self.body, at), |at| u32_at(self.body, at));
        let (address, length_bytes, offset_bytes) = (long(8)?, long(16)?, long(24)?);
        let id = FileId { major: word(32)?, minor: word(36)?, inode: long(40)? };
        let (protection, flags) = (word(56)?, word(60)?);
        let path = self.body.get(64..)?.split(|byte| *byte == 0).next()?;
        // Anonymous mappings have names as well, such as //anon or [stack].
        let is_file = id.inode != 0 && path.first() == Some(&b'/') && !path.starts_with(b"//");
        let file = is_file.then(|| MappedFile { id, path: OsStr::from_bytes(path).into() });
        let is_shared = flags & libc::MAP_SHARED.cast_unsigned() != 0;
        Some(MappedRange { address, length_bytes, offset_bytes, file, protection, is_shared })
    }
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
