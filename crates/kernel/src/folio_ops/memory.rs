//! Checks that the machine has pages of 4k and enough memory.

use filemap_job::folio_ops::{FolioOps, Operation, PAGE_BYTES, PMD_BYTES};
use filemap_job::format_size;

use crate::engine::available_bytes;
use crate::probe::cpus;
use crate::{Error, page_size};

/// Memory reserved for other processes, in bytes.
const RESERVE_BYTES: u64 = 256 << 20;

/// Reciprocal of the assumed overhead. Each process has a page-table entry per page, up to 24 bytes
/// in lists of frames, and 4 in an order of writes: less than 1 % of a page.
const OVERHEAD_PART: u64 = 50;

/// Refuses a job if the page size differs or there is too little memory.
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
        Some(available) => check_memory(job.bytes, cpus::allowed_cpus(), available),
        None => Ok(()),
    }
}

fn check_memory(bytes: u64, cpus: u64, available: u64) -> Result<(), Error> {
    let copies = Operation::ALL.iter().map(|&operation| copies(operation, cpus)).max();
    let times = 1 + copies.unwrap_or_default();
    let pages = bytes.saturating_mul(times);
    let rest = rest(pages);
    let needed = pages.saturating_add(rest);
    if needed <= available {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let remedy = match largest_that_fits(times, available) {
        0 => "end other programs".to_string(),
        fits => format!("end other programs, or give --size {} or less", format_size(fits)),
    };
    Err(Error::unavailable(
        format!(
            "memory of {} MiB (the job's {} MiB {times} times, and {} MiB for the rest)",
            mib(needed),
            mib(bytes),
            mib(rest)
        ),
        format!("{} MiB are available; {remedy}", available >> 20),
    ))
}

/// Memory of a job without its pages.
fn rest(pages_bytes: u64) -> u64 {
    RESERVE_BYTES + pages_bytes / OVERHEAD_PART
}

/// The largest size that fits `times` times into `available`; 0 if none does.
fn largest_that_fits(times: u64, available: u64) -> u64 {
    let room = u128::from(available.saturating_sub(RESERVE_BYTES));
    let share = u128::from(OVERHEAD_PART);
    let each = room * share / ((share + 1) * u128::from(times));
    u64::try_from(each).map_or(0, |each| each / PMD_BYTES * PMD_BYTES)
}

/// Maximum number of copies of the memory.
fn copies(operation: Operation, cpus: u64) -> u64 {
    match operation {
        Operation::Munmap | Operation::Fork => 0,
        // Kernels that do not reuse pages copy them here too.
        Operation::CowByte | Operation::ReuseByte | Operation::ChildReuseByte => 1,
        Operation::AnonCowSeq | Operation::AnonCowRand => cpus,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_child_may_copy_everything() {
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

    #[test]
    fn the_named_size_is_the_largest_that_fits() {
        for (cpus, available) in [(1, 1 << 30), (2, 3 << 30), (64, 24 << 30), (3, 1_234_567_890)] {
            let fits = largest_that_fits(1 + cpus, available);
            assert!(fits > 0 && fits.is_multiple_of(PMD_BYTES), "{fits}");
            check_memory(fits, cpus, available).unwrap();
            let error = check_memory(fits + PMD_BYTES, cpus, available).unwrap_err().to_string();
            let remedy = format!("or give --size {} or less", format_size(fits));
            assert!(error.ends_with(&remedy), "{error}");
        }
        let none = check_memory(PMD_BYTES, 2, RESERVE_BYTES).unwrap_err().to_string();
        assert!(none.ends_with("256 MiB are available; end other programs"), "{none}");
    }
}
