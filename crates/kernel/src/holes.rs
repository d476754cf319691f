//! Holes of a file, which are read without the device.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// The holes of `file` in order, as byte ranges, by its extent map (FIEMAP): unlike `SEEK_HOLE`,
/// the answer does not depend on cached pages. Allocated extents that were never written count as
/// holes. Empty if unknown.
pub fn hole_ranges(file: &File) -> Vec<Range<u64>> {
    let bytes = file.metadata().map_or(0, |data| data.len());
    find_holes(file, bytes).unwrap_or_default()
}

/// The holes among the first `bytes` of `file`; `None` if the filesystem lacks FIEMAP.
fn find_holes(file: &File, bytes: u64) -> Option<Vec<Range<u64>>> {
    let (mut start, mut written_until, mut holes) = (0, 0, Vec::new());
    while start < bytes {
        let mut map = ExtentMap {
            start,
            length: bytes - start,
            // Data that is not written back has no extent yet, or an unwritten one.
            flags: SYNC,
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
            if from.min(bytes) > written_until {
                holes.push(written_until..from.min(bytes));
            }
            written_until = written_until.max(end);
        }
        match extents.last() {
            Some(last) if last.flags & LAST == 0 => {
                start = last.logical.checked_add(last.length).filter(|&end| end > start)?;
            }
            _ => break,
        }
    }
    if written_until < bytes {
        holes.push(written_until..bytes);
    }
    Some(holes)
}

/// Extents per FIEMAP call.
const EXTENTS: usize = 64;

/// `FS_IOC_FIEMAP` of `linux/fs.h`, the same on every modelled architecture.
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;

/// `FIEMAP_FLAG_SYNC`: writes the file back first.
const SYNC: u32 = 0x1;

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
        assert_eq!(hole_ranges(&file), [], "an empty file");
        file.set_len(2 << 20).unwrap();
        if hole_ranges(&file).is_empty() {
            println!("skipped: the filesystem of /var/tmp does not tell holes");
            return;
        }
        let is_hole =
            |file: &File| matches!(&hole_ranges(file)[..], [hole] if *hole == (0..2 << 20));
        assert!(is_hole(&file));
        // Cached pages make no difference.
        file.read_to_end(&mut Vec::new()).unwrap();
        assert!(is_hole(&file));
        // More extents than one call returns.
        for piece in 0..100 {
            file.write_all_at(&[1; 4096], piece * 16384).unwrap();
        }
        file.sync_all().unwrap();
        let last = 99 * 16384 + 4096..2 << 20;
        let between = (0..99).map(|piece| piece * 16384 + 4096..(piece + 1) * 16384);
        assert_eq!(hole_ranges(&file), between.chain([last]).collect::<Vec<_>>());
        file.write_all_at(&vec![1; 2 << 20], 0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(hole_ranges(&file), []);
        // Preallocated, written, and not written back yet.
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 2 << 20).unwrap();
        assert!(is_hole(&file));
        file.write_all_at(&vec![1; 2 << 20], 0).unwrap();
        assert_eq!(hole_ranges(&file), []);
    }
}
