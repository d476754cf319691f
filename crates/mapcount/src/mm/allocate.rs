//! Allocates and frees folios: the buddy allocator, and the lists of a CPU in front of it.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use super::cpu::{Cpu, FOLIO_BATCH, PCP_BATCH, PCP_HIGH, PerCpuPages};
use super::frame::{CHARGED, Frame, FrameList, LRU, Pfn};
use super::memory::{Memory, lock};
use crate::error::{Error, Misuse};
use crate::folio::Order;
use crate::mapcount::Mapcount;

impl<C: Mapcount> Memory<C> {
    /// Allocates a folio for `mm` with `references` for the mappings that follow.
    ///
    /// Mirrors `vma_alloc_folio` and `folio_add_lru_vma`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn allocate(
        &self,
        cpu: &mut Cpu,
        order: Order,
        references: u32,
        mm: u32,
    ) -> Result<Pfn, Error> {
        let head = match self.take_block(cpu, order) {
            Some(head) => head,
            None => self.reclaim(cpu, order)?,
        };
        for frame in self.range(head, order.pages()) {
            frame.join_folio(head, order);
        }
        let frame = self.frame(head);
        self.cgroup.charge(&mut cpu.stock, frame, order.pages() as u32);
        frame.mapping.store(mm, Relaxed);
        // One more until the folio is on the LRU.
        frame.references.store(references + 1, Relaxed);
        cpu.lru_add.push(head);
        if cpu.lru_add.len() >= FOLIO_BATCH {
            self.drain_lru_add(cpu);
        }
        Ok(head)
    }

    /// Flushes the TLB, then drops the references of unmapped pages.
    ///
    /// Mirrors `tlb_flush_mmu` and `folios_put_refs`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn flush(&self, cpu: &mut Cpu) {
        let mut folios = cpu.gather.take();
        for batch in folios.chunks(FOLIO_BATCH) {
            self.put_folios(cpu, batch);
        }
        folios.clear();
        cpu.gather.folios = folios;
    }

    /// Moves the new folios of `cpu` to the LRU and drops their extra reference.
    ///
    /// Mirrors `lru_add`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn drain_lru_add(&self, cpu: &mut Cpu) {
        let new = std::mem::take(&mut cpu.lru_add);
        let mut lru = lock(&self.lru);
        for &head in &new {
            let frame = self.frame(head);
            frame.set(LRU);
            let pages = frame.order().pages() as i64;
            self.statistics.count_on_lru(&mut cpu.stats, pages);
            lru.push(&self.frames, head);
        }
        drop(lru);
        for batch in new.chunks(FOLIO_BATCH) {
            let mut references = [(0, 1); FOLIO_BATCH];
            for (reference, &head) in references.iter_mut().zip(batch) {
                reference.0 = head;
            }
            self.put_folios(cpu, &references[..batch.len()]);
        }
        cpu.lru_add = new;
        cpu.lru_add.clear();
    }

    /// Drops references of up to [`FOLIO_BATCH`] folios, and frees the folios without any.
    fn put_folios(&self, cpu: &mut Cpu, folios: &[(Pfn, u32)]) {
        let mut unreferenced = [(0, Order::SINGLE); FOLIO_BATCH];
        let mut count = 0;
        let mut lru = None;
        for &(head, references) in folios {
            let frame = self.frame(head);
            let old = frame.references.fetch_sub(references, AcqRel);
            if old < references {
                Misuse::NotReferenced { held: old, dropped: references }.panic();
            }
            if old != references {
                continue;
            }
            let order = frame.order();
            if frame.has(LRU) {
                let lru = lru.get_or_insert_with(|| lock(&self.lru));
                lru.remove(&self.frames, head);
                frame.clear_unshared(LRU);
                self.statistics.count_on_lru(&mut cpu.stats, -(order.pages() as i64));
            }
            unreferenced[count] = (head, order);
            count += 1;
        }
        drop(lru);
        if count > 0 {
            self.uncharge(&unreferenced[..count]);
            self.free(cpu, &unreferenced[..count]);
        }
    }

    /// Mirrors `__mem_cgroup_uncharge_folios`, 6.12. Test: `tests/address_spaces.rs`.
    fn uncharge(&self, folios: &[(Pfn, Order)]) {
        let mut pages = 0;
        for &(head, order) in folios {
            let frame = self.frame(head);
            if frame.has(CHARGED) {
                frame.clear_unshared(CHARGED);
                pages += order.pages() as u32;
            }
        }
        self.cgroup.uncharge(pages);
    }

    /// Frees folios to the lists of the CPU, from there to the buddy allocator if they are many.
    ///
    /// Mirrors `free_unref_folios`, 6.12. Test: `tests/address_spaces.rs`.
    fn free(&self, cpu: &mut Cpu, folios: &[(Pfn, Order)]) {
        for &(head, order) in folios {
            if self.mappings(head, order) > 0 {
                Misuse::FreedWhileMapped.panic();
            }
            for (pfn, frame) in (head..).zip(self.range(head, order.pages())) {
                frame.leave_folio(pfn);
            }
        }
        for &(head, order) in folios {
            let Some(list) = cpu.free.list(order) else {
                lock(&self.free).free(&self.frames, head, order);
                continue;
            };
            list.push(&self.frames, head);
            cpu.free.pages += order.pages();
            if cpu.free.pages >= PCP_HIGH {
                self.return_pages(cpu, PCP_BATCH);
            }
        }
    }

    /// Returns about `pages` free pages of the CPU to the buddy allocator, the oldest first.
    ///
    /// Mirrors `free_pcppages_bulk`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn return_pages(&self, cpu: &mut Cpu, pages: usize) {
        let target = cpu.free.pages.saturating_sub(pages);
        let mut free = lock(&self.free);
        for order in PerCpuPages::orders() {
            while cpu.free.pages > target {
                let list = cpu.free.list(order);
                let Some(head) = list.and_then(|list| list.pop_oldest(&self.frames)) else { break };
                cpu.free.pages -= order.pages();
                free.free(&self.frames, head, order);
            }
        }
    }

    /// A free block, from the lists of the CPU if it keeps this order.
    ///
    /// Mirrors `rmqueue_pcplist`, 6.12. Test: `tests/address_spaces.rs`.
    fn take_block(&self, cpu: &mut Cpu, order: Order) -> Option<Pfn> {
        let Some(list) = cpu.free.list(order) else {
            return lock(&self.free).allocate(&self.frames, order);
        };
        let mut refilled = 0;
        if list.len() == 0 {
            let mut free = lock(&self.free);
            for _ in 0..(PCP_BATCH / order.pages()).max(2) {
                let Some(head) = free.allocate(&self.frames, order) else { break };
                list.push_oldest(&self.frames, head);
                refilled += order.pages();
            }
        }
        let head = list.pop(&self.frames);
        cpu.free.pages += refilled;
        cpu.free.pages -= head.map_or(0, |_| order.pages());
        head
    }

    /// Tries again after emptying the lists of the CPU, whose pages may merge to larger blocks.
    fn reclaim(&self, cpu: &mut Cpu, order: Order) -> Result<Pfn, Error> {
        self.drain_lru_add(cpu);
        self.return_pages(cpu, usize::MAX);
        let head = self.take_block(cpu, order);
        head.ok_or_else(|| Error::NoMemory { needed: order.pages(), free: self.free_pages() })
    }
}

