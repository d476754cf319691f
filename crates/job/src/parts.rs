//! What jobs are made of: accesses, files, mappings and the machine.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::address::vma::Advice;
use filemap_core::rules::Arch;
use filemap_core::series::Series;
use filemap_core::units::{PageCount, PageIndex};
use serde::{Deserialize, Serialize};

use crate::accesses::{Accesses, Reads};
use crate::name::named;
use crate::workload::Workload;

/// `ranges` in order, with those that touch or overlap as one.
pub fn merged(mut ranges: Vec<Range<PageIndex>>) -> Vec<Range<PageIndex>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<PageIndex>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match all.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => all.push(range),
        }
    }
    all
}

named! {
    /// What runs a job.
    "engine"
    pub enum EngineKind {
        /// The model, in virtual time.
        Model = "model",
        /// A real kernel.
        Kernel = "kernel",
    }
}

/// A kernel that is booted in a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Path of the kernel.
    pub path: String,
    /// Path of its modules, if it needs any.
    pub modules: Option<String>,
    /// Series that are switched off before a job that does not have them, where the kernel can do
    /// that while it runs. Those of the job are switched on.
    pub switches: Series,
}

/// One workload of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Which pages, in which order.
    pub pattern: Pattern,
    /// How many accesses: 1 to [`crate::bounds::MAX_ACCESSES`].
    pub accesses: u64,
    /// Seed of the random patterns: not 0.
    pub seed: u64,
    /// It has this seed whatever that of its job is.
    pub has_own_seed: bool,
    /// Bytes of one read; read phases only look at it.
    pub bs_bytes: u64,
}

impl Phase {
    /// The accesses of a list that no file has, with `bs_bytes` of each read.
    pub fn listed(pages: Arc<Vec<u64>>, seed: u64, bs_bytes: u64) -> Phase {
        let accesses = pages.len() as u64;
        let pattern = Pattern::Listed(AccessList { path: String::new(), pages });
        Phase { pattern, accesses, seed, has_own_seed: false, bs_bytes }
    }

    /// Whether the accesses are `read(2)`, not touches of the mapping.
    pub fn is_read(&self) -> bool {
        matches!(&self.pattern, Pattern::Generated(workload) if workload.is_read())
    }

    /// The pages that it touches of a mapping of `pages` pages, in order.
    pub fn touches(&self, pages: PageCount) -> Accesses<'_> {
        match &self.pattern {
            Pattern::Listed(list) => Accesses::listed(&list.pages, self.accesses),
            Pattern::Generated(workload) => {
                Accesses::generated(*workload, pages, self.accesses, self.seed)
            }
        }
    }

    /// The blocks that it reads of a part of `len_bytes` bytes, from its beginning, in pages of
    /// `page_size` bytes.
    pub fn reads(&self, len_bytes: u64, page_size: u64) -> Reads {
        if let Pattern::Listed(list) = &self.pattern {
            return Reads::listed(list.pages.clone(), len_bytes, self.bs_bytes);
        }
        let random = self.pattern != Pattern::Generated(Workload::ReadSequential);
        let pages = PageCount(len_bytes.div_ceil(page_size));
        let pages = random.then_some((pages, page_size, self.seed));
        Reads::new(pages, len_bytes, self.bs_bytes, self.accesses)
    }

    /// Whether its accesses are drawn.
    pub fn is_random(&self) -> bool {
        matches!(&self.pattern, Pattern::Generated(workload) if workload.is_random())
    }

    /// What it does, as reports name it: its workload, or the path of its list.
    pub fn name(&self) -> String {
        match &self.pattern {
            Pattern::Generated(workload) => workload.to_string(),
            Pattern::Listed(list) => list.path.clone(),
        }
    }

    /// Whether the accesses are calls, not touches.
    pub fn is_exec(&self) -> bool {
        matches!(&self.pattern, Pattern::Generated(workload) if workload.is_exec())
    }
}

/// Where the page indexes of a phase come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// A generator.
    Generated(Workload),
    /// A list that the caller gave.
    Listed(AccessList),
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Generated(workload) => workload.fmt(f),
            Pattern::Listed(list) => write!(f, "{} listed pages", list.pages.len()),
        }
    }
}

/// Page indexes from an accesses file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessList {
    /// Path of the file.
    pub path: String,
    /// Indexes into the mapping, in order of access. What reads a part of an open file has offsets
    /// in bytes instead. Copies of a job share it.
    pub pages: Arc<Vec<u64>>,
}

/// The file of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Size in bytes, 1 to [`crate::bounds::MAX_BYTES`]; need not be whole pages.
    pub size_bytes: u64,
    /// Path of an existing file for a real kernel; a temporary one otherwise.
    pub path: Option<String>,
    /// A temporary file is left without blocks on disk.
    pub sparse: bool,
    /// An existing file is dropped from the page cache even where programs may need it there.
    pub cold: bool,
}

/// The mapping of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Its first page in the file.
    pub offset: PageIndex,
    /// Its length: 1 or more, inside the file.
    pub pages: PageCount,
    /// How many pages into its page-table page it begins.
    pub shift: PageCount,
    /// `madvise(2)` on all of it.
    pub advice: Advice,
    /// Mapped executable.
    pub exec: bool,
    /// Mapped `MAP_PRIVATE`, and its accesses write: each page touched is copied.
    pub private: bool,
    /// Cut into several VMAs by `mprotect(2)`.
    pub split: Option<Split>,
}

