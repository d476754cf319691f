//! What streams have read beyond their ends.

/// Up to this many pages a window may grow by itself.
const FREE: u64 = 64;

/// Beyond that no window is longer than this part of what the stream has come to, so that a run
/// whose length nobody knows does not read several times as much.
const PART: u64 = 4;

/// The same where streams read too much.
const FREE_IN_DEBT: u64 = 16;
const PART_IN_DEBT: u64 = 16;

/// The part of what streams have come to that they may read beyond their ends before that is so.
const DEBT_PART: u64 = 8;

/// Pages after which what was counted before is worth half.
const HALVED_AFTER: u64 = 1 << 16;

/// Pages that streams have come to, and those that they have only asked for.
#[derive(Clone, Debug, Default)]
pub struct Beyond {
    used: u64,
    unused: u64,
}

impl Beyond {
    /// Counts a stream that is over: it has come to `known` pages, and asked up to `end`.
    pub const fn count(&mut self, known: u64, end: u64) {
        self.used = self.used.saturating_add(known);
        self.unused = self.unused.saturating_add(end.saturating_sub(known));
        if self.used.saturating_add(self.unused) > HALVED_AFTER {
            self.used /= 2;
            self.unused /= 2;
        }
    }

    /// Takes it back.
    pub const fn discount(&mut self, known: u64, end: u64) {
        self.used = self.used.saturating_sub(known);
        self.unused = self.unused.saturating_sub(end.saturating_sub(known));
    }

    /// The most pages of a window of a stream that has come so far, where memory may be short.
    pub fn most(&self, pages: u64, is_short: bool) -> u64 {
        if is_short || self.unused > self.used / DEBT_PART {
            return (pages / PART_IN_DEBT).max(FREE_IN_DEBT);
        }
        (pages / PART).max(FREE)
    }
}
