//! From a job to what the rules look at.

use filemap_core::address::mapping::Mapping;
use filemap_core::address::vma::Vma;
use filemap_core::readahead::Limits;
use filemap_core::rules::Rules;
use filemap_core::units::{Order, PageCount, Vpn};
use filemap_job::program::NamedMapping;
use filemap_job::{Filesystem, Machine, Segment};

use crate::profile::{Device, Profile};

/// The bounds of readahead and fault-around in a file of `file_pages` pages.
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

/// What a mapping of a job maps from `start` on: a part of a file with its split, or each segment
/// of a program.
pub fn mappings(of: &NamedMapping, start: Vpn, rules: &Rules) -> Vec<Mapping> {
    let filemap_job::Mapping { offset, pages, advice, exec, .. } = of.mapping;
    let of_segment = |segment: &Segment| Vma {
        start: start + segment.start,
        pgoff: segment.offset,
        pages: segment.pages,
        advice,
        executable: segment.executable,
    };
    let mut mappings: Vec<Mapping> =
        of.segments.iter().map(|segment| Mapping::new(of_segment(segment), None)).collect();
    if mappings.is_empty() {
        let whole = Vma { start, pgoff: offset, pages, advice, executable: exec };
        mappings.push(Mapping::new(whole, of.mapping.effective_split()));
    }
    for mapping in &mut mappings {
        mapping.random_counts = rules.random_accesses_count;
    }
    mappings
}

/// The device that a file lies on. No device reads holes: each request takes a nanosecond, and is
/// complete by itself.
pub fn device(sparse: bool, profile: &Profile) -> Device {
    if !sparse {
        return profile.device;
    }
    Device {
        latency_ns: 0,
        bandwidth_bytes: u64::MAX,
        segment_ns: 0,
        ring_entries: None,
        ..profile.device
    }
}
