//! Memory that all address spaces share: frames, what is in them, and which are free.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::buddy::Buddies;
use super::cgroup::Cgroup;
use super::contents::Contents;
use super::cpu::Cpu;
use super::frame::{Frame, Pfn};
use super::ring::Ring;
use super::statistics::{Item, Statistics};
use super::values::Values;
use crate::error::Error;
use crate::mapcount::Mapcount;
use crate::order::Order;

/// Frames with real memory.
pub struct Memory<C: Mapcount> {
    pub(super) frames: Values<Frame<C>>,
    pub(super) contents: Arc<Contents>,
    pub(super) free: Mutex<Buddies>,
    pub(super) lru: Mutex<Ring>,
    pub(super) statistics: Statistics,
    pub(super) cgroup: Cgroup,
}

impl<C: Mapcount> Memory<C> {
    /// Memory of `pages` pages, all of them free and 0.
    ///
    /// # Errors
    /// When there is not as much.
    pub fn new(pages: usize) -> Result<Memory<C>, Error> {
        if Pfn::try_from(pages).is_err() {
            return Err(Error::Memory { pages });
        }
        let contents = Arc::new(Contents::new(pages, &mut |_| ())?);
        Memory::with(&contents, &mut |_| ())
    }

    /// Memory with these contents, all of it free. Who uses it after another one with the same
    /// contents has them [`InUse`](super::InUse) meanwhile. `advise` is told the addresses of the
    /// frames before they are first used.
    ///
    /// # Errors
    /// When there is no memory for the frames.
    pub(crate) fn with(
        contents: &Arc<Contents>,
        advise: &mut dyn FnMut(Range<usize>),
    ) -> Result<Memory<C>, Error> {
        let pages = contents.pages();
        let frames = Pfn::try_from(pages).ok().and_then(|_| Values::new(pages, advise));
        let frames = frames.ok_or(Error::Memory { pages })?;
        let free = Mutex::new(Buddies::all(&frames));
        Ok(Memory {
            frames,
            contents: contents.clone(),
            free,
            lru: Mutex::default(),
            statistics: Statistics::default(),
            cgroup: Cgroup::default(),
        })
    }

    /// Pages that no folio has.
    pub fn free_pages(&self) -> usize {
        locked(&self.free).pages
    }

    /// Folios that are on the LRU.
    pub fn lru_folios(&self) -> usize {
        locked(&self.lru).len()
    }

    /// What was counted of an item, in pages. It is exact when each CPU was drained.
    pub fn statistic(&self, item: Item) -> i64 {
        self.statistics.total(item)
    }

    /// Pages that are charged to the memory cgroup.
    pub fn charged_pages(&self) -> u64 {
        self.cgroup.pages()
    }

    /// Gives back what `cpu` kept for later use, so that [`Memory::free_pages`] is exact.
    pub fn drain(&self, cpu: &mut Cpu) {
        self.flush(cpu);
        self.add_new(cpu);
        self.give_back(cpu, usize::MAX);
        self.statistics.drain(&mut cpu.differences);
        self.cgroup.uncharge(std::mem::take(&mut cpu.charged));
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

    /// How many mappings a folio has, as far as its counters know.
    #[inline]
    pub(super) fn mappings(&self, head: Pfn, order: Order) -> u32 {
        match order {
            Order::SINGLE => self.frame(head).single.load(Relaxed),
            _ => self.counts(head).mappings(),
        }
    }
}

/// A thread that panicked has left lists as they were between two steps.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
