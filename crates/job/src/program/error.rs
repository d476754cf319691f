//! Errors in the tables of a job.

/// Why the tables of a job file are invalid: one line that names the value and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    /// Folios not larger than a block cannot be split.
    #[error(
        "block_size: what MADV_COLD and MADV_PAGEOUT split in files with blocks larger than a page is \
         not modelled; leave out the advice, or block_size"
    )]
    AdvisedBlocks,
    /// A table has no name.
    #[error("[[{table}]] number {number} has no name; give it a unique one")]
    NoName {
        /// Kind of table.
        table: &'static str,
        /// Number of the table, from 1.
        number: usize,
    },
    /// A name contains line breaks or other control characters, which would garble reports.
    #[error(
        "one of the [[{table}]] tables is named '{name}' with line breaks or other control \
         characters in it; give it a name of one line"
    )]
    NameOfLines {
        /// Kind of table.
        table: &'static str,
        /// The name, with blanks in place of the invalid characters.
        name: String,
    },
    /// Two tables of a kind have the same name.
    #[error("two [[{table}]] tables are named '{name}'; give each a name of its own")]
    SameName {
        /// Kind of table.
        table: &'static str,
        /// The name.
        name: String,
    },
    /// A mapping that one thread maps or unmaps is used by another.
    #[error(
        "mapping '{name}' is mapped or unmapped by thread '{by}', so no other thread may use it; \
         use a mapping that exists throughout, or one of that thread alone"
    )]
    MappedByAnother {
        /// The mapping.
        name: String,
        /// The thread that maps or unmaps it.
        by: String,
    },
    /// A repeated round would start with other mappings than the first.
    #[error(
        "mapping '{name}' is {how} at the end of a round but not at its beginning, so the next \
         round cannot repeat it; put a phase with {remedy} = '{name}' into the round"
    )]
    OtherRound {
        /// The mapping.
        name: String,
        /// Its state at the end of a round.
        how: &'static str,
        /// The key that restores the state.
        remedy: &'static str,
    },
    /// A dependency that involves a thread which repeats its phases.
    #[error(
        "'after' is for threads that do their phases once, and thread '{name}' repeats them; use a \
         'barrier', or leave out 'repeat' and 'for'"
    )]
    AfterRounds {
        /// The thread.
        name: String,
    },
    /// A step uses pages that were unmapped before.
    #[error(
        "page {page} of mapping '{name}' was unmapped before; name pages that are still mapped, or \
         unmap all of it and map it again"
    )]
    PartGone {
        /// The first such page, relative to the mapping.
        page: u64,
        /// The mapping.
        name: String,
    },
    /// Part of a mapping is unmapped at the end of a round.
    #[error(
        "a part of mapping '{name}' is unmapped at the end of a round, but the next one begins \
         with all of it mapped; unmap all of it and map it again in the round"
    )]
    PartAtRoundsEnd {
        /// The mapping.
        name: String,
    },
    /// Unmapping this part leaves nothing of the mapping.
    #[error(
        "mapping '{name}': unmapping this part would leave nothing of it mapped; unmap all of it, \
         without 'offset' and 'len'"
    )]
    LastPart {
        /// The mapping.
        name: String,
    },
    /// A table with a count is named by threads that do not have the same count.
    #[error(
        "'{name}' is of files with a count of {count}, but the thread that names it has {threads}; \
         give the thread count = {count}"
    )]
    OtherCount {
        /// The name.
        name: String,
        /// Its count.
        count: u64,
        /// The count of the thread, if it has one.
        threads: String,
    },
    /// A thread limited by time reaches a barrier.
    #[error(
        "thread '{thread}' repeats its phases for a time, so it is unknown how often it reaches \
         barrier '{name}'; give it 'repeat' instead of 'for'"
    )]
    TimedBarrier {
        /// The barrier.
        name: String,
        /// The thread.
        thread: String,
    },
    /// Threads do not reach a barrier equally often.
    #[error(
        "barrier '{name}': thread '{one}' reaches it {often} and thread '{other}' {other_often}, \
         so one would wait forever; let all threads that name it reach it equally often, in as \
         many rounds"
    )]
    Uneven {
        /// The barrier.
        name: String,
        /// A thread.
        one: String,
        /// How often it reaches the barrier.
        often: String,
        /// Another thread.
        other: String,
        /// How often that thread reaches it.
        other_often: String,
    },
    /// An invalid process name.
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
        /// Number of processes.
        processes: usize,
        /// Maximum number of processes.
        most: usize,
    },
    /// A phase depends on a phase of its own thread.
    #[error(
        "'after': it names a phase of its own thread '{name}', whose phases run in order anyway; \
         name another thread"
    )]
    AfterItself {
        /// The thread.
        name: String,
    },
    /// A phase depends on one that does not exist.
    #[error("'after': thread '{name}' has no phase {phase}; give one from 1 to {phases}")]
    NoPhase {
        /// Number of the phase, from 1.
        phase: u64,
        /// The thread.
        name: String,
        /// Number of phases of the thread.
        phases: u64,
    },
    /// Circular dependencies between phases.
    #[error(
        "{step} can never begin, as phases wait for each other in a cycle; remove an 'after' or a \
         'barrier'"
    )]
    Circle {
        /// A step in the circle.
        step: String,
    },
    /// The recording does not have the pages that were cached.
    #[error(
        "'start': the job does not have what was cached when it was recorded; give cold, warm, or \
         a fraction such as 0.5"
    )]
    NothingRecorded,
    /// A repeated round allocates more than it frees.
    #[error(
        "a round allocates more memory than it frees; put a phase with 'free' into the round, or \
         leave out 'repeat' or 'for'"
    )]
    GrowingRound,
    /// A phase specifies no action, or several.
    #[error(
        "a phase does one thing; give one of 'mapping' or 'open' with a workload, advice or \
         protection, 'map', 'unmap', 'fork', 'barrier', 'sleep_ns', 'allocate', or 'free'"
    )]
    NoSubject,
    /// A mapping is used where it is not mapped.
    #[error(
        "mapping '{name}' does not exist at this point; put a phase with map = '{name}' before"
    )]
    NotMapped {
        /// The mapping.
        name: String,
    },
    /// A mapping is mapped twice.
    #[error("mapping '{name}' exists already; put a phase with unmap = '{name}' before")]
    AlreadyMapped {
        /// The mapping.
        name: String,
    },
    /// A mapping starts beyond the end of its file and has no length.
    #[error(
        "it begins at page {offset_pages} of a file of {file_pages} pages; give a 'len', or a \
         smaller 'offset'"
    )]
    NothingLeft {
        /// Offset of the mapping, in pages.
        offset_pages: u64,
        /// Length of the file, in pages.
        file_pages: u64,
    },
    /// The mappings do not fit the address space.
    #[error(
        "mapping '{name}': with it more than 128 TiB would be mapped, the most that a process can \
         map; give smaller mappings"
    )]
    TooMuchMapped {
        /// The first mapping that does not fit.
        name: String,
    },
    /// Anonymous memory fills the memory limit.
    #[error(
        "'anonymous': {anonymous} fill the memory limit of {limit} that '{key}' sets, and without \
         swap the OOM killer ends the program; lower 'anonymous', or raise '{key}'"
    )]
    NoRoomForFiles {
        /// Size of the anonymous memory.
        anonymous: String,
        /// The limit.
        limit: String,
        /// The key that sets the limit.
        key: &'static str,
    },
    /// A page to populate lies beyond the end of the file.
    #[error(
        "page {page} of mapping '{name}' lies beyond the last page of its file, where \
         populate-read fails with EFAULT; give an 'offset' and a 'len' that end before it"
    )]
    PopulatesBeyond {
        /// The page, relative to the mapping.
        page: u64,
        /// The mapping.
        name: String,
    },
    /// A direct read is not aligned to blocks.
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
    /// A listed offset lies beyond the end of the file.
    #[error("offset {offset} is beyond the file; its last byte is {last}")]
    BeyondFile {
        /// The offset in bytes.
        offset: u64,
        /// Offset of the last byte of the file.
        last: u64,
    },
    /// A listed page lies beyond the mapping.
    #[error("page {page} is beyond mapping '{name}'; its last page is {last}")]
    BeyondMapping {
        /// The page, relative to the mapping.
        page: u64,
        /// The mapping.
        name: String,
        /// Last page of the mapping.
        last: u64,
    },
}
