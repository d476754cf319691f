//! The lock of the reclaim lists (`lruvec::lru_lock`).

/// How long work takes for which a spinlock is taken again and again: as many share the lock as
/// work under it, and each gets its turn. So waiting for it is time, and no event.
///
/// With `users` at work each needs `hold_ns` of the lock and `other_ns` without it. Where all of
/// them fit beside each other nobody waits; otherwise the lock is never free, and a turn comes
/// round when all others have had theirs.
pub fn turn_ns(users: u64, hold_ns: u64, handover_ns: u64, other_ns: u64) -> u64 {
    let round_ns = users.saturating_mul(hold_ns + handover_ns);
    round_ns.max(hold_ns + other_ns)
}

#[cfg(test)]
mod tests {
    use super::turn_ns;

    #[test]
    fn a_lock_is_shared_by_those_who_fill_it() {
        assert_eq!(turn_ns(1, 100, 10, 500), 600);
        assert_eq!(turn_ns(5, 100, 10, 500), 600);
        assert_eq!(turn_ns(6, 100, 10, 500), 660);
        assert_eq!(turn_ns(600, 100, 10, 500), 66_000);
    }
}
