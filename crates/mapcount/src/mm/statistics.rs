//! Statistics of the machine and of a memory cgroup, that CPUs add to now and then.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// What is counted, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Mapped pages of anonymous folios, as counters judge it.
    Mapped,
    /// Pages of folios on the LRU.
    OnLru,
    /// Page tables.
    PageTables,
}

const ITEMS: usize = 3;

/// The cgroup, and the root.
const LEVELS: usize = 2;

/// A CPU's part that is not in the totals yet.
#[derive(Default)]
pub struct Differences {
    /// Of the machine (`vm_node_stat_diff`).
    node: [i64; ITEMS],
    /// Of its zone (`vm_stat_diff`): only what is on the LRU counts there.
    zone: i64,
    /// Of the cgroup as a whole, by the CPU (`vmstats_percpu`).
    cgroup: [i64; ITEMS],
    /// Of the cgroup's part of the node (`lruvec_stats_percpu`). Nothing reads it: it is here
    /// because a kernel counts it too, which takes time.
    cgroup_node: [i64; ITEMS],
    /// How much changed in the cgroup, and in the one above it, since others were told.
    updates: [u64; LEVELS],
}

/// The totals. Only those of the machine are read. The others are here because a kernel adds to
/// them too, which takes time.
#[derive(Default)]
pub struct Statistics {
    node: [AtomicI64; ITEMS],
    machine: [AtomicI64; ITEMS],
    zone: AtomicI64,
    cgroup: [AtomicI64; ITEMS],
    updates: [AtomicI64; LEVELS],
}

/// A CPU's difference is added to the total when it is larger. `calculate_normal_threshold` gives
/// this number for two CPUs and a zone of 16 to 32 GiB.
const THRESHOLD: i64 = 36;

/// Changes of a cgroup of which readers of its statistics need not hear (`MEMCG_CHARGE_BATCH`).
const UNTOLD: u64 = 64;

impl Statistics {
    /// Counts pages of a folio: for the node, and for the cgroup.
    ///
    /// Mirrors `__lruvec_stat_mod_folio`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn count(&self, cpu: &mut Differences, item: Item, pages: i64) {
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
        for (updates, told) in cpu.updates.iter_mut().zip(&self.updates) {
            *updates += pages.unsigned_abs();
            if *updates >= UNTOLD {
                told.fetch_add(std::mem::take(updates) as i64, Relaxed);
            }
        }
    }

    /// Counts pages that come to the LRU or leave it, which a zone counts too.
    ///
    /// Mirrors `update_lru_size`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn count_on_lru(&self, cpu: &mut Differences, pages: i64) {
        self.count(cpu, Item::OnLru, pages);
        cpu.zone += pages;
        if cpu.zone.abs() > THRESHOLD {
            self.zone.fetch_add(std::mem::take(&mut cpu.zone), Relaxed);
        }
    }

    /// Adds what `cpu` has not told yet.
    pub fn drain(&self, cpu: &mut Differences) {
        for at in 0..ITEMS {
            self.node[at].fetch_add(cpu.node[at], Relaxed);
            self.machine[at].fetch_add(cpu.node[at], Relaxed);
            self.cgroup[at].fetch_add(cpu.cgroup[at], Relaxed);
        }
        self.zone.fetch_add(cpu.zone, Relaxed);
        for (updates, told) in cpu.updates.iter().zip(&self.updates) {
            told.fetch_add(*updates as i64, Relaxed);
        }
        *cpu = Differences::default();
    }

    /// What was counted and told.
    pub fn total(&self, item: Item) -> i64 {
        self.machine[item as usize].load(Relaxed)
    }
}
