//! A thread that looks at the page tables for pages that have come, while there are major faults.
//!
//! It is the weaker observer: it comes later than a fault, does not know in which order pages came
//! within one look, and takes time of its own. It needs no permission.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use filemap_control::layout::{MAPPINGS, Reason};
use filemap_policy::Reads;

use crate::disposition::with_signals_blocked;
use crate::page_tables::PageTables;
use crate::purpose;
use crate::start::{self, Run};
use crate::table::Mapping;

/// Between two looks, while there are major faults.
const SHORTEST: Duration = Duration::from_millis(1);

/// Between two looks at whether there are, after a while without.
const LONGEST: Duration = Duration::from_millis(50);

/// A look may take one in so many parts of the time.
const PART: u32 = 10;

static IS_STARTED: AtomicBool = AtomicBool::new(false);

/// Whether this kernel tells which pages are mapped.
pub fn is_possible() -> bool {
    let here = &raw const IS_STARTED;
    let page = start::page_size();
    let start = here.addr() / page * page;
    PageTables::open().and_then(|tables| tables.scan(&(start..start + page), |_| {})).is_some()
}

/// Starts the thread, if it was not started.
pub fn start_if_needed() {
    if IS_STARTED.swap(true, Ordering::Relaxed) {
        return;
    }
    // The program's signals are none of this thread's.
    let started = with_signals_blocked(|| {
        thread::Builder::new().name("filemap-govern".to_string()).spawn(poll).is_ok()
    });
    if !started {
        crate::stand_down::now(Reason::NoObserver);
    }
}

fn poll() {
    let mut watched: Vec<Option<Watched>> = Vec::new();
    let is_reserved = watched.try_reserve_exact(MAPPINGS).is_ok();
    let Some(tables) = PageTables::open().filter(|_| is_reserved) else {
        crate::stand_down::now(Reason::NoObserver);
        return;
    };
    let (mut pause, mut before) = (SHORTEST, major_faults());
    while let Some(run) = start::running() {
        thread::sleep(pause);
        // The program may have ended that meanwhile: then no call is made any more.
        if start::running().is_none() {
            return;
        }
        let now = major_faults();
        if now == before {
            pause = (pause * 2).min(LONGEST);
            continue;
        }
        before = now;
        let begun = Instant::now();
        let asking = look(run, &tables, &mut watched);
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
fn look(run: &'static Run, tables: &PageTables, watched: &mut Vec<Option<Watched>>) -> Duration {
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
        let _ = of.look(tables, |address| {
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
    fn look(&mut self, tables: &PageTables, missing: impl Fn(usize) -> Reads) -> Option<()> {
        let mut from = 0;
        while let Some((range, behind)) = self.unknown(from) {
            tables.scan(&range, |region| {
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
