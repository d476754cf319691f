//! Mappings of pages, and what is counted of them.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use super::cpu::Cpu;
use super::frame::{EXCLUSIVE, Pfn};
use super::memory::Memory;
use super::statistics::Item;
use crate::mapcount::{Change, Mapcount};
use crate::mm_id::MmId;
use crate::order::Order;

impl<C: Mapcount> Memory<C> {
    /// Adds mappings of pages of one folio, from `first` on.
    ///
    /// Mirrors `__folio_add_anon_rmap`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub(super) fn map(&self, cpu: &mut Cpu, mm: MmId, first: Pfn, pages: u32) {
        let frame = self.frame(first);
        let order = frame.order();
        if order == Order::SINGLE {
            let old = frame.single.fetch_add(1, Relaxed);
            self.keep(cpu, Change { pages: i64::from(old == 0), in_part: false });
        } else {
            let batch = self.range(first, pages as usize).iter().map(|frame| &frame.page);
            let change = self.counts(frame.head()).map(order, mm, batch);
            self.keep(cpu, change);
        }
    }

    /// The same for a child of whoever maps the pages, which are not exclusive then.
    ///
    /// Each page is visited once, if there is a count to change too.
    ///
    /// Mirrors `__folio_try_dup_anon_rmap`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub(super) fn share(&self, cpu: &mut Cpu, mm: MmId, head: Pfn, first: Pfn, pages: u32) {
        let frames = self.range(first, pages as usize);
        let order = frames[0].order();
        if order == Order::SINGLE {
            frames[0].clear(EXCLUSIVE);
            frames[0].single.fetch_add(1, Relaxed);
            return;
        }
        let change = if size_of::<C::Page>() > 0 {
            let batch = frames.iter().map(|frame| {
                frame.clear(EXCLUSIVE);
                &frame.page
            });
            self.counts(head).map(order, mm, batch)
        } else {
            frames.iter().for_each(|frame| frame.clear(EXCLUSIVE));
            let batch = frames.iter().map(|frame| &frame.page);
            self.counts(head).map(order, mm, batch)
        };
        self.keep(cpu, change);
    }

    /// Removes mappings of pages of one folio, from `first` on. References go with the next flush.
    /// Whether that is due.
    ///
    /// Mirrors `__folio_remove_rmap`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub(super) fn unmap(&self, cpu: &mut Cpu, mm: MmId, first: Pfn, pages: u32) -> bool {
        let frame = self.frame(first);
        let (order, head) = (frame.order(), frame.head());
        if order == Order::SINGLE {
            let old = frame.single.fetch_sub(1, AcqRel);
            self.keep(cpu, Change { pages: -i64::from(old == 1), in_part: false });
        } else {
            let batch = self.range(first, pages as usize).iter().map(|frame| &frame.page);
            let change = self.counts(head).unmap(order, mm, batch);
            self.keep(cpu, change);
        }
        cpu.gathered.push(head, pages)
    }

    /// How often a page is mapped, as counters judge it.
    pub(super) fn page_mappings(&self, pfn: Pfn) -> u32 {
        let frame = self.frame(pfn);
        match frame.order() {
            Order::SINGLE => frame.single.load(Relaxed),
            order => self.counts(frame.head()).page_mappings(order, &frame.page),
        }
    }

    #[inline]
    fn keep(&self, cpu: &mut Cpu, change: Change) {
        cpu.mapped_pages += change.pages;
        cpu.left_in_part += u64::from(change.in_part);
        self.statistics.count(&mut cpu.differences, Item::Mapped, change.pages);
    }
}
