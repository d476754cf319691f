//! What a window that was asked for brings in, and what only large folios add to it.

use filemap_core::decision::Cause;
use filemap_core::units::{PageCount, PageIndex};

use super::origin::Origin;

/// The window of a file that was asked for last.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastWindow {
    pub(super) cause: Cause,
    /// The page that was accessed.
    pub(super) index: PageIndex,
    pub(super) start: PageIndex,
    pub(super) end: PageIndex,
}

impl LastWindow {
    /// It, with a part that is laid out in base pages.
    pub(super) fn reach(&mut self, start: PageIndex, size: PageCount) {
        self.start = self.start.min(start);
        self.end = self.end.max(start + size);
    }
}

/// Why pages of `start..end` are in, which were added in folios of `folio_pages` pages after
/// `window` was asked for last, if any was: parts in order, each with its origin.
pub(super) fn origins(
    window: Option<LastWindow>,
    (start, end): (PageIndex, PageIndex),
    folio_pages: u64,
    read_ahead: PageCount,
) -> [(PageIndex, PageIndex, Origin); 3] {
    let is_of_it = |asked: &LastWindow| asked.start <= start && start < asked.end;
    let Some(window) = window.filter(is_of_it) else {
        return [(start, start), (start, end), (end, end)].map(|(a, b)| (a, b, Origin::Single));
    };
    let by = Origin::of(window.cause);
    // The pages that would have been asked for in base pages too; what lies outside is
    // rounding where `inside_is_rounding` is false, and the other way round.
    let LastWindow { index, .. } = window;
    let (from, to, inside_is_rounding) = match window.cause {
        Cause::HugePage => {
            let head = PageIndex(index.0 - index.0 % folio_pages);
            (head, head + PageCount(folio_pages), true)
        }
        Cause::Executable => (index, index + read_ahead, false),
        _ => (start, end, false),
    };
    let (from, to) = (from.clamp(start, end), to.clamp(start, end));
    let rounding = Origin::FolioRounding;
    let (inside, outside) = if inside_is_rounding { (rounding, by) } else { (by, rounding) };
    [(start, from, outside), (from, to, inside), (to, end, outside)]
}
