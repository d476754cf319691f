//! New folios, and those that nobody holds any more.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use super::cpu::{Cpu, FOLIO_BATCH, Free, MOST_FREE, PAGES_AT_A_TIME};
use super::frame::{CHARGED, LRU, Pfn};
use super::memory::{Memory, locked};
use crate::broken::Broken;
use crate::error::Error;
use crate::mapcount::Mapcount;
use crate::order::Order;

impl<C: Mapcount> Memory<C> {
    /// A new folio of `mm`, that `references` mappings will hold.
    ///
    /// Mirrors `vma_alloc_folio` and `folio_add_lru_vma`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn allocate(
        &self,
        cpu: &mut Cpu,
        order: Order,
        references: u32,
        mm: u32,
    ) -> Result<Pfn, Error> {
        let head = match self.take(cpu, order) {
            Some(head) => head,
            None => self.reclaim(cpu, order)?,
        };
        for frame in self.range(head, order.pages()) {
            frame.join(head, order);
        }
        let frame = self.frame(head);
        self.cgroup.charge(&mut cpu.charged, frame, order.pages() as u32);
        frame.mapping.store(mm, Relaxed);
        // The list of new folios holds it too, until it is on the LRU.
        frame.references.store(references + 1, Relaxed);
        cpu.new.push(head);
        if cpu.new.len() >= FOLIO_BATCH {
            self.add_new(cpu);
        }
        Ok(head)
    }

    /// What is unmapped is no longer in any TLB: its references go, and folios without any.
    ///
    /// Mirrors `tlb_flush_mmu` and `folios_put_refs`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn flush(&self, cpu: &mut Cpu) {
        let mut folios = cpu.gathered.take();
        for batch in folios.chunks(FOLIO_BATCH) {
            self.put(cpu, batch);
        }
        folios.clear();
        cpu.gathered.folios = folios;
    }

    /// New folios of `cpu` go to the LRU, and are free if nobody else holds them any more.
    ///
    /// Mirrors `lru_add`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn add_new(&self, cpu: &mut Cpu) {
        let new = std::mem::take(&mut cpu.new);
        let mut lru = locked(&self.lru);
        for &head in &new {
            let frame = self.frame(head);
            frame.set(LRU);
            let pages = frame.order().pages() as i64;
            self.statistics.count_on_lru(&mut cpu.differences, pages);
            lru.push(&self.frames, head);
        }
        drop(lru);
        for batch in new.chunks(FOLIO_BATCH) {
            let mut held = [(0, 1); FOLIO_BATCH];
            for (held, &head) in held.iter_mut().zip(batch) {
                held.0 = head;
            }
            self.put(cpu, &held[..batch.len()]);
        }
        cpu.new = new;
        cpu.new.clear();
    }

    /// Takes references of up to [`FOLIO_BATCH`] folios away, and frees those without any.
    fn put(&self, cpu: &mut Cpu, folios: &[(Pfn, u32)]) {
        let mut gone = [(0, Order::SINGLE); FOLIO_BATCH];
        let mut many = 0;
        let mut lru = None;
        for &(head, references) in folios {
            let frame = self.frame(head);
            let old = frame.references.fetch_sub(references, AcqRel);
            if old < references {
                Broken::NotReferenced { held: old, dropped: references }.panic();
            }
            if old != references {
                continue;
            }
            let order = frame.order();
            if frame.has(LRU) {
                let lru = lru.get_or_insert_with(|| locked(&self.lru));
                lru.remove(&self.frames, head);
                frame.clear_alone(LRU);
                self.statistics.count_on_lru(&mut cpu.differences, -(order.pages() as i64));
            }
            gone[many] = (head, order);
            many += 1;
        }
        drop(lru);
        if many > 0 {
            self.uncharge(&gone[..many]);
            self.free(cpu, &gone[..many]);
        }
    }

    /// Mirrors `__mem_cgroup_uncharge_folios`, 6.12. Test: `tests/address_spaces.rs`.
    fn uncharge(&self, folios: &[(Pfn, Order)]) {
        let mut pages = 0;
        for &(head, order) in folios {
            let frame = self.frame(head);
            if frame.has(CHARGED) {
                frame.clear_alone(CHARGED);
                pages += order.pages() as u32;
            }
        }
        self.cgroup.uncharge(pages);
    }

    /// Makes folios free that nobody holds: first of the CPU, and of all if they are many.
    ///
    /// Mirrors `free_unref_folios`, 6.12. Test: `tests/address_spaces.rs`.
    fn free(&self, cpu: &mut Cpu, folios: &[(Pfn, Order)]) {
        for &(head, order) in folios {
            if self.mappings(head, order) > 0 {
                Broken::FreedWhileMapped.panic();
            }
            for (pfn, frame) in (head..).zip(self.range(head, order.pages())) {
                frame.leave(pfn);
            }
        }
        for &(head, order) in folios {
            let Some(kept) = cpu.free.of(order) else {
                locked(&self.free).give(&self.frames, head, order);
                continue;
            };
            kept.push(&self.frames, head);
            cpu.free.pages += order.pages();
            if cpu.free.pages >= MOST_FREE {
                self.give_back(cpu, PAGES_AT_A_TIME);
            }
        }
    }

    /// Gives so many of the CPU's free pages back, those first that were free for the longest time.
    ///
    /// Mirrors `free_pcppages_bulk`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn give_back(&self, cpu: &mut Cpu, pages: usize) {
        let keep = cpu.free.pages.saturating_sub(pages);
        let mut free = locked(&self.free);
        for order in Free::orders() {
            while cpu.free.pages > keep {
                let kept = cpu.free.of(order);
                let Some(head) = kept.and_then(|kept| kept.pop_oldest(&self.frames)) else { break };
                cpu.free.pages -= order.pages();
                free.give(&self.frames, head, order);
            }
        }
    }

    /// A block of free frames, of those of the CPU first.
    ///
    /// Mirrors `rmqueue_pcplist`, 6.12. Test: `tests/address_spaces.rs`.
    fn take(&self, cpu: &mut Cpu, order: Order) -> Option<Pfn> {
        let Some(kept) = cpu.free.of(order) else {
            return locked(&self.free).take(&self.frames, order);
        };
        let mut more = 0;
        if kept.len() == 0 {
            let mut free = locked(&self.free);
            for _ in 0..(PAGES_AT_A_TIME / order.pages()).max(2) {
                let Some(head) = free.take(&self.frames, order) else { break };
                kept.push_oldest(&self.frames, head);
                more += order.pages();
            }
        }
        let head = kept.pop(&self.frames);
        cpu.free.pages += more;
        cpu.free.pages -= head.map_or(0, |_| order.pages());
        head
    }

    /// The same when nothing was left: what the CPU keeps is given back, and may become larger.
    fn reclaim(&self, cpu: &mut Cpu, order: Order) -> Result<Pfn, Error> {
        self.add_new(cpu);
        self.give_back(cpu, usize::MAX);
        let head = self.take(cpu, order);
        head.ok_or_else(|| Error::NoMemory { needed: order.pages(), free: self.free_pages() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MmId, PageMapcount};

    /// Whoever drops references without unmapping would have others write to a page in use.
    #[test]
    #[should_panic(expected = "a page that is freed is not mapped; this one was")]
    fn a_folio_that_is_mapped_is_not_freed() {
        let memory = Memory::<PageMapcount>::new(64).expect("there is memory");
        let mut cpu = Cpu::default();
        let order = Order::new(2).expect("it exists");
        let head = memory.allocate(&mut cpu, order, 4, 1).expect("it fits");
        memory.map(&mut cpu, MmId::new(1).expect("an id"), head, 4);
        cpu.gathered.push(head, 4);
        memory.drain(&mut cpu);
    }
}
