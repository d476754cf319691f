//! Changes of page. What is recorded may not be touched, but for the last few pages that were: so
//! each touch of another page is told by the kernel with a SIGSEGV. The page is opened with the
//! protection that the program gave it, but for writing only where it is written to, and the
//! page that was opened longest ago is closed.
//!
//! The pages are those of the process, as its page tables are. All functions that are given the
//! ranges are called with their lock held.

use std::ffi::c_int;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use filemap_control::OPEN_PAGES;
use libc::{PROT_EXEC, PROT_READ, PROT_WRITE};
use rustix::mm::MprotectFlags;

use super::ranges::{Found, Ranges};
use super::recorded::{RECORDED, this_thread};
use super::tape_file;
use crate::access::Access;
use crate::start;

/// Bit of a range's word, above those of its protection: it stays open.
const STAYS_OPEN: usize = 1 << 16;

/// Bit of an open page's address: it is open for writing.
const WRITABLE: usize = 1;

/// The most calls at once that are handed recorded memory. Of more nothing is recorded.
const MOST_CALLS: usize = 256;

/// How often a thread may find a page refused that is open, before it is the program's affair.
const MOST_RETRIES: usize = 1 << 14;

/// The most pages that are left open one by one for atomic instructions. Each may cost the process
/// two mappings, of which it may not have many.
const MOST_LEFT_OPEN: usize = 1000;

/// The most threads whose touches may be under way when everything is given back.
const MOST_THREADS: usize = 1 << 12;

/// The pages that are open, and the number of those that were opened so far.
struct Open {
    pages: [AtomicUsize; OPEN_PAGES],
    count: AtomicUsize,
    /// The page that was found open last, and how often in a row.
    retried: AtomicUsize,
    retries: AtomicUsize,
    /// Pages that were left open for atomic instructions.
    left: AtomicUsize,
}

static OPEN: Open = Open {
    pages: [const { AtomicUsize::new(0) }; OPEN_PAGES],
    count: AtomicUsize::new(0),
    retried: AtomicUsize::new(0),
    retries: AtomicUsize::new(0),
    left: AtomicUsize::new(0),
};

/// Everything was given back, and nothing is recorded any more.
static IS_GIVEN_BACK: AtomicBool = AtomicBool::new(false);

/// The threads that have tried a touch again since then. 0 is free.
static TRIED: [AtomicUsize; MOST_THREADS] = [const { AtomicUsize::new(0) }; MOST_THREADS];

/// Memory that a call has been handed. An empty range is free.
struct Handed {
    start: AtomicUsize,
    end: AtomicUsize,
    /// The call writes to it.
    is_written: AtomicBool,
}

static HANDED: [Handed; MOST_CALLS] = [const {
    Handed {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_written: AtomicBool::new(false),
    }
}; MOST_CALLS];

/// Places of [`HANDED`] behind the last one that was ever used.
static HANDED_USED: AtomicUsize = AtomicUsize::new(0);

impl Handed {
    fn range(&self) -> Range<usize> {
        self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)
    }

    fn set(&self, range: &Range<usize>, is_written: bool) {
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.is_written.store(is_written, Ordering::Relaxed);
    }

    fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Relaxed)
    }
}

fn handed() -> impl Iterator<Item = &'static Handed> {
    HANDED.iter().take(HANDED_USED.load(Ordering::Relaxed))
}

/// Whether a call writes to something of `range`: less rights would make it fail.
fn is_written_by_call(range: &Range<usize>) -> bool {
    let mut written = handed().filter(|handed| handed.is_written()).map(Handed::range);
    written.any(|of| of.start < range.end && of.end > range.start)
}

/// What came of a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// It is for the program to handle.
    NotOurs,
    /// It can be tried again: the page was opened meanwhile.
    Again,
    /// It is a change of page, and is to be told.
    Told { is_write: bool },
}

/// The program's own protection.
fn own(word: usize) -> c_int {
    (word & (STAYS_OPEN - 1)) as c_int
}

/// The same without the right to write. What may be written may be read.
fn for_reading(word: usize) -> c_int {
    match own(word) {
        own if own & PROT_WRITE != 0 => own & !PROT_WRITE | PROT_READ,
        own => own,
    }
}

