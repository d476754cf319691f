//! The flags of a job.

use clap::Args;
use filemap_job::bounds::{MAX_ACCESSES, MAX_BYTES, MAX_READ_AHEAD_KB, MAX_RUNS};
use filemap_job::{Error as JobError, JobSpec, SizeText, parse_count};

use crate::error::Error;

/// The flags of a job: the same as the keys of a job file.
#[derive(Debug, Args)]
pub struct JobFlags {
    /// What runs the job: model or kernel [default: model].
    #[arg(long, value_name = "ENGINE", help_heading = ENGINE)]
    on: Option<String>,
    /// Kernel whose rules the model follows: 6.12, 6.18, mm-2026-05 (the tree of exec-order), or
    /// host for the rules nearest to the running kernel [default: 6.18].
    #[arg(long, value_name = "VERSION", help_heading = ENGINE)]
    kernel: Option<String>,
    /// Kernel to boot under QEMU and to run the job on, with --on kernel. compare takes several.
    #[arg(long, value_name = "PATH", help_heading = ENGINE)]
    pub image: Vec<String>,
    /// Directory with the modules of the image, in lib/modules/RELEASE. With several images give it
    /// once for all of them, or once for each in their order.
    #[arg(long, value_name = "DIR", help_heading = ENGINE)]
    pub modules: Vec<String>,
    /// Patch series that the model applies: miss-fault-address (p1), miss-no-retry (p2), mmap-miss
    /// (both), vma-bound, exec-bypass, thp-order, exec-order (both), exec-unify.
    #[arg(long, value_name = "SERIES,...", help_heading = ENGINE)]
    with: Option<String>,
    /// How many times the job is run [default: 1].
    #[arg(long, value_name = "N", help_heading = ENGINE)]
    #[arg(value_parser = runs, allow_hyphen_values = true)]
    runs: Option<u64>,
    /// Machine profile: the costs of the device and of a fault. default is the built-in one
    /// [default: the profile of filemap calibrate if there is one, else the built-in one].
    #[arg(long, value_name = "PROFILE.toml", help_heading = ENGINE)]
    machine: Option<String>,
    /// Order of the accesses: random, stride:N, sequential, reverse, first, interleave:K,
    /// read-random, read-sequential, elf (to the segments of --file), or exec (calls of code:
    /// exec:cold, exec:random).
    #[arg(long, value_name = "PATTERN", help_heading = WORKLOAD)]
    workload: Option<String>,
    /// Number of accesses [default: a fraction of 0.01].
    #[arg(long, value_name = "N", help_heading = WORKLOAD)]
    #[arg(value_parser = accesses, allow_hyphen_values = true)]
    accesses: Option<u64>,
    /// How much is accessed as a fraction of the mapping, such as 0.01: of its pages, or of its
    /// bytes where --bs of them are read at a time. Rounded down.
    #[arg(long, value_name = "F", help_heading = WORKLOAD)]
    #[arg(value_parser = fraction, allow_hyphen_values = true)]
    fraction: Option<f64>,
    /// File with the page indexes of the mapping to access, one on each line.
    #[arg(long, value_name = "FILE", help_heading = WORKLOAD)]
    accesses_file: Option<String>,
    /// Seed of random accesses, not 0 [default: 88172645463325252].
    #[arg(long, value_name = "N", help_heading = WORKLOAD)]
    #[arg(value_parser = seed, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Size of each read(2) [default: 4k].
    #[arg(long, value_name = "SIZE", help_heading = WORKLOAD)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    bs: Option<SizeText>,
    /// Size of the file, such as 20g. Units of all sizes are k, m, g, t and p, powers of 1024; kB
    /// and KiB mean the same as k.
    #[arg(long, value_name = "SIZE", help_heading = FILE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    file_size: Option<SizeText>,
    /// Existing file to access, or the program or library of --workload elf.
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
    /// Where in its page-table page the mapping begins, in pages [default: 0].
    #[arg(long, value_name = "PAGES", help_heading = FILE)]
    #[arg(value_parser = map_shift, allow_hyphen_values = true)]
    map_shift: Option<u64>,
    /// Divide the mapping into VMAs of this many pages.
    #[arg(long, value_name = "PAGES", help_heading = FILE)]
    #[arg(value_parser = split, allow_hyphen_values = true)]
    split: Option<u64>,
    /// Protection that every second VMA gets: write or exec [default: write].
    #[arg(long, value_name = "PROT", help_heading = FILE)]
    split_prot: Option<String>,
    /// Advice for the mapping: normal, random or sequential, and hugepage with or without one of
    /// these, joined by a comma [default: normal].
    #[arg(long, value_name = "ADVICE", help_heading = FILE)]
    advice: Option<String>,
    /// Make the mapping executable.
    #[arg(long, help_heading = FILE)]
    exec: bool,
    /// Make the mapping private, and write to each page that is accessed.
    #[arg(long, help_heading = FILE)]
    private: bool,
    /// Use a file without blocks on disk.
    #[arg(long, help_heading = FILE)]
    sparse: bool,
    /// Drop --file from the page cache for a real kernel, even where much of it is cached.
    #[arg(long, help_heading = FILE)]
    cold: bool,
    /// Size of the RAM. The page cache can use 95 % of it.
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    ram: Option<SizeText>,
    /// Largest size of the page cache [default: no limit].
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
    #[arg(value_parser = read_ahead_kb, allow_hyphen_values = true)]
    read_ahead_kb: Option<u64>,
    /// Fault-around size [default: 64k].
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    fault_around: Option<SizeText>,
    /// Architecture: x86-64 or arm64 [default: x86-64].
    #[arg(long, value_name = "ARCH", help_heading = MACHINE)]
    arch: Option<String>,
    /// Base page size: 4k, and 16k or 64k on arm64 [default: 4k].
    #[arg(long, value_name = "SIZE", help_heading = MACHINE)]
    #[arg(value_parser = size, allow_hyphen_values = true)]
    page_size: Option<SizeText>,
    /// Filesystem: ext4, xfs, or base-pages for one without large folios [default: ext4].
    #[arg(long, value_name = "FS", help_heading = MACHINE)]
    fs: Option<String>,
}

