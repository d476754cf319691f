//! What the program does with its files is told, on a tape that the command reads
//! (`filemap_control::tape`).
//!
//! A file is recorded cold: when it is mapped, the kernel is asked to drop it from the page cache,
//! and the mapping is advised MADV_RANDOM. So each first touch of a page is a major fault, which
//! the observer reports. The program's own advice is told and not carried out, as it would bring
//! pages before they are touched.
//!
//! The functions are called by `purpose`, for the hooks and the observer.

mod callers;
mod opens;
mod ranges;
mod tape_file;

use std::ffi::c_int;
use std::ops::{Range, RangeInclusive};
use std::os::fd::BorrowedFd;

use filemap_control::layout::Reason;
use filemap_control::tape::Kind;
use rustix::fs::SeekFrom;

use crate::purpose::{Mapped, Taken};
use crate::start;
use crate::{advice, observer, stand_down};
use ranges::RANGES;
use tape_file::{tell, tell_in_handler};

/// Advice on which pages are read and when.
const ON_READING: [c_int; 8] = [
    libc::MADV_NORMAL,
    libc::MADV_RANDOM,
    libc::MADV_SEQUENTIAL,
    libc::MADV_WILLNEED,
    libc::MADV_HUGEPAGE,
    libc::MADV_NOHUGEPAGE,
    libc::MADV_COLLAPSE,
    libc::MADV_POPULATE_READ,
];

/// The number of the advice that reads all pages, as a mapping that is populated at once does.
const POPULATE_READ: u64 = libc::MADV_POPULATE_READ as u64;

/// Advice of posix_fadvise(3) that is carried out: it brings no pages.
const OF_FILES_CARRIED_OUT: [c_int; 2] = [libc::POSIX_FADV_DONTNEED, libc::POSIX_FADV_NOREUSE];

/// Looks up what of the C library is used, before the program begins.
pub fn look_up() {
    callers::look_up();
}

/// A mapping was made. What was mapped in its place is gone.
pub fn mapped(new: &Mapped) {
    unmapping(&new.range);
    let Some(run) = start::running() else { return };
    let is_of_file = new.descriptor >= 0
        && new.flags & (libc::MAP_ANONYMOUS | libc::MAP_HUGETLB) == 0
        && !new.range.is_empty();
    if !is_of_file || stand_down::is_due() {
        return;
    }
    let Some(open) = opens::number(run, new.descriptor) else { return };
    // SAFETY: the program has just mapped what this descriptor stands for.
    let file = unsafe { BorrowedFd::borrow_raw(new.descriptor) };
    // Pages that are not on the disk yet would stay, and those that somebody has mapped do.
    let _ = rustix::fs::fdatasync(file);
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    if RANGES.add(&new.range) {
        advice::single_pages(&new.range);
    }
    if start::running().is_none() {
        // Recording has stopped meanwhile.
        advice::as_by_itself(&new.range);
    }
    let mode = [new.protection, new.flags].map(|bits| u64::from(bits.cast_unsigned()));
    callers::callers().with_bytes(|callers| {
        tape_file::tell_text(Kind::Mode, [mode[0], mode[1], 0, 0], callers);
    });
    let length = new.range.len() as u64;
    tell(Kind::Map, [new.range.start as u64, length, new.offset_bytes, open]);
    if new.flags & (libc::MAP_POPULATE | libc::MAP_LOCKED) != 0 {
        tell(Kind::Madvise, [new.range.start as u64, length, POPULATE_READ, 0]);
    }
    observer::begin();
}

/// The program is about to unmap `range`. Returns whether something of it is recorded.
pub fn unmapping(range: &Range<usize>) -> bool {
    let is_recorded = start::running().is_some() && RANGES.remove(range);
    if is_recorded {
        tell(Kind::Unmap, [range.start as u64, range.len() as u64, 0, 0]);
    }
    is_recorded
}

/// Something of `range` that was to be unmapped is still there, and is recorded no more.
pub fn not_unmapped(range: &Range<usize>) {
    advice::as_by_itself(range);
}

/// What was mapped at `from` is at `to` now, or has a second mapping there where `from` is empty.
pub fn moved(from: &Range<usize>, to: &Range<usize>) {
    let is_recorded = start::running().is_some() && RANGES.remove(from);
    unmapping(to);
    if is_recorded {
        if !RANGES.add(to) {
            advice::as_by_itself(to);
        }
        let [start, length] = [from.start as u64, from.len() as u64];
        tell(Kind::Move, [start, length, to.start as u64, to.len() as u64]);
    }
}

