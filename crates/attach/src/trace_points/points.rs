//! The events: which tracepoints, what is read of them, and what that says.

use std::fs;
use std::io;
use std::path::Path;

use super::What;
use crate::perf::{Attributes, Flag, NOTHING};
use crate::{Error, FileId};

/// A sample has what the tracepoint has written, after the thread and the time.
const SAMPLE_RAW: u64 = 1 << 10;

/// Mappings, of code and others, with their files; programs; processes and threads.
const TELLS: [Flag; 6] =
    [Flag::Mmap, Flag::MmapData, Flag::Mmap2, Flag::Comm, Flag::CommExec, Flag::Task];

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

const KNOWN: [Known; 15] = [
    ("exceptions/page_fault_user", &["address", "error_code"], fault, true),
    ("exceptions/page_fault_kernel", &["address", "error_code"], fault, true),
    (
        "filemap/mm_filemap_get_pages",
        &["s_dev", "i_ino", "index", "last_index"],
        |v| What::Read { file: file(v[0], v[1]), first: v[2], last: v[3] },
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
        "syscalls/sys_exit_madvise",
        &["ret"],
        |v| What::Advised { result: v[0].cast_signed() },
        false,
    ),
    (
        "syscalls/sys_enter_fadvise64",
        &["fd", "offset", "len", "advice"],
        |v| What::AdviseFile { fd: v[0], offset_bytes: v[1], length_bytes: v[2], advice: v[3] },
        false,
    ),
    (
        "syscalls/sys_enter_readahead",
        &["fd", "offset", "count"],
        |v| What::ReadAhead { fd: v[0], offset_bytes: v[1], length_bytes: v[2] },
        false,
    ),
    ("syscalls/sys_enter_execve", &[], |_| What::CallsExec, false),
    ("syscalls/sys_enter_execveat", &[], |_| What::CallsExec, false),
    ("syscalls/sys_exit_execve", &[], |_| What::ExecReturns, false),
    ("syscalls/sys_exit_execveat", &[], |_| What::ExecReturns, false),
];

/// A file by its device as the kernel keeps that: 20 bits of it are the minor number.
fn file(device: u64, inode: u64) -> FileId {
    FileId { major: (device >> 20) as u32, minor: (device & 0xf_ffff) as u32, inode }
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
    is_fault: bool,
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
    pub fn of(tracefs: &Path) -> Result<Points, Error> {
        let mut found = Points { points: Vec::new(), missing: Vec::new() };
        for (name, fields, says, is_needed) in KNOWN {
            let directory = tracefs.join("events").join(name);
            let text = |file: &str| fs::read_to_string(directory.join(file)).ok();
            let point = || {
                let id = text("id")?.trim().parse().ok()?;
                let format = text("format")?;
                let fields = fields.iter().map(|name| field(&format, name));
                let fields = fields.collect::<Option<_>>()?;
                Some(Point { id, fields, says, is_fault: is_needed })
            };
            match point() {
                Some(point) => found.points.push(point),
                None if is_needed => {
                    let remedy = "run this as root, on a kernel that has it (x86-64)";
                    let cause = io::Error::from_raw_os_error(libc::ENOENT);
                    return Err(Error::refused(format!("the tracepoint {name}"), cause, remedy));
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

    /// The events of all of them, which children inherit, and which of them tell of faults; before
    /// them the one that tells of mappings and processes.
    pub fn attributes(&self) -> impl Iterator<Item = (Attributes, bool)> {
        let inherited =
            |kind, config| Attributes::new(kind, config).with(&[Flag::Inherit]).waking_after(1);
        let tells = inherited(Attributes::SOFTWARE, NOTHING).with(&TELLS);
        let points = self.points.iter().map(move |point| {
            let attributes = inherited(Attributes::TRACEPOINT, point.id).sampling(SAMPLE_RAW);
            (attributes, point.is_fault)
        });
        [(tells, false)].into_iter().chain(points)
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
        let points = Points {
            points: vec![Point { id: 77, fields, says: fault, is_fault: true }],
            missing: vec![],
        };
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&77_u16.to_ne_bytes());
        bytes[8..16].copy_from_slice(&0x1234_5000_u64.to_le_bytes());
        bytes[16] = 6;
        let fault = What::Fault { address: 0x1234_5000, is_write: true };
        assert_eq!(points.say(&bytes), Some(fault));
        assert_eq!(points.say(&bytes[..20]), None);
        bytes[0] = 1;
        assert_eq!(points.say(&bytes), None);
        assert_eq!(file(0x0fe0_0001, 5), FileId { major: 0xfe, minor: 1, inode: 5 });
    }
}