impl Mapping {
    /// The split, unless it changes nothing: `mprotect` leaves a piece alone that is protected that
    /// way already. A private mapping is written to, so it is writable.
    pub fn effective_split(&self) -> Option<Split> {
        self.split.filter(|split| match split.prot {
            SplitProt::Write => !self.private,
            SplitProt::Exec => !self.exec,
        })
    }
}

impl Mapping {
    /// Why its split changes nothing, where it does not.
    pub(crate) fn split_without_effect(&self) -> Option<String> {
        let split = self.split?;
        let (piece, pages) = (split.pages, self.pages);
        let already = match split.prot {
            SplitProt::Write => "can be written",
            SplitProt::Exec => "can be executed",
        };
        match self.effective_split() {
            None => Some(format!(
                "every page of the mapping {already} already, so that --split {piece} changes \
                 nothing and the mapping stays whole"
            )),
            Some(_) if piece >= pages => Some(format!(
                "a mapping of {pages} pages is one piece of --split {piece}, and stays whole"
            )),
            Some(_) => None,
        }
    }
}

/// The machine of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Pages that the page cache may hold: the smallest of the limits given; `None` = all.
    pub cache_limit: Option<PageCount>,
    /// RAM in bytes, if given.
    pub ram_bytes: Option<u64>,
    /// `memory.high` of the memory cgroup in bytes, if given.
    pub memory_high_bytes: Option<u64>,
    /// `memory.max` of the memory cgroup in bytes, if given.
    pub memory_max_bytes: Option<u64>,
    /// Readahead size of the file (`ra_pages`); 0 = no readahead.
    pub read_ahead: PageCount,
    /// Fault-around size: a power of two; 1 = off.
    pub fault_around: PageCount,
    /// Architecture and page size.
    pub arch: Arch,
    /// The filesystem, as far as folios go.
    pub fs: Filesystem,
    /// Size of its blocks, where they are larger than a page; else that of a page.
    pub block_bytes: u64,
    /// Path of a machine profile, which the caller reads.
    pub profile: Option<String>,
    /// The governor's policy reads ahead in those mappings that it is for.
    pub governor: bool,
}

/// Of `RAM_PARTS` parts of RAM, those that the page cache gets: 7.62 GiB of 8.
///
/// The one fitted parameter: taken from one published row (20 GiB file, random, baseline, on a
/// guest with 8 GiB), as the published runs do not state how much of it the kernel keeps.
pub const CACHE_PARTS: u64 = 762;

/// See [`CACHE_PARTS`].
pub const RAM_PARTS: u64 = 800;

impl Machine {
    /// The limit of the page cache that RAM and the memory cgroup set; `None` without either.
    pub fn implied_cache_limit(&self) -> Option<PageCount> {
        let limits = [self.ram_for_cache_bytes(), self.cgroup_bytes()];
        let bytes = limits.into_iter().flatten().min()?;
        Some(PageCount(bytes / self.arch.page_size))
    }

    /// What RAM leaves to the page cache.
    fn ram_for_cache_bytes(&self) -> Option<u64> {
        let bytes = u128::from(self.ram_bytes?);
        Some((bytes * u128::from(CACHE_PARTS) / u128::from(RAM_PARTS)) as u64)
    }

    /// `memory.high` in pages, and the limit above it if there is one, where `memory.high` is the
    /// lowest of all limits.
    pub fn high(&self) -> Option<(PageCount, Option<PageCount>)> {
        let pages = |bytes: u64| PageCount(bytes / self.arch.page_size);
        let high = self.memory_high_bytes.map(pages)?;
        let others = [self.ram_for_cache_bytes(), self.memory_max_bytes].into_iter().flatten();
        let limit = others.min().map(pages);
        (self.cache_limit == Some(high) && limit != Some(high)).then_some((high, limit))
    }

    /// Whether the memory cgroup is what limits the page cache: such a limit also pays for memory
    /// of the kernel's own.
    pub fn limit_is_cgroups(&self) -> bool {
        let cgroup = self.cgroup_bytes().map(|bytes| PageCount(bytes / self.arch.page_size));
        cgroup.is_some() && cgroup == self.cache_limit
    }

    /// The key of a job file that sets the limit of the page cache; `None` without a limit.
    pub fn limit_key(&self) -> Option<&'static str> {
        let limit = self.cache_limit?;
        let is_set = |bytes: Option<u64>| {
            bytes.is_some_and(|bytes| PageCount(bytes / self.arch.page_size) == limit)
        };
        Some(if is_set(self.memory_max_bytes) {
            "memory_max"
        } else if is_set(self.memory_high_bytes) {
            "memory_high"
        } else if self.implied_cache_limit() == self.cache_limit {
            "ram"
        } else {
            "cache_limit"
        })
    }

    /// The lower of the cgroup's limits. One thread that exceeds `memory.high` repays at once, so
    /// that to it both are the same.
    fn cgroup_bytes(&self) -> Option<u64> {
        [self.memory_high_bytes, self.memory_max_bytes].into_iter().flatten().min()
    }
}

named! {
    /// A filesystem, as far as the size of its folios goes.
    "filesystem"
    pub enum Filesystem {
        /// ext4: large folios where the kernel's rules have them.
        Ext4 = "ext4",
        /// XFS: large folios.
        Xfs = "xfs",
        /// Any filesystem without large folios.
        BasePages = "base-pages",
    }
}
