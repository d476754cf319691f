//! Hard bounds of a valid job, so that no arithmetic on one overflows.

/// Largest file, mapping, memory limit or RAM, in bytes: 1 EiB.
pub const MAX_BYTES: u64 = 1 << 60;

/// Most accesses of one phase.
pub const MAX_ACCESSES: u64 = 1 << 40;

/// Most phases of one job of one file.
pub const MAX_PHASES: usize = 1000;

/// Most phases of one thread of a program: one that was recorded maps and unmaps thousands of
/// files, or turns from one mapping to another as often.
pub const MAX_THREAD_PHASES: usize = 1_000_000;

/// Most files of one program.
pub const MAX_FILES: usize = 1 << 15;

/// Most open file descriptions, and most mappings, of one program: Linux's default
/// `vm.max_map_count`.
pub const MAX_MAPPINGS: usize = 65530;

/// Most threads of one program.
pub const MAX_THREADS: usize = 1024;

/// Most processes of a program.
pub const MAX_PROCESSES: usize = 256;

/// Most CPUs that a program's threads run on: the most that distributions build Linux for.
pub const MAX_CPUS: u64 = 8192;

/// Longest time between two accesses, in nanoseconds: 1000 s.
pub const MAX_THINK_NS: u64 = 1_000_000_000_000;

/// Longest time that threads make rounds for: 24 hours.
pub const MAX_RUN_NS: u64 = 86_400_000_000_000;

/// Most anonymous memory that operations run over, in bytes: 1 TiB.
pub const MAX_FOLIO_OPS_BYTES: u64 = 1 << 40;

/// Most repeats of such operations: the record has all figures of each.
pub const MAX_FOLIO_OPS_RUNS: u64 = 1000;

/// Most runs of one job.
pub const MAX_RUNS: u64 = 100_000;

/// Most runs times phases of one job: each phase of each run is in the record.
pub const MAX_PHASE_RUNS: u64 = 1_000_000;

/// Most memory that the model takes for one job, in bytes: 4 GiB, which is the state of
/// 14 TiB of a file that is cached here and there, or of more where it is cached in long runs.
pub const MAX_MODEL_BYTES: u64 = 4 << 30;

/// Largest block of a filesystem, in bytes: 64 KiB.
pub const MAX_BLOCK_BYTES: u64 = 64 << 10;

/// Largest readahead size, in KiB: 4 GiB.
pub const MAX_READ_AHEAD_KB: u64 = 1 << 22;

/// Largest block of a read, in bytes: 1 GiB.
pub const MAX_READ_BYTES: u64 = 1 << 30;

/// Most VMAs that a mapping may be split into: Linux's default `vm.max_map_count`.
pub const MAX_PIECES: u64 = 65530;

/// Highest address that an ELF segment may reach: 128 TiB, the user's half of x86-64.
pub const MAX_ADDRESS: u64 = 1 << 47;

/// Calls of `exec:random` where no number is given. Assumed: the published runs do not say.
pub const DEFAULT_CALLS: u64 = 1_000_000;

/// Bytes of the file of return stubs where no size is given, as in the published runs.
pub const DEFAULT_STUBS_BYTES: u64 = 512 << 20;
