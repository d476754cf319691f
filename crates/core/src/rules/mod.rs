//! The differences between kernels and architectures, as tables of values.

mod kernel;

use crate::series::{Series, Switch};
use crate::units::{Order, PageCount};

pub use self::kernel::{Kernel, Nearest};

/// What a fault does under the lock of its VMA, before it takes `mmap_lock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmaLock {
    /// Nothing: VMAs have no locks (6.1).
    Absent,
    /// Fault-around (6.6).
    FaultAround,
    /// All of it (6.12).
    WholeFault,
}

/// How the folio order of a readahead stream grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderGrowth {
    /// By 2 from the marked folio's order, on every window laid out in large folios (6.12).
    EveryWindow,
    /// By 2 from the stream's own order, when a mark is hit (6.18).
    AsyncWindow,
}

/// What MADV_COLD and MADV_PAGEOUT do with a large folio that page-table entries map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisedFolios {
    /// It is split, unless several VMAs map the encountered page: then the rest of the page-table
    /// page is skipped (6.1).
    SplitByPage,
    /// It is split if exactly one VMA maps its first page; otherwise the rest of the page-table
    /// page is skipped (6.6).
    SplitByFirstPage,
    /// It is split if only partly covered, unless its entries show that several VMAs map it (6.12).
    KeepByEntries,
    /// It is split if only partly covered, unless several processes map it (6.18).
    KeepByProcesses,
}

/// Folios read by mappings advised HUGEPAGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugeFolios {
    /// PMD-sized ones; for a file without large folios, that many base pages (6.1).
    Pmd,
    /// The largest ones of the file, up to 2 MiB. A file without large folios is read as without
    /// the advice (7.2).
    OfFile,
}

/// On which architectures MADV_DONTNEED frees page-table pages that it empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreedTables {
    /// On none (6.1).
    Never,
    /// On x86-64 (6.18).
    OnX86_64,
    /// On all (7.0).
    Always,
}

/// What a fault does with its lock during I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockForIo {
    /// It drops the lock before it requests a window, and before it waits for a page (6.1).
    DroppedToRead,
    /// It drops the lock before it waits for a page (the mm tree after 7.3).
    DroppedToWait,
}

/// The rules of one kernel with the switches of some series: one field for each difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The kernel that the other fields describe.
    pub kernel: Kernel,
    /// The patch series on top.
    pub series: Series,
    /// What faults do under the lock of their VMA.
    pub vma_lock: VmaLock,
    /// A fault of MADV_POPULATE_READ that dropped its lock starts over as a new fault.
    pub populating_begins_anew: bool,
    /// Misses and hits on marks share one rule: a miss where the stream's next window or its mark
    /// is due advances the stream.
    pub misses_move_streams: bool,
    /// Folios of two pages.
    pub two_page_folios: bool,
    /// Fault-around credits pages of folios that were on the active list before they were evicted.
    pub workingset_hits_count: bool,
    /// Folios that `read(2)` looks up together (`PAGEVEC_SIZE`).
    pub read_batch_folios: u8,
    /// `read(2)` updates its position after each folio, not at the end.
    pub read_notes_each_folio: bool,
    /// A window that starts past the end of the file grows by the pages in between, in the
    /// readahead state.
    pub windows_beyond_end_grow: bool,
    /// MADV_NOHUGEPAGE keeps folios from being mapped by one PMD entry.
    pub nohugepage_keeps_pmd_off: bool,
    /// Accesses through mappings advised RANDOM, or of open files advised NOREUSE, count like
    /// others.
    pub random_accesses_count: bool,
    /// `munmap(2)` and MADV_DONTNEED: each accessed entry marks its folio accessed.
    pub entries_are_uses: bool,
    /// Each pass of reclaim begins with a flush of the list statistics.
    pub reclaim_flushes_statistics: bool,
    /// Faults map a large folio whole if it lies inside the VMA and the page-table page.
    pub maps_whole_folio: bool,
    /// Fault-around maps a large folio whole, or creates a page-table page for a folio, only if the
    /// folio ends before the last page of the file.
    pub around_spares_file_end: bool,
    /// Executable mappings have their own readahead rule, which RANDOM advice does not disable.
    pub executable_readahead: bool,
    /// A cache hit decrements `mmap_miss` even if the folio is locked.
    pub locked_hit_counts: bool,
    /// The end of an asynchronous window is trimmed to the stream's folio order.
    pub trims_async_end: bool,
    /// When the folio order of a stream grows.
    pub order_growth: OrderGrowth,
    /// Windows of fewer pages are laid out in base pages.
    pub large_folio_min_window: PageCount,
    /// After a cached page, the base-page layout reads the rest of the window, not the full size
    /// again.
    pub fallback_reads_remainder: bool,
    /// XFS supports blocks larger than a page, each of which is read as one folio.
    pub xfs_large_blocks: bool,
    /// A mark before the rest of a window, in base pages or blocks, is rounded up to a block like
    /// others.
    pub early_marks_count: bool,
    /// `read(2)` requests whole blocks from readahead.
    pub reads_whole_blocks: bool,
    /// ext4 supports large folios.
    pub ext4_large_folios: bool,
    /// Misses in mappings advised HUGEPAGE count, and stop readahead, like others.
    pub huge_page_counts: bool,
    /// Which folios mappings advised HUGEPAGE read.
    pub huge_folios: HugeFolios,
    /// Misses and hits of executable mappings are counted, and misses there stop readahead.
    pub executable_counts: bool,
    /// Hits in mappings advised SEQUENTIAL decrement `mmap_miss`, although their misses do not
    /// count.
    pub sequential_hits_count: bool,
    /// Fault-around credits only the faulting page, if this call mapped it.
    pub credits_fault_address: bool,
    /// The fault-around of a retry after one's own miss credits hits.
    pub retry_credits: bool,
    /// A window that reaches the last page of the file has its mark.
    pub marks_file_end: bool,
    /// A backward search without a gap counts all inspected pages; otherwise one less.
    pub full_search_counts_all: bool,
    /// What a fault does with its lock during I/O.
    pub lock_for_io: LockForIo,
    /// On which architectures MADV_DONTNEED frees page-table pages that it empties.
    pub dontneed_frees_tables: FreedTables,
    /// MADV_DONTNEED within one VMA takes the VMA lock instead of `mmap_lock`.
    pub dontneed_locks_vma: bool,
    /// MADV_PAGEOUT leaves a folio cached that was accessed through other mappings.
    pub paging_out_judges: bool,
    /// Which large folios MADV_COLD and MADV_PAGEOUT split, and which they skip.
    pub advised_folios: AdvisedFolios,
    /// The pages of a split folio follow its first page in descending order.
    pub split_reverses: bool,
}

