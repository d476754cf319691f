//! What the program does with its files is told, on a tape that the command reads
//! (`filemap_control::tape`).
//!
//! A file is recorded cold: when it is mapped, the kernel is asked to drop it from the page cache,
//! and the mapping is advised MADV_RANDOM. So each first touch of a page is a major fault, which
//! the observer reports. The program's own advice is told and not carried out, as it would bring
//! pages before they are touched.
//!
//! Where the command has set fault-around to one page, each first touch is a fault whatever single
//! pages are in the page cache, and all faults are reported. Files whose pages are single stay
//! there then, and their mappings are not advised.
//!
//! Where changes of page are wanted (`changes`) files are left as they are, and advice is carried
//! out: what is told does not depend on what is cached.
//!
//! The functions are called by `purpose`, for the hooks and the observer.

mod callers;
mod calls;
mod changes;
mod opens;
mod ranges;
mod recorded;
mod tape_file;

use std::ffi::c_int;
use std::iter;
use std::ops::{Range, RangeInclusive};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use filemap_control::layout::Reason;
use filemap_control::tape::Kind;
use rustix::fs::SeekFrom;

use crate::access::Access;
use crate::purpose::Mapped;
use crate::start;
use crate::{advice, observer, page_tables, stand_down};
pub use calls::{locked, open_to_kernel, taken_by_kernel, texts_read_by_kernel};
use changes::Touched;
use recorded::RECORDED;
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

/// There was no room for a range, of which faults are told all the same.
static LACKS_SOME: AtomicBool = AtomicBool::new(false);

/// Something that is recorded is private to the process and may be written to.
static HAS_COPIES: AtomicBool = AtomicBool::new(false);

/// Whether a file stays in the page cache, as that is wanted and hides no touch. A large folio is
/// mapped by one fault; ext4 had none in the kernels for which it is wanted.
fn stays_warm(run: &start::Run, file: BorrowedFd<'_>) -> bool {
    let is_ext4 = || {
        let filesystem = rustix::fs::fstatfs(file);
        filesystem.is_ok_and(|filesystem| filesystem.f_type == libc::EXT4_SUPER_MAGIC)
    };
    run.settings.is_warm && is_ext4()
}

/// Asks the kernel to drop a file from the page cache, and to read single pages of a mapping.
fn make_cold(file: BorrowedFd<'_>, range: &Range<usize>) {
    // Pages that are not on the disk yet would stay, and those that somebody has mapped do.
    let _ = rustix::fs::fdatasync(file);
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    if RECORDED.has(range) {
        advice::single_pages(range);
    }
}

/// Advice for which it does not matter what may be touched.
const WITHOUT_TOUCH: [c_int; 8] = [
    libc::MADV_NORMAL,
    libc::MADV_RANDOM,
    libc::MADV_SEQUENTIAL,
    libc::MADV_WILLNEED,
    libc::MADV_DONTNEED,
    libc::MADV_DONTFORK,
    libc::MADV_DOFORK,
    libc::MADV_DONTDUMP,
];

/// Whether changes of page are wanted. Otherwise it is first touches.
fn has_changes() -> bool {
    start::settings().is_some_and(|settings| settings.changes)
}

/// Whether it is noted what becomes of ranges: while the process is recorded, and where they are
/// protected until they have been given back, which comes after that.
fn are_followed() -> bool {
    let is_left = || has_changes() && is_anything() && !start::is_borrowed();
    start::running().is_some() || is_left()
}

/// The program is about to map something in place of what is at `range`.
pub fn mapping_over(range: &Range<usize>) {
    unmapping(range);
}

/// A mapping was made. What was mapped in its place is gone.
pub fn mapped(new: &Mapped) {
    if are_followed() && take_out(&new.range) {
        tell_unmapped(&new.range);
    }
    let Some(run) = start::running() else { return };
    let is_of_file = new.descriptor >= 0
        && new.flags & (libc::MAP_ANONYMOUS | libc::MAP_HUGETLB) == 0
        && !new.range.is_empty();
    // A fault on a stack leaves no room for the handler.
    let is_stack = new.flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) != 0;
    if !is_of_file || is_stack && has_changes() || stand_down::is_due() {
        return;
    }
    let Some(open) = opens::number_mapped(run, new.descriptor) else { return };
    if has_changes() {
        tell_mapped(new, open);
        if !changes::begin(&new.range, new.protection) {
            tape_file::lose();
        }
        return;
    }
    // SAFETY: the program has just mapped what this descriptor stands for.
    let file = unsafe { BorrowedFd::borrow_raw(new.descriptor) };
    if !RECORDED.add(&new.range, new.protection) {
        LACKS_SOME.store(true, Ordering::Relaxed);
    }
    if !stays_warm(run, file) {
        make_cold(file, &new.range);
    }
    if new.flags & libc::MAP_PRIVATE != 0 && new.protection & libc::PROT_WRITE != 0 {
        HAS_COPIES.store(true, Ordering::Relaxed);
    }
    if start::running().is_none() {
        // Recording has stopped meanwhile.
        advice::as_by_itself(&new.range);
    }
    tell_mapped(new, open);
    observer::begin();
}

