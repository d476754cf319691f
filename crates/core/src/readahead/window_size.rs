//! The sizes of the windows of streams.

use super::{Request, Window, search};
use crate::cache::FileCache;
use crate::decision::Cause;
use crate::rules::Rules;
use crate::units::{Order, PageCount, PageIndex};

/// The window size after cached pages that look like the history of a stream: more of them than are
/// requested.
pub(super) fn size_by_context(
    index: PageIndex,
    req: PageCount,
    max: PageCount,
    rules: &Rules,
    cache: &impl FileCache,
) -> Option<PageCount> {
    let mut cached = search::cached_before(index - PageCount(1), max, rules, cache);
    if cached <= req {
        return None;
    }
    if cached.0 == index.0 {
        cached = cached + cached;
    }
    Some((cached + req).min(max))
}

/// A window of exactly the requested pages.
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

/// The window after one of `size` pages: mirrors `get_next_ra_size`, 6.12 and 6.18.
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
