//! Sync readahead on a fault: the window of a miss.

use super::{Limits, ReadaheadState, Request, Window, bound, miss, on_demand};
use crate::address::vma::Vma;
use crate::cache::FileCache;
use crate::decision::{Cause, Decision, Log, MissChange, MissChangeCause};
use crate::rules::HugeFolios;
use crate::series::Switch;
use crate::units::{Order, PageCount, PageIndex};

/// The window of a fault that missed at `index`, and the update of `ra`. `None` if readahead is
/// off: a single page is read.
///
/// Mirrors `do_sync_mmap_readahead`, 6.12, 6.18 and 7.2. Test: `tests/sync.rs`.
pub fn on_miss(
    index: PageIndex,
    vma: &Vma,
    limits: &Limits,
    ra: &mut ReadaheadState,
    cache: &impl FileCache,
    log: &mut impl Log,
) -> Option<Window> {
    let huge_order = vma.advice.is_huge().then(|| huge_order(limits)).flatten();
    if let Some(order) = huge_order {
        if limits.rules.series.has(Switch::ThpOrderV5) {
            ra.order = order;
        }
        if limits.rules.huge_page_counts && !reads_window(index, vma, limits, ra, log) {
            return None;
        }
        return Some(huge_page(index, order, vma, limits, ra));
    }
    let executable = vma.executable && limits.rules.executable_readahead;
    let off = (vma.advice.is_random() && !executable) || limits.ra_pages == PageCount(0);
    if off {
        log.record(Decision::NoReadahead { index, mmap_miss: ra.mmap_miss });
        return None;
    }
    if vma.advice.is_sequential() {
        let request = Request::for_fault(Cause::SequentialFault, index, vma, limits);
        log.record(ra.entered_decision(&request));
        return Some(on_demand::on_miss(request, limits, ra, cache));
    }
    if !reads_window(index, vma, limits, ra, log) {
        return None;
    }
    let cause = if executable {
        executable_window(index, vma, limits, ra);
        Cause::Executable
    } else {
        read_around(index, vma, limits, ra);
        Cause::ReadAround
    };
    Some(Window {
        cause,
        index,
        start: ra.start,
        size: ra.size,
        async_size: ra.async_size,
        order: ra.order,
        base_pages: false,
        last: bound::last(vma, limits),
    })
}

/// Counts a miss if misses of the mapping count; returns whether a window is read.
fn reads_window(
    index: PageIndex,
    vma: &Vma,
    limits: &Limits,
    ra: &mut ReadaheadState,
    log: &mut impl Log,
) -> bool {
    if !miss::counts_misses(vma, &limits.rules) {
        return true;
    }
    let before = ra.mmap_miss;
    let reads = if limits.rules.series.has(Switch::RentOrBuy) {
        ra.rent.record_miss(index, limits.ra_pages)
    } else {
        ra.mmap_miss = miss::after_miss(ra.mmap_miss);
        miss::reads_window(ra.mmap_miss, &limits.rules)
    };
    let cause = MissChangeCause::Miss { reads_window: reads };
    log.mmap_miss_changed(MissChange { cause, before, after: ra.mmap_miss });
    if reads {
        return true;
    }
    log.record(Decision::NoReadahead { index, mmap_miss: ra.mmap_miss });
    false
}

/// Folio order for a mapping advised HUGEPAGE; `None` if it is read as without the advice. Without
/// thp-order (merged in 7.2), that is if the page cache cannot hold PMD-sized folios.
fn huge_order(limits: &Limits) -> Option<Order> {
    let series = limits.rules.series;
    let two_mib = Order::fitting(PageCount((2 << 20) / limits.arch.page_size));
    if limits.rules.huge_folios == HugeFolios::OfFile || series.has(Switch::ThpOrder) {
        return limits.max_folio.map(|largest| largest.min(two_mib));
    }
    let pmd = limits.arch.pmd_order();
    let largest = limits.arch.max_cache_order;
    if pmd <= largest {
        return Some(pmd);
    }
    let of_file = limits.max_folio.unwrap_or(Order(0));
    let serves = series.has(Switch::ThpOrderV5) && of_file <= largest;
    serves.then(|| of_file.min(two_mib))
}

/// One large folio, and the next one unless advised RANDOM. The stream's start is unchanged.
fn huge_page(
    index: PageIndex,
    order: Order,
    vma: &Vma,
    limits: &Limits,
    ra: &mut ReadaheadState,
) -> Window {
    let folio = PageCount(order.pages());
    ra.size = if vma.advice.is_random() { folio } else { folio + folio };
    ra.async_size = folio;
    ra.order = order;
    Window {
        cause: Cause::HugePage,
        index,
        start: index.align_down(order),
        size: ra.size,
        async_size: folio,
        order,
        base_pages: false,
        last: bound::last(vma, limits),
    }
}

/// From the page on, in folios of the architecture's preferred order for code, inside the VMA,
/// without a mark.
fn executable_window(index: PageIndex, vma: &Vma, limits: &Limits, ra: &mut ReadaheadState) {
    let order = limits.arch.exec_order;
    ra.start = index.align_down(order).max(vma.pgoff);
    let mut end = (ra.start + limits.ra_pages).align_up(order);
    if !limits.rules.series.has(Switch::ExecUnify) {
        end = end.min(vma.end());
    }
    ra.size = end - ra.start;
    ra.async_size = PageCount(0);
    ra.order = order;
}

/// Half a readahead size on either side of the page.
fn read_around(index: PageIndex, vma: &Vma, limits: &Limits, ra: &mut ReadaheadState) {
    let start = index.saturating_sub(PageCount(limits.ra_pages.0 / 2));
    ra.start = start.max(bound::first(vma, limits));
    ra.size = limits.ra_pages;
    ra.async_size = PageCount(limits.ra_pages.0 / 4);
    ra.order = Order(0);
}
