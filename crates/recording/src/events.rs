//! The encoding of events other than touches.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Problem;
use crate::event::{EventKind, GapKind, MappingPages};
use crate::wire::{ByteReader, encode_number, encode_text};

const PROCESS: u8 = 1;
const THREAD: u8 = 2;
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
const GAP: u8 = 19;
const MEMORY: u8 = 20;
const CACHED: u8 = 21;
const UNSEEN: u8 = 22;

/// Appends an event other than a touch: the byte of its kind, then its numbers and texts in order.
pub fn encode(bytes: &mut Vec<u8>, event: &EventKind) {
    let mut kind = |kind: u8, numbers: &[u64]| {
        bytes.push(kind);
        numbers.iter().for_each(|number| encode_number(bytes, *number));
    };
    match event {
        EventKind::Process { pid, parent, program } => {
            let parent = parent.map_or(0, |parent| u64::from(parent) + 1);
            kind(PROCESS, &[u64::from(*pid), parent]);
            encode_path(bytes, program);
        }
        EventKind::Thread { process, tid } => kind(THREAD, &[u64::from(*process), u64::from(*tid)]),
        EventKind::File { path, size_bytes, device, inode } => {
            kind(FILE, &[*size_bytes, *device, *inode]);
            encode_path(bytes, path);
        }
        EventKind::Open { file } => kind(OPEN, &[u64::from(*file)]),
        EventKind::Map { open, address, length_bytes, offset_bytes, protection, flags } => {
            let (open, protection) = (u64::from(*open), u64::from(*protection));
            let flags = u64::from(*flags);
            kind(MAP, &[open, *address, *length_bytes, *offset_bytes, protection, flags, 0]);
        }
        EventKind::Unmap { mapping, part: None } => kind(UNMAP, &[u64::from(*mapping)]),
        EventKind::Unmap { mapping, part: Some(MappingPages { first, pages }) } => {
            kind(UNMAP_PART, &[u64::from(*mapping), *first, *pages]);
        }
        EventKind::Protect { mapping, pages: MappingPages { first, pages }, protection } => {
            kind(PROTECT, &[u64::from(*mapping), *first, *pages, u64::from(*protection)]);
        }
        EventKind::Move { mapping, to, length_bytes } => {
            kind(MOVE, &[u64::from(*mapping), *to, *length_bytes]);
        }
        EventKind::Madvise { mapping, pages: MappingPages { first, pages }, advice } => {
            kind(MADVISE, &[u64::from(*mapping), *first, *pages, u64::from(*advice)]);
        }
        EventKind::Fadvise { open, offset_bytes, length_bytes, advice } => {
            kind(FADVISE, &[u64::from(*open), *offset_bytes, *length_bytes, u64::from(*advice)]);
        }
        EventKind::Readahead { open, offset_bytes, length_bytes } => {
            kind(READAHEAD, &[u64::from(*open), *offset_bytes, *length_bytes]);
        }
        EventKind::Read { open, offset_bytes, length_bytes } => {
            kind(READ, &[u64::from(*open), *offset_bytes, *length_bytes]);
        }
        EventKind::Truncate { file, size_bytes } => {
            kind(TRUNCATE, &[u64::from(*file), *size_bytes])
        }
        EventKind::Close { open } => kind(CLOSE, &[u64::from(*open)]),
        EventKind::Exit { process } => kind(EXIT, &[u64::from(*process)]),
        EventKind::Lost { events } => kind(LOST, &[*events]),
        EventKind::Gap { kind: gap, count } => kind(GAP, &[gap.number().into(), *count]),
        EventKind::Memory { process, anonymous_bytes, peak_bytes } => {
            kind(MEMORY, &[u64::from(*process), *anonymous_bytes, *peak_bytes]);
        }
        EventKind::Cached { file, first, pages } => {
            kind(CACHED, &[u64::from(*file), *first, *pages]);
        }
        EventKind::Unseen { mapping, pages: MappingPages { first, pages } } => {
            kind(UNSEEN, &[u64::from(*mapping), *first, *pages]);
        }
        EventKind::Touch { .. } => unreachable!("touches are columns"),
    }
}

