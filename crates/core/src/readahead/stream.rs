//! On-demand readahead of 6.1 and 6.6: one rule for misses and for hits on marks.

use super::window_size::{initial_size, next_size, single, size_by_context};
use super::{Limits, ReadaheadState, Request, Window, search};
use crate::cache::FileCache;
use crate::units::{Order, PageCount, PageIndex};

/// The window for a miss. A miss right after the last window, or where its mark is due, advances
/// the stream.
///
/// Mirrors `ondemand_readahead` without a folio, 6.1 and 6.6. Test: `tests/stream.rs`.
pub fn on_miss(
    request: Request,
    limits: &Limits,
    ra: &mut ReadaheadState,
    cache: &impl FileCache,
) -> Window {
    let max = limits.max_window(request.pages);
    if !moves_on(&request, Order(0), max, ra) {
        let Request { index, pages: req, .. } = request;
        if req > max || ra.follows_read(index, limits) {
            begin(index, req, max, ra);
        } else {
            let Some(size) = size_by_context(index, req, max, &limits.rules, cache) else {
                return single(request);
            };
            (ra.start, ra.size, ra.async_size) = (index, size, PageCount(1));
        }
    }
    window(request, Order(0), max, ra)
}

/// The window for a request that hit a mark in a folio of order `order`.
///
/// If a whole window after the mark is cached, the search ends at the last page it inspected, and
/// the stream continues there.
///
/// Mirrors `ondemand_readahead` with a folio, 6.1 and 6.6. Test: `tests/stream.rs`.
pub fn on_mark(
    request: Request,
    order: Order,
    limits: &Limits,
    ra: &mut ReadaheadState,
    cache: &impl FileCache,
) -> Window {
    let max = limits.max_window(request.pages);
    if !moves_on(&request, order, max, ra) {
        let Request { index, pages: req, .. } = request;
        let start = search::first_absent(index + PageCount(1), max, cache).unwrap_or(index + max);
        ra.start = start;
        ra.size = next_size(start - index + req, max);
        ra.async_size = ra.size;
    }
    window(request, order, max, ra)
}

/// Starts a stream at the start of the file, or advances the stream that expects the request: where
/// its mark is due in folios of `order`, or after its last window. `false`: neither.
fn moves_on(request: &Request, order: Order, max: PageCount, ra: &mut ReadaheadState) -> bool {
    let index = request.index;
    if index == PageIndex(0) {
        begin(index, request.pages, max, ra);
        return true;
    }
    let is_due = index == ra.due_mark(order) || index == ra.start + ra.size;
    if is_due {
        ra.start += ra.size;
        ra.size = ra.size.max(next_size(ra.size, max));
        ra.async_size = ra.size;
    }
    is_due
}

fn begin(index: PageIndex, req: PageCount, max: PageCount, ra: &mut ReadaheadState) {
    ra.start = index;
    ra.size = initial_size(req, max);
    ra.async_size = if ra.size > req { ra.size - req } else { ra.size };
}

/// The window of `ra`. If its mark would be the requesting page, it is merged with the next one.
fn window(request: Request, order: Order, max: PageCount, ra: &mut ReadaheadState) -> Window {
    if request.index == ra.start && ra.size == ra.async_size {
        let next = next_size(ra.size, max);
        (ra.size, ra.async_size) = if ra.size + next <= max {
            (ra.size + next, next)
        } else {
            (max, PageCount(max.0 / 2))
        };
    }
    ra.window(&request, order)
}
