//! On-demand sync readahead: `read(2)`, and faults in mappings advised SEQUENTIAL.

use super::window_size::{initial_size, single, size_by_context};
use super::{Limits, ReadaheadState, Request, Window, forced, stream};
use crate::cache::FileCache;
use crate::decision::Cause;
use crate::units::{Order, PageCount, PageIndex};

/// The window for a miss, and the update of `ra`. A random single read reads exactly the requested
/// pages and leaves `ra` alone; with readahead disabled one page is read; an open file advised
/// RANDOM reads exactly the requested pages.
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
        let Some(size) = size_by_context(index, req, max, &limits.rules, cache) else {
            return single(request);
        };
        ra.size = size;
        ra.async_size = PageCount(1);
    }
    ra.start = index;
    ra.order = Order(0);
    ra.window(&request, ra.order)
}