/// Largest folio of ext4 in bytes: 2048 blocks, assumed to be 4 KiB, limited by journal credits.
const EXT4_MAX_FOLIO_BYTES: u64 = 2048 * 4096;

impl Rules {
    /// The rules of `kernel` with the switches of `series`: complete for the oldest kernel, and the
    /// differences from the previous one for each later kernel.
    pub const fn new(kernel: Kernel, series: Series) -> Self {
        match kernel {
            Kernel::V6_1 => Rules {
                kernel,
                series,
                vma_lock: VmaLock::Absent,
                populating_begins_anew: true,
                misses_move_streams: true,
                two_page_folios: false,
                workingset_hits_count: true,
                read_batch_folios: 15,
                read_notes_each_folio: true,
                windows_beyond_end_grow: true,
                nohugepage_keeps_pmd_off: false,
                random_accesses_count: true,
                entries_are_uses: true,
                reclaim_flushes_statistics: true,
                maps_whole_folio: false,
                around_spares_file_end: false,
                executable_readahead: false,
                locked_hit_counts: true,
                trims_async_end: false,
                order_growth: OrderGrowth::EveryWindow,
                large_folio_min_window: PageCount(4),
                fallback_reads_remainder: false,
                xfs_large_blocks: false,
                early_marks_count: true,
                reads_whole_blocks: false,
                ext4_large_folios: false,
                huge_page_counts: false,
                huge_folios: HugeFolios::Pmd,
                executable_counts: true,
                sequential_hits_count: true,
                credits_fault_address: false,
                retry_credits: true,
                marks_file_end: true,
                full_search_counts_all: false,
                lock_for_io: LockForIo::DroppedToRead,
                dontneed_frees_tables: FreedTables::Never,
                dontneed_locks_vma: false,
                paging_out_judges: true,
                advised_folios: AdvisedFolios::SplitByPage,
                split_reverses: false,
            },
            Kernel::V6_6 => Rules {
                kernel,
                vma_lock: VmaLock::FaultAround,
                two_page_folios: true,
                read_notes_each_folio: false,
                random_accesses_count: false,
                around_spares_file_end: true,
                advised_folios: AdvisedFolios::SplitByFirstPage,
                ..Rules::new(Kernel::V6_1, series)
            },
            Kernel::V6_12 => Rules {
                kernel,
                vma_lock: VmaLock::WholeFault,
                populating_begins_anew: false,
                misses_move_streams: false,
                workingset_hits_count: false,
                read_batch_folios: 31,
                windows_beyond_end_grow: false,
                nohugepage_keeps_pmd_off: true,
                entries_are_uses: false,
                reclaim_flushes_statistics: false,
                xfs_large_blocks: true,
                paging_out_judges: false,
                advised_folios: AdvisedFolios::KeepByEntries,
                ..Rules::new(Kernel::V6_6, series)
            },
            Kernel::V6_18 => Rules {
                kernel,
                maps_whole_folio: true,
                executable_readahead: true,
                locked_hit_counts: false,
                trims_async_end: true,
                order_growth: OrderGrowth::AsyncWindow,
                large_folio_min_window: PageCount(1),
                fallback_reads_remainder: true,
                early_marks_count: false,
                reads_whole_blocks: true,
                ext4_large_folios: true,
                dontneed_frees_tables: FreedTables::OnX86_64,
                dontneed_locks_vma: true,
                advised_folios: AdvisedFolios::KeepByProcesses,
                split_reverses: true,
                ..Rules::new(Kernel::V6_12, series)
            },
            Kernel::Mm2026_05 | Kernel::V6_19 => {
                Rules { kernel, huge_page_counts: true, ..Rules::new(Kernel::V6_18, series) }
            }
            Kernel::V7_0 | Kernel::V7_1 => Rules {
                kernel,
                dontneed_frees_tables: FreedTables::Always,
                ..Rules::new(Kernel::V6_19, series)
            },
            Kernel::V7_2 | Kernel::V7_3 => Rules {
                kernel,
                huge_folios: HugeFolios::OfFile,
                executable_counts: false,
                sequential_hits_count: false,
                credits_fault_address: true,
                retry_credits: false,
                marks_file_end: false,
                full_search_counts_all: true,
                ..Rules::new(Kernel::V7_1, series)
            },
            Kernel::Mm0b2777a511b7 => Rules {
                kernel,
                lock_for_io: LockForIo::DroppedToWait,
                ..Rules::new(Kernel::V7_3, series)
            },
        }
    }

