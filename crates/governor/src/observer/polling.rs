//! A thread that looks at the page tables for pages that have come, while there are major faults.
//!
//! It is the weaker observer: it comes later than a fault, does not know in which order pages came
//! within one look, and takes time of its own. It needs no permission.

use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{ptr, thread};

use crate::policy::Reads;
use filemap_control::layout::{MAPPINGS, Reason};
use rustix::thread::{Timespec, futex};

use super::descriptor;
use crate::disposition::with_signals_blocked;
use crate::start::{self, Run};
use crate::table::Mapping;
use crate::{page_tables, purpose};

/// Between two looks, while there are major faults.
const SHORTEST: Duration = Duration::from_millis(1);

/// Between two looks at whether there are, after a while without.
const LONGEST: Duration = Duration::from_millis(50);

/// A look may take one in so many parts of the time.
const PART: u32 = 10;

/// Whether this is the observer of the process.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// The thread; 0 while there is none.
static THREAD: AtomicU64 = AtomicU64::new(0);

/// 1 when the thread has to end.
static IS_OVER: AtomicU32 = AtomicU32::new(0);

/// Opens the page tables. Returns whether this kernel tells which pages are mapped.
pub fn open() -> bool {
    let here = &raw const IS_OPEN;
    let page = start::page_size();
    let start = here.addr() / page * page;
    let Some(opened) = page_tables::open() else { return false };
    if page_tables::scan(opened.as_fd(), &(start..start + page), |_| {}).is_none() {
        return false;
    }
    let is_open = descriptor::keep(opened.into_raw_fd());
    IS_OPEN.store(is_open, Ordering::Relaxed);
    is_open
}

/// Whether this is the observer of the process.
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Relaxed)
}

/// The page tables, under the number that they have just now.
fn tables() -> Option<BorrowedFd<'static>> {
    // SAFETY: it is ours, and closed only when it has another number.
    descriptor::get().map(|number| unsafe { BorrowedFd::borrow_raw(number) })
}

/// Starts the thread, if it was not started.
pub fn start_if_needed() {
    if IS_STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    // The program's signals are none of this thread's.
    let started = with_signals_blocked(|| {
        thread::Builder::new().name("filemap-govern".to_string()).spawn(poll)
    });
    match started {
        Ok(thread) => THREAD.store(thread.into_pthread_t(), Ordering::Release),
        Err(_) => crate::stand_down::now(Reason::NoObserver),
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// The thread that calls is not cancelled before it says otherwise.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Ends the thread, and waits until it makes no call any more.
pub fn end() {
    let thread = THREAD.swap(0, Ordering::AcqRel);
    if thread == 0 {
        return;
    }
    IS_OVER.store(1, Ordering::Release);
    let _ = futex::wake(&IS_OVER, futex::Flags::PRIVATE, 1);
    let mut before = 0;
    // SAFETY: the number is of a thread that nobody else waits for, and the places are ours.
    unsafe {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before);
        libc::pthread_join(thread, ptr::null_mut());
        pthread_setcancelstate(before, ptr::null_mut());
    }
}

/// In the child of a fork there is no such thread.
pub fn after_fork() {
    THREAD.store(0, Ordering::Relaxed);
}

/// Sleeps so long, or until the thread has to end.
fn sleep(time: Duration) {
    let seconds = time.as_secs().try_into().unwrap_or(i64::MAX);
    let limit = Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() };
    let _ = futex::wait(&IS_OVER, futex::Flags::PRIVATE, 0, Some(&limit));
}

fn poll() {
    let mut watched: Vec<Option<Watched>> = Vec::new();
    if watched.try_reserve_exact(MAPPINGS).is_err() {
        crate::stand_down::now(Reason::NoObserver);
        return;
    }
    let is_over = || IS_OVER.load(Ordering::Acquire) == 1;
    let (mut pause, mut before) = (SHORTEST, major_faults());
    while let Some(run) = start::running() {
        sleep(pause);
        // The program may have ended that meanwhile: then no call is made any more.
        if is_over() || start::running().is_none() {
            return;
        }
        let now = major_faults();
        if now == before {
            pause = (pause * 2).min(LONGEST);
            continue;
        }
        before = now;
        let begun = Instant::now();
        let asking = look(run, &mut watched);
        pause = (begun.elapsed().saturating_sub(asking) * PART).max(SHORTEST);
    }
}

