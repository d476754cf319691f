//! The flags of a job.

use clap::Args;
use filemap_job::{JobSpec, SizeText, parse_count};

/// The flags of a job: the same as the keys of a job file.
#[derive(Debug, Args)]
pub struct JobFlags {
    /// Engine: model or kernel.
    #[arg(long, value_name = "ENGINE", help_heading = ENGINE)]
    on: Option<String>,
    /// Rules of the model: 6.12, 6.18, mm-2026-05 (the tree of exec-order) or host, the running
    /// kernel's nearest [default: 6.18].
    #[arg(long, value_name = "VERSION", help_heading = ENGINE)]
    kernel: Option<String>,
    /// A kernel to boot under QEMU and run the job on, with --on kernel; compare takes several.
    #[arg(long, value_name = "PATH", help_heading = ENGINE)]
    pub image: Vec<String>,
    /// Where the modules of the image are: a directory with lib/modules/RELEASE.
    #[arg(long, value_name = "DIR", help_heading = ENGINE)]
    modules: Option<String>,
    /// Patch series on top: miss-fault-address (p1), miss-no-retry (p2), mmap-miss (both),
    /// vma-bound, exec-bypass, thp-order, exec-order (both), exec-unify.
    #[arg(long, value_name = "SERIES,...", help_heading = ENGINE)]
    with: Option<String>,
    /// How many runs.
    #[arg(long, value_name = "N", help_heading = ENGINE)]
    #[arg(value_parser = count, allow_hyphen_values = true)]
    runs: Option<u64>,
    /// Machine profile: what the device and a fault cost.
    #[arg(long, value_name = "PROFILE.toml", help_heading = ENGINE)]
    machine: Option<String>,
    /// random, stride:N, sequential, reverse, first, interleave:K, read-random,
    /// read-sequential, elf (the segments of --file), or exec (calls: exec:cold, exec:random).
    #[arg(long, value_name = "PATTERN", help_heading = WORKLOAD)]
    workload: Option<String>,
    /// Number of accesses [default: 1 % of the mapping's pages].
    #[arg(long, value_name = "N", help_heading = WORKLOAD)]
    #[arg(value_parser = count, allow_hyphen_values = true)]
    accesses: Option<u64>,
    /// Number of accesses as a fraction of the mapping's pages, such as 0.01.
    #[arg(long, value_name = "F", help_heading = WORKLOAD)]
    #[arg(value_parser = fraction, allow_hyphen_values = true)]
    fraction: Option<f64>,
    /// Page indexes of the mapping to access, one a line.
    #[arg(long, value_name = "FILE", help_heading = WORKLOAD)]
    accesses_file: Option<String>,
    /// Seed of random patterns, not 0 [default: 88172645463325252].
    #[arg(long, value_name = "N", help_heading = WORKLOAD)]
    #[arg(value_parser = count, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Size of a read [default: 4k].
    #[arg(long, value_name = "SIZE", help_heading = WORKLOAD)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    bs: Option<SizeText>,
    /// Size of the file, such as 20g.
    #[arg(long, value_name = "SIZE", help_heading = FILE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    file_size: Option<SizeText>,
    /// An existing file, for a real kernel; the program or library of --workload elf.
    #[arg(long, value_name = "PATH", help_heading = FILE)]
    file: Option<String>,
    /// Where in the file the mapping begins [default: 0].
    #[arg(long, value_name = "SIZE", help_heading = FILE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    map_offset: Option<SizeText>,
    /// Length of the mapping [default: up to the end of the file].
    #[arg(long, value_name = "SIZE", help_heading = FILE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    map_len: Option<SizeText>,
    /// How many pages into its page-table page the mapping begins [default: 0].
    #[arg(long, value_name = "PAGES", help_heading = FILE)]
    #[arg(value_parser = count, allow_hyphen_values = true)]
    map_shift: Option<u64>,
    /// Cut the mapping into VMAs of this many pages.
    #[arg(long, value_name = "PAGES", help_heading = FILE)]
    #[arg(value_parser = count, allow_hyphen_values = true)]
    split: Option<u64>,
    /// What every second VMA is made: write or exec [default: write].
    #[arg(long, value_name = "PROT", help_heading = FILE)]
    split_prot: Option<String>,
    /// normal, random, sequential or hugepage [default: normal].
    #[arg(long, value_name = "ADVICE", help_heading = FILE)]
    advice: Option<String>,
    /// Map executable.
    #[arg(long, help_heading = FILE)]
    exec: bool,
    /// Map privately, and write to each page accessed.
    #[arg(long, help_heading = FILE)]
    private: bool,
    /// Leave the file without blocks on disk.
    #[arg(long, help_heading = FILE)]
    sparse: bool,
    /// RAM; the page cache gets 95 % of it.
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    ram: Option<SizeText>,
    /// Size of the page cache [default: no limit].
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    cache_limit: Option<SizeText>,
    /// memory.high of the memory cgroup.
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    memory_high: Option<SizeText>,
    /// memory.max of the memory cgroup.
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    memory_max: Option<SizeText>,
    /// Readahead size in KiB [default: 128].
    #[arg(long, value_name = "KIB", help_heading = MACHINE)]
    #[arg(value_parser = count, allow_hyphen_values = true)]
    read_ahead_kb: Option<u64>,
    /// Fault-around size [default: 64k].
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    fault_around: Option<SizeText>,
    /// x86-64 or arm64 [default: x86-64].
    #[arg(long, value_name = "ARCH", help_heading = MACHINE)]
    arch: Option<String>,
    /// Base page size: 4k, and 16k or 64k on arm64 [default: 4k].
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    page_size: Option<SizeText>,
    /// ext4, xfs or base-pages, any filesystem without large folios [default: ext4].
    #[arg(long, value_name = "FS", help_heading = MACHINE)]
    fs: Option<String>,
}

const ENGINE: &str = "Engine";
const WORKLOAD: &str = "Workload";
const FILE: &str = "File and mapping";
const MACHINE: &str = "Machine";

impl From<JobFlags> for JobSpec {
    fn from(flags: JobFlags) -> JobSpec {
        JobSpec {
            on: flags.on,
            kernel: flags.kernel,
            image: flags.image.into_iter().next(),
            modules: flags.modules,
            with: flags.with,
            runs: flags.runs,
            machine: flags.machine,
            workload: flags.workload,
            accesses: flags.accesses,
            fraction: flags.fraction,
            accesses_file: flags.accesses_file,
            seed: flags.seed,
            bs: flags.bs,
            file_size: flags.file_size,
            file: flags.file,
            map_offset: flags.map_offset,
            map_len: flags.map_len,
            map_shift: flags.map_shift,
            split: flags.split,
            split_prot: flags.split_prot,
            advice: flags.advice,
            exec: flags.exec.then_some(true),
            private: flags.private.then_some(true),
            sparse: flags.sparse.then_some(true),
            ram: flags.ram,
            cache_limit: flags.cache_limit,
            memory_high: flags.memory_high,
            memory_max: flags.memory_max,
            read_ahead_kb: flags.read_ahead_kb,
            fault_around: flags.fault_around,
            arch: flags.arch,
            page_size: flags.page_size,
            fs: flags.fs,
            phase: Vec::new(),
            seed_text: None,
            accesses_text: None,
            elf: None,
        }
    }
}

/// A whole number.
pub fn count(text: &str) -> Result<u64, String> {
    parse_count(text).map_err(|error| error.to_string())
}

/// A size, which is looked at with the rest of the job.
pub fn size(text: &str) -> Result<SizeText, String> {
    Ok(SizeText(text.to_string()))
}

fn fraction(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number such as 0.01".to_string())
}
