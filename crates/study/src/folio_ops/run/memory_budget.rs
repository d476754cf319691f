//! The memory that operations need.

use filemap_job::folio_ops::{PAGE_BYTES, PMD_BYTES, SCHEMES};
use filemap_job::{FolioOps, format_size};
use filemap_mapcount::MmOwner;
use filemap_mapcount::anon_cow::AnonCow;
use filemap_report::units::bytes;

use crate::error::Error;

/// Frames take this part of the memory, for each scheme.
const FRAME_PART: u64 = 64;

/// Page tables, lists and orders of writes take this part, for all schemes.
const OVERHEAD_PART: u64 = 16;

/// Independent of the size: the lists of CPUs, and the program.
const FIXED_BYTES: u64 = 16 * PMD_BYTES;

/// The pages of `job`.
///
/// # Errors
/// When they are more than this machine can address.
pub fn pages(job: &FolioOps) -> Result<usize, Error> {
    usize::try_from(job.pages()).map_err(|_| {
        let size = format_size(job.bytes);
        Error::CannotRun(format!("--size {size} is more than this machine can address; give less"))
    })
}

/// Where the size of a job comes from, which decides the remedy if it is too large.
#[derive(Clone, Copy, Debug)]
pub enum SizeSource {
    /// `--size`.
    Flag,
    /// A published series.
    Published {
        /// Size of the form without `--full`, if the job is the full one.
        shorter_bytes: Option<u64>,
    },
}

/// Checks that `available` bytes suffice for a job with this many `children` at a time.
///
/// # Errors
/// When they do not, with the largest size that fits.
pub fn check(
    job: &FolioOps,
    source: SizeSource,
    children: usize,
    available: Option<u64>,
) -> Result<(), Error> {
    let needed = needed_bytes(job.bytes, children);
    let Some(available) = available.filter(|&available| available < needed) else { return Ok(()) };
    let reason = if needed > scheme_bytes(job.bytes) {
        format!("{children} children copy at the same time")
    } else {
        "each page may be copied".to_string()
    };
    let size = format_size(job.bytes);
    let subject = match source {
        SizeSource::Flag => format!("--size {size}"),
        SizeSource::Published { .. } => format!("mm-owner over {size}"),
    };
    Err(Error::CannotRun(format!(
        "{subject}: {} of memory are needed, as {reason}, and {} are available; {}",
        bytes(needed as f64),
        bytes(available as f64),
        remedy(source, children, largest_that_fits(job.bytes, children, available)),
    )))
}

/// The remedy if at most `fits` bytes fit.
fn remedy(source: SizeSource, children: usize, fits: u64) -> String {
    match source {
        _ if fits == 0 && children > 1 => {
            "end other programs, or use fewer CPUs (taskset)".to_string()
        }
        _ if fits == 0 => "end other programs".to_string(),
        SizeSource::Flag => format!("give {} or less", format_size(fits)),
        SizeSource::Published { shorter_bytes: Some(shorter) } if shorter <= fits => {
            "end other programs, or leave out --full".to_string()
        }
        SizeSource::Published { .. } => format!(
            "end other programs, or time the same over less: filemap folio-ops --size {}",
            format_size(fits)
        ),
    }
}

/// The largest size below `bytes` whose operations need at most `available`; 0 if none does.
fn largest_that_fits(bytes: u64, children: usize, available: u64) -> u64 {
    let mut sizes = (1..bytes / PMD_BYTES).rev().map(|count| count * PMD_BYTES);
    sizes.find(|size| needed_bytes(*size, children) <= available).unwrap_or(0)
}

/// Memory that operations over this many bytes need at a time.
fn needed_bytes(bytes: u64, children: usize) -> u64 {
    scheme_bytes(bytes).max(children_bytes(bytes, children))
}

/// Memory for all schemes together.
fn scheme_bytes(bytes: u64) -> u64 {
    let twice = 2 * bytes;
    twice + SCHEMES.len() as u64 * (twice / FRAME_PART) + twice / OVERHEAD_PART + FIXED_BYTES
}

/// Memory for `children` and their parent, with one scheme at a time.
fn children_bytes(bytes: u64, children: usize) -> u64 {
    let pages = usize::try_from(bytes / PAGE_BYTES).unwrap_or(usize::MAX);
    let bytes = (memory_pages(pages, children) as u64).saturating_mul(PAGE_BYTES);
    let overhead = bytes / FRAME_PART + bytes / OVERHEAD_PART;
    bytes.saturating_add(overhead).saturating_add(FIXED_BYTES)
}

