//! What is in the pages.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::frame::{PAGE_BYTES, Pfn};
use super::values::Values;
use crate::error::Error;

const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// The bytes of so many pages. More than one [`Memory`](super::Memory) may have the same ones, if
/// they are used one after the other.
pub struct Contents {
    words: Values<AtomicU64>,
    is_used: AtomicBool,
}

/// The contents of pages, as long as one memory uses them.
pub(crate) struct InUse(Arc<Contents>);

impl InUse {
    /// Begins to use `contents`, until it is dropped.
    ///
    /// # Panics
    /// When others use them now: both would write to the same pages.
    pub(crate) fn of(contents: &Arc<Contents>) -> InUse {
        let was_used = contents.is_used.swap(true, Acquire);
        assert!(!was_used, "the contents of these pages are in use by another memory");
        InUse(contents.clone())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.is_used.store(false, Release);
    }
}

impl Contents {
    /// Pages that are 0. `advise` is told the addresses before they are first used.
    ///
    /// # Errors
    /// When there is not as much memory.
    pub fn new(pages: usize, advise: &mut dyn FnMut(Range<usize>)) -> Result<Contents, Error> {
        let words = pages.checked_mul(PAGE_WORDS).ok_or(Error::Memory { pages })?;
        let words = Values::new(words, advise).ok_or(Error::Memory { pages })?;
        Ok(Contents { words, is_used: AtomicBool::new(false) })
    }

    /// How many pages there are.
    pub fn pages(&self) -> usize {
        self.words.len() / PAGE_WORDS
    }

    /// Sets pages to 0, before somebody sees what the last owner wrote.
    pub(super) fn clear(&self, first: Pfn, pages: u32) {
        for word in &self.words[first as usize * PAGE_WORDS..][..pages as usize * PAGE_WORDS] {
            word.store(0, Relaxed);
        }
    }

    /// Copies a page.
    pub(super) fn copy(&self, from: Pfn, to: Pfn) {
        for (from, to) in self.page(from).iter().zip(self.page(to)) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    /// The first word of a page.
    pub(super) fn word(&self, pfn: Pfn) -> &AtomicU64 {
        &self.page(pfn)[0]
    }

    fn page(&self, pfn: Pfn) -> &[AtomicU64] {
        &self.words[pfn as usize * PAGE_WORDS..][..PAGE_WORDS]
    }
}
