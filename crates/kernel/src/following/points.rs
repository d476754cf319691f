//! The events: which tracepoints, what is read of them, and what that says.

use std::fs;

use super::What;
use crate::Error;
use crate::trace::{Inode, TraceFs};

/// `struct perf_event_attr` of `linux/perf_event.h`, up to `sig_data`.
pub type Attributes = [u64; 16];

const TYPE_SOFTWARE: u64 = 1;
const TYPE_TRACEPOINT: u64 = 2;
/// An event that never happens.
const DUMMY: u64 = 9;

/// Each sample has these, in this order: the thread, the time, what the tracepoint has written.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 10;

/// Off at first; children inherit it; records have the thread and time too; another clock.
const FLAGS: u64 = 1 | 1 << 1 | 1 << 18 | 1 << 25;
const CLOCK_MONOTONIC: u64 = 1;

/// Mappings, of code and others, with their files; programs; processes and threads.
const TELLS: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 17 | 1 << 23 | 1 << 24;

/// Whoever waits is woken by bytes, not by samples.
const WATERMARK: u64 = 1 << 14;

fn attributes(kind: u64, config: u64, flags: u64) -> Attributes {
    let mut words = [0; 16];
    words[0] = kind | (size_of::<Attributes>() as u64) << 32;
    words[1] = config;
    // Each event is a sample.
    words[2] = 1;
    words[3] = SAMPLE_TYPE;
    words[5] = FLAGS | flags;
    words[11] = CLOCK_MONOTONIC << 32;
    words
}

/// The event that tells of mappings and processes.
pub fn mappings() -> Attributes {
    let mut words = attributes(TYPE_SOFTWARE, DUMMY, TELLS | WATERMARK);
    // Each byte wakes who waits.
    words[6] = 1;
    words
}

/// The most fields of a tracepoint that are read.
const MOST_FIELDS: usize = 4;

type Values = [u64; MOST_FIELDS];

