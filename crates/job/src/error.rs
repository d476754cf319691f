//! What can be wrong with a job.

use filemap_core::series::UnknownSeries;

use crate::size::format_size;

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
        "--workload thrash is a job by itself, for filemap run and filemap compare; give one of \
         these, or another --workload"
    )]
    IsThrash,
    /// A flag that only the workload `thrash` has.
    #[error("--{flag} is for --workload thrash; give that, or leave it out")]
    OfThrash {
        /// The flag without its leading dashes.
        flag: &'static str,
    },
    /// The limits of a memory cgroup are the wrong way round.
    #[error("--memory-high {high} is above --memory-max {max}; give a lower one")]
    HighAboveMax {
        /// `memory.high`.
        high: String,
        /// `memory.max`.
        max: String,
    },
    /// A memory limit into which not even one readahead window fits.
    #[error(
        "{limit} is less than one readahead window of {window}; raise it, or lower --read-ahead-kb"
    )]
    BelowWindow {
        /// The limit.
        limit: String,
        /// The window.
        window: String,
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
    /// A number is below 0.
    #[error("'{text}' is negative; give a {what} of 0 or more")]
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
    /// A mapping does not lie inside its file.
    #[error(
        "the mapping of {} at {} ends beyond the file of {}; lower --map-offset or --map-len, or \
         raise --file-size",
        format_size(*len), format_size(*offset), format_size(*size)
    )]
    BeyondFile {
        /// Offset of the mapping in bytes.
        offset: u64,
        /// Length of the mapping in bytes.
        len: u64,
        /// Size of the file in bytes.
        size: u64,
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
    #[error("line {line}: page {page} is beyond the mapping; its last page is {last}")]
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
    /// The file of the workload `elf` was not handed in.
    #[error("'{path}' was not read; give a readable program or shared library with --file")]
    ElfNotRead {
        /// Path of the file.
        path: String,
    },
    /// A file that is no program and no shared library.
    #[error("no ELF file to load: {reason}; give a program or a shared library with --file")]
    NoElf {
        /// What it is, or lacks.
        reason: String,
    },
    /// An ELF segment ends behind the file.
    #[error(
        "segment {number} of {bytes} bytes at {offset} ends beyond the file of {size_bytes} \
         bytes; give a file that is not truncated"
    )]
    ElfBeyondFile {
        /// Its program header, from 0.
        number: usize,
        /// First byte in the file.
        offset: u64,
        /// Bytes in the file.
        bytes: u64,
        /// Bytes of the file.
        size_bytes: u64,
    },
    /// An ELF segment reaches beyond the address space.
    #[error(
        "segment {number} of {bytes} bytes at address {address:#x} reaches beyond the address \
         space of 128 TiB; give a file that can be loaded"
    )]
    ElfTooLarge {
        /// Its program header, from 0.
        number: usize,
        /// First byte in memory.
        address: u64,
        /// Bytes in memory.
        bytes: u64,
    },
    /// An ELF segment has more bytes in the file than in memory.
    #[error(
        "segment {number} has {file_bytes} bytes in the file and {memory_bytes} in memory; give a \
         file that can be loaded"
    )]
    ElfLargerThanMemory {
        /// Its program header, from 0.
        number: usize,
        /// Bytes in the file.
        file_bytes: u64,
        /// Bytes in memory.
        memory_bytes: u64,
    },
    /// An ELF segment cannot be mapped by whole pages.
    #[error(
        "segment {number} lies at {offset:#x} in the file and at {address:#x} in memory, not at \
         the same place in a page of {page_size}; give a smaller --page-size, or a file linked \
         for it"
    )]
    ElfUnaligned {
        /// Its program header, from 0.
        number: usize,
        /// First byte in the file.
        offset: u64,
        /// First byte in memory.
        address: u64,
        /// The page size.
        page_size: String,
    },
    /// Two ELF segments share a page of memory.
    #[error(
        "segments {first} and {second} overlap in memory; give a file that can be loaded, or a \
         smaller --page-size"
    )]
    ElfOverlap {
        /// Program header of the lower one, from 0.
        first: usize,
        /// Program header of the other.
        second: usize,
    },
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
    /// A table has no name.
    #[error("[[{table}]] number {number} has no name; give it one that no other of them has")]
    NoName {
        /// The kind of table.
        table: &'static str,
        /// Counted from 1.
        number: usize,
    },
    /// A name has line breaks or other control characters, which would garble the reports.
    #[error(
        "one of the [[{table}]] tables is named '{name}' with line breaks or other control characters in it; give \
         it a name of one line"
    )]
    NameOfLines {
        /// The kind of table.
        table: &'static str,
        /// The name, with blanks in place of what it may not have.
        name: String,
    },
    /// Two tables of a kind have the same name.
    #[error("two [[{table}]] tables are named '{name}'; give each a name of its own")]
    SameName {
        /// The kind of table.
        table: &'static str,
        /// The name.
        name: String,
    },
    /// A job file of a program where a job of one file is wanted.
    #[error(
        "it has [[file]], [[open]], [[mapping]] or [[thread]] tables, so it is a program; give it \
         as a file that is on disk, not through a pipe"
    )]
    IsProgram,
    /// A mapping that one thread makes or takes away, in a phase of another.
    #[error(
        "mapping '{name}' is mapped or unmapped by thread '{by}', so no other thread may use it; \
         use a mapping that is there from the beginning to the end, or one of the thread's own"
    )]
    MappedByAnother {
        /// The mapping.
        name: String,
        /// The thread that makes it or takes it away.
        by: String,
    },
    /// A phase of a thread does not say what it does, or says several things.
    #[error(
        "a phase does one thing; give one of 'mapping' or 'open' with a workload or advice, 'map', or \
         'unmap'"
    )]
    NoSubject,
    /// A mapping is used where it is not there.
    #[error("mapping '{name}' is not there at this point; put a phase with map = '{name}' before")]
    NotMapped {
        /// The mapping.
        name: String,
    },
    /// A mapping is made where it is there.
    #[error("mapping '{name}' is there already; put a phase with unmap = '{name}' before")]
    AlreadyMapped {
        /// The mapping.
        name: String,
    },
    /// A mapping begins behind the end of its file and has no length of its own.
    #[error(
        "it begins at page {offset_pages} of a file of {file_pages} pages; give a 'len', or a \
         smaller 'offset'"
    )]
    NothingLeft {
        /// Its first page in the file.
        offset_pages: u64,
        /// Pages of the file.
        file_pages: u64,
    },
    /// The mappings of a program do not fit the address space.
    #[error(
        "mapping '{name}': with it more than 128 TiB are mapped, which no process can; give smaller \
         mappings"
    )]
    TooMuchMapped {
        /// The first mapping that does not fit.
        name: String,
    },
    /// What a program holds beside its files leaves no memory for them.
    #[error(
        "'anonymous': {anonymous} fill the memory limit of {limit} that '{key}' sets; lower \
         'anonymous', or raise '{key}'"
    )]
    NoRoomForFiles {
        /// What it holds.
        anonymous: String,
        /// The limit.
        limit: String,
        /// The key that sets it.
        key: &'static str,
    },
    /// A page to be populated lies behind the end of the file.
    #[error(
        "page {page} of mapping '{name}' lies behind the last page of its file, where \
         populate-read fails with EFAULT; give an 'offset' and a 'len' that end before it"
    )]
    PopulatesBeyond {
        /// The page, counted from the mapping's first.
        page: u64,
        /// The mapping.
        name: String,
    },
    /// A page that is listed lies behind its mapping.
    #[error("page {page} is beyond mapping '{name}'; its last page is {last}")]
    BeyondMapping {
        /// The page, counted from the mapping's first.
        page: u64,
        /// The mapping.
        name: String,
        /// Its last page.
        last: u64,
    },
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
