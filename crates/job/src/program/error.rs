//! What can be wrong with the tables of a program.

/// Why the tables of a job file make no program: one line that names the value and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    /// Folios that are no larger than a block cannot be split.
    #[error(
        "block_size: what MADV_COLD and MADV_PAGEOUT split in files with blocks larger than a page is \
         not modelled; leave out the advice, or block_size"
    )]
    AdvisedBlocks,
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
        "one of the [[{table}]] tables is named '{name}' with line breaks or other control \
         characters in it; give it a name of one line"
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
    /// A thread that takes its steps again finds another mapping there than the first time.
    #[error(
        "mapping '{name}' is {how} at the end of a round, as it is not at its beginning, so that \
         the next round cannot do the same; put a phase with {remedy} = '{name}' into the round"
    )]
    OtherRound {
        /// The mapping.
        name: String,
        /// What it is at the end.
        how: &'static str,
        /// The key that changes that.
        remedy: &'static str,
    },
    /// A thread that takes its steps again waits for others, or they for it.
    #[error(
        "'after' is for threads that do their phases once, and thread '{name}' repeats them; use a \
         'barrier', or leave out 'repeat' and 'for'"
    )]
    AfterRounds {
        /// The thread.
        name: String,
    },
    /// A step is about pages that were unmapped before it.
    #[error(
        "page {page} of mapping '{name}' was unmapped before; name pages that are still mapped, or \
         unmap all of it and map it again"
    )]
    PartGone {
        /// The first such page, counted from the mapping's first.
        page: u64,
        /// The mapping.
        name: String,
    },
    /// A part of a mapping is unmapped when a round ends.
    #[error(
        "a part of mapping '{name}' is unmapped at the end of a round, and the next one begins with \
         all of it; unmap all of it and map it again in the round"
    )]
    PartAtRoundsEnd {
        /// The mapping.
        name: String,
    },
    /// Nothing is left of a mapping of which parts are unmapped.
    #[error(
        "mapping '{name}': with this part nothing is left of it; unmap all of it, without 'offset' \
         and 'len'"
    )]
    LastPart {
        /// The mapping.
        name: String,
    },
    /// A table that is there several times is named by threads that are not there as often.
    #[error(
        "'{name}' is of files with a count of {count}, and the thread that names it has {threads}; \
         give the thread count = {count}"
    )]
    OtherCount {
        /// The name.
        name: String,
        /// How often it is there.
        count: u64,
        /// The count of the thread, if it has one.
        threads: String,
    },
    /// A thread that makes rounds for a time comes to a barrier.
    #[error(
        "thread '{thread}' makes rounds for a time, so it is not known how often it comes to the \
         barrier '{name}'; give it 'repeat' in place of 'for'"
    )]
    TimedBarrier {
        /// The barrier.
        name: String,
        /// The thread.
        thread: String,
    },
    /// Threads do not come to a barrier equally often.
    #[error(
        "barrier '{name}': thread '{one}' comes to it {often} and thread '{other}' {other_often}, \
         so that one would wait for ever; have all that name it come equally often in as many \
         rounds"
    )]
    Uneven {
        /// The barrier.
        name: String,
        /// A thread.
        one: String,
        /// How often it comes.
        often: String,
        /// Another one.
        other: String,
        /// How often that comes.
        other_often: String,
    },
    /// The name of a process makes no sense.
    #[error(
        "'{name}' is no name of a process, which is one line of text; give it a name such as 'worker'"
    )]
    NoProcessName {
        /// The name.
        name: String,
    },
    /// Too many processes.
    #[error("{processes} processes, with main, are too many; give at most {most}")]
    ManyProcesses {
        /// How many there are.
        processes: usize,
        /// How many may be.
        most: usize,
    },
    /// A phase waits for one of its own thread.
    #[error(
        "'after': it waits for a phase of its own thread '{name}', whose order is that of its \
         phases; name another thread"
    )]
    AfterItself {
        /// The thread.
        name: String,
    },
    /// A phase waits for one that is not there.
    #[error("'after': thread '{name}' has no phase {phase}; give one from 1 to {phases}")]
    NoPhase {
        /// The phase, counted from 1.
        phase: u64,
        /// The thread.
        name: String,
        /// How many it has.
        phases: u64,
    },
    /// Phases wait for each other.
    #[error(
        "{step} can never begin, as phases wait for each other in a circle; take out an 'after' or a \
         'barrier'"
    )]
    Circle {
        /// The step.
        step: String,
    },
    /// A phase of a thread does not say what it does, or says several things.
    #[error(
        "a phase does one thing; give one of 'mapping' or 'open' with a workload, advice or \
         protection, 'map', 'unmap', 'fork', 'barrier', or 'sleep_ns'"
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
    /// A mapping begins beyond the end of its file and has no length of its own.
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
        "mapping '{name}': with it more than 128 TiB are mapped, which no process can; give \
         smaller mappings"
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
    /// A page to be populated lies beyond the end of the file.
    #[error(
        "page {page} of mapping '{name}' lies beyond the last page of its file, where \
         populate-read fails with EFAULT; give an 'offset' and a 'len' that end before it"
    )]
    PopulatesBeyond {
        /// The page, counted from the mapping's first.
        page: u64,
        /// The mapping.
        name: String,
    },
    /// A read past the page cache does not begin or end with a block.
    #[error(
        "'{key}': {bytes} is not a multiple of 4k, and open file '{open}' with direct = true reads \
         whole blocks; round it, or leave out direct"
    )]
    NotDirect {
        /// The key.
        key: &'static str,
        /// Its value.
        bytes: String,
        /// The open file.
        open: String,
    },
    /// An offset that is listed lies beyond its file.
    #[error("offset {offset} is beyond the file; its last byte is {last}")]
    BeyondFile {
        /// The offset in bytes.
        offset: u64,
        /// The last byte of the file.
        last: u64,
    },
    /// A page that is listed lies beyond its mapping.
    #[error("page {page} is beyond mapping '{name}'; its last page is {last}")]
    BeyondMapping {
        /// The page, counted from the mapping's first.
        page: u64,
        /// The mapping.
        name: String,
        /// Its last page.
        last: u64,
    },
}