/// A tracepoint: its name, the fields that are read, what it says with their values, and whether
/// nothing can be told without it.
type Known = (&'static str, &'static [&'static str], fn(&Values) -> What, bool);

/// The bit of an error code of x86 that says that a fault was a write.
const BY_WRITE: u64 = 1 << 1;

fn fault(values: &Values) -> What {
    What::Fault { address: values[0], is_write: values[1] & BY_WRITE != 0 }
}

const KNOWN: [Known; 14] = [
    ("exceptions/page_fault_user", &["address", "error_code"], fault, true),
    ("exceptions/page_fault_kernel", &["address", "error_code"], fault, true),
    (
        "filemap/mm_filemap_get_pages",
        &["s_dev", "i_ino", "index", "last_index"],
        |v| What::Read { file: inode(v[0], v[1]), first: v[2], last: v[3] },
        false,
    ),
    ("syscalls/sys_enter_mmap", &["flags"], |v| What::CallsMap { flags: v[0] }, false),
    (
        "syscalls/sys_enter_munmap",
        &["addr", "len"],
        |v| What::Unmap { address: v[0], length_bytes: v[1] },
        false,
    ),
    (
        "syscalls/sys_enter_mremap",
        &["addr", "old_len", "new_len"],
        |v| What::CallsMove { address: v[0], length_bytes: v[1], new_length_bytes: v[2] },
        false,
    ),
    ("syscalls/sys_exit_mremap", &["ret"], |v| What::Moved { result: v[0].cast_signed() }, false),
    (
        "syscalls/sys_enter_madvise",
        &["start", "len_in", "behavior"],
        |v| What::Advise { address: v[0], length_bytes: v[1], advice: v[2] },
        false,
    ),
    (
        "syscalls/sys_enter_fadvise64",
        &["fd", "offset", "len", "advice"],
        |v| What::AdviseFile {
            descriptor: v[0],
            offset_bytes: v[1],
            length_bytes: v[2],
            advice: Some(v[3]),
        },
        false,
    ),
    (
        "syscalls/sys_enter_readahead",
        &["fd", "offset", "count"],
        |v| What::AdviseFile {
            descriptor: v[0],
            offset_bytes: v[1],
            length_bytes: v[2],
            advice: None,
        },
        false,
    ),
    ("syscalls/sys_enter_execve", &[], |_| What::CallsExec, false),
    ("syscalls/sys_enter_execveat", &[], |_| What::CallsExec, false),
    ("syscalls/sys_exit_execve", &[], |_| What::ExecReturns, false),
    ("syscalls/sys_exit_execveat", &[], |_| What::ExecReturns, false),
];

/// A file by its device as the kernel keeps that: 20 bits of it are the minor number.
fn inode(device: u64, number: u64) -> Inode {
    Inode { major: (device >> 20) as u32, minor: (device & 0xf_ffff) as u32, number }
}

/// A field of a tracepoint: where it is, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    bytes: usize,
}

/// A tracepoint of this kernel.
#[derive(Debug)]
struct Point {
    id: u64,
    fields: Vec<Field>,
    says: fn(&Values) -> What,
}

/// The tracepoints that this kernel has.
#[derive(Debug)]
pub struct Points {
    points: Vec<Point>,
    missing: Vec<&'static str>,
}

impl Points {
    /// Looks for them.
    ///
    /// # Errors
    /// When one of those is missing without which nothing can be told.
    pub fn of(tracefs: &TraceFs) -> Result<Points, Error> {
        let mut found = Points { points: Vec::new(), missing: Vec::new() };
        for (name, fields, says, is_needed) in KNOWN {
            let directory = tracefs.root().join("events").join(name);
            let text = |file: &str| fs::read_to_string(directory.join(file)).ok();
            let point = || {
                let id = text("id")?.trim().parse().ok()?;
                let format = text("format")?;
                let fields = fields.iter().map(|name| field(&format, name));
                Some(Point { id, fields: fields.collect::<Option<_>>()?, says })
            };
            match point() {
                Some(point) => found.points.push(point),
                None if is_needed => {
                    let remedy = "use a kernel that has it (x86-64)";
                    return Err(Error::unavailable(format!("the tracepoint {name}"), remedy));
                }
                None => found.missing.push(name),
            }
        }
        Ok(found)
    }

    /// Those that are not there, without which less is told.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// The events of all of them.
    pub fn attributes(&self) -> impl Iterator<Item = Attributes> {
        self.points.iter().map(|point| attributes(TYPE_TRACEPOINT, point.id, 0))
    }

    /// What the bytes say that a tracepoint has written: its number is in the first two of them.
    pub fn say(&self, bytes: &[u8]) -> Option<What> {
        let id = u64::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let point = self.points.iter().find(|point| point.id == id)?;
        let mut values = Values::default();
        for (value, field) in values.iter_mut().zip(&point.fields) {
            let mut word = [0; 8];
            let read = bytes.get(field.offset..field.offset + field.bytes)?;
            word.get_mut(..field.bytes)?.copy_from_slice(read);
            *value = u64::from_le_bytes(word);
        }
        Some((point.says)(&values))
    }
}

/// The field `name` of a tracepoint with this `format`, whose lines are
/// `field:unsigned long address; offset:8; size:8; signed:0;`.
fn field(format: &str, name: &str) -> Option<Field> {
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
        assert_eq!(field(format, "addr"), Some(Field { offset: 16, bytes: 8 }));
        assert_eq!(field(format, "name"), Some(Field { offset: 24, bytes: 8 }));
        assert_eq!((field(format, "add"), field(format, "long")), (None, None));
    }

    #[test]
    fn what_a_tracepoint_has_written_is_read() {
        let fields = [8, 16].map(|offset| Field { offset, bytes: 8 }).to_vec();
        let points =
            Points { points: vec![Point { id: 77, fields, says: fault }], missing: vec![] };
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&77_u16.to_ne_bytes());
        bytes[8..16].copy_from_slice(&0x1234_5000_u64.to_le_bytes());
        bytes[16] = 6;
        let fault = What::Fault { address: 0x1234_5000, is_write: true };
        assert_eq!(points.say(&bytes), Some(fault));
        assert_eq!(points.say(&bytes[..20]), None);
        bytes[0] = 1;
        assert_eq!(points.say(&bytes), None);
        assert_eq!(inode(0x0fe0_0001, 5), Inode { major: 0xfe, minor: 1, number: 5 });
    }
}