    /// Why `switch` does not apply to this kernel, which lacks what it changes or already has it;
    /// `None` if it applies.
    pub fn lacks(&self, switch: Switch) -> Option<&'static str> {
        let reads_with_vma_lock = self.vma_lock == VmaLock::WholeFault;
        let is_merged = match switch {
            Switch::MissFaultAddress => self.credits_fault_address,
            Switch::MissNoRetry => !self.retry_credits,
            Switch::ExecBypass | Switch::ExecBypassV5 => !self.executable_counts,
            Switch::ThpOrder | Switch::ThpOrderV5 => self.huge_folios == HugeFolios::OfFile,
            Switch::VmaRetry | Switch::NoRetryUptodate if !reads_with_vma_lock => {
                return Some("reads nothing under the lock of a VMA");
            }
            _ => false,
        };
        is_merged.then_some("has it as merged")
    }

    /// The largest folio of a file on ext4; `None` if it only has base pages.
    pub fn ext4_max_folio(&self, arch: &Arch) -> Option<Order> {
        let of_journal = Order::fitting(PageCount(EXT4_MAX_FOLIO_BYTES / arch.page_size));
        self.ext4_large_folios.then(|| of_journal.min(arch.max_cache_order))
    }
}

/// Properties of an architecture with one base page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arch {
    /// The family.
    pub family: Family,
    /// Base page size in bytes: a power of two.
    pub page_size: u64,
    /// Entries of one page-table page.
    pub pte_entries: u64,
    /// Largest folio order of the page cache.
    pub max_cache_order: Order,
    /// Folio order requested for executable mappings.
    pub exec_order: Order,
    /// Order of the entries joined by the contiguous bit; 0 without it.
    pub contiguous_order: Order,
    /// Fault-around sets the accessed bit of entries.
    pub prefaults_young: bool,
}

/// A processor family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Arm64,
}

impl Family {
    /// Every modelled family.
    pub const ALL: [Family; 2] = [Family::X86_64, Family::Arm64];

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Family::X86_64 => "x86-64",
            Family::Arm64 => "arm64",
        }
    }
}

/// Largest order that one entry of the page cache's index can hold (the kernel's
/// `MAX_XAS_ORDER`).
const MAX_INDEX_ORDER: u8 = 11;

impl Arch {
    /// The architecture with this page size in bytes, or `None` where it has no such page size.
    pub fn new(family: Family, page_size: u64) -> Option<Arch> {
        let known = match family {
            Family::X86_64 => page_size == 4096,
            Family::Arm64 => matches!(page_size, 4096 | 16384 | 65536),
        };
        if !known {
            return None;
        }
        let pte_entries = page_size / 8;
        let pmd_order = pte_entries.ilog2() as u8;
        let (exec_order, contiguous_order) = match (family, page_size) {
            (Family::X86_64, _) => (0, 0),
            (Family::Arm64, 4096) => (4, 4),
            (Family::Arm64, 16384) => (2, 7),
            (Family::Arm64, _) => (0, 5),
        };
        Some(Arch {
            family,
            page_size,
            pte_entries,
            max_cache_order: Order(pmd_order.min(MAX_INDEX_ORDER)),
            exec_order: Order(exec_order),
            contiguous_order: Order(contiguous_order),
            prefaults_young: family == Family::X86_64,
        })
    }

    /// Order of a folio that one PMD entry maps.
    pub const fn pmd_order(&self) -> Order {
        Order(self.pte_entries.ilog2() as u8)
    }
}
