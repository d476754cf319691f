//! Folios that tasks refer to while they do not run, which keeps these from reclaim.

use std::ops::Range;

use filemap_core::cache::FileCache;
use filemap_core::decision::Log;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageCount, PageIndex};

use super::World;
use crate::open::OpenFile;

/// A task refers to a folio. It is locked for that, so that reclaim passes it: whoever else uses it
/// lets it go first.
#[derive(Clone, Debug)]
pub struct Pin {
    task: usize,
    why: Why,
    file: FileId,
    pages: Range<PageIndex>,
}

/// Why a task refers to a folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It waited for it, or has read it, and has not run since.
    Waited,
    /// It hit its mark, and reads the window after it.
    Marked,
}

impl<C: PageCache, L: Log> World<'_, C, L> {
    /// From now on `task` refers to the folio that holds page `index` of `file`, where that is up
    /// to date.
    pub(super) fn pin(&mut self, task: usize, why: Why, file: FileId, index: PageIndex) {
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
        self.pins.push(Pin { task, why, file, pages });
    }

    /// The task at work refers to the folio of `open` that holds page `index`, which it has read,
    /// and does not go on with it at once: reclaim passes it once it has arrived.
    pub fn refer(&mut self, open: &OpenFile, index: PageIndex) {
        if !self.memory.is_limited() {
            return;
        }
        match self.devices[open.device].arrival_ns(open.file, index) {
            Some(_) => self.waiting.refer(self.task, open.file, index),
            None => self.pin(self.task, Why::Waited, open.file, index),
        }
    }

    /// The task at work does not refer to a folio for this reason any more.
    #[inline(never)]
    pub(super) fn unpin(&mut self, why: Why) {
        let is_own = |pin: &Pin| pin.task == self.task && pin.why == why;
        let Some(own) = self.pins.iter().position(is_own) else { return };
        let Pin { file, pages, .. } = self.pins.swap_remove(own);
        if !self.pins.iter().any(|pin| pin.file == file && pin.pages == pages) {
            self.memory.cache.unlock(file, pages.start, pages.end - pages.start);
        }
    }

    /// The task at work uses the folio that holds page `index` of `file`, which nobody keeps from
    /// reclaim any longer: it would take it for one that is being read.
    #[inline(always)]
    pub fn let_go(&mut self, file: FileId, index: PageIndex) {
        if !self.pins.is_empty() {
            self.let_go_of_some(file, index);
        }
    }

    #[inline(never)]
    fn let_go_of_some(&mut self, file: FileId, index: PageIndex) {
        let holds = |pin: &Pin| pin.file == file && pin.pages.contains(&index);
        let Some(Pin { pages, .. }) = self.pins.iter().find(|pin| holds(pin)).cloned() else {
            return;
        };
        self.pins.retain(|pin| !holds(pin));
        self.memory.cache.unlock(file, pages.start, pages.end - pages.start);
    }

    /// Whether a task refers to a page of `pages` of `file`.
    pub(super) fn has_pinned(&self, file: FileId, pages: Range<PageIndex>) -> bool {
        let overlaps = |pin: &Pin| {
            pin.file == file && pin.pages.start < pages.end && pages.start < pin.pages.end
        };
        self.pins.iter().any(overlaps)
    }
}
