//! Why the model could not run a job.

/// Why the model could not run a job, or read a profile.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The memory holds less than one access needs.
    #[error("out of memory at page {index}: nothing is left to reclaim; raise the memory limit")]
    OutOfMemory {
        /// The page that did not fit.
        index: u64,
    },
    /// The memory of a program holds less than one access needs.
    #[error(
        "{step}: out of memory at page {index} of file '{file}': what cannot be evicted fills the \
         {limit} of '{key}'; raise '{key}', or give less 'anonymous' or fewer writes"
    )]
    ProgramOutOfMemory {
        /// The phase: `phase 1`.
        step: String,
        /// The page that did not fit.
        index: u64,
        /// Its file.
        file: String,
        /// The limit.
        limit: String,
        /// The key of the job file that sets it.
        key: &'static str,
    },
    /// The program's own memory does not fit into the limit.
    #[error(
        "{step}: the program is killed (OOM): it has {held} of anonymous memory and allocates more, \
         and nothing is left to reclaim in the {limit} of '{key}'; raise '{key}', or give less \
         'anonymous'"
    )]
    OomKill {
        /// The phase: `phase 1`.
        step: String,
        /// Size of its anonymous memory.
        held: String,
        /// The limit.
        limit: String,
        /// The key of the job file that sets it.
        key: &'static str,
    },
    /// A program touched a page beyond the end of the file.
    #[error(
        "{step}: page {page} of mapping '{mapping}' lies beyond the last page of file \
         '{file}'; a program that touches it gets SIGBUS: shorten the mapping, or access less of it"
    )]
    Bus {
        /// The phase: `phase 1`.
        step: String,
        /// Page of the mapping, from 0.
        page: u64,
        /// The mapping.
        mapping: String,
        /// The file.
        file: String,
    },
    /// A program of several threads was run with a timing that delivers all data before the next
    /// access.
    #[error(
        "the program has {threads} threads, whose decisions have no defined order to compare; give \
         one [[thread]]"
    )]
    SettledThreads {
        /// Number of threads.
        threads: usize,
    },
    /// The job takes more memory than the model may have.
    #[error(
        "the model needs about {needed_gib} GiB of memory for this job, and takes {most_gib} at \
         most; give fewer --accesses, a smaller --file-size, or --ram"
    )]
    TooLarge {
        /// Memory for all accesses, extrapolated from those made so far.
        needed_gib: u64,
        /// [`filemap_job::bounds::MAX_MODEL_BYTES`].
        most_gib: u64,
    },
    /// A machine profile that is not valid TOML or does not match the format.
    #[error("machine profile, line {line}: {reason}")]
    Profile {
        /// Line of the file, from 1.
        line: usize,
        /// The parser's message.
        reason: String,
    },
    /// A value of a machine profile that must be at least 1.
    #[error("machine profile: '{key}' is 0; give 1 or more")]
    ProfileZero {
        /// The key.
        key: &'static str,
    },
    /// A time of a machine profile that is out of range.
    #[error("machine profile: '{key}' is {value} ns; give at most 1000 s")]
    ProfileTime {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
    },
    /// A TLB level with impossible geometry.
    #[error(
        "machine profile: {level} has {entries} entries of {ways} ways; give a multiple of the \
         ways, and a largest_bytes of 1 or more"
    )]
    ProfileTlb {
        /// The level: `itlb.first`.
        level: &'static str,
        /// Its entries.
        entries: u32,
        /// Its ways.
        ways: u32,
    },
    /// The job advises HUGEPAGE, but the machine has no huge pages.
    #[error(
        "--advice hugepage: the machine profile has no huge pages; give another advice, or set \
         huge_pages = true in the profile"
    )]
    NoHugePages,
}
