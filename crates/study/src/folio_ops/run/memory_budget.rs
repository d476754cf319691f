//! The memory that operations take.

use filemap_job::folio_ops::{CONFIGURATIONS, PAGE_BYTES, PMD_BYTES};
use filemap_job::{FolioOps, format_size};
use filemap_mapcount::MmOwner;
use filemap_mapcount::anon_cow::AnonCow;
use filemap_report::units::bytes;

use crate::error::Error;

/// What is known of a page takes one part of so many of its bytes, for each way to count.
const FRAME_PART: u64 = 64;

/// The same for its places in page tables, its order in lists and more, for all of them.
const KEEPING_PART: u64 = 16;

/// What does not depend on the size: memory that CPUs keep, and the program.
const LEAST_BYTES: u64 = 16 * PMD_BYTES;

/// The pages of `job`.
///
/// # Errors
/// When they are more than this machine has addresses for.
pub fn pages(job: &FolioOps) -> Result<usize, Error> {
    usize::try_from(job.pages()).map_err(|_| {
        let size = format_size(job.bytes);
        Error::CannotRun(format!("--size {size} is more than this machine can address; give less"))
    })
}

/// Who gave a job its size, and so what can be done about it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Asked {
    /// The user, with `--size`.
    Size,
    /// A published series, which without `--full` has a form of so many bytes.
    Published { shorter_bytes: Option<u64> },
}

/// Refuses a job for which `available` bytes are too little, where `children` copy at once.
///
/// # Errors
/// Such a job, with what would fit.
pub fn check(
    job: &FolioOps,
    asked: Asked,
    children: usize,
    available: Option<u64>,
) -> Result<(), Error> {
    let needed = needed_bytes(job.bytes, children);
    let Some(available) = available.filter(|&available| available < needed) else { return Ok(()) };
    let reason = if needed > bytes_of_ways(job.bytes) {
        format!("{children} children copy at once")
    } else {
        "each page may be copied".to_string()
    };
    let size = format_size(job.bytes);
    let what = match asked {
        Asked::Size => format!("--size {size}"),
        Asked::Published { .. } => format!("mm-owner over {size}"),
    };
    Err(Error::CannotRun(format!(
        "{what}: {} of memory are needed, as {reason}, and {} are available; {}",
        bytes(needed as f64),
        bytes(available as f64),
        remedy(asked, children, most_that_fits(job.bytes, children, available)),
    )))
}

/// What to do where no more than `fits` bytes fit.
fn remedy(asked: Asked, children: usize, fits: u64) -> String {
    match asked {
        _ if fits == 0 && children > 1 => {
            "end other programs, or use fewer CPUs (taskset)".to_string()
        }
        _ if fits == 0 => "end other programs".to_string(),
        Asked::Size => format!("give {} or less", format_size(fits)),
        Asked::Published { shorter_bytes: Some(shorter) } if shorter <= fits => {
            "end other programs, or leave out --full".to_string()
        }
        Asked::Published { .. } => format!(
            "end other programs, or time the same over less: filemap folio-ops --size {}",
            format_size(fits)
        ),
    }
}

/// The largest memory below `bytes` whose operations take no more than `available`; 0 if none do.
fn most_that_fits(bytes: u64, children: usize, available: u64) -> u64 {
    let mut sizes = (1..bytes / PMD_BYTES).rev().map(|count| count * PMD_BYTES);
    sizes.find(|size| needed_bytes(*size, children) <= available).unwrap_or(0)
}

/// Memory that operations over so many bytes take at a time.
fn needed_bytes(bytes: u64, children: usize) -> u64 {
    bytes_of_ways(bytes).max(bytes_of_children(bytes, children))
}

/// What all ways to count take side by side.
fn bytes_of_ways(bytes: u64) -> u64 {
    let twice = 2 * bytes;
    twice + CONFIGURATIONS.len() as u64 * (twice / FRAME_PART) + twice / KEEPING_PART + LEAST_BYTES
}

/// What `children` and their parent take, who have the memory of one way to count.
fn bytes_of_children(bytes: u64, children: usize) -> u64 {
    let pages = usize::try_from(bytes / PAGE_BYTES).unwrap_or(usize::MAX);
    let taken = memory_pages(pages, children) as u64;
    let bytes = taken.saturating_mul(PAGE_BYTES);
    let known = bytes / FRAME_PART + bytes / KEEPING_PART;
    bytes.saturating_add(known).saturating_add(LEAST_BYTES)
}

/// Pages of the parent, where it and `children` share `all` out.
pub fn parent_pages(all: usize, children: usize) -> usize {
    let pmd_pages = (PMD_BYTES / PAGE_BYTES) as usize;
    (all / pmd_pages / (children + 1)).max(1) * pmd_pages
}

/// Pages that the parent and `children` take then.
pub fn memory_pages(all: usize, children: usize) -> usize {
    // The way to count does not matter for the size.
    AnonCow::<MmOwner>::memory_pages(parent_pages(all, children), children)
}

#[cfg(test)]
mod tests {
    use filemap_job::{FolioOpsSpec, SizeText};
    use filemap_mapcount::mm::KEPT_PAGES;

    use super::*;

    fn job(size: &str) -> FolioOps {
        let size = Some(SizeText(size.to_string()));
        FolioOpsSpec { size, ..FolioOpsSpec::default() }.validate().unwrap()
    }

    #[test]
    fn too_little_memory_is_told_with_what_fits() {
        let job = job("1g");
        let check =
            |job: &FolioOps, children, available| check(job, Asked::Size, children, available);
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

    /// The command has no --size.
    #[test]
    fn of_published_jobs_a_remedy_is_named_that_there_is() {
        let job = job("1g");
        let told = |shorter_bytes, available| {
            let asked = Asked::Published { shorter_bytes };
            check(&job, asked, 2, Some(available)).unwrap_err().to_string()
        };
        let needed = needed_bytes(job.bytes, 2);
        let run = "or time the same over less: filemap folio-ops --size 504m";
        let named = told(None, needed / 2);
        assert!(named.starts_with("mm-owner over 1g: 2.31 GiB of memory are needed"), "{named}");
        assert!(named.ends_with(&format!("; end other programs, {run}")), "{named}");
        assert!(told(Some(128 << 20), needed / 2).ends_with("programs, or leave out --full"));
        assert!(told(Some(512 << 20), needed / 2).ends_with(run), "that does not fit either");
        assert!(told(None, 1 << 20).ends_with("end other programs, or use fewer CPUs (taskset)"));
    }

    /// Each child and the parent have 512 pages or more, and lists of pages that their CPU keeps.
    #[test]
    fn many_children_take_more_than_the_memory_shared_out() {
        let job = job("256m");
        let least = (512 + KEPT_PAGES as u64) * 257 * PAGE_BYTES;
        let check =
            |job: &FolioOps, children, available| check(job, Asked::Size, children, available);
        let needed = needed_bytes(job.bytes, 256);
        assert!(needed > least && least > 1 << 30, "{needed}, {least}");
        assert!(check(&job, 256, Some(needed)).is_ok());
        let error = check(&job, 256, Some(needed - 1)).unwrap_err().to_string();
        assert!(error.contains("256 children copy at once"), "{error}");
        assert!(error.ends_with("or use fewer CPUs (taskset)"), "{error}");
        assert!(check(&job, 2, Some(needed - 1)).is_ok());
        // As many pages as children share out, where these are more than the least.
        let large = needed_bytes(8 << 30, 256);
        let fits = most_that_fits(8 << 30, 256, large - 1);
        assert!(needed_bytes(fits, 256) < large && fits > 4 << 30, "{fits}");
    }
}
