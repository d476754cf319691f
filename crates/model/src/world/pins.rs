//! Folios referenced by tasks that are not running, which keeps them from reclaim.

use std::ops::Range;

use filemap_core::cache::FileCache;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, PageIndex};

use super::World;
use crate::open::OpenFile;

/// A reference to a folio. Pinned folios are locked so that reclaim skips them; any other user
/// releases the pin first.
#[derive(Clone, Debug)]
pub struct Pin {
    task: usize,
    reason: PinReason,
    file: FileId,
    pages: Range<PageIndex>,
}

/// Why a task references a folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinReason {
    /// It waited for the folio or read it, and has not run since.
    Waited,
    /// It hit the folio's mark and reads the next window.
    Marked,
}

impl<C: PageCache> World<'_, C> {
    /// Pins the folio that holds page `index` of `file` for `task`, if it is up to date.
    pub(super) fn pin(&mut self, task: usize, why: PinReason, file: FileId, index: PageIndex) {
        let cached = self.memory.cache.file(file);
        let Some(folio) = cached.folio(index) else { return };
        drop(cached);
        let pages = folio.head..folio.end();
        if !self.pins.iter().any(|pin| pin.file == file && pin.pages == pages) {
            if folio.locked {
                return;
            }
            self.memory.cache.lock(file, folio.head, PageCount(folio.order.pages()));
        }
        self.pins.push(Pin { task, reason: why, file, pages });
    }

    /// The running task has read the folio of `open` that holds page `index` but does not use it
    /// right away: reclaim skips it once it has arrived.
    pub fn pin_after_read(&mut self, open: &OpenFile, index: PageIndex) {
        if !self.memory.is_limited() {
            return;
        }
        match self.arrival(open, index) {
            Some(_) => self.waiting.hold_folio(self.task, open.file, index),
            None => self.pin(self.task, PinReason::Waited, open.file, index),
        }
    }

    /// Releases a pin of the running task.
    #[inline(never)]
    pub(super) fn unpin(&mut self, why: PinReason) {
        let is_own = |pin: &Pin| pin.task == self.task && pin.reason == why;
        let Some(own) = self.pins.iter().position(is_own) else { return };
        let Pin { file, pages, .. } = self.pins.swap_remove(own);
        if !self.pins.iter().any(|pin| pin.file == file && pin.pages == pages) {
            self.memory.cache.unlock(file, pages.start, pages.end - pages.start);
        }
    }

    /// The running task uses the folio that holds page `index` of `file`. Its pins are released, or
    /// it would appear to be locked for I/O.
    #[inline(always)]
    pub fn release_pins(&mut self, file: FileId, index: PageIndex) {
        if !self.pins.is_empty() {
            self.release_matching_pins(file, index);
        }
    }

    #[inline(never)]
    fn release_matching_pins(&mut self, file: FileId, index: PageIndex) {
        let holds = |pin: &Pin| pin.file == file && pin.pages.contains(&index);
        let Some(Pin { pages, .. }) = self.pins.iter().find(|pin| holds(pin)).cloned() else {
            return;
        };
        self.pins.retain(|pin| !holds(pin));
        self.memory.cache.unlock(file, pages.start, pages.end - pages.start);
    }

    /// Whether any of `pages` of `file` is pinned.
    pub(super) fn has_pinned(&self, file: FileId, pages: Range<PageIndex>) -> bool {
        let overlaps = |pin: &Pin| {
            pin.file == file && pin.pages.start < pages.end && pages.start < pin.pages.end
        };
        self.pins.iter().any(overlaps)
    }
}