/// `range` has another protection.
pub fn protected(range: &Range<usize>, protection: c_int) {
    if start::running().is_some() && RANGES.has(range) {
        let protection = u64::from(protection.cast_unsigned());
        tell(Kind::Protect, [range.start as u64, range.len() as u64, protection, 0]);
    }
}

/// The program is about to advise `range`. Returns whether that is to be carried out.
pub fn advising(range: &Range<usize>, advice: c_int) -> bool {
    if start::running().is_none() || !RANGES.has(range) {
        return true;
    }
    let number = u64::from(advice.cast_unsigned());
    tell(Kind::Madvise, [range.start as u64, range.len() as u64, number, 0]);
    advice == libc::MADV_POPULATE_READ || !ON_READING.contains(&advice)
}

/// Whether anything is recorded.
pub fn is_anything() -> bool {
    !RANGES.is_empty()
}

/// Runs `call`, in which the kernel reads the memory at `ranges`, in this order. No signal
/// reports its faults.
pub fn read_by_kernel<R: Taken>(
    ranges: impl Iterator<Item = Range<usize>>,
    call: impl FnOnce() -> R,
) -> R {
    let result = call();
    if !is_anything() || start::running().is_none() {
        return result;
    }
    let mut left = result.bytes();
    for range in ranges {
        let taken = range.len().min(left);
        left -= taken;
        if taken > 0 && RANGES.has(&range) {
            tell(Kind::TouchByCall, [range.start as u64, taken as u64, 0, 0]);
        }
    }
    result
}

/// Runs `call`, in which the kernel reads all pages of `range`.
pub fn locked<R: Taken>(range: &Range<usize>, call: impl FnOnce() -> R) -> R {
    let result = call();
    let is_recorded = result.bytes() > 0 && start::running().is_some() && RANGES.has(range);
    if is_recorded {
        tell(Kind::Madvise, [range.start as u64, range.len() as u64, POPULATE_READ, 0]);
    }
    result
}

/// The number of a descriptor's open file, if that is recorded.
fn open_of(descriptor: c_int) -> Option<u64> {
    if descriptor < 0 {
        return None;
    }
    opens::number(start::running()?, descriptor)
}

/// The program has read from a file.
pub fn has_read(descriptor: c_int, offset: Option<u64>, length: u64) {
    let Some(open) = open_of(descriptor) else { return };
    let offset = offset.or_else(|| {
        // SAFETY: the program has just read from it.
        let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
        rustix::fs::seek(file, SeekFrom::Current(0)).ok()?.checked_sub(length)
    });
    if let Some(offset) = offset {
        tell(Kind::Read, [open, offset, length, 0]);
    }
}

/// The program is about to advise a part of a file. Returns whether that is to be carried out.
pub fn advising_file(descriptor: c_int, offset: u64, length: u64, advice: c_int) -> bool {
    let Some(open) = open_of(descriptor) else { return true };
    tell(Kind::Fadvise, [open, offset, length, u64::from(advice.cast_unsigned())]);
    OF_FILES_CARRIED_OUT.contains(&advice)
}

/// The program is about to have a part of a file read ahead. Returns whether that is to be carried
/// out.
pub fn reading_ahead(descriptor: c_int, offset: u64, length: u64) -> bool {
    let Some(open) = open_of(descriptor) else { return true };
    tell(Kind::Readahead, [open, offset, length, 0]);
    false
}

/// The program is about to close descriptors.
pub fn closing(descriptors: RangeInclusive<c_int>) {
    if start::running().is_some() {
        opens::forget(descriptors);
    }
}

/// A descriptor has a copy.
pub fn duplicated(from: c_int, to: c_int) {
    if start::running().is_some() {
        opens::copy(from, to);
    }
}

/// A major fault at `address`, in the handler.
pub fn fault(address: usize) {
    if start::observing().is_some() {
        tell_in_handler(Kind::Touch, [address as u64, 0, 0, 0]);
    }
}

/// Nothing is observed any more.
pub fn stopped(reason: Reason) {
    RANGES.each(|range| {
        advice::as_by_itself(&range);
    });
    tell(Kind::End, [reason as u64, 0, 0, 0]);
}

/// The process is about to fork.
pub fn before_fork() {
    tell(Kind::Fork, [tape_file::next_fork(), 0, 0, 0]);
}

/// This is the child of a fork now. It has its parent's mappings.
pub fn after_fork() {
    RANGES.release_after_fork();
    callers::after_fork();
    tape_file::after_fork();
}

/// The process ends.
pub fn ends() {
    if start::running().is_none() {
        return;
    }
    tell(Kind::End, [Reason::None as u64, 0, 0, 0]);
}
