//! Windows of a kernel that shows no call of readahead: folios added one after the other.

use filemap_core::decision::{Cause, Decision};
use filemap_core::units::{Order, PageCount, PageIndex};

/// Folios that were added one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct FolioRun {
    /// The file.
    pub(super) file: usize,
    /// The place in the log of the decision that asked for them.
    pub(super) at: usize,
    /// The first page.
    pub(super) start: PageIndex,
    /// Order of the first folio.
    pub(super) order: Order,
    /// Pages so far.
    pub(super) pages: PageCount,
}

impl FolioRun {
    /// Whether a folio of `file` from page `start` on is the next of it.
    pub(super) fn is_continued_by(&self, file: usize, start: PageIndex) -> bool {
        self.file == file && self.start + self.pages == start
    }

    /// Whether it holds any of the pages `from` to `last`.
    pub(super) fn holds_any(&self, from: PageIndex, last: PageIndex) -> bool {
        from < self.start + self.pages && self.start <= last
    }

    /// The window that it is, asked for by an access to page `index`. Its mark is not shown.
    pub(super) fn window(&self, cause: Cause, index: PageIndex) -> Decision {
        let FolioRun { start, order, pages: size, .. } = *self;
        let async_size = PageCount(0);
        Decision::Readahead { cause, index, order, start, size, async_size, mmap_miss: 0 }
    }
}
