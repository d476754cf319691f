//! The lock of the reclaim lists (`lruvec::lru_lock`).

/// A spinlock that is given in the order of asking. Who holds it knows for how long, so who comes
/// behind knows when it will be free: waiting for it is time, and no event.
#[derive(Clone, Copy, Debug)]
pub struct ListLock {
    free_ns: u64,
    /// What it takes until the next one of those that spin sees that it is free.
    handover_ns: u64,
    is_free: bool,
}

impl ListLock {
    /// A lock that costs `handover_ns` to be passed on. One that `is_free` is never waited for.
    pub fn new(handover_ns: u64, is_free: bool) -> ListLock {
        ListLock { free_ns: 0, handover_ns, is_free }
    }

    /// Takes it at `now_ns` and holds it for `hold_ns`. Returns how long it is waited for.
    pub fn take(&mut self, now_ns: u64, hold_ns: u64) -> u64 {
        if self.is_free {
            return 0;
        }
        let wait_ns = match self.free_ns.saturating_sub(now_ns) {
            0 => 0,
            busy_ns => busy_ns + self.handover_ns,
        };
        self.free_ns = now_ns + wait_ns + hold_ns;
        wait_ns
    }
}
