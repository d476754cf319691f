//! A test machine, small enough to draw.

use filemap_core::address::vma::{Advice, Vma};
use filemap_core::decision::Cause;
use filemap_core::readahead::{Limits, ReadaheadState, Window};
use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch};
use filemap_core::units::{Order, PageCount, PageIndex, Vpn};

/// The kernels whose rules the cases distinguish.
pub const KERNELS: [Kernel; 2] = [Kernel::V6_12, Kernel::V6_18];

/// x86-64 with ext4, 16 pages of readahead, fault-around of 16 pages, a file of `pages` pages.
pub fn limits(kernel: Kernel, pages: PageCount) -> Limits {
    let rules = Rules::new(kernel, Series::BASELINE);
    let arch = Arch::new(Family::X86_64, 4096).unwrap();
    Limits {
        rules,
        arch,
        ra_pages: PageCount(16),
        io_pages: PageCount(16),
        fault_around: PageCount(16),
        max_folio: rules.ext4_large_folios.then_some(arch.max_cache_order),
        min_folio: Order(0),
        file_pages: pages,
    }
}

/// The same with a filesystem that has large folios on every kernel.
pub fn xfs(kernel: Kernel, pages: PageCount) -> Limits {
    let limits = limits(kernel, pages);
    Limits { max_folio: Some(limits.arch.max_cache_order), ..limits }
}

/// The same on a processor whose page-table pages have 16 entries, so that a PMD maps 16 pages.
pub fn small_tables(limits: Limits) -> Limits {
    let arch = Arch { pte_entries: 16, max_cache_order: Order(4), ..limits.arch };
    Limits { arch, max_folio: limits.max_folio.and(Some(Order(4))), ..limits }
}

/// The same on another processor.
pub fn on(family: Family, page_size: u64, limits: Limits) -> Limits {
    let arch = Arch::new(family, page_size).unwrap();
    Limits { arch, max_folio: limits.max_folio.and(Some(arch.max_cache_order)), ..limits }
}

/// The same with these switches on.
pub fn with(switches: &[Switch], mut limits: Limits) -> Limits {
    for &switch in switches {
        limits.rules.series = limits.rules.series.with(switch);
    }
    limits
}

/// A mapping of the whole file, at the first entry of a page-table page.
pub fn whole(limits: &Limits) -> Vma {
    part(0, limits.file_pages.0)
}

/// A mapping of the pages `from..end` of the file, in which page 0 would be the first entry of a
/// table.
pub fn part(from: u64, end: u64) -> Vma {
    Vma {
        start: Vpn(from),
        pgoff: PageIndex(from),
        pages: PageCount(end - from),
        advice: Advice::NORMAL,
        executable: false,
    }
}

/// The mapping with an advice.
pub fn advised(advice: Advice, vma: Vma) -> Vma {
    Vma { advice, ..vma }
}

/// The mapping with PROT_EXEC.
pub fn executable(vma: Vma) -> Vma {
    Vma { executable: true, ..vma }
}

/// A readahead state after a window of `size` pages at `start` with `async_size` after its mark.
pub fn stream(start: u64, size: u64, async_size: u64, order: u8) -> ReadaheadState {
    ReadaheadState {
        start: PageIndex(start),
        size: PageCount(size),
        async_size: PageCount(async_size),
        order: Order(order),
        ..ReadaheadState::NEW
    }
}

/// A window of `size` pages at `start`, `async_size` of them after the mark, of any order, that may
/// be read up to page `last`.
pub fn window(start: u64, size: u64, async_size: u64, order: u8, last: u64) -> Window {
    Window {
        cause: Cause::ReadAround,
        index: PageIndex(start),
        start: PageIndex(start),
        size: PageCount(size),
        async_size: PageCount(async_size),
        order: Order(order),
        base_pages: false,
        last: PageIndex(last),
    }
}

/// A readahead state in which only the counter is set.
pub fn counter(mmap_miss: u16) -> ReadaheadState {
    ReadaheadState { mmap_miss, ..ReadaheadState::NEW }
}
