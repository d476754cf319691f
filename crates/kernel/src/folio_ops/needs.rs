//! What a job needs of the machine beside the sizes of folios.

use filemap_job::folio_ops::{FolioOps, Operation, PAGE_BYTES};
use filemap_job::format_size;

use crate::engine::available_bytes;
use crate::probe::cpus;
use crate::{Error, page_size};

/// Memory that stays free beside that of a job, in bytes: for the processes, and for others.
const RESERVE_BYTES: u64 = 256 << 20;

/// What a page takes beside itself, as a share of it: in each process an entry of a page table and
/// up to 24 bytes to list its frames, and 4 for its place in an order. That is below 1 in 100.
const BESIDE_SHARE: u64 = 50;

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
    match available_bytes() {
        Some(available) => check_memory(job.bytes, cpus::allowed(), available),
        None => Ok(()),
    }
}

fn check_memory(bytes: u64, cpus: u64, available: u64) -> Result<(), Error> {
    let copies = Operation::ALL.iter().map(|&operation| copies(operation, cpus)).max();
    let copies = copies.unwrap_or_default();
    let pages = bytes.saturating_mul(1 + copies);
    let rest = RESERVE_BYTES + pages / BESIDE_SHARE;
    let needed = pages.saturating_add(rest);
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
            mib(rest)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_child_may_copy_all_of_it() {
        let gib = 1 << 30;
        let rest = RESERVE_BYTES + 3 * gib / 50;
        check_memory(gib, 2, 3 * gib + rest).unwrap();
        assert!(check_memory(gib, 2, 3 * gib + rest - 1).is_err());
        let error = check_memory(gib, 2, 3 * gib).unwrap_err();
        assert!(error.cannot_run_here());
        let text = error.to_string();
        let words = "memory of 3390 MiB (the job's 1024 MiB 3 times, and 318 MiB for the rest)";
        assert!(text.starts_with(words) && text.contains("3072 MiB are available"), "{text}");
        assert!(check_memory(u64::MAX, 64, gib).is_err());
    }
}
