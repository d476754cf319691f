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
        /// Which phase it was: `phase 1`.
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
    /// A program touched a page beyond the end of the file.
    #[error(
        "{step}: page {page} of mapping '{mapping}' lies beyond the last page of file \
         '{file}'; a program that touches it gets SIGBUS: shorten the mapping, or access less of it"
    )]
    Bus {
        /// Which phase it was: `phase 1`.
        step: String,
        /// Counted from the mapping's first.
        page: u64,
        /// The mapping.
        mapping: String,
        /// The file.
        file: String,
    },
    /// Several threads where everything that is read arrives before the next access.
    #[error(
        "the program has {threads} threads, whose decisions have no order of their own to compare; \
         give one [[thread]]"
    )]
    SettledThreads {
        /// How many.
        threads: usize,
    },
    /// The job takes more memory than the model may have.
    #[error(
        "the model needs about {needed_gib} GiB of memory for this job, and takes {most_gib} at \
         most; give fewer --accesses, a smaller --file-size, or --ram"
    )]
    TooLarge {
        /// What all accesses would take, by what those so far took.
        needed_gib: u64,
        /// [`filemap_job::bounds::MAX_MODEL_BYTES`].
        most_gib: u64,
    },
    /// A machine profile that is no TOML, or not of its form.
    #[error("machine profile, line {line}: {reason}")]
    Profile {
        /// Line in the text, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A value of a machine profile that has to be 1 or more.
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
    /// A level of the TLB that no processor has.
    #[error(
        "machine profile: {level} has {entries} entries of {ways} ways; give a multiple of the \
         ways, and a largest_bytes of 1 or more"
    )]
    ProfileTlb {
        /// Which level.
        level: &'static str,
        /// Its entries.
        entries: u32,
        /// Its ways.
        ways: u32,
    },
    /// The job asks for huge pages of a machine without them.
    #[error(
        "--advice hugepage: the machine profile has no huge pages; give another advice, or set \
         huge_pages = true in the profile"
    )]
    NoHugePages,
}
