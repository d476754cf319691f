//! The mechanisms behind the result, each of which can be left out.

use crate::mm::mmap_lock::{Manner, READERS_WOKEN};

/// Which mechanisms are at work: all, as in the kernel, unless an experiment leaves one out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms {
    /// Readers of `mmap_lock` queue behind a writer that waits.
    pub fair_lock: bool,
    /// A release of `mmap_lock` wakes only so many readers.
    pub woken_cap: bool,
    /// Who owes more than a batch above `high` repays inside the charge.
    pub repays_inside: bool,
    /// Who reclaims in vain to repay sleeps.
    pub sleeps: bool,
    /// Page-table pages, stacks and nodes of the index are charged.
    pub charges_kernel: bool,
    /// Accessed pages get a second trip round the inactive list.
    pub second_chance: bool,
    /// The lists' lock is waited for.
    pub list_lock: bool,
}

impl Mechanisms {
    /// All of them.
    pub const ALL: Mechanisms = Mechanisms {
        fair_lock: true,
        woken_cap: true,
        repays_inside: true,
        sleeps: true,
        charges_kernel: true,
        second_chance: true,
        list_lock: true,
    };

    /// Each with one left out, and what that is called.
    pub fn ablations() -> [(&'static str, Mechanisms); 7] {
        let all = Mechanisms::ALL;
        [
            ("reader-preferring lock", Mechanisms { fair_lock: false, ..all }),
            ("no cap on woken readers", Mechanisms { woken_cap: false, ..all }),
            ("no repaying inside the charge", Mechanisms { repays_inside: false, ..all }),
            ("no sleep", Mechanisms { sleeps: false, ..all }),
            ("page tables not charged", Mechanisms { charges_kernel: false, ..all }),
            ("no second chance", Mechanisms { second_chance: false, ..all }),
            ("free list lock", Mechanisms { list_lock: false, ..all }),
        ]
    }

    /// How `mmap_lock` behaves.
    pub fn manner(&self) -> Manner {
        Manner {
            prefers_readers: !self.fair_lock,
            readers_woken: if self.woken_cap { READERS_WOKEN } else { usize::MAX },
        }
    }
}
