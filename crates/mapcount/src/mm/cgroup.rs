//! The memory cgroup to which folios are charged.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::frame::{CHARGED, Frame};
use crate::mapcount::Mapcount;

/// A memory cgroup without a limit, and the root above it, which counts the same pages.
#[derive(Default)]
pub struct Cgroup {
    usage: Counter,
    root: Counter,
}

/// A `page_counter`.
#[derive(Default)]
struct Counter {
    pages: AtomicU64,
    most: AtomicU64,
}

/// Pages that are charged at a time if fewer are needed (`MEMCG_CHARGE_BATCH`).
const AT_A_TIME: u32 = 64;

impl Cgroup {
    /// Charges a new folio. `kept` is what the CPU has charged in advance.
    ///
    /// Mirrors `try_charge_memcg`, 6.12. Test: `tests/address_spaces.rs`.
    #[inline]
    pub fn charge<C: Mapcount>(&self, kept: &mut u32, head: &Frame<C>, pages: u32) {
        if *kept < pages {
            let more = pages.max(AT_A_TIME);
            for counter in [&self.usage, &self.root] {
                let charged = counter.pages.fetch_add(more.into(), Relaxed) + u64::from(more);
                if charged > counter.most.load(Relaxed) {
                    counter.most.store(charged, Relaxed);
                }
            }
            *kept += more;
        }
        *kept -= pages;
        head.set_alone(CHARGED);
    }

    /// Takes pages away that are no longer charged.
    pub fn uncharge(&self, pages: u32) {
        for counter in [&self.usage, &self.root] {
            counter.pages.fetch_sub(pages.into(), Relaxed);
        }
    }

    /// Pages that are charged.
    pub fn pages(&self) -> u64 {
        self.usage.pages.load(Relaxed)
    }
}
