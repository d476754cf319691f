//! Async readahead, on a hit of a marked folio.

use super::search::first_absent;
use super::window_size::next_size;
use super::{Limits, ReadaheadState, Request, Window, miss, stream};
use crate::address::vma::Vma;
use crate::cache::{FileCache, Folio};
use crate::decision::{Cause, Decision, Log, MissChange, MissChangeCause};
use crate::rules::OrderGrowth;
use crate::units::{Order, PageCount, PageIndex};

/// A fault hit `folio` at `index` and is not the retry of a miss. Counts the hit; returns the next
/// window if the folio was marked.
///
/// Mirrors `do_async_mmap_readahead`, 6.12, 6.18 and 7.2. Test: `tests/marked.rs`.
pub fn on_fault_hit(
    index: PageIndex,
    folio: Folio,
    vma: &Vma,
    limits: &Limits,
    ra: &mut ReadaheadState,
    cache: &mut impl FileCache,
    log: &mut impl Log,
) -> Option<MarkHit> {
    if vma.advice.is_random() || limits.ra_pages == PageCount(0) {
        return None;
    }
    let is_counted = !folio.locked || limits.rules.locked_hit_counts;
    if is_counted && miss::counts_hits(vma, &limits.rules) {
        let before = ra.mmap_miss;
        ra.record_hits(1, limits.rules.series);
        let cause = MissChangeCause::Hit;
        log.mmap_miss_changed(MissChange { cause, before, after: ra.mmap_miss });
    }
    if !folio.marked {
        return None;
    }
    let request = Request::for_fault(Cause::AsyncFault, index, vma, limits);
    log.record(ra.entered_decision(&request));
    let window = next_window(request, folio, limits, ra, cache);
    if window.is_none() {
        log.record(Decision::NothingAbsent { index });
    }
    Some(MarkHit { window })
}

/// A mark was hit and cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkHit {
    /// The next window, unless everything is cached.
    pub window: Option<Window>,
}

/// Clears the mark of `folio`, hit by a request, and advances the stream in `ra`. `None` if nothing
/// is absent within a window.
///
/// Mirrors `page_cache_async_ra`, 6.12 and 6.18. Test: `tests/marked.rs`.
pub fn next_window(
    request: Request,
    folio: Folio,
    limits: &Limits,
    ra: &mut ReadaheadState,
    cache: &mut impl FileCache,
) -> Option<Window> {
    let Request { index, pages: req, .. } = request;
    cache.clear_mark(index);
    if limits.rules.misses_move_streams {
        return Some(stream::on_mark(request, folio.order, limits, ra, cache));
    }
    let max = limits.max_window(req);
    if index == ra.due_mark(folio.order) {
        ra.start += ra.size;
        ra.size = ra.size.max(next_size(ra.size, max));
    } else {
        let start = first_absent(index + PageCount(1), max, cache)?;
        ra.start = start;
        ra.size = next_size(start - index + req, max);
    }
    let order = match limits.rules.order_growth {
        OrderGrowth::EveryWindow => folio.order,
        OrderGrowth::AsyncWindow => {
            ra.order.0 = (ra.order.0 + 2).min(MAX_STREAM_ORDER);
            ra.order
        }
    };
    if limits.rules.trims_async_end {
        trim_end(ra, max);
    }
    ra.async_size = ra.size;
    Some(ra.window(&request, order))
}

/// Keeps the order in range if no layout limits it.
const MAX_STREAM_ORDER: u8 = 62;

/// Trims the end of the window to the stream's folio order, unless nothing would remain.
fn trim_end(ra: &mut ReadaheadState, max: PageCount) {
    let order = u32::from(ra.order.0).min(max.0.trailing_zeros());
    let end = ra.start + ra.size;
    let aligned = end.align_down(Order(order as u8));
    if aligned > ra.start {
        ra.size = aligned - ra.start;
    }
}
