//! Memory that all address spaces share: frames, what is in them, and which are free.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cpu::{Cpu, FREE_FOLIOS, NEW_FOLIOS};
use super::frame::{Frame, PAGE_BYTES, Pfn};
use crate::error::Error;
use crate::mapcount::{Change, Mapcount};
use crate::mm_id::MmId;
use crate::order::Order;

const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// Frames with real memory.
pub struct Memory<C: Mapcount> {
    frames: Box<[Frame<C>]>,
    words: Box<[AtomicU64]>,
    free: Mutex<Free>,
    lru: Mutex<Lru>,
}

/// What is free: folios that were used before, and all frames behind `unused`.
struct Free {
    folios: Vec<Vec<Pfn>>,
    unused: usize,
    pages: usize,
}

/// The folios in the order in which they came, as a ring through their frames.
#[derive(Default)]
struct Lru {
    newest: Option<Pfn>,
    folios: usize,
}

impl<C: Mapcount> Memory<C> {
    /// Memory of `pages` pages, all of them free and 0.
    ///
    /// # Errors
    /// When there is not as much.
    pub fn new(pages: usize) -> Result<Memory<C>, Error> {
        let none = Error::Memory { pages };
        if Pfn::try_from(pages).is_err() {
            return Err(none);
        }
        let (mut frames, mut words) = (Vec::new(), Vec::new());
        frames.try_reserve_exact(pages).map_err(|_| none)?;
        words.try_reserve_exact(pages * PAGE_WORDS).map_err(|_| none)?;
        frames.resize_with(pages, Frame::default);
        words.resize_with(pages * PAGE_WORDS, AtomicU64::default);
        let folios = vec![Vec::new(); Order::MAX.get() as usize + 1];
        Ok(Memory {
            frames: frames.into_boxed_slice(),
            words: words.into_boxed_slice(),
            free: Mutex::new(Free { folios, unused: 0, pages }),
            lru: Mutex::default(),
        })
    }

    /// Pages that no folio has.
    pub fn free_pages(&self) -> usize {
        locked(&self.free).pages
    }

    /// Folios that are on the LRU.
    pub fn lru_folios(&self) -> usize {
        locked(&self.lru).folios
    }

    /// Gives back what `cpu` kept for later use, so that [`Memory::free_pages`] is exact.
    pub fn drain(&self, cpu: &mut Cpu) {
        self.flush(cpu);
        self.add_new(cpu);
        let mut free = locked(&self.free);
        free.pages += cpu.free.len();
        free.folios[0].append(&mut cpu.free);
    }

    #[inline]
    pub(super) fn frame(&self, pfn: Pfn) -> &Frame<C> {
        &self.frames[pfn as usize]
    }

    /// A new folio, that `references` mappings will hold.
    pub(super) fn allocate(
        &self,
        cpu: &mut Cpu,
        order: Order,
        references: u32,
    ) -> Result<Pfn, Error> {
        let head = if order == Order::SINGLE { self.single(cpu)? } else { self.take(order)? };
        for frame in self.range(head, order) {
            frame.join(head, order);
        }
        // The list of new folios holds it too, until it is on the LRU.
        self.frame(head).references.store(references + 1, Relaxed);
        cpu.new.push(head);
        if cpu.new.len() >= NEW_FOLIOS {
            self.add_new(cpu);
        }
        Ok(head)
    }

    /// Adds mappings of pages of one folio, from `first` on.
    #[inline]
    pub(super) fn map(&self, cpu: &mut Cpu, mm: MmId, first: Pfn, pages: u32) {
        let frame = self.frame(first);
        let order = frame.order();
        if order == Order::SINGLE {
            let old = frame.single.fetch_add(1, Relaxed);
            cpu.mapped_pages += i64::from(old == 0);
        } else {
            let batch = self.batch(first, pages);
            keep(cpu, self.frame(frame.head()).counts.map(order, mm, batch));
        }
    }

    /// Removes mappings of pages of one folio, from `first` on. References go with the next flush.
    #[inline]
    pub(super) fn unmap(&self, cpu: &mut Cpu, mm: MmId, first: Pfn, pages: u32) {
        let frame = self.frame(first);
        let (order, head) = (frame.order(), frame.head());
        if order == Order::SINGLE {
            let old = frame.single.fetch_sub(1, AcqRel);
            cpu.mapped_pages -= i64::from(old == 1);
        } else {
            let batch = self.batch(first, pages);
            keep(cpu, self.frame(head).counts.unmap(order, mm, batch));
        }
        cpu.gathered.push((head, pages));
    }

    /// What is unmapped is no longer in any TLB: its references go, and folios without any.
    pub(super) fn flush(&self, cpu: &mut Cpu) {
        let gone = |&(head, pages): &(Pfn, u32)| {
            let old = self.frame(head).references.fetch_sub(pages, AcqRel);
            debug_assert!(old >= pages, "each mapping holds a reference");
            old == pages
        };
        let mut gathered = std::mem::take(&mut cpu.gathered);
        gathered.retain(gone);
        if !gathered.is_empty() {
            let mut lru = locked(&self.lru);
            for &(head, _) in &gathered {
                self.leave(&mut lru, head);
            }
            drop(lru);
            self.release(&gathered);
        }
        gathered.clear();
        cpu.gathered = gathered;
    }

    /// Sets pages to 0, before somebody sees what the last owner wrote.
    pub(super) fn clear(&self, first: Pfn, pages: u32) {
        for word in &self.words[first as usize * PAGE_WORDS..][..pages as usize * PAGE_WORDS] {
            word.store(0, Relaxed);
        }
    }

