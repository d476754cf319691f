//! What is in the pages.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::frame::{PAGE_BYTES, Pfn};
use super::values::Values;
use crate::error::Error;

const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// The bytes of so many pages. More than one [`Memory`](super::Memory) may have the same ones, if
/// they are used one after the other.
pub struct Contents(Values<AtomicU64>);

impl Contents {
    /// Pages that are 0. `advise` is told the addresses before they are first used.
    ///
    /// # Errors
    /// When there is not as much memory.
    pub fn new(pages: usize, advise: &mut dyn FnMut(Range<usize>)) -> Result<Contents, Error> {
        let words = pages.checked_mul(PAGE_WORDS).ok_or(Error::Memory { pages })?;
        Ok(Contents(Values::new(words, advise).ok_or(Error::Memory { pages })?))
    }

    /// How many pages there are.
    pub fn pages(&self) -> usize {
        self.0.len() / PAGE_WORDS
    }

    /// Sets pages to 0, before somebody sees what the last owner wrote.
    pub(super) fn clear(&self, first: Pfn, pages: u32) {
        for word in &self.0[first as usize * PAGE_WORDS..][..pages as usize * PAGE_WORDS] {
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
        &self.0[pfn as usize * PAGE_WORDS..][..PAGE_WORDS]
    }
}
