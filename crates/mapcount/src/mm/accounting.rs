//! Accounting that surrounds mapcounts in a kernel: statistics, to which CPUs add in batches, and
//! the charge of a memory cgroup.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use super::frame::{CHARGED, Frame};
use crate::mapcount::Mapcount;

/// A statistic, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatItem {
    /// Mapped pages of anonymous folios, as the counting scheme judges it.
    Mapped,
    /// Pages of folios on the LRU.
    OnLru,
    /// Page tables.
    PageTables,
}

const ITEMS: usize = 3;

/// Levels of cgroups: the own one and the root.
const LEVELS: usize = 2;

/// A CPU's changes that are not in the totals yet.
#[derive(Default)]
pub struct PendingStats {
    /// `vm_node_stat_diff`.
    node: [i64; ITEMS],
    /// `vm_stat_diff` of the zone, which counts pages on the LRU only.
    zone: i64,
    /// `vmstats_percpu` of the cgroup.
    cgroup: [i64; ITEMS],
    /// `lruvec_stats_percpu`. Nothing reads it; it exists because its update costs a kernel time.
    cgroup_node: [i64; ITEMS],
    /// Changes of each level since the last flush to the totals.
    updates: [u64; LEVELS],
}

/// The totals. Only the machine's are read; the others exist because their updates cost a kernel
/// time.
#[derive(Default)]
pub struct Statistics {
    node: [AtomicI64; ITEMS],
    machine: [AtomicI64; ITEMS],
    zone: AtomicI64,
    cgroup: [AtomicI64; ITEMS],
    updates: [AtomicI64; LEVELS],
}

/// A CPU's difference above this is added to the total. `calculate_normal_threshold` gives this
/// number for two CPUs and a zone of 16 to 32 GiB.
const THRESHOLD: i64 = 36;

/// Changes of a cgroup that are announced to readers of its statistics at a time.
const FLUSH_UPDATES: u64 = CHARGE_BATCH as u64;

impl Statistics {
    /// Counts pages of a folio for the node and the cgroup.
    ///
    /// Mirrors `__lruvec_stat_mod_folio`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn count(&self, cpu: &mut PendingStats, item: StatItem, pages: i64) {
        if pages == 0 {
            return;
        }
        let at = item as usize;
        let difference = &mut cpu.node[at];
        *difference += pages;
        if difference.abs() > THRESHOLD {
            let difference = std::mem::take(difference);
            self.node[at].fetch_add(difference, Relaxed);
            self.machine[at].fetch_add(difference, Relaxed);
        }
        cpu.cgroup[at] += pages;
        cpu.cgroup_node[at] += pages;
        for (updates, total) in cpu.updates.iter_mut().zip(&self.updates) {
            *updates += pages.unsigned_abs();
            if *updates >= FLUSH_UPDATES {
                total.fetch_add(std::mem::take(updates) as i64, Relaxed);
            }
        }
    }

    /// Counts pages that are added to the LRU or removed, which a zone counts too.
    ///
    /// Mirrors `update_lru_size`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn count_on_lru(&self, cpu: &mut PendingStats, pages: i64) {
        self.count(cpu, StatItem::OnLru, pages);
        cpu.zone += pages;
        if cpu.zone.abs() > THRESHOLD {
            self.zone.fetch_add(std::mem::take(&mut cpu.zone), Relaxed);
        }
    }

    /// Adds a CPU's pending changes to the totals.
    pub fn drain(&self, cpu: &mut PendingStats) {
        for at in 0..ITEMS {
            self.node[at].fetch_add(cpu.node[at], Relaxed);
            self.machine[at].fetch_add(cpu.node[at], Relaxed);
            self.cgroup[at].fetch_add(cpu.cgroup[at], Relaxed);
        }
        self.zone.fetch_add(cpu.zone, Relaxed);
        for (updates, total) in cpu.updates.iter().zip(&self.updates) {
            total.fetch_add(*updates as i64, Relaxed);
        }
        *cpu = PendingStats::default();
    }

    /// The machine's total.
    pub fn total(&self, item: StatItem) -> i64 {
        self.machine[item as usize].load(Relaxed)
    }
}

/// A memory cgroup without a limit, and the root cgroup above it.
#[derive(Default)]
pub struct Cgroup {
    usage: PageCounter,
    root: PageCounter,
}

/// `struct page_counter`.
#[derive(Default)]
struct PageCounter {
    usage: AtomicU64,
    watermark: AtomicU64,
}

/// Minimum number of pages charged at a time (`MEMCG_CHARGE_BATCH`).
const CHARGE_BATCH: u32 = 64;

impl Cgroup {
    /// Charges a new folio. `stock` is the CPU's advance charge.
    ///
    /// Mirrors `try_charge_memcg`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn charge<C: Mapcount>(&self, stock: &mut u32, head: &Frame<C>, pages: u32) {
        if *stock < pages {
            let charge = pages.max(CHARGE_BATCH);
            for counter in [&self.usage, &self.root] {
                let charged = counter.usage.fetch_add(charge.into(), Relaxed) + u64::from(charge);
                if charged > counter.watermark.load(Relaxed) {
                    counter.watermark.store(charged, Relaxed);
                }
            }
            *stock += charge;
        }
        *stock -= pages;
        head.set_unshared(CHARGED);
    }

    /// Uncharges pages.
    pub fn uncharge(&self, pages: u32) {
        for counter in [&self.usage, &self.root] {
            counter.usage.fetch_sub(pages.into(), Relaxed);
        }
    }

    /// Charged pages.
    pub fn pages(&self) -> u64 {
        self.usage.usage.load(Relaxed)
    }
}
