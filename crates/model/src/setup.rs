//! From a job to what the rules look at.

use filemap_core::address::mapping::{Mapping, SplitProt};
use filemap_core::address::vma::Vma;
use filemap_core::readahead::{Limits, ReadaheadState};
use filemap_core::units::{FileId, PageCount, Vpn};
use filemap_job::{Filesystem, Job, Segment};

use crate::open::OpenFile;
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

/// The file of `job`, opened once.
pub fn open(job: &Job, profile: &Profile) -> OpenFile {
    OpenFile {
        file: FileId::FIRST,
        size_bytes: job.file.size_bytes,
        device: 0,
        limits: limits(job, profile),
        ra: ReadaheadState::NEW,
    }
}

/// The mappings that `job` makes: one, or that of each segment of a program. Addresses count from
/// a page-table page's first entry.
pub fn mappings(job: &Job) -> Vec<Mapping> {
    let whole = Vma {
        start: Vpn(job.mapping.shift.0),
        pgoff: job.mapping.offset,
        pages: job.mapping.pages,
        advice: job.mapping.advice,
        executable: job.mapping.exec,
    };
    if job.elf.is_none() {
        let split = job.mapping.split.filter(|split| changes(split.prot, job));
        return vec![Mapping::new(whole, split)];
    }
    let of_segment = |segment: &Segment| Vma {
        start: whole.start + segment.start,
        pgoff: segment.offset,
        pages: segment.pages,
        executable: segment.executable,
        ..whole
    };
    let vmas = job.segments();
    vmas.iter().map(|segment| Mapping::new(of_segment(segment), None)).collect()
}

/// Whether a piece with `prot` becomes a VMA of its own: `mprotect` leaves one alone that is
/// protected that way already. A private mapping is written to, so it is writable.
fn changes(prot: SplitProt, job: &Job) -> bool {
    match prot {
        SplitProt::Write => !job.mapping.private,
        SplitProt::Exec => !job.mapping.exec,
    }
}

/// The device that the file lies on; holes take a nanosecond.
pub fn device(job: &Job, profile: &Profile) -> Device {
    if !job.file.sparse {
        return profile.device;
    }
    Device { latency_ns: 0, bandwidth_bytes: u64::MAX, ..profile.device }
}
