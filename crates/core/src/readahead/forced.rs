//! Forced readahead: exactly the requested pages, in base pages and without a mark.

use super::{Limits, Request, Window};
use crate::units::{Order, PageCount};

/// Bytes laid out per chunk.
pub const CHUNK_BYTES: u64 = 2 << 20;

/// The window for a request, limited to the larger of the device's optimal I/O size and the
/// readahead size. The readahead state is neither used nor changed.
///
/// Mirrors `force_page_cache_ra`, 6.12 and 6.18. Test: `tests/forced.rs`.
pub fn window(request: Request, limits: &Limits) -> Window {
    let Request { cause, index, pages, last } = request;
    Window {
        cause,
        index,
        start: index,
        size: pages.min(limits.io_pages.max(limits.ra_pages)),
        async_size: PageCount(0),
        order: Order(0),
        base_pages: true,
        last,
    }
}
