//! fork(2): the child maps what the parent maps, and both may only read it.

use std::sync::atomic::Ordering::Relaxed;

use super::cpu::Cpu;
use super::page_table::{Entry, Mapped, batch};
use super::space::AddressSpace;
use crate::error::Error;
use crate::mapcount::Mapcount;

impl<C: Mapcount> AddressSpace<C> {
    /// A child with the same mappings.
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
        let (ours, its) = (&self.tables[index], &child.tables[index]);
        let mut at = 0;
        while at < ours.len() {
            let Some(first) = ours[at].load() else {
                at += 1;
                continue;
            };
            let frame = self.memory.frame(first.pfn);
            let batch = batch(&ours[at..], frame, first);
            let (pages, head) = (batch.pages, frame.head());
            self.memory.frame(head).references.fetch_add(pages, Relaxed);
            self.memory.share(cpu, child.id, head, first.pfn, pages);
            let entries = at..at + pages as usize;
            if batch.writable {
                ours[entries.clone()].iter().for_each(Entry::protect);
            }
            for (entry, pfn) in its[entries].iter().zip(first.pfn..) {
                entry.set(Mapped { pfn, writable: false });
            }
            at += pages as usize;
        }
    }
}