fn tell_mapped(new: &Mapped, open: u64) {
    let mode = [new.protection, new.flags].map(|bits| u64::from(bits.cast_unsigned()));
    callers::callers().with_bytes(|callers| {
        tape_file::tell_text(Kind::Mode, [mode[0], mode[1], 0, 0], callers);
    });
    let length = new.range.len() as u64;
    tell(Kind::Map, [new.range.start as u64, length, new.offset_bytes, open]);
    if new.flags & (libc::MAP_POPULATE | libc::MAP_LOCKED) != 0 {
        tell(Kind::Madvise, [new.range.start as u64, length, POPULATE_READ, 0]);
    }
}

/// Takes out of what is recorded what is there no more. Returns whether it was recorded.
fn take_out(range: &Range<usize>) -> bool {
    if has_changes() {
        return changes::forget(range);
    }
    RECORDED.remove(range, |left| {
        advice::as_by_itself(left);
    })
}

fn tell_unmapped(range: &Range<usize>) {
    if start::running().is_some() {
        tell(Kind::Unmap, [range.start as u64, range.len() as u64, 0, 0]);
    }
}

/// The program is about to unmap `range`. Returns whether something of it is recorded.
pub fn unmapping(range: &Range<usize>) -> bool {
    if !are_followed() {
        return false;
    }
    // Another thread may map something there as soon as it is free. If nothing is unmapped it has
    // to be as the program wants it.
    let is_recorded = if has_changes() { changes::give_up(range).1 } else { take_out(range) };
    if is_recorded {
        tell_unmapped(range);
    }
    is_recorded
}

/// Something of `range` that was to be unmapped is still there, and is recorded no more.
pub fn not_unmapped(range: &Range<usize>) {
    if !has_changes() {
        advice::as_by_itself(range);
    }
}

/// What moves.
pub struct Moving {
    /// The protection of all of it, if it is recorded and has one.
    protection: Option<c_int>,
    /// The protection where a second mapping is made of.
    doubled: Option<c_int>,
}

/// The program is about to move or resize what is mapped at `from`, in place of what is at `onto`.
pub fn moving(from: &Range<usize>, onto: &Range<usize>) -> Moving {
    let nothing = Moving { protection: None, doubled: None };
    if !has_changes() || !are_followed() {
        return nothing;
    }
    unmapping(onto);
    if from.is_empty() {
        return Moving { doubled: changes::protection_at(from.start), ..nothing };
    }
    let (protection, is_recorded) = changes::give_up(from);
    if is_recorded && protection.is_none() {
        tell_unmapped(from);
    }
    Moving { protection, ..nothing }
}

/// What was mapped at `from` is at `to` now, or has a second mapping there where `from` is empty.
pub fn moved(moving: &Moving, from: &Range<usize>, to: &Range<usize>) {
    let values = [from.start as u64, from.len() as u64, to.start as u64, to.len() as u64];
    if !has_changes() {
        let is_recorded = start::running().is_some() && !from.is_empty() && take_out(from);
        unmapping(to);
        if is_recorded {
            if !RECORDED.add(to, 0) {
                advice::as_by_itself(to);
            }
            tell(Kind::Move, values);
        }
        return;
    }
    if let Some(protection) = moving.doubled {
        // It has the protection that the first one has just now.
        changes::set_unrecorded(to, protection);
    }
    if let Some(protection) = moving.protection {
        tell(Kind::Move, values);
        if !changes::begin(to, protection) {
            tape_file::lose();
        }
    }
}

/// It is where it was.
pub fn not_moved(moving: &Moving, from: &Range<usize>) {
    if let Some(protection) = moving.protection
        && !changes::begin(from, protection)
    {
        tape_file::lose();
    }
}

