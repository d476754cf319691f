//! Writes: to what is writable, or faults that reuse a page or copy it.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::cpu::Cpu;
use super::frame::{EXCLUSIVE, LRU, Pfn};
use super::page_table::Mapped;
use super::space::AddressSpace;
use crate::error::Error;
use crate::mapcount::Mapcount;
use crate::order::Order;

/// What a write took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The page was writable.
    AtOnce,
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
    pub fn write(&mut self, cpu: &mut Cpu, page: usize, value: u64) -> Result<Written, Error> {
        let entry = self.entry(page).and_then(|entry| entry.load());
        let mapped = entry.ok_or(Error::NothingMapped { page })?;
        let (written, pfn) = if mapped.writable {
            (Written::AtOnce, mapped.pfn)
        } else {
            self.fault(cpu, page, mapped.pfn)?
        };
        self.memory.word(pfn).store(value, Relaxed);
        if let Some(entry) = self.entry(page) {
            entry.touch();
        }
        Ok(written)
    }

    /// Reads the first bytes of a page.
    ///
    /// # Errors
    /// When nothing is mapped there.
    pub fn read(&self, page: usize) -> Result<u64, Error> {
        let entry = self.entry(page).and_then(|entry| entry.load());
        let mapped = entry.ok_or(Error::NothingMapped { page })?;
        Ok(self.memory.word(mapped.pfn).load(Relaxed))
    }

    fn fault(&mut self, cpu: &mut Cpu, page: usize, pfn: Pfn) -> Result<(Written, Pfn), Error> {
        if self.may_reuse(cpu, pfn) {
            self.memory.frame(pfn).set(EXCLUSIVE);
            self.set(page, pfn);
            return Ok((Written::Reused, pfn));
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
        Ok((Written::Copied, copy))
    }

    /// Whether nobody else can see the page: it is known to be exclusive, or all references of
    /// its folio are mappings of this mm.
    ///
    /// Mirrors `wp_can_reuse_anon_folio`, 6.18. Test: `tests/address_spaces.rs`.
    fn may_reuse(&self, cpu: &mut Cpu, pfn: Pfn) -> bool {
        let frame = self.memory.frame(pfn);
        if frame.has(EXCLUSIVE) {
            return true;
        }
        let first = frame.head();
        let head = self.memory.frame(first);
        // What this CPU keeps for the LRU has one reference more than mappings.
        if !head.has(LRU) {
            self.memory.add_new(cpu);
        }
        let references = head.references.load(Acquire);
        match frame.order() {
            Order::SINGLE => references == 1,
            _ => self.memory.counts(first).owned_by(self.id) == Some(references),
        }
    }

    fn set(&self, page: usize, pfn: Pfn) {
        if let Some(entry) = self.entry(page) {
            entry.set(Mapped { pfn, writable: true });
        }
    }
}
