//! Looks up single mappings by the PROCMAP_QUERY ioctl of Linux 6.11, without listing all.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use crate::{FileId, MappedRange};

/// `struct procmap_query` of `linux/fs.h`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct MapQuery {
    size: u64,
    flags: u64,
    address: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) vma_flags: u64,
    page_bytes: u64,
    pub(crate) offset_bytes: u64,
    pub(crate) inode: u64,
    pub(crate) major: u32,
    pub(crate) minor: u32,
    /// Size of the name including the terminating NUL; 0 if unnamed.
    pub(crate) name_bytes: u32,
    build_id_bytes: u32,
    name: u64,
    build_id: u64,
}

impl MapQuery {
    /// Queries the mapping at `address` through `maps`, an open `/proc/PID/maps`. Stores its name
    /// in `name`, unless that is empty.
    pub(crate) fn run(maps: &File, address: u64, name: &mut [u8]) -> io::Result<MapQuery> {
        let (name, name_bytes) = match name.len() {
            0 => (0, 0),
            bytes => (name.as_mut_ptr() as u64, bytes as u32),
        };
        let size = size_of::<MapQuery>() as u64;
        let mut query = MapQuery { size, address, name, name_bytes, ..MapQuery::default() };
        // SAFETY: the kernel accesses this structure, and up to `name_bytes` bytes of `name`, which
        // is borrowed exclusively.
        match unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) } {
            0 => Ok(query),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

const PROCMAP_QUERY: u64 = 0xc068_6611;

/// Bits of `vma_flags`; the lower three equal the `PROT_*` bits.
const PROTECTION: u64 = 7;
const SHARED: u64 = 1 << 3;

/// A VMA, without its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vma {
    pub(crate) start: u64,
    pub(crate) end: u64,
    offset_bytes: u64,
    pub(crate) file: FileId,
    protection: u32,
    is_shared: bool,
}

/// Whether a process currently has all of `range` mapped with the same file, offset, protection and
/// sharing. It may span several adjacent VMAs.
pub fn is_mapped(pid: u32, range: &MappedRange) -> bool {
    let Ok(maps) = File::open(format!("/proc/{pid}/maps")) else { return false };
    let mut address = range.address;
    while address < range.end() {
        match query_vma(pid, &maps, address) {
            Some(vma) if vma.is_part_of(range) => address = vma.end,
            _ => return false,
        }
    }
    true
}

/// The VMA of a process at `address`.
pub(crate) fn vma_at(pid: u32, address: u64) -> Option<Vma> {
    query_vma(pid, &File::open(format!("/proc/{pid}/maps")).ok()?, address)
}

/// The link in `/proc/PID/map_files` to the file that a process has mapped at `address`. Only root
/// may follow it; it leads to the file whatever its path is, in any mount namespace.
pub fn mapped_file_link(pid: u32, address: u64) -> Option<PathBuf> {
    let Vma { start, end, .. } = vma_at(pid, address)?;
    Some(PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}")))
}

fn query_vma(pid: u32, maps: &File, address: u64) -> Option<Vma> {
    match MapQuery::run(maps, address, &mut []) {
        Ok(query) => Some(Vma::from(&query)),
        Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => list_vma(pid, address),
        Err(_) => None,
    }
}

/// Finds the VMA in `/proc/PID/maps`, on kernels without PROCMAP_QUERY.
fn list_vma(pid: u32, address: u64) -> Option<Vma> {
    let maps = super::maps(pid).ok()?;
    let range = maps.iter().find(|range| range.contains(address))?;
    let none = FileId { major: 0, minor: 0, inode: 0 };
    Some(Vma {
        start: range.address,
        end: range.end(),
        offset_bytes: range.offset_bytes,
        file: range.file.as_ref().map_or(none, |file| file.id),
        protection: range.protection,
        is_shared: range.is_shared,
    })
}

impl Vma {
    /// Whether the VMA has the file, offset, protection and sharing of `range` where they overlap.
    fn is_part_of(&self, range: &MappedRange) -> bool {
        let is_file = match &range.file {
            None => self.file.inode == 0,
            Some(file) => {
                self.file == file.id
                    && self.offset_bytes.wrapping_sub(self.start)
                        == range.offset_bytes.wrapping_sub(range.address)
            }
        };
        is_file && self.protection == range.protection && self.is_shared == range.is_shared
    }
}

impl From<&MapQuery> for Vma {
    fn from(query: &MapQuery) -> Vma {
        Vma {
            start: query.start,
            end: query.end,
            offset_bytes: query.offset_bytes,
            file: FileId { major: query.major, minor: query.minor, inode: query.inode },
            protection: (query.vma_flags & PROTECTION) as u32,
            is_shared: query.vma_flags & SHARED != 0,
        }
    }
}