/// Free blocks by order. A block of 2^n frames starts at a multiple of 2^n, and its buddy is the
/// other half of the block of 2^(n+1) frames.
#[derive(Default)]
pub struct BuddyAllocator {
    blocks: [FrameList; ORDERS],
    /// Frames in all blocks.
    pub pages: usize,
}

const ORDERS: usize = Order::MAX.get() as usize + 1;

impl BuddyAllocator {
    /// An allocator with all frames free.
    pub fn new<C: Mapcount>(frames: &[Frame<C>]) -> BuddyAllocator {
        let mut allocator = BuddyAllocator { pages: frames.len(), ..BuddyAllocator::default() };
        let mut first = 0;
        while first < frames.len() {
            let fits = (frames.len() - first).ilog2().min(Order::MAX.get());
            let order = fits.min(first.trailing_zeros());
            allocator.add_oldest(frames, first as Pfn, order);
            first += 1 << order;
        }
        allocator
    }

    /// Allocates 2^`order` frames: the first part of the smallest block that is large enough.
    ///
    /// Mirrors `__rmqueue_smallest`, 6.12. Test: `tests/address_spaces.rs`.
    pub fn allocate<C: Mapcount>(&mut self, frames: &[Frame<C>], order: Order) -> Option<Pfn> {
        let order = order.get() as usize;
        let large = (order..ORDERS).find(|&large| self.blocks[large].len() > 0)?;
        let first = self.blocks[large].pop(frames)?;
        frames[first as usize].set_free(None);
        for half in (order..large).rev() {
            self.add(frames, first + (1 << half), half as u32);
        }
        self.pages -= 1 << order;
        Some(first)
    }

    /// Frees a block and merges it with its buddy as long as that is free too.
    ///
    /// Mirrors `__free_one_page`, 6.12. Test: `tests/address_spaces.rs`.
    pub fn free<C: Mapcount>(&mut self, frames: &[Frame<C>], mut first: Pfn, order: Order) {
        self.pages += order.pages();
        let mut order = order.get();
        while order < Order::MAX.get() {
            let buddy = first ^ (1 << order);
            let frame = frames.get(buddy as usize);
            if !frame.is_some_and(|frame| frame.is_free(order)) {
                break;
            }
            self.blocks[order as usize].remove(frames, buddy);
            frames[buddy as usize].set_free(None);
            first &= buddy;
            order += 1;
        }
        self.add(frames, first, order);
    }

    fn add<C: Mapcount>(&mut self, frames: &[Frame<C>], first: Pfn, order: u32) {
        frames[first as usize].set_free(Some(order));
        self.blocks[order as usize].push(frames, first);
    }

    fn add_oldest<C: Mapcount>(&mut self, frames: &[Frame<C>], first: Pfn, order: u32) {
        frames[first as usize].set_free(Some(order));
        self.blocks[order as usize].push_oldest(frames, first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MmId, PageMapcount};

    /// Dropping references without unmapping would let others write to a mapped page.
    #[test]
    #[should_panic(expected = "a page is freed that is mapped")]
    fn refuses_to_free_a_mapped_folio() {
        let memory = Memory::<PageMapcount>::new(64).expect("there is memory");
        let mut cpu = Cpu::default();
        let order = Order::new(2).expect("it exists");
        let head = memory.allocate(&mut cpu, order, 4, 1).expect("it fits");
        memory.map(&mut cpu, MmId::new(1).expect("an id"), head, 4);
        cpu.gather.push(head, 4);
        memory.drain(&mut cpu);
    }
}
