//! Address spaces.

use std::ops::Range;
use std::sync::Arc;

use super::cpu::Cpu;
use super::memory::Memory;
use super::page_table::{ENTRIES, Entry, Mapped};
use super::statistics::Item;
use crate::error::Error;
use crate::mapcount::Mapcount;
use crate::mm_id::{MmId, MmIds};
use crate::order::Order;

/// An mm: an id, page tables, and how many pages they map. Addresses are pages from 0 on.
///
/// One thread at a time uses it, as under its `mmap_lock`. Memory and ids are shared. When it is
/// dropped, it unmaps everything and then gives its id back. No [`Cpu`] of the caller counts what
/// dropping unmaps: call [`AddressSpace::munmap`] before if statistics matter.
pub struct AddressSpace<C: Mapcount> {
    pub(super) memory: Arc<Memory<C>>,
    pub(super) ids: Arc<MmIds>,
    pub(super) id: MmId,
    pub(super) tables: Vec<Box<[Entry]>>,
    pub(super) resident: usize,
}

impl<C: Mapcount> AddressSpace<C> {
    /// An address space of so many `pages`, in which nothing is mapped.
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
        (0..pages.div_ceil(ENTRIES)).for_each(|_| space.add_table(&mut cpu));
        space.memory.drain(&mut cpu);
        Ok(space)
    }

    /// Maps new folios of `order` at `pages`, for writing; all bytes are 0. They are smaller where
    /// the range ends or something is mapped, which stays.
    ///
    /// # Errors
    /// When there is too little memory. What came before is mapped.
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
            let entries = &self.tables[page / ENTRIES][page % ENTRIES..];
            let room = entries.iter().take(pages.end - page);
            let room = room.take_while(|entry| entry.load().is_none()).count();
            if room == 0 {
                page += 1;
                continue;
            }
            // The largest order that is aligned here and fits.
            let fits = room.ilog2().min(page.trailing_zeros()).min(order.get());
            let order = Order::new(fits).expect("this is no larger than the order asked for");
            let new = order.pages() as u32;
            let first = self.memory.allocate(cpu, order, new, self.id.get())?;
            self.memory.contents.clear(first, new);
            self.memory.map(cpu, self.id, first, new);
            for (entry, pfn) in entries.iter().zip(first..first + new) {
                entry.set(Mapped { pfn, writable: true });
            }
            self.resident += order.pages();
            page += order.pages();
        }
        Ok(())
    }

    /// The id.
    pub fn id(&self) -> MmId {
        self.id
    }

    /// Pages of the address space, mapped or not.
    pub fn pages(&self) -> usize {
        self.tables.len() * ENTRIES
    }

    /// A table of entries that map nothing.
    ///
    /// Mirrors `__pte_alloc`, 6.12. Test: `tests/address_spaces.rs`.
    pub(super) fn add_table(&mut self, cpu: &mut Cpu) {
        self.tables.push((0..ENTRIES).map(|_| Entry::default()).collect());
        self.memory.statistics.count(&mut cpu.differences, Item::PageTables, 1);
    }

    pub(super) fn entry(&self, page: usize) -> Option<&Entry> {
        self.tables.get(page / ENTRIES).map(|table| &table[page % ENTRIES])
    }
}

impl<C: Mapcount> Drop for AddressSpace<C> {
    fn drop(&mut self) {
        let mut cpu = Cpu::default();
        self.munmap(&mut cpu, 0..self.pages());
        let tables = self.tables.len() as i64;
        self.memory.statistics.count(&mut cpu.differences, Item::PageTables, -tables);
        self.memory.drain(&mut cpu);
        self.ids.release(self.id);
    }
}
