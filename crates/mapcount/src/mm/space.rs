//! Address spaces: populate, fork(2) and munmap(2).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::accounting::StatItem;
use super::cpu::Cpu;
use super::memory::Memory;
use super::page_table::{PTES_PER_TABLE, Pte, PteValue, clear_batch, pte_batch};
use crate::error::Error;
use crate::folio::Order;
use crate::mapcount::Mapcount;
use crate::mm_id::{MmId, MmIds};

/// An mm: an id and page tables. Addresses are page numbers from 0 on.
///
/// One thread at a time uses it, as under its `mmap_lock`; memory and ids are shared. Dropping it
/// unmaps everything and releases the id.
pub struct AddressSpace<C: Mapcount> {
    pub(super) memory: Arc<Memory<C>>,
    pub(super) ids: Arc<MmIds>,
    pub(super) id: MmId,
    pub(super) tables: Vec<Box<[Pte]>>,
    pub(super) resident: usize,
}

impl<C: Mapcount> AddressSpace<C> {
    /// An address space of `pages` unmapped pages.
    ///
    /// # Errors
    /// When there is no id left.
    pub fn new(
        memory: &Arc<Memory<C>>,
        ids: &Arc<MmIds>,
        pages: usize,
    ) -> Result<AddressSpace<C>, Error> {
        let id = ids.allocate()?;
        let (memory, ids, tables) = (memory.clone(), ids.clone(), Vec::new());
        let mut space = AddressSpace { memory, ids, id, tables, resident: 0 };
        let mut cpu = Cpu::default();
        (0..pages.div_ceil(PTES_PER_TABLE)).for_each(|_| space.add_table(&mut cpu));
        space.memory.drain(&mut cpu);
        Ok(space)
    }

    /// Maps new, zeroed folios of `order` at `pages`, writable. They are smaller at the ends of the
    /// range and next to mapped pages, which are kept.
    ///
    /// # Errors
    /// When there is not enough memory. The pages before are mapped.
    ///
    /// # Panics
    /// When the address space has fewer pages.
    pub fn populate(
        &mut self,
        cpu: &mut Cpu,
        pages: Range<usize>,
        order: Order,
    ) -> Result<(), Error> {
        let mut page = pages.start;
        while page < pages.end {
            let entries = &self.tables[page / PTES_PER_TABLE][page % PTES_PER_TABLE..];
            let room = entries.iter().take(pages.end - page);
            let room = room.take_while(|entry| entry.load().is_none()).count();
            if room == 0 {
                page += 1;
                continue;
            }
            // The largest order that is aligned and fits.
            let fits = room.ilog2().min(page.trailing_zeros()).min(order.get());
            let order = Order::new(fits).expect("this is no larger than the order asked for");
            let new = order.pages() as u32;
            let first = self.memory.allocate(cpu, order, new, self.id.get())?;
            self.memory.contents.clear(first, new);
            self.memory.map(cpu, self.id, first, new);
            for (entry, pfn) in entries.iter().zip(first..first + new) {
                entry.set(PteValue { pfn, writable: true });
            }
            self.resident += order.pages();
            page += order.pages();
        }
        Ok(())
    }

    /// Pages of the address space, rounded up to whole tables.
    pub fn pages(&self) -> usize {
        self.tables.len() * PTES_PER_TABLE
    }

    /// Mapped pages.
    pub fn resident(&self) -> usize {
        self.resident
    }

    /// Forks a child with the same mappings. Both may only read them.
    ///
    /// Mirrors `copy_present_ptes`, 6.12. Test: `tests/address_spaces.rs`.
    ///
    /// # Errors
    /// When there is no id left.
    pub fn fork(&mut self, cpu: &mut Cpu) -> Result<AddressSpace<C>, Error> {
        let mut child = AddressSpace::new(&self.memory, &self.ids, 0)?;
        for index in 0..self.tables.len() {
            child.add_table(cpu);
            self.fork_table(cpu, &mut child, index);
        }
        child.resident = self.resident;
        Ok(child)
    }

    fn fork_table(&self, cpu: &mut Cpu, child: &mut AddressSpace<C>, index: usize) {
        let (parent_ptes, child_ptes) = (&self.tables[index], &child.tables[index]);
        let mut at = 0;
        while at < parent_ptes.len() {
            let Some(first) = parent_ptes[at].load() else {
                at += 1;
                continue;
            };
            let frame = self.memory.frame(first.pfn);
            let batch = pte_batch(&parent_ptes[at..], frame, first);
            let (pages, head) = (batch.pages, frame.head());
            self.memory.frame(head).references.fetch_add(pages, Relaxed);
            self.memory.share(cpu, child.id, head, first.pfn, pages);
            let entries = at..at + pages as usize;
            if batch.writable {
                parent_ptes[entries.clone()].iter().for_each(Pte::write_protect);
            }
            for (entry, pfn) in child_ptes[entries].iter().zip(first.pfn..) {
                entry.set(PteValue { pfn, writable: false });
            }
            at += pages as usize;
        }
    }

    /// Unmaps `pages`, in batches of pages of one folio.
    ///
    /// Mirrors `zap_present_folio_ptes`, 6.12. Test: `tests/address_spaces.rs`.
    ///
    /// # Panics
    /// When the address space has fewer pages.
    pub fn munmap(&mut self, cpu: &mut Cpu, pages: Range<usize>) {
        let mut page = pages.start;
        while page < pages.end {
            let table = &self.tables[page / PTES_PER_TABLE];
            let last = (pages.end - page + page % PTES_PER_TABLE).min(PTES_PER_TABLE);
            let mut at = page % PTES_PER_TABLE;
            page += last - at;
            while at < last {
                let entries = &table[at..last];
                let Some(first) = entries[0].load() else {
                    at += 1;
                    continue;
                };
                let count = pte_batch(entries, self.memory.frame(first.pfn), first).pages;
                clear_batch(&entries[..count as usize]);
                let is_flush_due = self.memory.unmap(cpu, self.id, first.pfn, count);
                self.resident -= count as usize;
                at += count as usize;
                if is_flush_due {
                    self.memory.flush(cpu);
                }
            }
        }
        self.memory.flush(cpu);
    }

    /// Adds an empty table.
    ///
    /// Mirrors `__pte_alloc`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn add_table(&mut self, cpu: &mut Cpu) {
        self.tables.push((0..PTES_PER_TABLE).map(|_| Pte::default()).collect());
        self.memory.statistics.count(&mut cpu.stats, StatItem::PageTables, 1);
    }

    pub(super) fn entry(&self, page: usize) -> Option<&Pte> {
        self.tables.get(page / PTES_PER_TABLE).map(|table| &table[page % PTES_PER_TABLE])
    }
}

impl<C: Mapcount> Drop for AddressSpace<C> {
    fn drop(&mut self) {
        let mut cpu = Cpu::default();
        self.munmap(&mut cpu, 0..self.pages());
        let tables = self.tables.len() as i64;
        self.memory.statistics.count(&mut cpu.stats, StatItem::PageTables, -tables);
        self.memory.drain(&mut cpu);
        self.ids.release(self.id);
    }
}