/// Decodes an event that [`encode`] appended.
pub fn decode(bytes: &mut ByteReader<'_>) -> Result<EventKind, Problem> {
    Ok(match bytes.byte()? {
        PROCESS => {
            let pid = bytes.number_u32("the PID of a process")?;
            let parent = bytes.number_u32("the parent of a process")?.checked_sub(1);
            EventKind::Process { pid, parent, program: decode_path(bytes)? }
        }
        THREAD => {
            let process = bytes.number_u32("the process of a thread")?;
            EventKind::Thread { process, tid: bytes.number_u32("the TID of a thread")? }
        }
        FILE => {
            let (size_bytes, device, inode) = (bytes.number()?, bytes.number()?, bytes.number()?);
            EventKind::File { path: decode_path(bytes)?, size_bytes, device, inode }
        }
        OPEN => EventKind::Open { file: bytes.number_u32("a file")? },
        MAP => {
            let open = decode_open(bytes)?;
            let (address, length_bytes) = (bytes.number()?, bytes.number()?);
            let offset_bytes = bytes.number()?;
            let protection = bytes.number_u32("a protection")?;
            let flags = bytes.number_u32("a set of flags")?;
            match bytes.number()? {
                0 => {
                    EventKind::Map { open, address, length_bytes, offset_bytes, protection, flags }
                }
                more => {
                    return Err(Problem::malformed(format!("a mapping has {more} more fields")));
                }
            }
        }
        UNMAP => EventKind::Unmap { mapping: decode_mapping(bytes)?, part: None },
        UNMAP_PART => {
            EventKind::Unmap { mapping: decode_mapping(bytes)?, part: Some(decode_pages(bytes)?) }
        }
        PROTECT => {
            let (mapping, pages) = (decode_mapping(bytes)?, decode_pages(bytes)?);
            EventKind::Protect { mapping, pages, protection: bytes.number_u32("a protection")? }
        }
        MOVE => {
            let mapping = decode_mapping(bytes)?;
            EventKind::Move { mapping, to: bytes.number()?, length_bytes: bytes.number()? }
        }
        MADVISE => {
            let (mapping, pages) = (decode_mapping(bytes)?, decode_pages(bytes)?);
            EventKind::Madvise { mapping, pages, advice: bytes.number_u32("advice")? }
        }
        FADVISE => {
            let (open, offset_bytes, length_bytes) = decode_part(bytes)?;
            EventKind::Fadvise {
                open,
                offset_bytes,
                length_bytes,
                advice: bytes.number_u32("advice")?,
            }
        }
        READAHEAD => {
            let (open, offset_bytes, length_bytes) = decode_part(bytes)?;
            EventKind::Readahead { open, offset_bytes, length_bytes }
        }
        READ => {
            let (open, offset_bytes, length_bytes) = decode_part(bytes)?;
            EventKind::Read { open, offset_bytes, length_bytes }
        }
        TRUNCATE => {
            EventKind::Truncate { file: bytes.number_u32("a file")?, size_bytes: bytes.number()? }
        }
        CLOSE => EventKind::Close { open: decode_open(bytes)? },
        EXIT => EventKind::Exit { process: bytes.number_u32("a process")? },
        LOST => EventKind::Lost { events: bytes.number()? },
        GAP => {
            let kind = GapKind::from_number(bytes.number_u32("a kind of gap")?);
            EventKind::Gap { kind, count: bytes.number()? }
        }
        MEMORY => EventKind::Memory {
            process: bytes.number_u32("a process")?,
            anonymous_bytes: bytes.number()?,
            peak_bytes: bytes.number()?,
        },
        CACHED => EventKind::Cached {
            file: bytes.number_u32("a file")?,
            first: bytes.number()?,
            pages: bytes.number()?,
        },
        UNSEEN => {
            let (mapping, pages) = (decode_mapping(bytes)?, decode_pages(bytes)?);
            EventKind::Unseen { mapping, pages }
        }
        kind => return Err(Problem::malformed(format!("there is an event of kind {kind}"))),
    })
}

impl GapKind {
    const NUMBERED: [GapKind; 5] = [
        GapKind::Advice,
        GapKind::ReadPages,
        GapKind::TouchedPages,
        GapKind::SystemCalls,
        GapKind::LockedPages,
    ];

    /// The number in the file, from 1.
    pub fn number(self) -> u32 {
        match self {
            GapKind::Unknown(number) => number,
            known => {
                let position = GapKind::NUMBERED.iter().position(|kind| *kind == known);
                position.expect("all known kinds are numbered") as u32 + 1
            }
        }
    }

    /// The kind with this number.
    pub fn from_number(number: u32) -> GapKind {
        let position = number.checked_sub(1).map(|position| position as usize);
        let known = position.and_then(|position| GapKind::NUMBERED.get(position).copied());
        known.unwrap_or(GapKind::Unknown(number))
    }
}

fn decode_open(bytes: &mut ByteReader<'_>) -> Result<u32, Problem> {
    bytes.number_u32("an open file")
}

fn decode_mapping(bytes: &mut ByteReader<'_>) -> Result<u32, Problem> {
    bytes.number_u32("a mapping")
}

fn decode_pages(bytes: &mut ByteReader<'_>) -> Result<MappingPages, Problem> {
    Ok(MappingPages { first: bytes.number()?, pages: bytes.number()? })
}

fn decode_part(bytes: &mut ByteReader<'_>) -> Result<(u32, u64, u64), Problem> {
    Ok((decode_open(bytes)?, bytes.number()?, bytes.number()?))
}

fn encode_path(bytes: &mut Vec<u8>, path: &Path) {
    encode_text(bytes, path.as_os_str().as_bytes());
}

fn decode_path(bytes: &mut ByteReader<'_>) -> Result<PathBuf, Problem> {
    Ok(PathBuf::from(OsStr::from_bytes(bytes.text()?)))
}
