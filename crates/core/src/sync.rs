//! Sync readahead on a fault: the window of a miss.

use crate::cache::PageCache;
use crate::decision::{Cause, Decision, Log};
use crate::miss;
use crate::on_demand;
use crate::readahead::{Limits, ReadaheadState, Window};
use crate::units::{Order, PageCount, PageIndex};
use crate::vma::{Advice, Vma};

/// The window that a fault reads which found nothing at `index`, and what it leaves in `ra`.
/// `None` where readahead is off: a single page is read.
///
/// Mirrors `do_sync_mmap_readahead`, 6.12 and 6.18. Test: `tests/sync.rs`.
pub fn on_miss(
    index: PageIndex,
    vma: &Vma,
    limits: &Limits,
    ra: &mut ReadaheadState,
    cache: &impl PageCache,
    log: &mut impl Log,
) -> Option<Window> {
    if vma.advice == Advice::HugePage && limits.arch.pmd_order() <= limits.arch.max_cache_order {
        return Some(huge_page(index, vma, limits, ra));
    }
    let executable = vma.executable && limits.rules.executable_readahead;
    let off = (vma.advice == Advice::Random && !executable) || limits.ra_pages == PageCount(0);
    if off {
        log.record(Decision::NoReadahead { index, mmap_miss: ra.mmap_miss });
        return None;
    }
    if vma.advice == Advice::Sequential {
        let cause = Cause::SequentialFault;
        return Some(on_demand::on_miss(cause, index, limits.ra_pages, limits, ra, cache));
    }
    ra.mmap_miss = miss::missed(ra.mmap_miss);
    if !miss::reads_window(ra.mmap_miss) {
        log.record(Decision::NoReadahead { index, mmap_miss: ra.mmap_miss });
        return None;
    }
    let cause = if executable {
        executable_window(index, vma, limits, ra);
        Cause::Executable
    } else {
        read_around(index, limits, ra);
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
        last: limits.last_page(),
    })
}

/// One PMD-sized folio, and the next one where the program did not say RANDOM. The stream's start
/// stays what it was.
fn huge_page(index: PageIndex, vma: &Vma, limits: &Limits, ra: &mut ReadaheadState) -> Window {
    let order = limits.arch.pmd_order();
    let folio = PageCount(order.pages());
    ra.size = if vma.advice == Advice::Random { folio } else { folio + folio };
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
        last: limits.last_page(),
    }
}

/// From the page on, in folios of the order that the architecture prefers for code, inside the
/// VMA, without a mark.
fn executable_window(index: PageIndex, vma: &Vma, limits: &Limits, ra: &mut ReadaheadState) {
    let order = limits.arch.exec_order;
    ra.start = index.align_down(order).max(vma.pgoff);
    let end = (ra.start + limits.ra_pages).align_up(order).min(vma.end());
    ra.size = end - ra.start;
    ra.async_size = PageCount(0);
    ra.order = order;
}

/// Half a readahead size on either side of the page.
fn read_around(index: PageIndex, limits: &Limits, ra: &mut ReadaheadState) {
    ra.start = index.saturating_sub(PageCount(limits.ra_pages.0 / 2));
    ra.size = limits.ra_pages;
    ra.async_size = PageCount(limits.ra_pages.0 / 4);
    ra.order = Order(0);
}
