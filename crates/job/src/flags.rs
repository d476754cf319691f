//! Job flags, each defined once. The command line, job files, their JSON schema, the settings of
//! `compare`, the man pages and the shell completions are all derived from this table.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::bounds::{MAX_ACCESSES, MAX_BYTES, MAX_CPUS, MAX_READ_AHEAD_KB, MAX_RUNS, MAX_THREADS};
use crate::elf::Elf;
use crate::job_flags::spec;
use crate::limits::unknown;
use crate::phase_spec::PhaseSpec;
use crate::size::SizeText;
use crate::value::{FlagValue, ValueKind};

/// A flag of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Key in a job file.
    pub key: &'static str,
    /// The name on the command line, without `--`.
    pub name: &'static str,
    /// Its doc comment, used as help text.
    pub doc: &'static str,
    /// Type of the value.
    pub kind: ValueKind,
    /// Its group. A command accepts whole groups.
    pub group: Group,
    /// Placeholder for the value in help.
    pub value_name: &'static str,
    /// Smallest and largest valid number.
    pub range: (u64, u64),
    /// Default value, as help shows it.
    pub default: Option<&'static str>,
    /// Whether `compare` accepts it as a setting of a variant (`KEY=VALUE`).
    pub is_setting: bool,
    /// Whether a command accepts it more than once.
    pub repeats: bool,
    /// The jobs that accept it.
    pub scope: FlagScope,
}

/// Groups of flags, each with a heading in help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Where the job runs: in the model, on the running kernel or on a booted one.
    Engine,
    /// Kernel version and patch series of the model.
    Rules,
    /// Number of runs.
    Runs,
    /// Seed of random accesses.
    Seed,
    /// Which pages are accessed, and in which order.
    Accesses,
    /// The file.
    File,
    /// How the file is mapped.
    Mapping,
    /// Memory limits.
    Memory,
    /// Architecture, filesystem, readahead and fault-around.
    Machine,
    /// The threads of the workload `thrash`.
    Thrash,
}

impl Group {
    /// Every group, in the order of help.
    pub const ALL: [Group; 10] = [
        Group::Engine,
        Group::Rules,
        Group::Runs,
        Group::Seed,
        Group::Accesses,
        Group::File,
        Group::Mapping,
        Group::Memory,
        Group::Machine,
        Group::Thrash,
    ];

    /// Heading in help.
    pub fn heading(self) -> &'static str {
        match self {
            Group::Engine => "Engine",
            Group::Rules => "Rules of the model",
            Group::Runs | Group::Seed => "Runs and seeds",
            Group::Accesses => "Accesses",
            Group::File => "File",
            Group::Mapping => "Mapping",
            Group::Memory => "Memory",
            Group::Machine => "Machine",
            Group::Thrash => "Workload thrash",
        }
    }
}

/// The jobs that accept a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagScope {
    /// Every job.
    All,
    /// Jobs with a single file.
    OneFile,
    /// Jobs with the workload `thrash`.
    Thrash,
}

/// Default fields of an entry.
const FLAG: Flag = Flag {
    key: "",
    name: "",
    doc: "",
    kind: ValueKind::Text,
    group: Group::Engine,
    value_name: "",
    range: (0, u64::MAX),
    default: None,
    is_setting: false,
    repeats: false,
    scope: FlagScope::All,
};

/// Default fields of a flag for jobs with a single file.
const ONE_FILE: Flag = Flag { scope: FlagScope::OneFile, ..FLAG };

/// Default fields of a flag of the workload `thrash`.
const THRASH: Flag =
    Flag { group: Group::Thrash, is_setting: true, scope: FlagScope::Thrash, ..FLAG };

/// Entries of the largest page table, with 64 KiB pages.
const MAX_PAGE_TABLE_ENTRIES: u64 = 8192;

