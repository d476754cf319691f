//! Events that are no touches, as bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Problem;
use crate::event::{MAX_CALLERS, Pages, What};
use crate::wire::{Bytes, put_number, put_text};

const PROCESS: u8 = 1;
const THREAD: u8 = 2;
const MODULE: u8 = 3;
const FILE: u8 = 4;
const OPEN: u8 = 5;
const MAP: u8 = 6;
const UNMAP: u8 = 7;
const UNMAP_PART: u8 = 8;
const PROTECT: u8 = 9;
const MOVE: u8 = 10;
const MADVISE: u8 = 11;
const FADVISE: u8 = 12;
const READAHEAD: u8 = 13;
const READ: u8 = 14;
const TRUNCATE: u8 = 15;
const CLOSE: u8 = 16;
const EXIT: u8 = 17;
const LOST: u8 = 18;

/// Adds `what`, which is no touch: its kind, and its numbers and texts in order.
pub fn put(bytes: &mut Vec<u8>, what: &What) {
    let mut kind = |kind: u8, numbers: &[u64]| {
        bytes.push(kind);
        numbers.iter().for_each(|number| put_number(bytes, *number));
    };
    match what {
        What::Process { pid, parent, program } => {
            let parent = parent.map_or(0, |parent| u64::from(parent) + 1);
            kind(PROCESS, &[u64::from(*pid), parent]);
            put_path(bytes, program);
        }
        What::Thread { process, tid } => kind(THREAD, &[u64::from(*process), u64::from(*tid)]),
        What::Module { process, path, address, length_bytes, build_id, modified_ns } => {
            kind(MODULE, &[u64::from(*process), *address, *length_bytes, *modified_ns]);
            put_path(bytes, path);
            put_text(bytes, build_id);
        }
        What::File { path, size_bytes, device, inode } => {
            kind(FILE, &[*size_bytes, *device, *inode]);
            put_path(bytes, path);
        }
        What::Open { file } => kind(OPEN, &[u64::from(*file)]),
        What::Map { open, address, length_bytes, offset_bytes, protection, flags, callers } => {
            let (open, protection) = (u64::from(*open), u64::from(*protection));
            let flags = u64::from(*flags);
            kind(MAP, &[open, *address, *length_bytes, *offset_bytes, protection, flags]);
            let callers = &callers[..callers.len().min(MAX_CALLERS)];
            put_number(bytes, callers.len() as u64);
            callers.iter().for_each(|caller| put_number(bytes, *caller));
        }
        What::Unmap { mapping, part: None } => kind(UNMAP, &[u64::from(*mapping)]),
        What::Unmap { mapping, part: Some(Pages { first, pages }) } => {
            kind(UNMAP_PART, &[u64::from(*mapping), *first, *pages]);
        }
        What::Protect { mapping, pages: Pages { first, pages }, protection } => {
            kind(PROTECT, &[u64::from(*mapping), *first, *pages, u64::from(*protection)]);
        }
        What::Move { mapping, to, length_bytes } => {
            kind(MOVE, &[u64::from(*mapping), *to, *length_bytes]);
        }
        What::Madvise { mapping, pages: Pages { first, pages }, advice } => {
            kind(MADVISE, &[u64::from(*mapping), *first, *pages, u64::from(*advice)]);
        }
        What::Fadvise { open, offset_bytes, length_bytes, advice } => {
            kind(FADVISE, &[u64::from(*open), *offset_bytes, *length_bytes, u64::from(*advice)]);
        }
        What::Readahead { open, offset_bytes, length_bytes } => {
            kind(READAHEAD, &[u64::from(*open), *offset_bytes, *length_bytes]);
        }
        What::Read { open, offset_bytes, length_bytes } => {
            kind(READ, &[u64::from(*open), *offset_bytes, *length_bytes]);
        }
        What::Truncate { file, size_bytes } => kind(TRUNCATE, &[u64::from(*file), *size_bytes]),
        What::Close { open } => kind(CLOSE, &[u64::from(*open)]),
        What::Exit { process } => kind(EXIT, &[u64::from(*process)]),
        What::Lost { events } => kind(LOST, &[*events]),
        What::Touch { .. } => unreachable!("touches are columns"),
    }
}

