//! The flags of a job: each is defined here, once. The command line, job files, their schema, the
//! settings of `compare`, the man pages and the completions follow from it.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::bounds::{MAX_ACCESSES, MAX_BYTES, MAX_CPUS, MAX_READ_AHEAD_KB, MAX_RUNS, MAX_THREADS};
use crate::elf::Elf;
use crate::job_spec::spec;
use crate::limits::unknown;
use crate::phase_spec::PhaseSpec;
use crate::size::SizeText;
use crate::value::{FlagValue, Kind};

/// What the command line says of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The key of a job file.
    pub key: &'static str,
    /// The name on the command line, without `--`.
    pub name: &'static str,
    /// What it means, as its documentation has it.
    pub doc: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// Its group: a command takes whole groups.
    pub group: Group,
    /// What help calls its value.
    pub value_name: &'static str,
    /// The least and the largest value of a number.
    pub range: (u64, u64),
    /// What holds where it is not given, for help.
    pub default: Option<&'static str>,
    /// Whether variants may differ in it: it says how what is compared is served, and takes one
    /// value.
    pub is_setting: bool,
    /// Whether a command may take several of them.
    pub repeats: bool,
    /// Which jobs take it.
    pub of: Of,
}

/// What flags are about. Help has a heading for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What runs the job: the model, the running kernel, or one that is booted.
    Engine,
    /// Whose rules the model follows.
    Rules,
    /// How often the job runs.
    Runs,
    /// What random accesses begin with.
    Seed,
    /// What is accessed, in which order.
    Accesses,
    /// The file.
    File,
    /// How the file is mapped.
    Mapping,
    /// Limits of memory.
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

    /// The heading in help.
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

/// Which jobs take a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Every job.
    All,
    /// Jobs of one file.
    OneFile,
    /// Those of the workload `thrash`.
    Thrash,
}

/// What most flags are.
const FLAG: Flag = Flag {
    key: "",
    name: "",
    doc: "",
    kind: Kind::Text,
    group: Group::Engine,
    value_name: "",
    range: (0, u64::MAX),
    default: None,
    is_setting: false,
    repeats: false,
    of: Of::All,
};

/// What those are that only a job of one file takes.
const ONE_FILE: Flag = Flag { of: Of::OneFile, ..FLAG };

/// What those are that only the workload `thrash` takes.
const THRASH: Flag = Flag { group: Group::Thrash, is_setting: true, of: Of::Thrash, ..FLAG };

/// Entries of the largest page-table page, that of 64 KiB pages.
const MOST_ENTRIES: u64 = 8192;