// `spec!` in `job_spec.rs` declares `struct JobFlags` with one field per entry.
spec! {
    /// Engine that runs the job: model or kernel.
    on: String = Flag {
        group: Group::Engine,
        value_name: "ENGINE",
        default: Some("model"),
        ..FLAG
    },
    /// Kernel version to model: 6.1, 6.6, 6.12, 6.18, 6.19, 7.0, 7.1, 7.2, 7.3, mm-2026-05 (the
    /// base that the series were posted on, without them), mm-0b2777a511b7 (the mm tree after 7.3),
    /// or host (the modelled version nearest to the running kernel).
    kernel: String = Flag {
        group: Group::Rules,
        value_name: "VERSION",
        default: Some("6.18"),
        is_setting: true,
        ..FLAG
    },
    /// Kernel image to boot under QEMU for --on kernel.
    image: String = Flag { group: Group::Engine, value_name: "PATH", repeats: true, ..FLAG },
    /// Directory with the modules of the image, in lib/modules/RELEASE.
    modules: String = Flag { group: Group::Engine, value_name: "DIR", repeats: true, ..FLAG },
    /// Patch series to apply in the model: miss-fault-address (p1), miss-no-retry (p2), mmap-miss
    /// (both), vma-bound, exec-bypass, thp-order, exec-order (both), exec-unify, vma-retry,
    /// no-retry-uptodate, vma-retry-v2 (both), vma-hold, rent-or-buy. exec-order-v5, exec-bypass-v5
    /// and thp-order-v5 are version 5 as posted.
    with: String = Flag { group: Group::Rules, value_name: "SERIES,...", ..FLAG },
    /// Number of runs.
    runs: u64 = Flag {
        group: Group::Runs,
        value_name: "N",
        range: (1, MAX_RUNS),
        default: Some("1"),
        ..FLAG
    },
    /// Machine profile with the costs of the device, faults and reclaim: a file, or one of the
    /// built-in profiles default, server (many CPUs, memory pressure), nvme, sata-ssd, virtio, gp3,
    /// nfs and lustre.
    machine: String = Flag {
        group: Group::Machine,
        value_name: "PROFILE.toml",
        default: Some(
            "the profile of filemap calibrate if there is one, else that of the file's device, \
             which advise and compare measure once, else the built-in one",
        ),
        is_setting: true,
        ..FLAG
    },
    /// Access pattern: random, stride:N, sequential, reverse, first, interleave:K, zipf:S (rank r
    /// with a probability proportional to 1/r^S, such as zipf:0.99), hot:P/Q (P % of the accesses
    /// to Q % of the pages), runs:N (N adjacent pages from a random one on), records:SIZE (all
    /// pages of a random record), read-random, read-sequential, elf (touch the segments of --file),
    /// exec (call code: exec:cold, then exec:random), or thrash (threads that each map, read and
    /// unmap a file).
    workload: String = Flag { group: Group::Accesses, value_name: "PATTERN", ..FLAG },
    /// Number of accesses.
    accesses: u64 = Flag {
        group: Group::Accesses,
        value_name: "N",
        range: (1, MAX_ACCESSES),
        default: Some("a fraction of 0.01"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Fraction of the mapping to access, such as 0.01: of its pages, or for reads of its bytes, in
    /// blocks of --bs. Rounded down.
    fraction: f64 = Flag { group: Group::Accesses, value_name: "F", is_setting: true, ..ONE_FILE },
    /// File with the page indexes to access, relative to the mapping, one per line.
    accesses_file: String = Flag { group: Group::Accesses, value_name: "FILE", ..ONE_FILE },
    /// Seed of random accesses, not 0.
    seed: u64 = Flag {
        group: Group::Seed,
        value_name: "N",
        range: (1, u64::MAX),
        default: Some("88172645463325252"),
        is_setting: true,
        ..FLAG
    },
    /// Block size of each read(2).
    bs: SizeText = Flag {
        group: Group::Accesses,
        value_name: "SIZE",
        default: Some("4k"),
        is_setting: true,
        ..ONE_FILE
    },
    /// File size, such as 20g. Size units are k, m, g, t and p, powers of 1024; kB and KiB are the
    /// same as k.
    file_size: SizeText = Flag { group: Group::File, value_name: "SIZE", is_setting: true, ..FLAG },
    /// Existing file to access; for --workload elf, the program or shared library.
    file: String = Flag { group: Group::File, value_name: "PATH", ..ONE_FILE },
    /// Offset of the mapping in the file.
    map_offset: SizeText = Flag {
        group: Group::Mapping,
        value_name: "SIZE",
        default: Some("0"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Length of the mapping.
    map_len: SizeText = Flag {
        group: Group::Mapping,
        value_name: "SIZE",
        default: Some("up to the end of the file"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Offset of the mapping within its page table, in pages.
    map_shift: u64 = Flag {
        group: Group::Mapping,
        value_name: "PAGES",
        range: (0, MAX_PAGE_TABLE_ENTRIES - 1),
        default: Some("0"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Split the mapping into VMAs of this many pages.
    split: u64 = Flag {
        group: Group::Mapping,
        value_name: "PAGES",
        range: (1, MAX_BYTES),
        is_setting: true,
        ..ONE_FILE
    },
    /// Protection of every second VMA of --split: write or exec.
    split_prot: String = Flag {
        group: Group::Mapping,
        value_name: "PROT",
        default: Some("write"),
        is_setting: true,
        ..ONE_FILE
    },
    /// madvise(2) advice for the mapping, or for all mappings of a job with tables: normal, random
    /// or sequential, hugepage, or one of the former and hugepage joined by a comma.
    advice: String = Flag {
        group: Group::Mapping,
        value_name: "ADVICE",
        default: Some("normal"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Replace the kernel's readahead in the model by the governor's policy, for mappings of 16 MiB
    /// or more that the job neither writes to, executes nor advises.
    governor: bool = Flag { group: Group::Rules, is_setting: true, ..ONE_FILE },
    /// Map the file PROT_EXEC.
    exec: bool = Flag { group: Group::Mapping, is_setting: true, ..ONE_FILE },
    /// Map the file MAP_PRIVATE and write to each accessed page.
    private: bool = Flag { group: Group::Mapping, is_setting: true, ..ONE_FILE },
    /// Use a sparse file, without blocks on disk.
    sparse: bool = Flag { group: Group::File, is_setting: true, ..FLAG },
    /// On a kernel, drop --file from the page cache even if much of it is cached.
    cold: bool = Flag { group: Group::File, ..ONE_FILE },
    /// What of the files is in the page cache at the beginning: cold (nothing), warm (all), a
    /// fraction such as 0.5 (of each file, in blocks of 1 MiB that are spread evenly), or recorded
    /// (what was there when the program was recorded).
    start: String = Flag {
        group: Group::Memory,
        value_name: "START",
        default: Some("cold"),
        is_setting: true,
        ..FLAG
    },
    /// RAM size. The page cache can use 95 % of it.
    ram: SizeText = Flag { group: Group::Memory, value_name: "SIZE", is_setting: true, ..FLAG },
    /// Maximum size of the page cache.
    cache_limit: SizeText = Flag {
        group: Group::Memory,
        value_name: "SIZE",
        default: Some("no limit"),
        is_setting: true,
        ..ONE_FILE
    },
    /// memory.high of the memory cgroup.
    memory_high: SizeText = Flag {
        group: Group::Memory,
        value_name: "SIZE",
        is_setting: true,
        ..FLAG
    },
    /// memory.max of the memory cgroup.
    memory_max: SizeText = Flag {
        group: Group::Memory,
        value_name: "SIZE",
        is_setting: true,
        ..FLAG
    },
    /// Anonymous memory that the program holds in addition to its files, and that a memory limit
    /// charges. For a recording, in place of the recorded size and growth.
    anonymous: SizeText = Flag {
        group: Group::Memory,
        value_name: "SIZE",
        default: Some("0, for a recording what was recorded"),
        is_setting: true,
        ..FLAG
    },
    /// Readahead size in KiB (read_ahead_kb of the device).
    read_ahead_kb: u64 = Flag {
        group: Group::Machine,
        value_name: "KIB",
        range: (0, MAX_READ_AHEAD_KB),
        default: Some("128"),
        is_setting: true,
        ..FLAG
    },
    /// Fault-around size.
    fault_around: SizeText = Flag {
        group: Group::Machine,
        value_name: "SIZE",
        default: Some("64k"),
        is_setting: true,
        ..FLAG
    },
    /// Architecture: x86-64 or arm64.
    arch: String = Flag {
        group: Group::Machine,
        value_name: "ARCH",
        default: Some("x86-64"),
        is_setting: true,
        ..FLAG
    },
    /// Base page size: 4k, or on arm64 also 16k or 64k.
    page_size: SizeText = Flag {
        group: Group::Machine,
        value_name: "SIZE",
        default: Some("4k"),
        is_setting: true,
        ..FLAG
    },
    /// Filesystem: ext4, xfs, or base-pages (any without large folios).
    fs: String = Flag {
        group: Group::Machine,
        value_name: "FS",
        default: Some("ext4"),
        is_setting: true,
        ..FLAG
    },
    /// Block size of --fs xfs. Blocks larger than a page, up to 64k, need Linux 6.12 or later.
    block_size: SizeText = Flag {
        group: Group::Machine,
        value_name: "SIZE",
        default: Some("the page size"),
        is_setting: true,
        ..FLAG
    },
    /// Number of CPUs for the threads of --workload thrash or of a job with tables.
    cpus: u64 = Flag {
        group: Group::Machine,
        value_name: "N",
        range: (1, MAX_CPUS),
        default: Some("one per thread in the model, all CPUs of the machine on a kernel"),
        is_setting: true,
        scope: FlagScope::Thrash,
        ..FLAG
    },
    /// Number of threads in the process. Each maps a file of its own of --file-size, reads every
    /// page, unmaps it, and repeats.
    threads: u64 = Flag {
        value_name: "N",
        range: (1, MAX_THREADS as u64),
        default: Some("64"),
        ..THRASH
    },
    /// Run time of the threads, such as 60s.
    duration: String = Flag { value_name: "TIME", default: Some("10s"), ..THRASH },
    /// Maximum random delay before each thread starts, drawn from the seed.
    stagger: String = Flag { value_name: "TIME", default: Some("0s"), ..THRASH },
    /// Additional threads of the process that change the protection of another mapping, sleeping 1
    /// ms after each change. At most 1024 threads in total.
    writers: u64 = Flag {
        value_name: "N",
        range: (0, MAX_THREADS as u64),
        default: Some("0"),
        ..THRASH
    },
}

impl Flag {
    /// Every flag, in the order of help.
    pub fn all() -> impl Iterator<Item = &'static Flag> {
        FLAGS.iter()
    }

    /// Help text as one paragraph, with the default.
    pub fn help(&self) -> String {
        let lines: Vec<&str> = self.doc.lines().map(str::trim).collect();
        let text = lines.join(" ").trim().trim_end_matches('.').to_string();
        self.default.map_or(text.clone(), |default| format!("{text} [default: {default}]"))
    }
}

/// `key` with dashes in place of underscores.
const fn dashed<const N: usize>(key: &str) -> [u8; N] {
    let mut name = [0; N];
    let mut at = 0;
    while at < N {
        let byte = key.as_bytes()[at];
        name[at] = if byte == b'_' { b'-' } else { byte };
        at += 1;
    }
    name
}
