//! What the rules ask at each place where they can be made wrong: compiled into a copy of the core
//! as its module `switched`, with `SITES` from the generator.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::units::{Order, PageCount, PageIndex, Vpn};

/// What a site does: as it is written (0), one of its wrong ways, or note which of those matter.
static WAYS: [AtomicU8; SITES] = [const { AtomicU8::new(0) }; SITES];

/// Of each site, the wrong ways that would have made a difference there: a bit each.
static MATTERS: [AtomicU8; SITES] = [const { AtomicU8::new(0) }; SITES];

/// How often the rules asked.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// How often they may, until a job counts as one that does not end.
static MOST: AtomicU64 = AtomicU64::new(u64::MAX);

/// The way of a site that notes.
pub const NOTES: u8 = u8::MAX;

pub fn set(site: usize, way: u8) {
    WAYS[site].store(way, Relaxed);
}

/// What a site noted since this was last asked.
pub fn taken(site: usize) -> u8 {
    MATTERS[site].swap(0, Relaxed)
}

/// Begins to count what the rules ask; at most `most` from here on. Returns how often they did.
pub fn count(most: u64) -> u64 {
    MOST.store(most, Relaxed);
    ASKED.swap(0, Relaxed)
}

/// Counts, and ends a run that has no end.
#[inline(always)]
pub fn ask() {
    let asked = ASKED.load(Relaxed);
    ASKED.store(asked + 1, Relaxed);
    if asked >= MOST.load(Relaxed) {
        no_end();
    }
}

#[inline(always)]
fn way(site: usize) -> u8 {
    ask();
    WAYS[site].load(Relaxed)
}

#[cold]
#[inline(never)]
fn no_end() -> ! {
    MOST.store(u64::MAX, Relaxed);
    std::panic::resume_unwind(Box::new("it does not end"))
}

#[cold]
#[inline(never)]
fn note(site: usize, ways: u8) {
    MATTERS[site].fetch_or(ways, Relaxed);
}

/// The first of `all`, as the rule is written, or another one.
#[inline(always)]
pub fn choose<T: Copy + PartialEq, const N: usize>(site: usize, all: [T; N]) -> T {
    match way(site) {
        0 => all[0],
        NOTES => {
            let differs = |way: &usize| all[*way] != all[0];
            note(site, (1..N).filter(differs).fold(0, |bits, way| bits | 1 << way));
            all[0]
        }
        other => all[usize::from(other)],
    }
}

/// Whether what is written there is done.
#[inline(always)]
pub fn kept(site: usize) -> bool {
    match way(site) {
        0 => true,
        NOTES => {
            note(site, 2);
            true
        }
        _ => false,
    }
}

/// One more, or one less.
#[inline(always)]
pub fn beside<T: Beside>(site: usize, value: T) -> T {
    match way(site) {
        0 => value,
        NOTES => {
            note(site, 6);
            value
        }
        1 => value.more(),
        _ => value.less(),
    }
}

pub trait Beside: Copy {
    fn more(self) -> Self;
    fn less(self) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Beside for $number {
            fn more(self) -> Self {
                self.wrapping_add(1)
            }
            fn less(self) -> Self {
                self.wrapping_sub(1)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, usize);

macro_rules! wrapped {
    ($($wrapped:ident),*) => {$(
        impl Beside for $wrapped {
            fn more(self) -> Self {
                $wrapped(self.0.more())
            }
            fn less(self) -> Self {
                $wrapped(self.0.less())
            }
        }
    )*};
}

wrapped!(Order, PageCount, PageIndex, Vpn);
