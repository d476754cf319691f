//! What a job needs of the machine beside the sizes of folios.

use std::fs;

use filemap_job::folio_ops::{FolioOps, Operation, PAGE_BYTES};
use filemap_job::format_size;

use crate::probe::cpus;
use crate::{Error, page_size};

/// Memory that stays free beside that of a job, in bytes: for page tables, and for others.
const RESERVE_BYTES: u64 = 256 << 20;

/// Refuses a job for which the machine has too little memory, or other pages.
///
/// # Errors
/// [`Error::Unavailable`].
pub(super) fn check(job: &FolioOps) -> Result<(), Error> {
    if page_size() != PAGE_BYTES {
        return Err(Error::unavailable(
            format!("folio-ops with pages of {}", format_size(page_size())),
            "leave out --on kernel, or run it on a kernel with pages of 4k",
        ));
    }
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match available_bytes(&meminfo) {
        Some(available) => check_memory(job.bytes, cpus::allowed(), available),
        None => Ok(()),
    }
}

fn check_memory(bytes: u64, cpus: u64, available: u64) -> Result<(), Error> {
    let copies = Operation::ALL.iter().map(|&operation| copies(operation, cpus)).max();
    let copies = copies.unwrap_or_default();
    let needed = bytes.saturating_mul(1 + copies).saturating_add(RESERVE_BYTES);
    if needed <= available {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(Error::unavailable(
        format!(
            "memory of {} MiB (the job's {} MiB {} times, and {} MiB for the rest)",
            mib(needed),
            mib(bytes),
            1 + copies,
            mib(RESERVE_BYTES)
        ),
        format!(
            "{} MiB are available: end other programs, or give less by --file-size",
            mib(available)
        ),
    ))
}

/// How often the memory is copied at most.
fn copies(operation: Operation, cpus: u64) -> u64 {
    match operation {
        Operation::Munmap | Operation::Fork => 0,
        // A kernel that does not reuse copies here too.
        Operation::CowByte | Operation::ReuseByte | Operation::ChildReuseByte => 1,
        Operation::AnonCowSeq | Operation::AnonCowRand => cpus,
    }
}

/// Memory that programs can have without swapping, by the text of `/proc/meminfo`.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_child_may_copy_all_of_it() {
        let gib = 1 << 30;
        check_memory(gib, 2, 3 * gib + RESERVE_BYTES).unwrap();
        let error = check_memory(gib, 2, 3 * gib).unwrap_err();
        assert!(error.cannot_run_here());
        let text = error.to_string();
        let words = "memory of 3328 MiB (the job's 1024 MiB 3 times, and 256 MiB for the rest)";
        assert!(text.starts_with(words) && text.contains("3072 MiB are available"), "{text}");
        assert!(check_memory(u64::MAX, 64, gib).is_err());
    }

    #[test]
    fn available_memory_is_in_kib() {
        let text = "MemTotal:  24105 kB\nMemAvailable:   20127 kB\n";
        assert_eq!(available_bytes(text), Some(20127 << 10));
        assert_eq!(available_bytes("MemTotal: 1 kB\n"), None);
    }
}
