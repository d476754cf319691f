//! Calls that are handed recorded memory: it is open while they run, and what they took is told.

use std::ffi::c_char;
use std::iter;
use std::ops::Range;

use filemap_control::tape::Kind;

use super::recorded::RECORDED;
use super::tape_file::tell;
use super::{POPULATE_READ, changes, has_changes, is_anything};
use crate::purpose::Taken;
use crate::start;

/// Runs `call`, in which the kernel reads the memory at `ranges`, or writes to it, in this order.
/// No signal reports its faults.
pub fn taken_by_kernel<R: Taken>(
    ranges: impl Iterator<Item = Range<usize>> + Clone,
    writes: bool,
    call: impl FnOnce() -> R,
) -> R {
    if !is_anything() {
        return call();
    }
    let lent = has_changes().then(|| changes::lend(ranges.clone(), writes)).flatten();
    let result = call();
    drop(lent);
    if start::running().is_none() {
        return result;
    }
    let mut left = result.bytes();
    for range in ranges {
        let taken = range.len().min(left);
        left -= taken;
        if taken > 0 && RECORDED.has(&range) {
            tell(Kind::TouchByCall, [range.start as u64, taken as u64, writes.into(), 0]);
        }
    }
    result
}

/// The longest path that the kernel reads.
const MOST_TEXT: usize = libc::PATH_MAX as usize;

/// As many bytes at a pointer, which may be any.
fn text_at(text: *const c_char, bytes: usize) -> Range<usize> {
    text.addr()..text.addr().saturating_add(bytes)
}

/// Runs `call`, in which the kernel reads texts that end with a zero.
pub fn texts_read_by_kernel<R, const COUNT: usize>(
    texts: [*const c_char; COUNT],
    call: impl FnOnce() -> R,
) -> R {
    let recorded = |text: &*const c_char| RECORDED.has(&text_at(*text, 1));
    if !is_anything() || !has_changes() || !texts.iter().any(recorded) {
        return call();
    }
    let ranges = texts.into_iter().map(|text| text_at(text, MOST_TEXT));
    let lent = changes::lend(ranges, false);
    let result = call();
    drop(lent);
    if start::running().is_some() {
        for text in texts.iter().filter(|text| recorded(text)) {
            tell(Kind::TouchByCall, [text.addr() as u64, 1, 0, 0]);
        }
    }
    result
}

/// Runs `call` with everything open. What it takes is not told.
pub fn open_to_kernel<R>(call: impl FnOnce() -> R) -> R {
    let is_open = !is_anything() || !has_changes();
    let everything = iter::once(0..usize::MAX);
    let _lent = if is_open { None } else { changes::lend(everything, true) };
    call()
}

/// Runs `call`, in which the kernel reads all pages of `range`.
pub fn locked<R: Taken>(range: &Range<usize>, call: impl FnOnce() -> R) -> R {
    let lent = has_changes().then(|| changes::lend(iter::once(range.clone()), true)).flatten();
    let result = call();
    drop(lent);
    let is_recorded = result.bytes() > 0 && start::running().is_some() && RECORDED.has(range);
    if is_recorded {
        tell(Kind::Madvise, [range.start as u64, range.len() as u64, POPULATE_READ, 0]);
    }
    result
}