/// Protects memory. Returns whether the kernel could.
fn set(range: &Range<usize>, protection: c_int) -> bool {
    let flags = MprotectFlags::from_bits_retain(protection.cast_unsigned());
    let address = ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the range is part of a mapping of the program's, which gets no more rights than the
    // program gave it. What it lacks is given back when it is touched.
    unsafe { rustix::mm::mprotect(address, range.len(), flags) }.is_ok()
}

fn page_of(address: usize) -> Range<usize> {
    let bytes = start::page_size();
    let first = address / bytes * bytes;
    first..first + bytes
}

/// The pages that are open, in no order.
fn open_pages() -> impl Iterator<Item = (usize, &'static AtomicUsize)> {
    let pages = OPEN.pages.iter().map(|place| (place.load(Ordering::Relaxed), place));
    pages.filter(|(page, _)| *page != 0)
}

/// From `at` on the first part that has to stay open, up to `end`.
fn kept_from(at: usize, end: usize) -> Range<usize> {
    let pages = open_pages().map(|(page, _)| page_of(page));
    let all = pages.chain(handed().map(Handed::range));
    let ahead = all.filter(|kept| kept.end > at && kept.start < end && !kept.is_empty());
    let first = ahead.min_by_key(|kept| kept.start);
    first.map_or(end..end, |kept| kept.start.max(at)..kept.end.min(end))
}

/// Closes `range`, but for what has to stay open.
fn close(ranges: &Ranges, range: &Range<usize>) {
    for Found { range: part, word } in ranges.parts(range) {
        if word & STAYS_OPEN != 0 || own(word) == 0 {
            continue;
        }
        let mut at = part.start;
        while at < part.end {
            let kept = kept_from(at, part.end);
            if kept.start > at && !set(&(at..kept.start), 0) {
                // The process has as many mappings as it may have: what is open stays so.
                tape_file::lose();
            }
            at = kept.end;
        }
    }
}

/// Opens `range` as the program wants it, for writing only where that is said, or a call writes.
fn open(ranges: &Ranges, range: &Range<usize>, writes: bool) -> bool {
    let mut is_open = true;
    for Found { range: part, word } in ranges.parts(range) {
        let is_written = writes || is_written_by_call(&part);
        let protection = if is_written { own(word) } else { for_reading(word) };
        is_open &= word & STAYS_OPEN != 0 || set(&part, protection);
    }
    is_open
}

/// Gives `range` the words that `change` makes of its own. Where there is no room it is recorded no
/// more.
fn change_words(ranges: &Ranges, range: &Range<usize>, change: impl Fn(usize) -> usize) {
    for Found { range: part, word } in ranges.parts(range) {
        let lost = ranges.remove(&part, || ());
        if !ranges.add(part.clone(), change(word), || ()) {
            set(&part, own(change(word)));
            tape_file::lose();
        }
        if let Some(Found { range: behind, word }) = lost {
            set(&behind, own(word));
            tape_file::lose();
        }
    }
}

/// Leaves `range` open from here on.
fn leave_open(ranges: &Ranges, range: &Range<usize>) {
    open(ranges, range, true);
    forget_open(range);
    change_words(ranges, range, |word| word | STAYS_OPEN);
}

fn forget_open(range: &Range<usize>) {
    let inside = open_pages().filter(|(page, _)| range.contains(&(page & !WRITABLE)));
    inside.for_each(|(_, place)| place.store(0, Ordering::Relaxed));
}

/// Whether a page was found open too often in a row.
fn is_in_vain(page: usize) -> bool {
    let again = OPEN.retried.swap(page, Ordering::Relaxed) == page;
    let retries = if again { OPEN.retries.load(Ordering::Relaxed) + 1 } else { 0 };
    OPEN.retries.store(retries, Ordering::Relaxed);
    retries > MOST_RETRIES
}

/// Whether a touch of what is not recorded may have been refused before everything was given back.
/// It is tried again then, but once in each thread: all touches since are the program's affair.
fn may_be_late() -> bool {
    if !IS_GIVEN_BACK.load(Ordering::Relaxed) {
        return false;
    }
    let thread = this_thread();
    for tried in &TRIED {
        match tried.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(known) if known == thread => return false,
            Err(_) => {}
        }
    }
    false
}

