//! Holes of a file, which are read without the device.

use std::fs::File;
use std::os::fd::AsRawFd;

/// How much of a file consists of holes. Allocated extents that were never written count as holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// No holes, or unknown.
    None,
    /// Some of it.
    Some,
    /// All of it.
    All,
}

impl Holes {
    /// The holes of `file`, by [`hole_bytes`].
    pub fn find(file: &File) -> Holes {
        match hole_bytes(file) {
            0 => Holes::None,
            bytes if file.metadata().is_ok_and(|data| data.len() == bytes) => Holes::All,
            _ => Holes::Some,
        }
    }
}

/// Bytes of `file` in holes, by its extent map (FIEMAP): unlike `SEEK_HOLE`, the answer does not
/// depend on cached pages. 0 if unknown.
pub fn hole_bytes(file: &File) -> u64 {
    let bytes = file.metadata().map_or(0, |data| data.len());
    written_bytes(file, bytes).map_or(0, |written| bytes.saturating_sub(written))
}

/// Allocated and written bytes among the first `bytes` of `file`; `None` if the filesystem lacks
/// FIEMAP.
fn written_bytes(file: &File, bytes: u64) -> Option<u64> {
    let (mut start, mut written) = (0, 0);
    while start < bytes {
        let mut map = ExtentMap {
            start,
            length: bytes - start,
            flags: 0,
            mapped_extents: 0,
            extent_count: EXTENTS as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS],
        };
        // SAFETY: the request reads and writes a `struct fiemap` followed by as many extents as its
        // `fm_extent_count` says; `map` has that layout.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
        if answer != 0 {
            return None;
        }
        let extents = map.extents.get(..map.mapped_extents as usize)?;
        for extent in extents.iter().filter(|extent| extent.flags & UNWRITTEN == 0) {
            let (from, end) = (extent.logical, extent.logical.checked_add(extent.length)?);
            written += end.min(bytes).saturating_sub(from.max(start));
        }
        match extents.last() {
            Some(last) if last.flags & LAST == 0 => {
                start = last.logical.checked_add(last.length).filter(|&end| end > start)?;
            }
            _ => break,
        }
    }
    Some(written)
}

/// Extents per FIEMAP call.
const EXTENTS: usize = 64;

/// `FS_IOC_FIEMAP` of `linux/fs.h`, the same on every modelled architecture.
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;

/// `FIEMAP_EXTENT_LAST`: no extent follows.
const LAST: u32 = 0x1;

/// `FIEMAP_EXTENT_UNWRITTEN`: reserved, and reads as zeroes.
const UNWRITTEN: u32 = 0x800;

/// `struct fiemap` of `linux/fiemap.h`.
#[repr(C)]
struct ExtentMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

/// `struct fiemap_extent` of `linux/fiemap.h`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn fiemap_structs_have_kernel_size() {
        assert_eq!(size_of::<Extent>(), 56);
        assert_eq!(size_of::<ExtentMap>(), 32 + EXTENTS * 56);
    }

    #[test]
    fn distinguishes_holes_from_data() {
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        assert_eq!(Holes::find(&file), Holes::None, "an empty file");
        file.set_len(2 << 20).unwrap();
        if Holes::find(&file) == Holes::None {
            println!("skipped: the filesystem of /var/tmp does not tell holes");
            return;
        }
        assert_eq!(Holes::find(&file), Holes::All);
        // Cached pages make no difference.
        file.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(Holes::find(&file), Holes::All);
        // More extents than one call returns.
        for piece in 0..100 {
            file.write_all_at(&[1; 4096], piece * 16384).unwrap();
        }
        file.sync_all().unwrap();
        assert_eq!(written_bytes(&file, 2 << 20), Some(100 * 4096));
        assert_eq!(Holes::find(&file), Holes::Some);
        file.write_all_at(&vec![1; 2 << 20], 0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(Holes::find(&file), Holes::None);
    }
}
