//! What can be wrong with a job.

use filemap_core::series::UnknownSeries;

use crate::elf::ElfError;
use crate::program::ProgramError;

/// Why a text is no valid job: one line that names the value and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A value of one flag, or of the key of that name in a job file, is wrong.
    #[error("--{flag}: {error}")]
    Flag {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// What is wrong with the value.
        error: Box<Error>,
    },
    /// A value of one `[[phase]]` is wrong.
    #[error("phase {number}: {error}")]
    InPhase {
        /// Counted from 1.
        number: usize,
        /// What is wrong in it.
        error: Box<Error>,
    },
    /// A flag that has no default is missing.
    #[error("--{flag} is missing; give {remedy}")]
    Missing {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// What to give.
        remedy: &'static str,
    },
    /// Two flags exclude each other.
    #[error("--{flag} does not go with {other}; {remedy}")]
    Conflict {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// What it does not go with.
        other: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A job of the workload `thrash` where another one is wanted.
    #[error(
        "--workload thrash is a program, for filemap run and filemap compare; give one of these, or \
         another --workload"
    )]
    IsThrash,
    /// A flag that only the workload `thrash` has.
    #[error("--{flag} is for --workload thrash; give that, or leave it out")]
    OfThrash {
        /// The flag without its leading dashes.
        flag: &'static str,
    },
    /// Operations over folios, which are no workload.
    #[error("--workload folio-ops is a command of its own: give filemap folio-ops")]
    IsFolioOps,
    /// A value of a list is in it twice.
    #[error("{value} is there twice; give it once")]
    Twice {
        /// The value.
        value: String,
    },
    /// The limits of a memory cgroup are the wrong way round.
    #[error("{high} is above memory.max of {max}; give a lower one")]
    HighAboveMax {
        /// `memory.high`.
        high: String,
        /// `memory.max`.
        max: String,
    },
    /// A name is not one of a fixed set.
    #[error("unknown {what} '{text}'; known: {known}")]
    UnknownName {
        /// What kind of name.
        what: &'static str,
        /// The name given.
        text: String,
        /// The names there are.
        known: String,
    },
    /// A version of the kernel whose rules are not modelled.
    #[error("Linux {version} is not modelled; give {nearest}, the nearest")]
    NotModelled {
        /// The version.
        version: String,
        /// The modelled ones next to it.
        nearest: String,
    },
    /// A switch of a series changes what the kernel does not have.
    #[error("{name} has no place in Linux {kernel}, which {lacks}; leave it out, or give {remedy}")]
    NoPlace {
        /// The name that was given, and the switch where that is another.
        name: String,
        /// The kernel.
        kernel: &'static str,
        /// What it lacks, as the end of a sentence.
        lacks: &'static str,
        /// Kernels in which it does change something.
        remedy: String,
    },
    /// A name is no series and no group.
    #[error(transparent)]
    UnknownSeries(#[from] UnknownSeries),
    /// A text is no number where one is wanted.
    #[error("'{text}' is no {what}; give {remedy}")]
    NoNumber {
        /// What is wanted.
        what: &'static str,
        /// The text given.
        text: String,
        /// What to give.
        remedy: &'static str,
    },
    /// The letters after a number are no unit.
    #[error("unknown unit '{unit}' in '{text}'; {remedy}")]
    UnknownUnit {
        /// The letters.
        unit: String,
        /// The whole text.
        text: String,
        /// The units there are.
        remedy: &'static str,
    },
    /// A size below a page has no unit.
    #[error("'{text}' has no unit and is less than a page; give {text}k, or {text}b for bytes")]
    NoUnit {
        /// The whole text.
        text: String,
    },
    /// A number is below 0.
    #[error("'{text}' is negative; give a {what} without a sign")]
    Negative {
        /// The text given.
        text: String,
        /// What is wanted.
        what: &'static str,
    },
    /// A number of bytes or nanoseconds is not whole.
    #[error("'{text}' is not a whole number of {unit}; give it in a smaller unit")]
    NotWhole {
        /// The text given.
        text: String,
        /// Bytes or nanoseconds.
        unit: &'static str,
    },
    /// A number is outside what is allowed.
    #[error("{value} is out of range; give {from} to {to}")]
    OutOfRange {
        /// The value as given.
        value: String,
        /// Smallest allowed.
        from: String,
        /// Largest allowed.
        to: String,
    },
    /// What follows the name of a pattern is none of its numbers.
    #[error("'{text}' is no pattern; {remedy}")]
    BadPattern {
        /// What was given after the colon.
        text: String,
        /// What to give.
        remedy: &'static str,
    },
    /// A number is 0 where that means nothing.
    #[error("0 is not allowed; give {remedy}")]
    Zero {
        /// What to give.
        remedy: &'static str,
    },
    /// A mapping would be cut into more VMAs than a process may have.
    #[error(
        "pieces of {pages} pages cut a mapping of {mapped} pages into more than the {} VMAs that \
         a process may have; give {least} or more",
        crate::bounds::MAX_PIECES
    )]
    TooManyPieces {
        /// Pages of each piece.
        pages: u64,
        /// Pages of the mapping.
        mapped: u64,
        /// The fewest pages of each piece.
        least: u64,
    },
    /// Two flags of advice exclude each other, or one is given twice.
    #[error(
        "'{second}' does not go with '{first}'; give one of normal, random and sequential, and \
         hugepage at most once"
    )]
    AdviceExcluded {
        /// The flag before.
        first: &'static str,
        /// The flag that it excludes.
        second: &'static str,
    },
    /// A size is not a multiple of another.
    #[error("{value} is not a multiple of {unit}; give {below} or {above}")]
    Unaligned {
        /// The value as given.
        value: String,
        /// What it must be a multiple of.
        unit: String,
        /// The nearest valid value below.
        below: String,
        /// The nearest valid value above.
        above: String,
    },
    /// A size is no power of two.
    #[error("{value} is no power of two; give a size such as 64k")]
    NotPowerOfTwo {
        /// The value as given.
        value: String,
    },
    /// Blocks larger than a page where there are none.
    #[error(
        "--block-size: blocks of {size} are larger than a page, which are {whose}; give {remedy}, or \
         leave it out"
    )]
    LargeBlocks {
        /// The size as given.
        size: String,
        /// Where there are some, as the end of a sentence.
        whose: &'static str,
        /// What to give.
        remedy: &'static str,
    },
    /// A mapping does not lie inside its file.
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
    /// An architecture has no such page size.
    #[error("{arch} has no pages of {page_size}; give {remedy}")]
    PageSize {
        /// The architecture.
        arch: &'static str,
        /// The page size as given.
        page_size: String,
        /// The page sizes that it has.
        remedy: &'static str,
    },
    /// A fraction of the mapping comes to no access at all.
    #[error(
        "{fraction} of a mapping of {pages} pages is less than one access; give --accesses N instead"
    )]
    NoAccess {
        /// The fraction of the mapping's pages.
        fraction: f64,
        /// Pages of the mapping.
        pages: u64,
    },
    /// A fraction of the mapping comes to less than one read.
    #[error("{fraction} of a mapping of {mapped} is less than one read of {bs}; give --accesses N")]
    NoRead {
        /// The fraction of the mapping's bytes.
        fraction: f64,
        /// Size of the mapping.
        mapped: String,
        /// Size of a read.
        bs: String,
    },
    /// The rules of the running kernel are wanted, and what runs is not known.
    #[error("it is not known which rules are nearest to '{release}'; give --kernel {known}")]
    UnknownHost {
        /// The release of the running kernel, or `this kernel`.
        release: String,
        /// The kernels that are modelled.
        known: String,
    },
    /// The caller did not read the file that the job names.
    #[error("'{path}' was not read; give a readable file of page indexes, one a line")]
    ListNotRead {
        /// Path of the accesses file.
        path: String,
    },
    /// A line of an accesses file is no page index.
    #[error("line {line}: '{text}' is no page index; give one whole number a line")]
    ListLine {
        /// Line, counted from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A line of an accesses file is beyond the mapping.
    #[error(
        "line {line}: page {page} is beyond the mapping; its last page is {last}; map more of \
         the file, or give pages within it"
    )]
    ListBeyond {
        /// Line, counted from 1.
        line: usize,
        /// The page index.
        page: u64,
        /// The largest valid page index.
        last: u64,
    },
    /// An accesses file holds no page index.
    #[error("the accesses file has no page index; give one whole number a line")]
    ListEmpty,
    /// An existing file of a program was not looked at.
    #[error("'{path}' was not looked at; give the path of a file that exists")]
    FileNotRead {
        /// Path of the file.
        path: String,
    },
    /// An existing file has another size than was given.
    #[error("{given} is not the size of '{path}', {found}; leave it out")]
    OtherSize {
        /// Path of the file.
        path: String,
        /// The size given.
        given: String,
        /// The size found.
        found: String,
    },
    /// A flag of a file, a mapping or a phase where the job has several of them, or none.
    #[error("--{flag} is for a job with one [[{table}]]; remove the flag, or change the job file")]
    SeveralTables {
        /// The flag without its leading dashes.
        flag: &'static str,
        /// The kind of table.
        table: &'static str,
    },
    /// The file of the workload `elf` was not handed in.
    #[error("'{path}' was not read; give a readable program or shared library with --file")]
    ElfNotRead {
        /// Path of the file.
        path: String,
    },
    /// A file that is no program or library that can be mapped.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// Something in the tables of a program is wrong.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A value of one key of a table is wrong.
    #[error("'{key}': {error}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with the value.
        error: Box<Error>,
    },
    /// A key that has no default is missing.
    #[error("'{key}' is missing; give {remedy}")]
    MissingKey {
        /// The key.
        key: String,
        /// What to give.
        remedy: &'static str,
    },
    /// A key does not go with another.
    #[error("'{key}' does not go with {other}; {remedy}")]
    KeyConflict {
        /// The key.
        key: &'static str,
        /// What it does not go with.
        other: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Something in one named table is wrong.
    #[error("{table} '{name}': {error}")]
    InTable {
        /// The kind of table.
        table: &'static str,
        /// Its name.
        name: String,
        /// What is wrong in it.
        error: Box<Error>,
    },
    /// A job file of a program where a job of one file is wanted.
    #[error(
        "it has [[file]], [[open]], [[mapping]] or [[thread]] tables, so it is a program; give it \
         as a file that is on disk, not through a pipe"
    )]
    IsProgram,
    /// A job file is no TOML, or has a key or value that no job has.
    #[error("line {line} ('{text}'): {message}")]
    JobFile {
        /// Line, counted from 1.
        line: usize,
        /// What stands there.
        text: String,
        /// What is wrong with it.
        message: String,
    },
}

impl Error {
    /// This error as that of the flag `flag`, named without its leading dashes.
    pub(crate) fn of(self, flag: &'static str) -> Self {
        Error::Flag { flag, error: Box::new(self) }
    }
}
