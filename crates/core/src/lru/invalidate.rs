//! Dropping cached pages: POSIX_FADV_DONTNEED.

use crate::cache::Folio;
use crate::units::PageIndex;

/// The pages covered by dropping `len` bytes from byte `offset`, end exclusive; `None` means to the
/// end of the file. Partly covered pages stay, except the last page of the file.
///
/// Mirrors `generic_fadvise`, 6.12 and 6.18. Test: `tests/invalidate.rs`.
pub fn range(
    offset: u64,
    len: Option<u64>,
    file_bytes: u64,
    page_size: u64,
) -> (PageIndex, PageIndex) {
    let from = PageIndex(offset.div_ceil(page_size));
    let Some(end) = len.and_then(|len| offset.checked_add(len)) else {
        return (from, PageIndex(file_bytes.div_ceil(page_size)).max(from));
    };
    let whole = end.is_multiple_of(page_size) || end == file_bytes;
    let end = if whole { end.div_ceil(page_size) } else { end / page_size };
    (from, PageIndex(end).max(from))
}

/// Whether `folio` is dropped with the pages `from..end`: it lies entirely in the range, is
/// unlocked, and is not mapped.
///
/// Mirrors `find_lock_entries` and `mapping_evict_folio`, 6.12 and 6.18.
/// Test: `tests/invalidate.rs`.
pub fn is_dropped(folio: Folio, from: PageIndex, end: PageIndex, is_mapped: bool) -> bool {
    from <= folio.head && folio.end() <= end && !folio.locked && !is_mapped
}
