//! Limits of valid jobs, chosen so that arithmetic on them does not overflow.

/// Largest file, mapping, memory limit or RAM, in bytes: 1 EiB.
pub const MAX_BYTES: u64 = 1 << 60;

/// Maximum accesses per phase.
pub const MAX_ACCESSES: u64 = 1 << 40;

/// Maximum phases of a job with a single file.
pub const MAX_PHASES: usize = 1000;

/// Maximum phases per thread of a program: recorded threads can map and unmap, or alternate
/// between, thousands of files.
pub const MAX_THREAD_PHASES: usize = 1_000_000;

/// Maximum files per program.
pub const MAX_FILES: usize = 1 << 15;

/// Maximum open file descriptions, and mappings, per program: Linux's default `vm.max_map_count`.
pub const MAX_MAPPINGS: usize = 65530;

/// Maximum threads per program.
pub const MAX_THREADS: usize = 1024;

/// Maximum processes per program.
pub const MAX_PROCESSES: usize = 256;

/// Maximum CPUs of a program: the highest `CONFIG_NR_CPUS` of distributions.
pub const MAX_CPUS: u64 = 8192;

/// Maximum time between two accesses, in nanoseconds: 1000 s.
pub const MAX_THINK_NS: u64 = 1_000_000_000_000;

/// Maximum run time of threads limited by time: 24 hours.
pub const MAX_RUN_NS: u64 = 86_400_000_000_000;

/// Maximum anonymous memory of the folio benchmark, in bytes: 1 TiB.
pub const MAX_FOLIO_OPS_BYTES: u64 = 1 << 40;

/// Maximum repeats of the folio benchmark; all are recorded.
pub const MAX_FOLIO_OPS_RUNS: u64 = 1000;

/// Maximum runs per job.
pub const MAX_RUNS: u64 = 100_000;

/// Maximum number of runs times phases per job: all are recorded.
pub const MAX_PHASE_RUNS: u64 = 1_000_000;

/// Maximum memory for the model's state of one job, in bytes: 4 GiB. Enough for 14 TiB of a file
/// with scattered cached pages, and for more with long cached ranges.
pub const MAX_MODEL_BYTES: u64 = 4 << 30;

/// Maximum filesystem block size, in bytes: 64 KiB.
pub const MAX_BLOCK_BYTES: u64 = 64 << 10;

/// Maximum readahead size, in KiB: 4 GiB.
pub const MAX_READ_AHEAD_KB: u64 = 1 << 22;

/// Maximum block size of reads, in bytes: 1 GiB.
pub const MAX_READ_BYTES: u64 = 1 << 30;

/// Maximum VMAs per split mapping: Linux's default `vm.max_map_count`.
pub const MAX_PIECES: u64 = 65530;

/// Maximum address of an ELF segment: 128 TiB, the user half of the x86-64 address space.
pub const MAX_ADDRESS: u64 = 1 << 47;

/// Default number of calls of `exec:random`. Assumed: the published runs do not state it.
pub const DEFAULT_CALLS: u64 = 1_000_000;

/// Default size of the file of return stubs, in bytes, as in the published runs.
pub const DEFAULT_STUBS_BYTES: u64 = 512 << 20;