fn major_faults() -> i64 {
    // SAFETY: all fields may be zero, and the call fills them.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_majflt
    }
}

/// Looks at all mappings that are to be watched. Returns how much of that was spent on asking the
/// kernel to read, which would have taken the program's time otherwise.
fn look(run: &'static Run, watched: &mut Vec<Option<Watched>>) -> Duration {
    let asking = Cell::new(Duration::ZERO);
    for (number, mapping) in purpose::watched() {
        if watched.len() <= number {
            watched.resize_with(number + 1, || None);
        }
        let Some(place) = watched.get_mut(number) else { continue };
        if mapping.range.is_empty() {
            *place = None;
            continue;
        }
        if place.as_ref().is_none_or(|of| !of.is_of(&mapping)) {
            *place = Watched::new(&mapping, run.page_size);
            if place.is_none() {
                purpose::not_watched(&mapping.range);
            }
        }
        let Some(of) = place else { continue };
        // Where it moves on, it is looked at again with the next one.
        let _ = of.look(|address| {
            let begun = Instant::now();
            let reads = purpose::has_come(run, number, address);
            asking.set(asking.get() + begun.elapsed());
            reads
        });
    }
    asking.get()
}

/// What is known of the pages of a mapping.
struct Watched {
    range: Range<usize>,
    first_page: u64,
    page_size: usize,
    /// A bit for each page: it was mapped, or it was asked for.
    known: Vec<u64>,
}

impl Watched {
    /// `None` where there is no memory for it.
    fn new(mapping: &Mapping, page_size: usize) -> Option<Watched> {
        let range = mapping.range.clone();
        let words = (range.len() / page_size).div_ceil(64);
        let mut known = Vec::new();
        known.try_reserve_exact(words).ok()?;
        known.resize(words, 0);
        Some(Watched { range, first_page: mapping.first_page, page_size, known })
    }

    fn is_of(&self, mapping: &Mapping) -> bool {
        self.range == mapping.range && self.first_page == mapping.first_page
    }

    /// Notes a page by its number in the mapping. Returns whether it was not known.
    fn note(&mut self, page: usize) -> bool {
        let Some(word) = self.known.get_mut(page / 64) else { return false };
        let bit = 1 << (page % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Where pages may have come: ranges of addresses of which not all pages are known, from the
    /// word `from` on. Returns the first of them, and the word behind it.
    fn unknown(&self, from: usize) -> Option<(Range<usize>, usize)> {
        let words = self.known.get(from..)?;
        let first = from + words.iter().position(|word| *word != u64::MAX)?;
        let words = self.known.get(first..)?;
        let count = words.iter().position(|word| *word == u64::MAX).unwrap_or(words.len());
        let address = |word: usize| self.range.start + word * 64 * self.page_size;
        Some((address(first)..address(first + count).min(self.range.end), first + count))
    }

    /// Tells `missing` the addresses of pages that are mapped by now and were neither mapped nor
    /// asked for before.
    fn look(&mut self, missing: impl Fn(usize) -> Reads) -> Option<()> {
        let mut from = 0;
        while let Some((range, behind)) = self.unknown(from) {
            page_tables::scan(tables()?, &range, |region| {
                let pages = (region.start as usize..region.end as usize).step_by(self.page_size);
                pages.for_each(|address| self.came(address, &missing));
            })?;
            from = behind;
        }
        Some(())
    }

    /// A page is mapped.
    fn came(&mut self, address: usize, missing: &impl Fn(usize) -> Reads) {
        if !self.note((address - self.range.start) / self.page_size) {
            return;
        }
        for pages in missing(address).ranges() {
            for asked in pages.first..pages.end {
                self.note(asked.saturating_sub(self.first_page) as usize);
            }
        }
    }
}