/// The program gives `range` another protection, by `call`.
pub fn protect(range: &Range<usize>, protection: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if !RECORDED.has(range) || !are_followed() {
        return call();
    }
    let result = if has_changes() { changes::protect(range, protection, call) } else { call() };
    if result == 0 && start::running().is_some() {
        if protection & libc::PROT_WRITE != 0 {
            HAS_COPIES.store(true, Ordering::Relaxed);
        }
        let protection = u64::from(protection.cast_unsigned());
        tell(Kind::Protect, [range.start as u64, range.len() as u64, protection, 0]);
    }
    result
}

/// The program advises `range`, by `call`. `None` says that this is not to be carried out.
pub fn advise(range: &Range<usize>, advice: c_int, call: impl FnOnce() -> c_int) -> Option<c_int> {
    if start::running().is_none() || !RECORDED.has(range) {
        return Some(call());
    }
    let number = u64::from(advice.cast_unsigned());
    tell(Kind::Madvise, [range.start as u64, range.len() as u64, number, 0]);
    if has_changes() {
        let lent = !WITHOUT_TOUCH.contains(&advice);
        let _lent = lent.then(|| changes::lend(iter::once(range.clone()), true)).flatten();
        return Some(call());
    }
    let is_carried_out = advice == libc::MADV_POPULATE_READ || !ON_READING.contains(&advice);
    is_carried_out.then(call)
}

/// Whether anything is recorded.
pub fn is_anything() -> bool {
    !RECORDED.is_empty()
}

/// The number of a descriptor's open file, if that is recorded.
fn open_of(descriptor: c_int) -> Option<u64> {
    if descriptor < 0 {
        return None;
    }
    opens::number_read(start::running()?, descriptor)
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
    has_changes() || OF_FILES_CARRIED_OUT.contains(&advice)
}

/// The program is about to have a part of a file read ahead. Returns whether that is to be carried
/// out.
pub fn reading_ahead(descriptor: c_int, offset: u64, length: u64) -> bool {
    let Some(open) = open_of(descriptor) else { return true };
    tell(Kind::Readahead, [open, offset, length, 0]);
    has_changes()
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

/// A fault at `address`, in the handler.
pub fn fault(address: usize) {
    let Some(run) = start::observing() else { return };
    // Most minor faults are those of other memory.
    let is_recorded =
        || LACKS_SOME.load(Ordering::Relaxed) || RECORDED.has(&(address..address + 1));
    if run.settings.all_faults && !is_recorded() {
        return;
    }
    // The signal does not say it, but the page is another one than the file's by now.
    let is_write =
        HAS_COPIES.load(Ordering::Relaxed) && page_tables::is_copy(address, run.page_size);
    tell_in_handler(Kind::Touch, [address as u64, is_write.into(), 0, 0]);
}

/// A touch that the kernel has refused, in the handler. Returns whether it was refused for the
/// recording, so that it can be tried again.
pub fn touched(access: &Access) -> bool {
    let touched = changes::touched(access);
    if let Touched::Told { is_write } = touched {
        tell_in_handler(Kind::Touch, [access.address as u64, is_write.into(), 0, 0]);
    }
    touched != Touched::NotOurs
}

/// Nothing is observed any more.
pub fn stopped(reason: Reason) {
    give_back();
    tell(Kind::End, [reason as u64, 0, 0, 0]);
}

/// Nothing that was done for mappings stays.
fn give_back() {
    if has_changes() {
        changes::give_all_back();
        return;
    }
    RECORDED.parts(&(0..usize::MAX)).for_each(|found| {
        advice::as_by_itself(&found.range);
    });
}

/// The process is about to fork.
pub fn before_fork() {
    tell(Kind::Fork, [tape_file::next_fork(), 0, 0, 0]);
    RECORDED.hold_over_fork();
}

/// It has forked, and this is the parent or the child; or it could not.
pub fn fork_is_over() {
    RECORDED.fork_is_over();
}

/// This is the child of a fork now. It has its parent's mappings.
pub fn after_fork() {
    RECORDED.release_after_fork();
    callers::after_fork();
    tape_file::after_fork();
    if has_changes() {
        changes::after_fork();
    }
}

/// The process ends.
pub fn ends() {
    if start::running().is_none() {
        return;
    }
    if has_changes() {
        // Some of the program may still run.
        stand_down::now(Reason::None);
        return;
    }
    tell(Kind::End, [Reason::None as u64, 0, 0, 0]);
}