// `struct JobSpec` comes of this, with one field for each entry: `job_spec.rs` declares it.
spec! {
    /// What runs the job: model or kernel.
    on: String = Flag {
        group: Group::Engine,
        value_name: "ENGINE",
        default: Some("model"),
        ..FLAG
    },
    /// Kernel whose rules the model follows: 6.1, 6.6, 6.12, 6.18, 6.19, 7.0, 7.1, 7.2, 7.3,
    /// mm-2026-05 (what the series were posted on, without them), mm-0b2777a511b7 (the mm tree
    /// after 7.3), or host for the rules nearest to the running kernel.
    kernel: String = Flag {
        group: Group::Rules,
        value_name: "VERSION",
        default: Some("6.18"),
        is_setting: true,
        ..FLAG
    },
    /// Kernel to boot under QEMU and to run the job on, with --on kernel.
    image: String = Flag { group: Group::Engine, value_name: "PATH", repeats: true, ..FLAG },
    /// Directory with the modules of the image, in lib/modules/RELEASE.
    modules: String = Flag { group: Group::Engine, value_name: "DIR", repeats: true, ..FLAG },
    /// Patch series that the model applies: miss-fault-address (p1), miss-no-retry (p2), mmap-miss
    /// (both), vma-bound, exec-bypass, thp-order, exec-order (both), exec-unify, vma-retry,
    /// no-retry-uptodate, vma-retry-v2 (both), vma-hold, rent-or-buy. exec-order-v5, exec-bypass-v5
    /// and thp-order-v5 are version 5 as posted.
    with: String = Flag { group: Group::Rules, value_name: "SERIES,...", ..FLAG },
    /// How many times the job is run.
    runs: u64 = Flag {
        group: Group::Runs,
        value_name: "N",
        range: (1, MAX_RUNS),
        default: Some("1"),
        ..FLAG
    },
    /// Machine profile: the costs of the device, of a fault and of reclaim. Two are built in:
    /// default, and server, of a machine with many CPUs whose memory is short.
    machine: String = Flag {
        group: Group::Machine,
        value_name: "PROFILE.toml",
        default: Some("the profile of filemap calibrate if there is one, else the built-in one"),
        is_setting: true,
        ..FLAG
    },
    /// Order of the accesses: random, stride:N, sequential, reverse, first, interleave:K, zipf:S
    /// (the page of rank r in proportion to r to the power of -S, such as zipf:0.99), hot:P/Q (P %
    /// of the accesses to Q % of the pages), read-random, read-sequential, elf (to the segments of
    /// --file), exec (calls of code: exec:cold, exec:random), or thrash (threads that each map,
    /// read and unmap a file).
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
    /// How much is accessed as a fraction of the mapping, such as 0.01: of its pages, or of its
    /// bytes where --bs of them are read at a time. Rounded down.
    fraction: f64 = Flag { group: Group::Accesses, value_name: "F", is_setting: true, ..ONE_FILE },
    /// File with the page indexes of the mapping to access, one on each line.
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
    /// Size of each read(2).
    bs: SizeText = Flag {
        group: Group::Accesses,
        value_name: "SIZE",
        default: Some("4k"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Size of the file, such as 20g. Units of all sizes are k, m, g, t and p, powers of 1024; kB
    /// and KiB mean the same as k.
    file_size: SizeText = Flag { group: Group::File, value_name: "SIZE", is_setting: true, ..FLAG },
    /// Existing file to access, or the program or library of --workload elf.
    file: String = Flag { group: Group::File, value_name: "PATH", ..ONE_FILE },
    /// Where in the file the mapping begins.
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
    /// Where in its page-table page the mapping begins, in pages.
    map_shift: u64 = Flag {
        group: Group::Mapping,
        value_name: "PAGES",
        range: (0, MOST_ENTRIES - 1),
        default: Some("0"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Divide the mapping into VMAs of this many pages.
    split: u64 = Flag {
        group: Group::Mapping,
        value_name: "PAGES",
        range: (1, MAX_BYTES),
        is_setting: true,
        ..ONE_FILE
    },
    /// Protection that every second VMA gets: write or exec.
    split_prot: String = Flag {
        group: Group::Mapping,
        value_name: "PROT",
        default: Some("write"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Advice for the mapping, or for all mappings of a program: normal, random or sequential, and
    /// hugepage with or without one of these, joined by a comma.
    advice: String = Flag {
        group: Group::Mapping,
        value_name: "ADVICE",
        default: Some("normal"),
        is_setting: true,
        ..ONE_FILE
    },
    /// Let the governor's policy read ahead in the model, instead of the kernel: in mappings of 16
    /// MiB or more that the job neither writes to, executes nor advises itself.
    governor: bool = Flag { group: Group::Rules, is_setting: true, ..ONE_FILE },
    /// Make the mapping executable.
    exec: bool = Flag { group: Group::Mapping, is_setting: true, ..ONE_FILE },
    /// Make the mapping private, and write to each page that is accessed.
    private: bool = Flag { group: Group::Mapping, is_setting: true, ..ONE_FILE },
    /// Use a file without blocks on disk.
    sparse: bool = Flag { group: Group::File, is_setting: true, ..FLAG },
    /// Drop --file from the page cache for a real kernel, even where much of it is cached.
    cold: bool = Flag { group: Group::File, ..ONE_FILE },
    /// Size of the RAM. The page cache can use 95 % of it.
    ram: SizeText = Flag { group: Group::Memory, value_name: "SIZE", is_setting: true, ..FLAG },
    /// Largest size of the page cache.
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
    /// Readahead size in KiB.
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
    /// Base page size: 4k, and 16k or 64k on arm64.
    page_size: SizeText = Flag {
        group: Group::Machine,
        value_name: "SIZE",
        default: Some("4k"),
        is_setting: true,
        ..FLAG
    },
    /// Filesystem: ext4, xfs, or base-pages for one without large folios.
    fs: String = Flag {
        group: Group::Machine,
        value_name: "FS",
        default: Some("ext4"),
        is_setting: true,
        ..FLAG
    },
    /// Size of the blocks of --fs xfs: that of a page, or since Linux 6.12 a larger one of up to
    /// 64k.
    block_size: SizeText = Flag {
        group: Group::Machine,
        value_name: "SIZE",
        default: Some("the page size"),
        is_setting: true,
        ..FLAG
    },
    /// CPUs that the threads of --workload thrash or of a program run on.
    cpus: u64 = Flag {
        group: Group::Machine,
        value_name: "N",
        range: (1, MAX_CPUS),
        default: Some("in the model one for each thread, on a kernel those of this machine"),
        is_setting: true,
        of: Of::Thrash,
        ..FLAG
    },
    /// Threads of one process, each of which maps a file of its own, reads every page and unmaps
    /// it, again and again. --file-size is the size of each file.
    threads: u64 = Flag {
        value_name: "N",
        range: (1, MAX_THREADS as u64),
        default: Some("64"),
        ..THRASH
    },
    /// How long the threads do that, such as 60s.
    duration: String = Flag { value_name: "TIME", default: Some("10s"), ..THRASH },
    /// Each thread begins at some time within this, which the seed decides.
    stagger: String = Flag { value_name: "TIME", default: Some("0s"), ..THRASH },
    /// Threads of the same process that change the protection of another mapping, and sleep for a
    /// millisecond after each change. Not more than 1024 threads in all.
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

    /// What it means in one paragraph, with what holds where it is not given.
    pub fn help(&self) -> String {
        let lines: Vec<&str> = self.doc.lines().map(str::trim).collect();
        let text = lines.join(" ").trim().trim_end_matches('.').to_string();
        self.default.map_or(text.clone(), |default| format!("{text} [default: {default}]"))
    }
}

/// `key` with dashes.
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