/// Reads what [`put`] has written.
pub fn take(bytes: &mut Bytes<'_>) -> Result<What, Problem> {
    Ok(match bytes.byte()? {
        PROCESS => {
            let pid = bytes.small("the number of a process")?;
            let parent = bytes.small("the parent of a process")?.checked_sub(1);
            What::Process { pid, parent, program: path(bytes)? }
        }
        THREAD => {
            let process = bytes.small("the process of a thread")?;
            What::Thread { process, tid: bytes.small("the number of a thread")? }
        }
        MODULE => {
            let process = bytes.small("the process of a module")?;
            let (address, length_bytes) = (bytes.number()?, bytes.number()?);
            let (modified_ns, path) = (bytes.number()?, path(bytes)?);
            let build_id = bytes.text()?.to_vec();
            What::Module { process, path, address, length_bytes, build_id, modified_ns }
        }
        FILE => {
            let (size_bytes, device, inode) = (bytes.number()?, bytes.number()?, bytes.number()?);
            What::File { path: path(bytes)?, size_bytes, device, inode }
        }
        OPEN => What::Open { file: bytes.small("a file")? },
        MAP => {
            let open = open(bytes)?;
            let (address, length_bytes) = (bytes.number()?, bytes.number()?);
            let offset_bytes = bytes.number()?;
            let protection = bytes.small("a protection")?;
            let flags = bytes.small("a set of flags")?;
            let callers = bytes.count("callers", MAX_CALLERS)?;
            let callers = (0..callers).map(|_| bytes.number()).collect::<Result<_, _>>()?;
            What::Map { open, address, length_bytes, offset_bytes, protection, flags, callers }
        }
        UNMAP => What::Unmap { mapping: mapping(bytes)?, part: None },
        UNMAP_PART => What::Unmap { mapping: mapping(bytes)?, part: Some(pages(bytes)?) },
        PROTECT => {
            let (mapping, pages) = (mapping(bytes)?, pages(bytes)?);
            What::Protect { mapping, pages, protection: bytes.small("a protection")? }
        }
        MOVE => {
            let mapping = mapping(bytes)?;
            What::Move { mapping, to: bytes.number()?, length_bytes: bytes.number()? }
        }
        MADVISE => {
            let (mapping, pages) = (mapping(bytes)?, pages(bytes)?);
            What::Madvise { mapping, pages, advice: bytes.small("advice")? }
        }
        FADVISE => {
            let (open, offset_bytes, length_bytes) = part(bytes)?;
            What::Fadvise { open, offset_bytes, length_bytes, advice: bytes.small("advice")? }
        }
        READAHEAD => {
            let (open, offset_bytes, length_bytes) = part(bytes)?;
            What::Readahead { open, offset_bytes, length_bytes }
        }
        READ => {
            let (open, offset_bytes, length_bytes) = part(bytes)?;
            What::Read { open, offset_bytes, length_bytes }
        }
        TRUNCATE => What::Truncate { file: bytes.small("a file")?, size_bytes: bytes.number()? },
        CLOSE => What::Close { open: open(bytes)? },
        EXIT => What::Exit { process: bytes.small("a process")? },
        LOST => What::Lost { events: bytes.number()? },
        kind => return Err(Problem::malformed(format!("there is an event of kind {kind}"))),
    })
}

fn open(bytes: &mut Bytes<'_>) -> Result<u32, Problem> {
    bytes.small("an open file")
}

fn mapping(bytes: &mut Bytes<'_>) -> Result<u32, Problem> {
    bytes.small("a mapping")
}

fn pages(bytes: &mut Bytes<'_>) -> Result<Pages, Problem> {
    Ok(Pages { first: bytes.number()?, pages: bytes.number()? })
}

fn part(bytes: &mut Bytes<'_>) -> Result<(u32, u64, u64), Problem> {
    Ok((open(bytes)?, bytes.number()?, bytes.number()?))
}

fn put_path(bytes: &mut Vec<u8>, path: &Path) {
    put_text(bytes, path.as_os_str().as_bytes());
}

fn path(bytes: &mut Bytes<'_>) -> Result<PathBuf, Problem> {
    Ok(PathBuf::from(OsStr::from_bytes(bytes.text()?)))
}
