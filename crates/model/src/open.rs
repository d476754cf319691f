//! Open files, and the parts of a job that rules use: limits, mappings and devices.

use std::ops::Range;
use std::sync::Arc;

use filemap_core::address::mapping::FileMapping;
use filemap_core::address::vma::Vma;
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::rules::Rules;
use filemap_core::units::{FileId, Order, PageCount, PageIndex, Vpn};
use filemap_job::program::NamedMapping;
use filemap_job::{Filesystem, Machine, Segment};

use crate::profile::{DeviceProfile, Profile};

/// An open file description, as created by `open(2)` and referenced by mappings.
#[derive(Debug)]
pub struct OpenFile {
    /// Index of the open file description.
    pub number: u32,
    /// The file.
    pub file: FileId,
    /// File size in bytes.
    pub size_bytes: u64,
    /// Its holes, in order and without overlaps.
    pub holes: Arc<[Range<PageIndex>]>,
    /// Limits of readahead and fault-around.
    pub limits: Limits,
    /// Readahead state, private to this open file.
    pub ra: ReadaheadState,
    /// Readahead size of the device; advice scales it.
    pub device_ra_pages: PageCount,
    /// POSIX_FADV_NOREUSE is in effect.
    pub no_reuse: bool,
}

impl OpenFile {
    /// Opens a file.
    pub fn new(id: FileId, file: &filemap_job::File, limits: Limits) -> OpenFile {
        OpenFile {
            number: 0,
            file: id,
            size_bytes: file.size_bytes,
            holes: Arc::clone(&file.holes),
            limits,
            ra: ReadaheadState::NEW,
            device_ra_pages: limits.ra_pages,
            no_reuse: false,
        }
    }

    /// Whether it is a single hole.
    pub fn is_hole(&self) -> bool {
        let pages = self.size_bytes.div_ceil(self.limits.arch.page_size);
        matches!(&self.holes[..], [hole] if hole.start.0 == 0 && hole.end.0 >= pages)
    }
}

/// Limits of readahead and fault-around for a file of `file_pages` pages.
pub fn limits(rules: Rules, machine: &Machine, file_pages: PageCount, profile: &Profile) -> Limits {
    let arch = machine.arch;
    let max_folio = match machine.fs {
        Filesystem::Ext4 => rules.ext4_max_folio(&arch),
        Filesystem::Xfs => Some(arch.max_cache_order),
        Filesystem::BasePages => None,
    };
    Limits {
        rules,
        arch,
        ra_pages: machine.read_ahead,
        io_pages: PageCount(profile.device.io_bytes / arch.page_size),
        fault_around: machine.fault_around,
        max_folio,
        min_folio: Order::fitting(PageCount(machine.block_bytes / arch.page_size)),
        file_pages,
    }
}

/// The ranges mapped from `start` on: part of a file with its split, or each segment of an
/// executable.
pub fn mappings(named: &NamedMapping, start: Vpn, rules: &Rules) -> Vec<FileMapping> {
    let filemap_job::Mapping { offset, pages, advice, exec, .. } = named.mapping;
    let of_segment = |segment: &Segment| Vma {
        start: start + segment.start,
        pgoff: segment.offset,
        pages: segment.pages,
        advice,
        executable: segment.executable,
    };
    let mut mappings: Vec<FileMapping> =
        named.segments.iter().map(|segment| FileMapping::new(of_segment(segment), None)).collect();
    if mappings.is_empty() {
        let whole = Vma { start, pgoff: offset, pages, advice, executable: exec };
        mappings.push(FileMapping::new(whole, named.mapping.effective_split()));
    }
    for mapping in &mut mappings {
        mapping.random_counts = rules.random_accesses_count;
    }
    mappings
}

/// The device of a file. Holes need no device: each request completes on its own within a
/// nanosecond.
pub fn device(sparse: bool, profile: &Profile) -> DeviceProfile {
    if !sparse {
        return profile.device;
    }
    DeviceProfile {
        latency_ns: 0,
        bandwidth_bytes: u64::MAX,
        segment_ns: 0,
        request_ns: 0,
        ring_entries: None,
        ..profile.device
    }
}
