//! What only this machine can add to the published tables.

use filemap_job::JobSpec;

use super::data::PUBLISHED;

/// Size of the file of fio's published jobs, in bytes.
pub const FIO_FILE_BYTES: u64 = 3 << 30;

/// The range that they read: its first byte, and how many.
pub const FIO_RANGE_BYTES: (u64, u64) = (1 << 30, 1 << 30);

/// fio's published jobs: `ioengine` and `rw`.
pub fn fio_jobs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PUBLISHED.vma_bound.rows.iter().map(|row| (row.ioengine.as_str(), row.rw.as_str()))
}

/// Measured or found here, for a report in full.
#[derive(Clone, Debug)]
pub struct MeasuredHere {
    /// Programs and libraries: jobs of the workload `elf`, with the headers of their file.
    pub programs: Vec<JobSpec>,
    /// fio's jobs, or in a few words why there are none.
    pub fio: Result<FioRuns, String>,
}

/// The published jobs of fio, run here.
#[derive(Clone, Debug, PartialEq)]
pub struct FioRuns {
    /// As fio calls itself, such as `fio-3.33`.
    pub version: String,
    /// Release of the kernel they ran on.
    pub kernel: String,
    /// Readahead size of the disk, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// One for each job and with or without its advice.
    pub rows: Vec<FioRun>,
}

/// What a job of fio came to here.
#[derive(Clone, Debug, PartialEq)]
pub struct FioRun {
    /// `mmap` or `psync`.
    pub ioengine: String,
    /// `read` or `randread`.
    pub rw: String,
    /// Whether fio advised the kernel of its order.
    pub advises: bool,
    /// MiB a second.
    pub mib_s: f64,
    /// Major faults.
    pub major_faults: u64,
    /// Pages of the file in the cache then: before the range that fio was given, in it, behind it.
    pub cached: [u64; 3],
}
