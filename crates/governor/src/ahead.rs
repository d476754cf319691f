//! Memory that a program hands to the kernel piece by piece, in order. The policy does not learn of
//! it, since the kernel itself comes to the pages that are missing.

use std::cell::Cell;
use std::ops::Range;

/// Bytes that are read ahead of a piece.
const WINDOW_BYTES: usize = 1 << 20;

/// How far a thread has come.
#[derive(Clone, Copy)]
struct Progress {
    /// The end of the last piece.
    end: usize,
    /// The end of what was read ahead.
    ahead: usize,
}

thread_local! {
    static PROGRESS: Cell<Progress> = const { Cell::new(Progress { end: 0, ahead: 0 }) };
}

/// Up to where memory from `range` on is to be read, as the kernel is going to read `range`.
pub fn until(range: &Range<usize>) -> usize {
    let before = PROGRESS.get();
    let goes_on = range.start == before.end;
    let half = range.end.saturating_add(WINDOW_BYTES / 2);
    let ahead = match () {
        () if !goes_on => range.end,
        () if half > before.ahead => range.end.saturating_add(WINDOW_BYTES),
        () => before.ahead,
    };
    PROGRESS.set(Progress { end: range.end, ahead });
    if goes_on && ahead == before.ahead { range.end } else { ahead }
}
