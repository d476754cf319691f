//! Memory that all address spaces share: frames and the contents of pages.

use std::ops::{Deref, Range};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::accounting::{Cgroup, StatItem, Statistics};
use super::allocate::BuddyAllocator;
use super::cpu::Cpu;
use super::frame::{Frame, FrameList, PAGE_BYTES, Pfn};
use crate::error::Error;
use crate::folio::Order;
use crate::mapcount::Mapcount;

/// Frames and their real memory.
pub struct Memory<C: Mapcount> {
    pub(super) frames: HugeAligned<Frame<C>>,
    pub(super) contents: Arc<Contents>,
    pub(super) free: Mutex<BuddyAllocator>,
    pub(super) lru: Mutex<FrameList>,
    pub(super) statistics: Statistics,
    pub(super) cgroup: Cgroup,
}

impl<C: Mapcount> Memory<C> {
    /// Memory of `pages` free pages.
    ///
    /// # Errors
    /// When there is not enough.
    pub fn new(pages: usize) -> Result<Memory<C>, Error> {
        if Pfn::try_from(pages).is_err() {
            return Err(Error::Memory { pages });
        }
        let contents = Arc::new(Contents::new(pages, &mut |_| ())?);
        Memory::with_contents(&contents, &mut |_| ())
    }

    /// Free memory with these contents. Users of shared contents hold a [`ContentsGuard`]
    /// meanwhile. `advise` gets the addresses of the frames before their first use.
    ///
    /// # Errors
    /// When there is no memory for the frames.
    pub(crate) fn with_contents(
        contents: &Arc<Contents>,
        advise: &mut dyn FnMut(Range<usize>),
    ) -> Result<Memory<C>, Error> {
        let pages = contents.pages();
        let frames = Pfn::try_from(pages).ok().and_then(|_| HugeAligned::new(pages, advise));
        let frames = frames.ok_or(Error::Memory { pages })?;
        let free = Mutex::new(BuddyAllocator::new(&frames));
        Ok(Memory {
            frames,
            contents: contents.clone(),
            free,
            lru: Mutex::default(),
            statistics: Statistics::default(),
            cgroup: Cgroup::default(),
        })
    }

    /// Pages in the buddy allocator.
    pub fn free_pages(&self) -> usize {
        lock(&self.free).pages
    }

    /// Folios on the LRU.
    pub fn lru_folios(&self) -> usize {
        lock(&self.lru).len()
    }

    /// A statistic in pages, exact after each CPU was drained.
    pub fn statistic(&self, item: StatItem) -> i64 {
        self.statistics.total(item)
    }

    /// Pages charged to the memory cgroup.
    pub fn charged_pages(&self) -> u64 {
        self.cgroup.pages()
    }

    /// Empties the lists of `cpu`, so that [`Memory::free_pages`] and statistics are exact.
    pub fn drain(&self, cpu: &mut Cpu) {
        self.flush(cpu);
        self.drain_lru_add(cpu);
        self.return_pages(cpu, usize::MAX);
        self.statistics.drain(&mut cpu.stats);
        self.cgroup.uncharge(std::mem::take(&mut cpu.stock));
    }

    #[inline]
    pub(super) fn frame(&self, pfn: Pfn) -> &Frame<C> {
        &self.frames[pfn as usize]
    }

    #[inline]
    pub(super) fn range(&self, first: Pfn, pages: usize) -> &[Frame<C>] {
        &self.frames[first as usize..first as usize + pages]
    }

    /// The counters of a large folio.
    #[inline]
    pub(super) fn counts(&self, head: Pfn) -> &C {
        &self.frames[head as usize + 1].counts
    }

    /// The first word of a page.
    pub(super) fn word(&self, pfn: Pfn) -> &AtomicU64 {
        self.contents.word(pfn)
    }

    /// The number of mappings of a folio.
    #[inline]
    pub(super) fn mappings(&self, head: Pfn, order: Order) -> u32 {
        match order {
            Order::SINGLE => self.frame(head).single.load(Relaxed),
            _ => self.counts(head).mappings(),
        }
    }
}

/// Locks a mutex, even after a thread panicked: it leaves lists as they are between two steps.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// The bytes of pages. Several [`Memory`]s may share them, if they are used one at a time.
pub struct Contents {
    words: HugeAligned<AtomicU64>,
    is_used: AtomicBool,
}

/// Exclusive use of [`Contents`].
pub(crate) struct ContentsGuard(Arc<Contents>);

impl ContentsGuard {
    /// Acquires `contents` until the guard drops.
    ///
    /// # Panics
    /// When they are in use: both users would write to the same pages.
    pub(crate) fn acquire(contents: &Arc<Contents>) -> ContentsGuard {
        let was_used = contents.is_used.swap(true, Acquire);
        assert!(!was_used, "the contents of these pages are in use by another memory");
        ContentsGuard(contents.clone())
    }
}

impl Drop for ContentsGuard {
    fn drop(&mut self) {
        self.0.is_used.store(false, Release);
    }
}

impl Contents {
    /// Zeroed pages. `advise` gets the addresses before their first use.
    ///
    /// # Errors
    /// When there is not enough memory.
    pub fn new(pages: usize, advise: &mut dyn FnMut(Range<usize>)) -> Result<Contents, Error> {
        let words = pages.checked_mul(PAGE_WORDS).ok_or(Error::Memory { pages })?;
        let words = HugeAligned::new(words, advise).ok_or(Error::Memory { pages })?;
        Ok(Contents { words, is_used: AtomicBool::new(false) })
    }

    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.words.len() / PAGE_WORDS
    }

    /// Zeroes pages.
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

/// An array that starts at a huge page boundary if it is at least that large. Otherwise the part
/// that huge pages can hold would depend on the allocator.
pub(super) struct HugeAligned<T> {
    /// Not a boxed slice, which might be moved when it is shrunk.
    values: Vec<T>,
    /// Unused values before the boundary.
    skipped: usize,
}

const HUGE_PAGE_BYTES: usize = 2 << 20;

impl<T: Default> HugeAligned<T> {
    /// `len` default values; `None` without enough memory. `advise` gets their addresses before
    /// their first use.
    fn new(len: usize, advise: &mut dyn FnMut(Range<usize>)) -> Option<HugeAligned<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let room = if bytes < HUGE_PAGE_BYTES { 0 } else { HUGE_PAGE_BYTES / size_of::<T>() };
        let mut values = Vec::new();
        values.try_reserve_exact(len.checked_add(room)?).ok()?;
        let start = values.as_ptr() as usize;
        let skipped = match room {
            0 => 0,
            _ => (start.next_multiple_of(HUGE_PAGE_BYTES) - start) / size_of::<T>(),
        };
        let first = start + skipped * size_of::<T>();
        advise(first..first + bytes);
        values.resize_with(skipped + len, T::default);
        Some(HugeAligned { values, skipped })
    }
}

impl<T> Deref for HugeAligned<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.values[self.skipped..]
    }
}
