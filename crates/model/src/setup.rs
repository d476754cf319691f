//! From a job to what the rules look at.

use filemap_core::readahead::Limits;
use filemap_core::segments::Segments;
use filemap_core::units::{PageCount, Vpn};
use filemap_core::vma::{Mapping, Vma};
use filemap_job::{Filesystem, Job};

use crate::profile::{Device, Profile};

/// The bounds of readahead and fault-around that `job` sets.
pub fn limits(job: &Job, profile: &Profile) -> Limits {
    let arch = job.machine.arch;
    let max_folio = match job.machine.fs {
        Filesystem::Ext4 => job.rules.ext4_max_folio(&arch),
        Filesystem::Xfs => Some(arch.max_cache_order),
        Filesystem::BasePages => None,
    };
    Limits {
        rules: job.rules,
        arch,
        ra_pages: job.machine.read_ahead,
        io_pages: PageCount(profile.device.io_bytes / arch.page_size),
        fault_around: job.machine.fault_around,
        max_folio,
        file_pages: job.file_pages(),
    }
}

/// The mapping that `job` makes. Addresses count from a page-table page's first entry.
///
/// A page of an ELF file's segments is one of all segments' pages, one behind the other.
pub fn mapping(job: &Job) -> Mapping {
    let whole = Vma {
        start: Vpn(job.mapping.shift.0),
        pgoff: job.mapping.offset,
        pages: job.mapping.pages,
        advice: job.mapping.advice,
        executable: job.mapping.exec,
    };
    let vmas: Vec<Vma> = job
        .segments()
        .iter()
        .map(|segment| Vma {
            start: whole.start + segment.start,
            pgoff: segment.offset,
            pages: segment.pages,
            executable: segment.executable,
            ..whole
        })
        .collect();
    let segments = job.elf.is_some().then(|| Segments::new(&vmas));
    Mapping { segments, ..Mapping::new(whole, job.mapping.effective_split()) }
}

/// The device that the file lies on; holes take a nanosecond.
pub fn device(job: &Job, profile: &Profile) -> Device {
    if !job.file.sparse {
        return profile.device;
    }
    Device { latency_ns: 0, bandwidth_bytes: u64::MAX, ..profile.device }
}
