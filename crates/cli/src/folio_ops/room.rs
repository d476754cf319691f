//! The memory that operations take.

use filemap_job::folio_ops::PMD_BYTES;
use filemap_job::{FolioOps, format_size};
use filemap_report::units::bytes;

use super::WAYS;
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
        Error::CannotRun(format!(
            "--file-size {size} is more than this machine can address; give less"
        ))
    })
}

/// Refuses a job for which `available` bytes are too little.
///
/// # Errors
/// Such a job, with what would fit.
pub fn check(job: &FolioOps, available: Option<u64>) -> Result<(), Error> {
    let needed = needed_bytes(job.bytes);
    let Some(available) = available.filter(|&available| available < needed) else { return Ok(()) };
    let per_byte = (needed - LEAST_BYTES) as f64 / job.bytes as f64;
    let fits = (available.saturating_sub(LEAST_BYTES) as f64 / per_byte) as u64;
    let remedy = match fits / PMD_BYTES * PMD_BYTES {
        0 => "end other programs".to_string(),
        fits => format!("give {} or less", format_size(fits)),
    };
    Err(Error::CannotRun(format!(
        "--file-size {}: {} of memory are needed, as each page may be copied, and {} are \
         available; {remedy}",
        format_size(job.bytes),
        bytes(needed as f64),
        bytes(available as f64),
    )))
}

/// Memory that operations over so many bytes take at a time.
fn needed_bytes(bytes: u64) -> u64 {
    let twice = 2 * bytes;
    twice + WAYS as u64 * (twice / FRAME_PART) + twice / KEEPING_PART + LEAST_BYTES
}

#[cfg(test)]
mod tests {
    use filemap_job::JobSpec;

    use super::*;

    #[test]
    fn too_little_memory_is_told_with_what_fits() {
        let spec = JobSpec::from_toml("workload = 'folio-ops'\nfile_size = '1g'").unwrap();
        let job = spec.validate_folio_ops().unwrap();
        assert!(check(&job, None).is_ok());
        let needed = needed_bytes(job.bytes);
        assert!(check(&job, Some(needed)).is_ok());
        let error = check(&job, Some(needed / 2)).unwrap_err();
        assert_eq!(error.exit_code(), 4);
        let error = error.to_string();
        assert!(error.contains("--file-size 1g: 2.31 GiB of memory are needed"), "{error}");
        assert!(error.contains("1.16 GiB are available; give 504m or less"), "{error}");
        let fits = FolioOps { bytes: 504 << 20, ..job.clone() };
        assert!(check(&fits, Some(needed / 2)).is_ok());
        let none = check(&job, Some(1 << 20)).unwrap_err().to_string();
        assert!(none.ends_with("end other programs"), "{none}");
    }
}
