//! munmap(2): mappings go, and folios that nobody maps any more.

use std::ops::Range;

use super::cpu::Cpu;
use super::page_table::{ENTRIES, batch, clear};
use super::space::AddressSpace;
use crate::mapcount::Mapcount;

impl<C: Mapcount> AddressSpace<C> {
    /// Unmaps what is mapped of `pages`, in batches of pages of one folio.
    ///
    /// Mirrors `zap_present_folio_ptes`, 6.12. Test: `tests/address_spaces.rs`.
    ///
    /// # Panics
    /// When the address space has fewer pages.
    pub fn munmap(&mut self, cpu: &mut Cpu, pages: Range<usize>) {
        self.unmap_up_to(cpu, pages, ENTRIES);
    }

    /// The same page by page, as a kernel without batches does.
    ///
    /// # Panics
    /// When the address space has fewer pages.
    pub fn munmap_single_pages(&mut self, cpu: &mut Cpu, pages: Range<usize>) {
        self.unmap_up_to(cpu, pages, 1);
    }

    fn unmap_up_to(&mut self, cpu: &mut Cpu, pages: Range<usize>, most: usize) {
        let mut page = pages.start;
        while page < pages.end {
            let table = &self.tables[page / ENTRIES];
            let last = (pages.end - page + page % ENTRIES).min(ENTRIES);
            let mut at = page % ENTRIES;
            page += last - at;
            while at < last {
                let entries = &table[at..last.min(at + most)];
                let Some(first) = entries[0].load() else {
                    at += 1;
                    continue;
                };
                let pages = batch(entries, self.memory.frame(first.pfn), first).pages;
                clear(&entries[..pages as usize]);
                let due = self.memory.unmap(cpu, self.id, first.pfn, pages);
                self.resident -= pages as usize;
                at += pages as usize;
                if due {
                    self.memory.flush(cpu);
                }
            }
        }
        self.memory.flush(cpu);
    }
}
