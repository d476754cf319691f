//! Looks up the mappings of a held thread.

use std::fs::{self, File};
use std::io;

use crate::mapped_range::{FileId, MappedRange};
use crate::process::MapQuery;

/// Maximum number of VMAs that one range may span.
const MAX_AREAS: usize = 4096;

/// The address space of a held thread.
pub enum VmaSource {
    Queried(File),
    Listed(Vec<MappedArea>),
}

/// One VMA, or one line of `maps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappedArea {
    pub begin: u64,
    pub end: u64,
    offset_bytes: u64,
    /// Major, minor and inode; all zero for anonymous memory.
    file: (u32, u32, u64),
    protection: u32,
    is_shared: bool,
    pub is_vdso: bool,
}

impl VmaSource {
    /// Opens `maps` of a held thread. The descriptor refers to one `mm_struct`; while held, the
    /// thread cannot exec into another.
    pub fn open_for_held_thread(pid: u32, tid: u32) -> io::Result<VmaSource> {
        let path = format!("/proc/{pid}/task/{tid}/maps");
        let file = File::open(&path)?;
        match query_area(&file, 0) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                Ok(VmaSource::Queried(file))
            }
            Ok(_) => Ok(VmaSource::Queried(file)),
            Err(_) => Ok(VmaSource::Listed(parse_maps(&fs::read_to_string(&path)?))),
        }
    }

    pub fn at(&self, address: u64) -> Option<MappedArea> {
        match self {
            VmaSource::Queried(file) => query_area(file, address).ok(),
            VmaSource::Listed(areas) => {
                areas.iter().find(|area| area.begin <= address && address < area.end).copied()
            }
        }
    }

    /// Whether the entire range is mapped with the same file, offset, protection and sharing.
    pub fn has_range(&self, range: &MappedRange) -> bool {
        let FileId { major, minor, inode } =
            range.file.as_ref().map_or(FileId { major: 0, minor: 0, inode: 0 }, |file| file.id);
        let mut address = range.address;
        for _ in 0..MAX_AREAS {
            let Some(area) = self.at(address) else { return false };
            let offset_bytes = area.offset_bytes.wrapping_add(address - area.begin);
            let is_meant = area.file == (major, minor, inode)
                && area.protection == range.protection & 7
                && area.is_shared == range.is_shared
                && (inode == 0 || offset_bytes == range.offset_bytes + (address - range.address));
            if !is_meant {
                return false;
            }
            if area.end >= range.end() {
                return true;
            }
            address = area.end;
        }
        false
    }
}

fn query_area(file: &File, address: u64) -> io::Result<MappedArea> {
    let mut name = [0_u8; 16];
    let query = match MapQuery::run(file, address, &mut name) {
        Err(error) if error.raw_os_error() == Some(libc::ENAMETOOLONG) => {
            MapQuery::run(file, address, &mut [])?
        }
        answer => answer?,
    };
    Ok(MappedArea {
        begin: query.start,
        end: query.end,
        offset_bytes: query.offset_bytes,
        file: (query.major, query.minor, query.inode),
        protection: (query.vma_flags & 7) as u32,
        is_shared: query.vma_flags & 8 != 0,
        is_vdso: query.name_bytes > 0 && name.starts_with(b"[vdso]\0"),
    })
}

fn parse_maps(maps: &str) -> Vec<MappedArea> {
    maps.lines().filter_map(parse_maps_line).collect()
}

fn parse_maps_line(line: &str) -> Option<MappedArea> {
    let mut words = line.split_ascii_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let flags = words.next()?.as_bytes();
    let offset = words.next()?;
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = words.next()?.parse().ok()?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let bit = |index: usize, letter, bit| if flags.get(index) == Some(&letter) { bit } else { 0 };
    Some(MappedArea {
        begin: hex(begin)?,
        end: hex(end)?,
        offset_bytes: hex(offset)?,
        file: (hex(major)? as u32, hex(minor)? as u32, inode),
        protection: bit(0, b'r', 1) | bit(1, b'w', 2) | bit(2, b'x', 4),
        is_shared: bit(3, b's', 1) != 0,
        is_vdso: words.next() == Some("[vdso]"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_query_agree() {
        let text = fs::read_to_string("/proc/self/maps").expect("own mappings");
        let file = File::open("/proc/self/maps").expect("own mappings");
        let listed = parse_maps(&text);
        assert!(listed.iter().any(|area| area.is_vdso));
        for area in listed {
            match query_area(&file, area.begin) {
                // Anonymous memory that the test allocates may change meanwhile.
                Ok(queried) if area.file.2 != 0 || area.is_vdso => assert_eq!(queried, area),
                Ok(_) => {}
                Err(error) => assert_ne!(error.raw_os_error(), Some(libc::ENOTTY), "{error}"),
            }
        }
    }
}
