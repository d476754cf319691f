//! Mappings of pages: counters and statistics.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use super::accounting::StatItem;
use super::cpu::Cpu;
use super::frame::{EXCLUSIVE, Pfn};
use super::memory::Memory;
use crate::folio::Order;
use crate::mapcount::Mapcount;
use crate::mm_id::MmId;

impl<C: Mapcount> Memory<C> {
    /// Maps pages of one folio, from `first` on.
    ///
    /// Mirrors `__folio_add_anon_rmap`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub(super) fn map(&self, cpu: &mut Cpu, mm: MmId, first: Pfn, pages: u32) {
        let frame = self.frame(first);
        let order = frame.order();
        if order == Order::SINGLE {
            let old = frame.single.fetch_add(1, Relaxed);
            self.count_mapped(cpu, i64::from(old == 0));
        } else {
            let batch = self.range(first, pages as usize).iter().map(|frame| &frame.page);
            let mapped = self.counts(frame.head()).map(order, mm, batch);
            self.count_mapped(cpu, mapped);
        }
    }

    /// Maps them for a child too, which makes them no longer exclusive. With counts of pages, flag
    /// and count are changed in one pass.
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
        let mapped = if size_of::<C::Page>() > 0 {
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
        self.count_mapped(cpu, mapped);
    }

    /// Unmaps pages of one folio, from `first` on. References are dropped by the next flush.
    /// Returns whether that is due.
    ///
    /// Mirrors `__folio_remove_rmap`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub(super) fn unmap(&self, cpu: &mut Cpu, mm: MmId, first: Pfn, pages: u32) -> bool {
        let frame = self.frame(first);
        let (order, head) = (frame.order(), frame.head());
        if order == Order::SINGLE {
            let old = frame.single.fetch_sub(1, AcqRel);
            self.count_mapped(cpu, -i64::from(old == 1));
        } else {
            let batch = self.range(first, pages as usize).iter().map(|frame| &frame.page);
            let mapped = self.counts(head).unmap(order, mm, batch);
            self.count_mapped(cpu, mapped);
        }
        cpu.gather.push(head, pages)
    }

    #[inline]
    fn count_mapped(&self, cpu: &mut Cpu, pages: i64) {
        self.statistics.count(&mut cpu.stats, StatItem::Mapped, pages);
    }
}