/// A touch that the kernel has refused, in the handler.
pub fn touched(access: &Access) -> Touched {
    RECORDED.in_handler(|ranges| {
        let page = page_of(access.address);
        let Some(Found { range: whole, word }) = ranges.first(&page) else {
            return if may_be_late() { Touched::Again } else { Touched::NotOurs };
        };
        let wanted = match () {
            () if access.is_write => PROT_WRITE,
            () if access.is_fetch() => PROT_EXEC,
            () => PROT_READ | PROT_WRITE | PROT_EXEC,
        };
        if own(word) & wanted == 0 {
            return Touched::NotOurs;
        }
        let known = open_pages().find(|(of, _)| of & !WRITABLE == page.start);
        let is_writable = known.is_some_and(|(of, _)| of & WRITABLE != 0);
        // Where the kernel does not say, what may be read already is written.
        let may_write = own(word) & PROT_WRITE != 0;
        let is_write =
            access.is_write || !cfg!(target_arch = "x86_64") && known.is_some() && may_write;
        let is_open = known.is_some() && (is_writable || !is_write);
        if word & STAYS_OPEN != 0 || is_open || start::observing().is_none() {
            // Another thread has opened it, or the program has gone around the C library.
            open(ranges, &page, is_write || is_writable);
            if word & STAYS_OPEN != 0 || start::observing().is_none() {
                set(&page, own(word));
            }
            return if is_in_vain(page.start) { Touched::NotOurs } else { Touched::Again };
        }
        OPEN.retried.store(0, Ordering::Relaxed);
        if access.is_atomic(|place| ranges.first(&page_of(place)).is_none()) {
            // There may be a lock, at which the kernel looks in futex(2).
            if OPEN.left.fetch_add(1, Ordering::Relaxed) < MOST_LEFT_OPEN {
                leave_open(ranges, &page);
            } else {
                leave_open(ranges, &whole);
                tape_file::lose();
            }
            return Touched::Told { is_write: true };
        }
        let stored = page.start | if is_write { WRITABLE } else { 0 };
        let oldest = match known {
            Some((_, place)) => {
                place.store(stored, Ordering::Relaxed);
                0
            }
            None => {
                let count = OPEN.count.fetch_add(1, Ordering::Relaxed);
                let place = OPEN.pages.get(count % OPEN_PAGES);
                place.map_or(0, |place| place.swap(stored, Ordering::Relaxed))
            }
        };
        if !open(ranges, &page, is_write) {
            // The process has as many mappings as it may have: it goes on without this one.
            leave_open(ranges, &whole);
            tape_file::lose();
        }
        if oldest != 0 {
            close(ranges, &page_of(oldest));
        }
        Touched::Told { is_write }
    })
}

/// Records a range that was mapped with `protection`. Returns whether there was room.
pub fn begin(range: &Range<usize>, protection: c_int) -> bool {
    RECORDED.change(|ranges| {
        if start::observing().is_none() {
            // It has stopped meanwhile: nobody would give the range back.
            return true;
        }
        let word = protection.cast_unsigned() as usize;
        let is_added = ranges.add(range.clone(), word, || ());
        if is_added {
            close(ranges, range);
        }
        is_added
    })
}

/// Gives a range back, and records it no more. Returns the protection that all of it has, if it has
/// one, and whether anything of it was recorded.
pub fn give_up(range: &Range<usize>) -> (Option<c_int>, bool) {
    if !RECORDED.has(range) {
        return (None, false);
    }
    RECORDED.change(|ranges| {
        let mut protections = ranges.parts(range).map(|part| own(part.word));
        let first = protections.next();
        let is_one = protections.all(|other| Some(other) == first);
        give_back(ranges, range);
        drop_out(ranges, range);
        (first.filter(|_| is_one), first.is_some())
    })
}

/// Records a range no more in whose place something else is by now. Returns whether anything of it
/// was recorded.
pub fn forget(range: &Range<usize>) -> bool {
    let had = RECORDED.has(range);
    if had {
        RECORDED.change(|ranges| drop_out(ranges, range));
    }
    had
}

fn give_back(ranges: &Ranges, range: &Range<usize>) {
    for Found { range: part, word } in ranges.parts(range) {
        set(&part, own(word));
    }
}

