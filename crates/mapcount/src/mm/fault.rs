//! Writes, and the faults that reuse or copy a page.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::cpu::Cpu;
use super::frame::{EXCLUSIVE, LRU, Pfn};
use super::page_table::PteValue;
use super::space::AddressSpace;
use crate::error::Error;
use crate::folio::Order;
use crate::mapcount::Mapcount;

/// How a write proceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// The page was writable.
    NoFault,
    /// A fault made it writable.
    Reused,
    /// A fault copied it into a folio of its own.
    Copied,
}

impl<C: Mapcount> AddressSpace<C> {
    /// Writes `value` to the first bytes of a page.
    ///
    /// # Errors
    /// When nothing is mapped there, or there is no memory for a copy.
    pub fn write(&mut self, cpu: &mut Cpu, page: usize, value: u64) -> Result<WriteKind, Error> {
        let entry = self.entry(page).and_then(|entry| entry.load());
        let mapped = entry.ok_or(Error::NotMapped { page })?;
        let (kind, pfn) = if mapped.writable {
            (WriteKind::NoFault, mapped.pfn)
        } else {
            self.fault(cpu, page, mapped.pfn)?
        };
        self.memory.word(pfn).store(value, Relaxed);
        if let Some(entry) = self.entry(page) {
            entry.mark_dirty();
        }
        Ok(kind)
    }

    /// Reads the first bytes of a page.
    ///
    /// # Errors
    /// When nothing is mapped there.
    pub fn read(&self, page: usize) -> Result<u64, Error> {
        let entry = self.entry(page).and_then(|entry| entry.load());
        let mapped = entry.ok_or(Error::NotMapped { page })?;
        Ok(self.memory.word(mapped.pfn).load(Relaxed))
    }

    fn fault(&mut self, cpu: &mut Cpu, page: usize, pfn: Pfn) -> Result<(WriteKind, Pfn), Error> {
        if self.may_reuse(cpu, pfn) {
            self.memory.frame(pfn).set(EXCLUSIVE);
            self.set(page, pfn);
            return Ok((WriteKind::Reused, pfn));
        }
        let copy = self.memory.allocate(cpu, Order::SINGLE, 1, self.id.get())?;
        self.memory.contents.copy(pfn, copy);
        self.memory.map(cpu, self.id, copy, 1);
        if let Some(entry) = self.entry(page) {
            entry.clear();
        }
        self.set(page, copy);
        self.memory.unmap(cpu, self.id, pfn, 1);
        self.memory.flush(cpu);
        Ok((WriteKind::Copied, copy))
    }

    /// Whether this mm alone can see the page: it is exclusive, or all references of its folio are
    /// mappings of this mm.
    ///
    /// Mirrors `wp_can_reuse_anon_folio`, 6.18. Test: `tests/address_spaces.rs`.
    fn may_reuse(&self, cpu: &mut Cpu, pfn: Pfn) -> bool {
        let frame = self.memory.frame(pfn);
        if frame.has(EXCLUSIVE) {
            return true;
        }
        let first = frame.head();
        let head = self.memory.frame(first);
        // A folio on the CPU's list for the LRU has one reference more.
        if !head.has(LRU) {
            self.memory.drain_lru_add(cpu);
        }
        let references = head.references.load(Acquire);
        match frame.order() {
            Order::SINGLE => references == 1,
            _ => self.memory.counts(first).owned_by(self.id) == Some(references),
        }
    }

    fn set(&self, page: usize, pfn: Pfn) {
        if let Some(entry) = self.entry(page) {
            entry.set(PteValue { pfn, writable: true });
        }
    }
}
