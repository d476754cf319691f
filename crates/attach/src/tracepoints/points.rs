//! Table of the tracepoints in use, their fields, and the events they decode to.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::Path;

use super::TraceEventKind;
use crate::perf::{Attributes, COUNT_SW_DUMMY, Flag};
use crate::{Error, FileId};

/// `PERF_SAMPLE_RAW`: samples hold the raw tracepoint data, after TID and time.
const SAMPLE_RAW: u64 = 1 << 10;

/// Side-band records: mappings of code and data with their files, execs, forks and exits.
const METADATA_FLAGS: [Flag; 6] =
    [Flag::Mmap, Flag::MmapData, Flag::Mmap2, Flag::Comm, Flag::CommExec, Flag::Task];

/// Maximum number of fields decoded per tracepoint.
const MAX_FIELDS: usize = 4;

type FieldValues = [u64; MAX_FIELDS];

/// A tracepoint: name, fields to decode, conversion of their values to an event, and whether it is
/// a fault tracepoint, which is mandatory.
type TracepointSpec =
    (&'static str, &'static [&'static str], fn(&FieldValues) -> TraceEventKind, bool);

/// Bit of the x86 page fault error code: the access was a write.
const X86_PF_WRITE: u64 = 1 << 1;

fn decode_fault(values: &FieldValues) -> TraceEventKind {
    TraceEventKind::Fault { address: values[0], is_write: values[1] & X86_PF_WRITE != 0 }
}

/// `MLOCK_ONFAULT` of mlock2(2).
const MLOCK_ONFAULT: u64 = 1;

/// The calls of these tracepoints that matter, as a filter of the kernel: only reads of several
/// pages can have an untraced beginning.
const FILTERS: [(&str, &CStr); 2] =
    [("syscalls/sys_enter_read", c"count > 4096"), ("syscalls/sys_enter_pread64", c"count > 4096")];

/// The largest part of sendfile(2) in one read: the size of its pipe.
const PIPE_BYTES: u64 = 64 << 10;

const TRACEPOINTS: [TracepointSpec; 21] = [
    ("exceptions/page_fault_user", &["address", "error_code"], decode_fault, true),
    ("exceptions/page_fault_kernel", &["address", "error_code"], decode_fault, true),
    (
        "filemap/mm_filemap_get_pages",
        &["s_dev", "i_ino", "index", "last_index"],
        |v| TraceEventKind::Read { file: decode_file_id(v[0], v[1]), first: v[2], last: v[3] },
        false,
    ),
    (
        "syscalls/sys_enter_read",
        &["fd", "count"],
        |v| TraceEventKind::ReadCall { fd: v[0], length_bytes: v[1], offset_bytes: None },
        false,
    ),
    (
        "syscalls/sys_enter_pread64",
        &["fd", "count", "pos"],
        |v| TraceEventKind::ReadCall { fd: v[0], length_bytes: v[1], offset_bytes: Some(v[2]) },
        false,
    ),
    (
        "syscalls/sys_enter_sendfile64",
        &["in_fd", "count"],
        |v| TraceEventKind::ReadCall {
            fd: v[0],
            length_bytes: v[1].min(PIPE_BYTES),
            offset_bytes: None,
        },
        false,
    ),
    ("syscalls/sys_enter_mmap", &["flags"], |v| TraceEventKind::MmapCall { flags: v[0] }, false),
    (
        "syscalls/sys_enter_munmap",
        &["addr", "len"],
        |v| TraceEventKind::MunmapCall { address: v[0], length_bytes: v[1] },
        false,
    ),
    (
        "syscalls/sys_enter_mremap",
        &["addr", "old_len", "new_len"],
        |v| TraceEventKind::MremapCall {
            address: v[0],
            length_bytes: v[1],
            new_length_bytes: v[2],
        },
        false,
    ),
    (
        "syscalls/sys_exit_mremap",
        &["ret"],
        |v| TraceEventKind::MremapReturn { result: v[0].cast_signed() },
        false,
    ),
    (
        "syscalls/sys_enter_madvise",
        &["start", "len_in", "behavior"],
        |v| TraceEventKind::MadviseCall { address: v[0], length_bytes: v[1], advice: v[2] },
        false,
    ),
    (
        "syscalls/sys_exit_madvise",
        &["ret"],
        |v| TraceEventKind::MadviseReturn { result: v[0].cast_signed() },
        false,
    ),
    (
        "syscalls/sys_enter_mlock",
        &["start", "len"],
        |v| TraceEventKind::LockCall { address: v[0], length_bytes: v[1], populates: true },
        false,
    ),
    (
        "syscalls/sys_enter_mlock2",
        &["start", "len", "flags"],
        |v| TraceEventKind::LockCall {
            address: v[0],
            length_bytes: v[1],
            populates: v[2] & MLOCK_ONFAULT == 0,
        },
        false,
    ),
    (
        "syscalls/sys_enter_mlockall",
        &["flags"],
        |v| TraceEventKind::LockAllCall { flags: v[0] },
        false,
    ),
    (
        "syscalls/sys_enter_fadvise64",
        &["fd", "offset", "len", "advice"],
        |v| TraceEventKind::FadviseCall {
            fd: v[0],
            offset_bytes: v[1],
            length_bytes: v[2],
            advice: v[3],
        },
        false,
    ),
    (
        "syscalls/sys_enter_readahead",
        &["fd", "offset", "count"],
        |v| TraceEventKind::ReadaheadCall { fd: v[0], offset_bytes: v[1], length_bytes: v[2] },
        false,
    ),
    ("syscalls/sys_enter_execve", &[], |_| TraceEventKind::ExecCall, false),
    ("syscalls/sys_enter_execveat", &[], |_| TraceEventKind::ExecCall, false),
    ("syscalls/sys_exit_execve", &[], |_| TraceEventKind::ExecReturn, false),
    ("syscalls/sys_exit_execveat", &[], |_| TraceEventKind::ExecReturn, false),
];

/// Decodes a kernel `dev_t`, whose lower 20 bits (MINORBITS) are the minor number.
fn decode_file_id(device: u64, inode: u64) -> FileId {
    FileId { major: (device >> 20) as u32, minor: (device & 0xf_ffff) as u32, inode }
}

/// Offset and size of a tracepoint field, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    bytes: usize,
}

/// A tracepoint available in this kernel.
#[derive(Debug)]
struct Tracepoint {
    id: u64,
    fields: Vec<Field>,
    decode: fn(&FieldValues) -> TraceEventKind,
    is_fault: bool,
    filter: Option<&'static CStr>,
}

/// One perf event to open.
#[derive(Debug)]
pub struct EventSpec {
    pub attributes: Attributes,
    pub is_fault: bool,
    /// Which of its occurrences the kernel reports; all without it.
    pub filter: Option<&'static CStr>,
}

/// The tracepoints available in this kernel.
#[derive(Debug)]
pub struct TracepointTable {
    tracepoints: Vec<Tracepoint>,
    missing: Vec<&'static str>,
}

impl TracepointTable {
    /// Looks up the tracepoints in tracefs.
    ///
    /// # Errors
    /// A mandatory tracepoint is missing.
    pub fn open(tracefs: &Path) -> Result<TracepointTable, Error> {
        let mut found = TracepointTable { tracepoints: Vec::new(), missing: Vec::new() };
        for (name, fields, says, is_needed) in TRACEPOINTS {
            let directory = tracefs.join("events").join(name);
            let text = |file: &str| fs::read_to_string(directory.join(file)).ok();
            let point = || {
                let id = text("id")?.trim().parse().ok()?;
                let format = text("format")?;
                let fields = fields.iter().map(|name| find_field(&format, name));
                let fields = fields.collect::<Option<_>>()?;
                let filter = FILTERS.iter().find(|(of, _)| *of == name).map(|(_, filter)| *filter);
                Some(Tracepoint { id, fields, decode: says, is_fault: is_needed, filter })
            };
            match point() {
                Some(point) => found.tracepoints.push(point),
                None if is_needed => {
                    let remedy = "run this as root, on a kernel that has it (x86-64)";
                    let cause = io::Error::from_raw_os_error(libc::ENOENT);
                    return Err(Error::refusal(format!("the tracepoint {name}"), cause, remedy));
                }
                None => found.missing.push(name),
            }
        }
        Ok(found)
    }

    /// Optional tracepoints that this kernel lacks.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// All events, inherited by children. The first is the dummy event that reports mappings and
    /// processes.
    pub fn events(&self) -> impl Iterator<Item = EventSpec> {
        let inherited = |kind, config| {
            Attributes::new(kind, config).with_flags(&[Flag::Inherit]).with_wakeup_bytes(1)
        };
        let tells = inherited(Attributes::SOFTWARE, COUNT_SW_DUMMY).with_flags(&METADATA_FLAGS);
        let points = self.tracepoints.iter().map(move |point| {
            let attributes = inherited(Attributes::TRACEPOINT, point.id).with_sample(SAMPLE_RAW);
            EventSpec { attributes, is_fault: point.is_fault, filter: point.filter }
        });
        let tells = EventSpec { attributes: tells, is_fault: false, filter: None };
        [tells].into_iter().chain(points)
    }

    /// Decodes raw tracepoint data, whose first two bytes are the tracepoint ID (`common_type`).
    pub fn decode(&self, bytes: &[u8]) -> Option<TraceEventKind> {
        let id = u64::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let point = self.tracepoints.iter().find(|point| point.id == id)?;
        let mut values = FieldValues::default();
        for (value, field) in values.iter_mut().zip(&point.fields) {
            let mut word = [0; 8];
            let read = bytes.get(field.offset..field.offset + field.bytes)?;
            word.get_mut(..field.bytes)?.copy_from_slice(read);
            *value = u64::from_le_bytes(word);
        }
        Some((point.decode)(&values))
    }
}

/// Finds field `name` in a tracepoint's `format` file, with lines such as
/// `field:unsigned long address; offset:8; size:8; signed:0;`.
fn find_field(format: &str, name: &str) -> Option<Field> {
    format.lines().find_map(|line| {
        let (declared, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
        let is_it = declared.split([' ', '*']).next_back() == Some(name);
        let number = |key: &str| {
            let (_, rest) = rest.split_once(key)?;
            rest.split_once(';')?.0.parse::<usize>().ok()
        };
        let field = Field { offset: number("offset:")?, bytes: number("size:")? };
        (is_it && field.bytes <= 8).then_some(field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let format = "name: sys_enter_munmap\nID: 603\nformat:\n\
                      \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                      \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
                      \tfield:unsigned long addr;\toffset:16;\tsize:8;\tsigned:0;\n\
                      \tfield:const char *name;\toffset:24;\tsize:8;\tsigned:0;\n";
        assert_eq!(find_field(format, "addr"), Some(Field { offset: 16, bytes: 8 }));
        assert_eq!(find_field(format, "name"), Some(Field { offset: 24, bytes: 8 }));
        assert_eq!((find_field(format, "add"), find_field(format, "long")), (None, None));
    }

    #[test]
    fn decodes_tracepoint_record() {
        let fields = [8, 16].map(|offset| Field { offset, bytes: 8 }).to_vec();
        let points = TracepointTable {
            tracepoints: vec![Tracepoint {
                id: 77,
                fields,
                decode: decode_fault,
                is_fault: true,
                filter: None,
            }],
            missing: vec![],
        };
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&77_u16.to_ne_bytes());
        bytes[8..16].copy_from_slice(&0x1234_5000_u64.to_le_bytes());
        bytes[16] = 6;
        let fault = TraceEventKind::Fault { address: 0x1234_5000, is_write: true };
        assert_eq!(points.decode(&bytes), Some(fault));
        assert_eq!(points.decode(&bytes[..20]), None);
        bytes[0] = 1;
        assert_eq!(points.decode(&bytes), None);
        assert_eq!(decode_file_id(0x0fe0_0001, 5), FileId { major: 0xfe, minor: 1, inode: 5 });
    }
}