fn drop_out(ranges: &Ranges, range: &Range<usize>) {
    forget_open(range);
    if let Some(Found { range: behind, word }) = ranges.remove(range, || ()) {
        set(&behind, own(word));
        tape_file::lose();
    }
}

/// Gives everything back when nothing is observed any more, and records it no more: what the
/// program does with its memory from here on is not followed.
pub fn give_all_back() {
    RECORDED.change(|ranges| {
        let everything = 0..usize::MAX;
        give_back(ranges, &everything);
        drop_out(ranges, &everything);
        IS_GIVEN_BACK.store(true, Ordering::Relaxed);
    });
}

/// mprotect(2) of `range`, which is done by `call`.
pub fn protect(range: &Range<usize>, protection: c_int, call: impl FnOnce() -> c_int) -> c_int {
    RECORDED.change(|ranges| {
        let result = call();
        if result == 0 {
            change_words(ranges, range, |_| protection.cast_unsigned() as usize);
        }
        if start::observing().is_some() {
            forget_open(range);
            close(ranges, range);
        }
        result
    })
}

/// The protection at an address.
pub fn protection_at(address: usize) -> Option<c_int> {
    RECORDED.parts(&page_of(address)).next().map(|found| own(found.word))
}

/// Gives memory that is not recorded a protection.
pub fn set_unrecorded(range: &Range<usize>, protection: c_int) {
    set(range, protection);
}

/// Memory that a call has been handed. It is taken back when this goes, also where the thread is
/// cancelled within the call.
pub struct Lent {
    place: &'static Handed,
    range: Range<usize>,
    /// Some of it was opened for writing.
    is_writable: bool,
}

/// Hands a call what is recorded of `ranges`, to be written to where that is said. `None` where
/// nothing is.
pub fn lend(wanted: impl Iterator<Item = Range<usize>> + Clone, writes: bool) -> Option<Lent> {
    let bytes = start::page_size();
    let pages = |range: Range<usize>| {
        let end = range.end.checked_next_multiple_of(bytes);
        page_of(range.start).start..end.unwrap_or(usize::MAX)
    };
    let found = wanted.filter(|range| RECORDED.has(range)).map(pages);
    let whole = found.clone().reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
    RECORDED.change(|ranges| {
        if start::observing().is_none() {
            // What is about to be given back.
            found.for_each(|range| give_back(ranges, &range));
            return None;
        }
        let free = HANDED.iter().enumerate().find(|(_, place)| place.range().is_empty());
        let Some((index, place)) = free else {
            leave_open(ranges, &whole);
            tape_file::lose();
            return None;
        };
        place.set(&whole, writes);
        HANDED_USED.fetch_max(index + 1, Ordering::Relaxed);
        let mut is_writable = writes;
        for range in found {
            // A page that is open for writing stays so, and what another call writes to.
            let mut pages = open_pages().filter(|(page, _)| page & WRITABLE != 0);
            let has_writable = pages.any(|(page, _)| range.contains(&page));
            let for_writing = writes || has_writable || is_written_by_call(&range);
            open(ranges, &range, for_writing);
            is_writable |= for_writing;
        }
        Some(Lent { place, range: whole.clone(), is_writable })
    })
}

impl Drop for Lent {
    fn drop(&mut self) {
        RECORDED.change(|ranges| {
            self.place.set(&(0..0), false);
            if start::observing().is_none() {
                return;
            }
            close(ranges, &self.range);
            // What was open for reading was open for the call to write to. It stays so where
            // another call still writes.
            let read = open_pages().filter(|(page, _)| page & WRITABLE == 0);
            let inside = |page: &usize| self.is_writable && self.range.contains(page);
            for (page, _) in read.filter(|(page, _)| inside(page)) {
                open(ranges, &page_of(page), false);
            }
        });
    }
}

/// In the child of a fork: the calls are those of other threads of its parent.
pub fn after_fork() {
    if start::observing().is_none() {
        // The thread that gives everything back is not in the child.
        give_all_back();
        return;
    }
    RECORDED.change(|ranges| {
        for place in handed() {
            let range = place.range();
            place.set(&(0..0), false);
            if !range.is_empty() && start::observing().is_some() {
                close(ranges, &range);
            }
        }
    });
}
