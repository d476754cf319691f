//! On-demand sync readahead: `read(2)`, and faults in mappings advised SEQUENTIAL.

use super::{Limits, ReadaheadState, Request, Window, forced, search, stream};
use crate::cache::FileCache;
use crate::decision::Cause;
use crate::units::{Order, PageCount, PageIndex};

/// The window for a request that found nothing at its page, and what it leaves in `ra`. A single
/// request reads just its pages and leaves `ra` alone; one without readahead reads one page, and
/// one of an open file advised RANDOM what it asks for.
///
/// Mirrors `page_cache_sync_ra`, 6.12 and 6.18. Test: `tests/on_demand.rs`.
pub fn on_miss(
    request: Request,
    limits: &Limits,
    ra: &mut ReadaheadState,
    cache: &impl FileCache,
) -> Window {
    if limits.ra_pages == PageCount(0) {
        return single(Request { pages: PageCount(1), ..request });
    }
    if ra.is_random {
        let cause = match request.cause {
            Cause::SequentialFault => Cause::SequentialForced,
            _ => Cause::ReadForced,
        };
        return forced::window(Request { cause, ..request }, limits);
    }
    if limits.rules.misses_move_streams {
        return stream::on_miss(request, limits, ra, cache);
    }
    let Request { index, pages: req, .. } = request;
    let max = limits.max_window(req);
    if index == PageIndex(0) || req > max || ra.follows_read(index, limits) {
        ra.size = initial_size(req, max);
        ra.async_size = if ra.size > req { ra.size - req } else { PageCount(ra.size.0 / 2) };
    } else {
        let Some(size) = size_by_context(index, req, max, cache) else {
            return single(request);
        };
        ra.size = size;
        ra.async_size = PageCount(1);
    }
    ra.start = index;
    ra.order = Order(0);
    ra.window(&request, ra.order)
}

/// The window behind cached pages that a stream could have left: more of them than are asked for.
pub(super) fn size_by_context(
    index: PageIndex,
    req: PageCount,
    max: PageCount,
    cache: &impl FileCache,
) -> Option<PageCount> {
    let mut cached = search::cached_before(index - PageCount(1), max, cache);
    if cached <= req {
        return None;
    }
    if cached.0 == index.0 {
        cached = cached + cached;
    }
    Some((cached + req).min(max))
}

/// Just the pages of the request.
pub(super) fn single(request: Request) -> Window {
    let Request { cause, index, pages, last } = request;
    Window {
        cause: match cause {
            Cause::ReadStream => Cause::ReadSingle,
            Cause::SequentialFault => Cause::SequentialSingle,
            other => other,
        },
        index,
        start: index,
        size: pages,
        async_size: PageCount(0),
        order: Order(0),
        base_pages: true,
        last,
    }
}

/// The first window of a stream whose first request is for `req` pages: mirrors
/// `get_init_ra_size`, 6.12 and 6.18. Test: `tests/on_demand.rs`.
pub fn initial_size(req: PageCount, max: PageCount) -> PageCount {
    let rounded = req.0.next_power_of_two();
    PageCount(if rounded <= max.0 / 32 {
        rounded * 4
    } else if rounded <= max.0 / 4 {
        rounded * 2
    } else {
        max.0
    })
}

/// The window behind one of `size` pages: mirrors `get_next_ra_size`, 6.12 and 6.18.
/// Test: `tests/on_demand.rs`.
pub fn next_size(size: PageCount, max: PageCount) -> PageCount {
    PageCount(if size.0 < max.0 / 16 {
        size.0 * 4
    } else if size.0 <= max.0 / 2 {
        size.0 * 2
    } else {
        max.0
    })
}