    /// Copies a page.
    pub(super) fn copy(&self, from: Pfn, to: Pfn) {
        for (from, to) in self.words(from).iter().zip(self.words(to)) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    /// The first word of a page.
    pub(super) fn word(&self, pfn: Pfn) -> &AtomicU64 {
        &self.words(pfn)[0]
    }

    /// How often a page is mapped, as counters judge it.
    pub(super) fn page_mappings(&self, pfn: Pfn) -> u32 {
        let frame = self.frame(pfn);
        match frame.order() {
            Order::SINGLE => frame.single.load(Relaxed),
            order => self.frame(frame.head()).counts.page_mappings(order, &frame.page),
        }
    }

    fn words(&self, pfn: Pfn) -> &[AtomicU64] {
        &self.words[pfn as usize * PAGE_WORDS..][..PAGE_WORDS]
    }

    fn batch(&self, first: Pfn, pages: u32) -> impl ExactSizeIterator<Item = &C::Page> {
        let first = first as usize;
        self.frames[first..first + pages as usize].iter().map(|frame| &frame.page)
    }

    fn range(&self, head: Pfn, order: Order) -> &[Frame<C>] {
        let Range { start, end } = head as usize..head as usize + order.pages();
        &self.frames[start..end]
    }

    fn single(&self, cpu: &mut Cpu) -> Result<Pfn, Error> {
        if cpu.free.is_empty() {
            cpu.free.push(self.take(Order::SINGLE)?);
            let more = (1..FREE_FOLIOS).map_while(|_| self.take(Order::SINGLE).ok());
            cpu.free.extend(more);
        }
        Ok(cpu.free.pop().expect("there is one"))
    }

    fn take(&self, order: Order) -> Result<Pfn, Error> {
        let mut free = locked(&self.free);
        let head = match free.folios[order.get() as usize].pop() {
            Some(head) => Some(head),
            None => free.fresh(order, self.frames.len()).or_else(|| free.split(order)),
        };
        let none = Error::NoMemory { needed: order.pages(), free: free.pages };
        let head = head.ok_or(none)?;
        free.pages -= order.pages();
        Ok(head)
    }

    /// Frees folios that nobody holds: looks at their pages first, then takes the lock once.
    fn release(&self, folios: &[(Pfn, u32)]) {
        let orders = folios.iter().map(|&(head, _)| (head, self.frame(head).order()));
        for (head, order) in orders.clone() {
            // A kernel looks at each page too, before it may be used for something else.
            for (pfn, frame) in (head..).zip(self.range(head, order)) {
                frame.leave(pfn);
            }
        }
        let mut free = locked(&self.free);
        for (head, order) in orders {
            free.pages += order.pages();
            free.folios[order.get() as usize].push(head);
        }
    }

    /// New folios of `cpu` go to the LRU, and are free if nobody else holds them any more.
    pub(super) fn add_new(&self, cpu: &mut Cpu) {
        let mut gone = Vec::new();
        let mut lru = locked(&self.lru);
        for head in cpu.new.drain(..) {
            self.enter(&mut lru, head);
            if self.frame(head).references.fetch_sub(1, AcqRel) == 1 {
                self.leave(&mut lru, head);
                gone.push((head, 1));
            }
        }
        drop(lru);
        self.release(&gone);
    }

    fn enter(&self, lru: &mut Lru, head: Pfn) {
        let frame = self.frame(head);
        let newest = lru.newest.unwrap_or(head);
        let oldest = lru.newest.map_or(head, |newest| self.frame(newest).newer.load(Relaxed));
        frame.older.store(newest, Relaxed);
        frame.newer.store(oldest, Relaxed);
        self.frame(newest).newer.store(head, Relaxed);
        self.frame(oldest).older.store(head, Relaxed);
        frame.set_on_lru(true);
        lru.newest = Some(head);
        lru.folios += 1;
    }

    fn leave(&self, lru: &mut Lru, head: Pfn) {
        let frame = self.frame(head);
        let (older, newer) = (frame.older.load(Relaxed), frame.newer.load(Relaxed));
        self.frame(older).newer.store(newer, Relaxed);
        self.frame(newer).older.store(older, Relaxed);
        if lru.newest == Some(head) {
            lru.newest = (older != head).then_some(older);
        }
        frame.set_on_lru(false);
        lru.folios -= 1;
    }
}

impl Free {
    /// Frames that were never used.
    fn fresh(&mut self, order: Order, frames: usize) -> Option<Pfn> {
        let head = self.unused.next_multiple_of(order.pages());
        if head + order.pages() > frames {
            return None;
        }
        // What lies before the next aligned frame is free as single pages.
        self.folios[0].extend(self.unused as Pfn..head as Pfn);
        self.unused = head + order.pages();
        Some(head as Pfn)
    }

    /// A part of a larger folio, whose other parts are free then.
    fn split(&mut self, order: Order) -> Option<Pfn> {
        let larger_orders = order.get() as usize + 1..self.folios.len();
        let larger = larger_orders.into_iter().find(|&larger| !self.folios[larger].is_empty())?;
        let head = self.folios[larger].pop()?;
        let parts = (head..head + (1 << larger)).step_by(order.pages());
        self.folios[order.get() as usize].extend(parts.skip(1));
        Some(head)
    }
}

fn keep(cpu: &mut Cpu, change: Change) {
    cpu.mapped_pages += change.pages;
    cpu.left_in_part += u64::from(change.in_part);
}

/// A thread that panicked has left lists as they were between two steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