/// Pages of the parent, if it and `children` share `all` pages.
pub fn parent_pages(all: usize, children: usize) -> usize {
    let pmd_pages = (PMD_BYTES / PAGE_BYTES) as usize;
    (all / pmd_pages / (children + 1)).max(1) * pmd_pages
}

/// Pages that the parent and `children` need then.
pub fn memory_pages(all: usize, children: usize) -> usize {
    // The same for every scheme.
    AnonCow::<MmOwner>::memory_pages(parent_pages(all, children), children)
}

#[cfg(test)]
mod tests {
    use filemap_job::{FolioOpsSpec, SizeText};
    use filemap_mapcount::mm::MAX_CPU_PAGES;

    use super::*;

    fn job(size: &str) -> FolioOps {
        let size = Some(SizeText(size.to_string()));
        FolioOpsSpec { size, ..FolioOpsSpec::default() }.validate().unwrap()
    }

    #[test]
    fn names_the_largest_size_that_fits() {
        let job = job("1g");
        let check =
            |job: &FolioOps, children, available| check(job, SizeSource::Flag, children, available);
        assert!(check(&job, 2, None).is_ok());
        let needed = needed_bytes(job.bytes, 2);
        assert!(check(&job, 2, Some(needed)).is_ok());
        let error = check(&job, 2, Some(needed / 2)).unwrap_err();
        assert_eq!(error.exit_code(), 4);
        let error = error.to_string();
        assert!(error.contains("--size 1g: 2.31 GiB of memory are needed"), "{error}");
        assert!(error.contains("1.16 GiB are available; give 504m or less"), "{error}");
        let fits = FolioOps { bytes: 504 << 20, ..job.clone() };
        assert!(check(&fits, 2, Some(needed / 2)).is_ok());
        let none = check(&job, 1, Some(1 << 20)).unwrap_err().to_string();
        assert!(none.ends_with("end other programs"), "{none}");
    }

    /// `published` has no --size.
    #[test]
    fn published_jobs_have_a_remedy_of_their_own() {
        let job = job("1g");
        let message = |shorter_bytes, available| {
            let source = SizeSource::Published { shorter_bytes };
            check(&job, source, 2, Some(available)).unwrap_err().to_string()
        };
        let needed = needed_bytes(job.bytes, 2);
        let run = "or time the same over less: filemap folio-ops --size 504m";
        let named = message(None, needed / 2);
        assert!(named.starts_with("mm-owner over 1g: 2.31 GiB of memory are needed"), "{named}");
        assert!(named.ends_with(&format!("; end other programs, {run}")), "{named}");
        assert!(message(Some(128 << 20), needed / 2).ends_with("programs, or leave out --full"));
        assert!(message(Some(512 << 20), needed / 2).ends_with(run), "that does not fit either");
        assert!(
            message(None, 1 << 20).ends_with("end other programs, or use fewer CPUs (taskset)")
        );
    }

    /// Each process has at least 512 pages and the lists of its CPU.
    #[test]
    fn many_children_need_more_than_the_shared_memory() {
        let job = job("256m");
        let least = (512 + MAX_CPU_PAGES as u64) * 257 * PAGE_BYTES;
        let check =
            |job: &FolioOps, children, available| check(job, SizeSource::Flag, children, available);
        let needed = needed_bytes(job.bytes, 256);
        assert!(needed > least && least > 1 << 30, "{needed}, {least}");
        assert!(check(&job, 256, Some(needed)).is_ok());
        let error = check(&job, 256, Some(needed - 1)).unwrap_err().to_string();
        assert!(error.contains("256 children copy at the same time"), "{error}");
        assert!(error.ends_with("or use fewer CPUs (taskset)"), "{error}");
        assert!(check(&job, 2, Some(needed - 1)).is_ok());
        // Above the minimum, children share the memory.
        let large = needed_bytes(8 << 30, 256);
        let fits = largest_that_fits(8 << 30, 256, large - 1);
        assert!(needed_bytes(fits, 256) < large && fits > 4 << 30, "{fits}");
    }
}
