//! Errors of jobs.

use filemap_core::series::UnknownSeries;

use crate::elf::ElfError;
use crate::program::ProgramError;

/// Why a job is invalid: one line that names the value and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The value of a flag, or of the job file key with its name, is invalid.
    #[error("--{flag}: {error}")]
    Flag {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// The error of the value.
        error: Box<Error>,
    },
    /// A value in a `[[phase]]` is invalid.
    #[error("phase {number}: {error}")]
    InPhase {
        /// Number of the phase, from 1.
        number: usize,
        /// The error of the value.
        error: Box<Error>,
    },
    /// A required flag is missing.
    #[error("--{flag} is missing; give {remedy}")]
    Missing {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// What to give, as a remedy.
        remedy: &'static str,
    },
    /// Two flags conflict.
    #[error("--{flag} does not go with {other}; {remedy}")]
    Conflict {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// The conflicting flag or value.
        other: &'static str,
        /// What to do, as a remedy.
        remedy: &'static str,
    },
    /// The workload `thrash` where another job is required.
    #[error(
        "--workload thrash is a program, for filemap run and filemap compare; give one of these, or \
         another --workload"
    )]
    IsThrash,
    /// A flag that only the workload `thrash` accepts.
    #[error("--{flag} is for --workload thrash; give that, or leave it out")]
    OfThrash {
        /// The flag without its leading dashes.
        flag: &'static str,
    },
    /// `folio-ops` given as a workload.
    #[error("--workload folio-ops is a command of its own: give filemap folio-ops")]
    IsFolioOps,
    /// A duplicate value in a list.
    #[error("{value} is there twice; give it once")]
    Twice {
        /// The value.
        value: String,
    },
    /// `memory.high` exceeds `memory.max`.
    #[error("{high} is above memory.max of {max}; give a lower one")]
    HighAboveMax {
        /// `memory.high`.
        high: String,
        /// `memory.max`.
        max: String,
    },
    /// A name is not in a fixed set of names.
    #[error("unknown {what} '{text}'; known: {known}")]
    UnknownName {
        /// Kind of name.
        what: &'static str,
        /// The name given.
        text: String,
        /// The valid names.
        known: String,
    },
    /// A kernel version that is not modelled.
    #[error("Linux {version} is not modelled; give {nearest}, the nearest")]
    NotModelled {
        /// The version.
        version: String,
        /// The nearest modelled versions.
        nearest: String,
    },
    /// A patch series changes something that the kernel does not have.
    #[error("{name} has no place in Linux {kernel}, which {lacks}; leave it out, or give {remedy}")]
    NoPlace {
        /// The name that was given, with the switch if its name differs.
        name: String,
        /// The kernel version.
        kernel: &'static str,
        /// What the kernel lacks, as the end of a sentence.
        lacks: &'static str,
        /// Kernel versions that have it.
        remedy: String,
    },
    /// Unknown name of a series or group.
    #[error(transparent)]
    UnknownSeries(#[from] UnknownSeries),
    /// Text that is not a number.
    #[error("'{text}' is no {what}; give {remedy}")]
    NoNumber {
        /// What is required.
        what: &'static str,
        /// The text given.
        text: String,
        /// What to give, as a remedy.
        remedy: &'static str,
    },
    /// Unknown unit after a number.
    #[error("unknown unit '{unit}' in '{text}'; {remedy}")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
        /// The valid units.
        remedy: &'static str,
    },
    /// A number without the unit that it requires.
    #[error("'{text}' has no unit; {remedy}")]
    LacksUnit {
        /// The whole text.
        text: String,
        /// The valid units.
        remedy: &'static str,
    },
    /// A size below a page without a unit.
    #[error("'{text}' has no unit and is less than a page; give {text}k, or {text}b for bytes")]
    NoUnit {
        /// The whole text.
        text: String,
    },
    /// A negative number.
    #[error("'{text}' is negative; give a {what} without a sign")]
    Negative {
        /// The text given.
        text: String,
        /// What is required.
        what: &'static str,
    },
    /// A number of bytes or nanoseconds that is not whole.
    #[error("'{text}' is not a whole number of {unit}; give it in a smaller unit")]
    NotWhole {
        /// The text given.
        text: String,
        /// Bytes or nanoseconds.
        unit: &'static str,
    },
    /// A number is out of range.
    #[error("{value} is out of range; give {from} to {to}")]
    OutOfRange {
        /// The value as given.
        value: String,
        /// Minimum.
        from: String,
        /// Maximum.
        to: String,
    },
    /// Invalid parameters of an access pattern.
    #[error("'{text}' is no pattern; {remedy}")]
    BadPattern {
        /// The text after the colon.
        text: String,
        /// What to give, as a remedy.
        remedy: &'static str,
    },
    /// A number must not be 0.
    #[error("0 is not allowed; give {remedy}")]
    Zero {
        /// What to give, as a remedy.
        remedy: &'static str,
    },
    /// A mapping would be split into more VMAs than a process may have.
    #[error(
        "pieces of {pages} pages cut a mapping of {mapped} pages into more than the {} VMAs that \
         a process may have; give {least} or more",
        crate::bounds::MAX_PIECES
    )]
    TooManyPieces {
        /// Pages per VMA.
        pages: u64,
        /// Pages of the mapping.
        mapped: u64,
        /// Minimum number of pages per VMA.
        least: u64,
    },
    /// Conflicting or duplicate advice.
    #[error(
        "'{second}' does not go with '{first}'; give one of normal, random and sequential, and \
         hugepage at most once"
    )]
    AdviceExcluded {
        /// The first advice.
        first: &'static str,
        /// The conflicting advice.
        second: &'static str,
    },
    /// A size is not a multiple of another size.
    #[error("{value} is not a multiple of {unit}; give {below} or {above}")]
    Unaligned {
        /// The value as given.
        value: String,
        /// The required divisor.
        unit: String,
        /// Nearest valid value below.
        below: String,
        /// Nearest valid value above.
        above: String,
    },
    /// A size is not a power of two.
    #[error("{value} is no power of two; give a size such as 64k")]
    NotPowerOfTwo {
        /// The value as given.
        value: String,
    },
    /// Blocks larger than a page that the filesystem or kernel does not support.
    #[error(
        "--block-size: blocks of {size} are larger than a page, which are {whose}; give {remedy}, or \
         leave it out"
    )]
    LargeBlocks {
        /// The size as given.
        size: String,
        /// Where they are supported, as the end of a sentence.
        whose: &'static str,
        /// What to give, as a remedy.
        remedy: &'static str,
    },
    /// A mapping exceeds its file.
    #[error(
        "the mapping of {len} at {offset} ends beyond the file of {size}; lower --map-offset or \
         --map-len, or raise --file-size"
    )]
    BeyondFile {
        /// Offset of the mapping.
        offset: String,
        /// Length of the mapping.
        len: String,
        /// Size of the file.
        size: String,
    },
    /// A page size that the architecture does not support.
    #[error("{arch} has no pages of {page_size}; give {remedy}")]
    PageSize {
        /// The architecture.
        arch: &'static str,
        /// The page size as given.
        page_size: String,
        /// The page sizes that it supports.
        remedy: &'static str,
    },
    /// A fraction of the mapping is less than one access.
    #[error(
        "{fraction} of a mapping of {pages} pages is less than one access; give --accesses N instead"
    )]
    NoAccess {
        /// The fraction of the mapping's pages.
        fraction: f64,
        /// Pages of the mapping.
        pages: u64,
    },
    /// A fraction of the mapping is less than one read.
    #[error("{fraction} of a mapping of {mapped} is less than one read of {bs}; give --accesses N")]
    NoRead {
        /// The fraction of the mapping's bytes.
        fraction: f64,
        /// Size of the mapping.
        mapped: String,
        /// Size of a read.
        bs: String,
    },
    /// The modelled version nearest to the running kernel is unknown.
    #[error("it is not known which rules are nearest to '{release}'; give --kernel {known}")]
    UnknownHost {
        /// The release of the running kernel, or `this kernel`.
        release: String,
        /// The modelled versions.
        known: String,
    },
    /// The caller did not read an accesses file.
    #[error("'{path}' was not read; give a readable file of page indexes, one a line")]
    ListNotRead {
        /// Path of the accesses file.
        path: String,
    },
    /// A line of an accesses file is not a page index.
    #[error("line {line}: '{text}' is no page index; give one whole number a line")]
    ListLine {
        /// Line number, from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// A page index in an accesses file lies beyond the mapping.
    #[error(
        "line {line}: page {page} is beyond the mapping; its last page is {last}; map more of \
         the file, or give pages within it"
    )]
    ListBeyond {
        /// Line number, from 1.
        line: usize,
        /// The page index.
        page: u64,
        /// Last page of the mapping.
        last: u64,
    },
    /// An accesses file without page indexes.
    #[error("the accesses file has no page index; give one whole number a line")]
    ListEmpty,
    /// The caller did not look at an existing file.
    #[error("'{path}' was not looked at; give the path of a file that exists")]
    FileNotRead {
        /// Path of the file.
        path: String,
    },
    /// The given size of an existing file is wrong.
    #[error("--file-size {given} is not the size of '{path}', {found}; leave it out")]
    OtherSize {
        /// Path of the file.
        path: String,
        /// The size given.
        given: String,
        /// The actual size.
        found: String,
    },
    /// A flag of a file, a mapping or a phase where the job does not have exactly one.
    #[error("--{flag} is for a job with one [[{table}]]; remove the flag, or change the job file")]
    SeveralTables {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// Kind of table.
        table: &'static str,
    },
    /// The caller did not read the file of the workload `elf`.
    #[error("'{path}' was not read; give a readable program or shared library with --file")]
    ElfNotRead {
        /// Path of the file.
        path: String,
    },
    /// A file that cannot be mapped as a program or library.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// An error in the tables of a job.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The value of a key in a table is invalid.
    #[error("'{key}': {error}")]
    Key {
        /// The key.
        key: String,
        /// The error of the value.
        error: Box<Error>,
    },
    /// A required key is missing.
    #[error("'{key}' is missing; give {remedy}")]
    MissingKey {
        /// The key.
        key: String,
        /// What to give, as a remedy.
        remedy: &'static str,
    },
    /// Two keys conflict.
    #[error("'{key}' does not go with {other}; {remedy}")]
    KeyConflict {
        /// The key.
        key: &'static str,
        /// The conflicting key or value.
        other: &'static str,
        /// What to do, as a remedy.
        remedy: &'static str,
    },
    /// An error in a named table.
    #[error("{table} '{name}': {error}")]
    InTable {
        /// Kind of table.
        table: &'static str,
        /// Name of the table.
        name: String,
        /// The error.
        error: Box<Error>,
    },
    /// A job file with tables where a job with a single file is required.
    #[error(
        "it has [[file]], [[open]], [[mapping]] or [[thread]] tables, so it is a program; give it \
         as a file that is on disk, not through a pipe"
    )]
    IsProgram,
    /// A job file that is not valid TOML, or has an unknown key or a value of the wrong type.
    #[error("line {line} ('{text}'): {message}")]
    JobFile {
        /// Line number, from 1.
        line: usize,
        /// Text of the line.
        text: String,
        /// The error.
        message: String,
    },
}

impl Error {
    /// Attributes the error to the flag `flag`, given without dashes.
    pub(crate) fn with_flag(self, flag: &'static str) -> Self {
        Error::Flag { flag, error: Box::new(self) }
    }
}
