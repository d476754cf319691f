//! From a job to what the rules look at.

use filemap_core::address::mapping::Mapping;
use filemap_core::address::vma::Vma;
use filemap_core::readahead::Limits;
use filemap_core::rules::Rules;
use filemap_core::units::{FileId, PageCount, Vpn};
use filemap_job::{Filesystem, Job, Machine, Segment};

use crate::open::OpenFile;
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
        file_pages,
    }
}

/// The file of `job`, opened once.
pub fn open(job: &Job, profile: &Profile) -> OpenFile {
    let limits = limits(job.rules, &job.machine, job.file_pages(), profile);
    OpenFile::new(FileId::FIRST, job.file.size_bytes, 0, limits)
}

/// The mappings that `job` makes: one, or that of each segment of a program. Addresses count from
/// a page-table page's first entry.
pub fn mappings(job: &Job) -> Vec<Mapping> {
    let start = Vpn(job.mapping.shift.0);
    if job.elf.is_none() {
        return vec![mapping(&job.mapping, start, &job.rules)];
    }
    let of_segment = |segment: &Segment| Vma {
        start: start + segment.start,
        pgoff: segment.offset,
        pages: segment.pages,
        advice: job.mapping.advice,
        executable: segment.executable,
    };
    let vmas = job.segments();
    let of_vma = |vma| by(&job.rules, Mapping::new(vma, None));
    vmas.iter().map(|segment| of_vma(of_segment(segment))).collect()
}

/// One mapping that begins at `start`, with its split.
pub fn mapping(mapping: &filemap_job::Mapping, start: Vpn, rules: &Rules) -> Mapping {
    let whole = Vma {
        start,
        pgoff: mapping.offset,
        pages: mapping.pages,
        advice: mapping.advice,
        executable: mapping.exec,
    };
    by(rules, Mapping::new(whole, mapping.effective_split()))
}

fn by(rules: &Rules, mut mapping: Mapping) -> Mapping {
    mapping.random_counts = rules.random_accesses_count;
    mapping
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