impl JobFlags {
    /// Refuses several kernels where a command takes one.
    ///
    /// # Errors
    /// Names the flag that is given several times.
    pub fn check_one_kernel(&self) -> Result<(), Error> {
        for (flag, values) in [("--image", &self.image), ("--modules", &self.modules)] {
            if values.len() > 1 {
                let message = "is given several times; give one, or filemap compare";
                return Err(Error::Usage(format!("{flag} {message}")));
            }
        }
        Ok(())
    }
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
            modules: flags.modules.into_iter().next(),
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
            cold: flags.cold.then_some(true),
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

/// A whole number, which is from `from` to `to` if it is any good.
///
/// What is outside of that and fits 64 bits passes: the job says what is wrong with it.
pub fn count(text: &str, from: u64, to: u64) -> Result<u64, String> {
    parse_count(text).map_err(|error| match error {
        JobError::OutOfRange { value, .. } => {
            format!("{value} is out of range; give {from} to {to}")
        }
        error => error.to_string(),
    })
}

fn runs(text: &str) -> Result<u64, String> {
    count(text, 1, MAX_RUNS)
}

fn accesses(text: &str) -> Result<u64, String> {
    count(text, 1, MAX_ACCESSES)
}

fn seed(text: &str) -> Result<u64, String> {
    count(text, 1, u64::MAX)
}

fn map_shift(text: &str) -> Result<u64, String> {
    count(text, 0, MOST_ENTRIES - 1)
}

fn split(text: &str) -> Result<u64, String> {
    count(text, 1, MAX_BYTES)
}

fn read_ahead_kb(text: &str) -> Result<u64, String> {
    count(text, 0, MAX_READ_AHEAD_KB)
}

/// Entries of the largest page-table page, that of 64 KiB pages.
const MOST_ENTRIES: u64 = 8192;

/// A size, which is looked at with the rest of the job.
pub fn size(text: &str) -> Result<SizeText, String> {
    Ok(SizeText(text.to_string()))
}

fn fraction(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number such as 0.01".to_string())
}
