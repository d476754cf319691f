//! A file that is read as the policy says: a set of pages, and no time.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod plain;

use filemap_policy::{Bounds, Pages, State};

/// The largest window that the tests use, if they do not say otherwise: 16 MiB of 4 KiB pages.
pub const LARGEST: u64 = 4096;

/// The generator of the commands' random accesses.
pub struct Random(pub u64);

impl Random {
    pub const NEW: Random = Random(88_172_645_463_325_252);

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// So many runs of adjacent pages, at places of their own in a file of `of` pages.
    pub fn runs(&mut self, count: u64, pages: u64, of: u64) -> Vec<u64> {
        let starts: Vec<u64> = (0..count).map(|_| self.below(of - pages)).collect();
        starts.into_iter().flat_map(|start| start..start + pages).collect()
    }

    /// Pages alone.
    pub fn pages(&mut self, count: u64, of: u64) -> Vec<u64> {
        (0..count).map(|_| self.below(of)).collect()
    }
}

/// A mapping of a whole file.
pub fn whole(pages: u64) -> Bounds {
    Bounds { mapping: Pages { first: 0, end: pages }, file_pages: pages }
}

/// What a fault is answered with.
pub fn asked(state: &mut State, page: u64, bounds: Bounds) -> Vec<(u64, u64)> {
    state.fault(page, bounds).ranges().map(|pages| (pages.first, pages.end)).collect()
}

/// A cold file that a program reads.
pub struct Governed {
    pub state: State,
    bounds: Bounds,
    cached: Vec<bool>,
    touched: Vec<bool>,
    /// Major faults.
    pub faults: u64,
    /// Pages that were read.
    pub read: u64,
}

impl Governed {
    pub fn new(pages: u64) -> Governed {
        Governed {
            state: State::new(LARGEST),
            bounds: whole(pages),
            cached: vec![false; pages as usize],
            touched: vec![false; pages as usize],
            faults: 0,
            read: 0,
        }
    }

    /// A file of `pages` pages after these touches.
    pub fn after(pages: u64, touches: impl IntoIterator<Item = u64>) -> Governed {
        let mut governed = Governed::new(pages);
        touches.into_iter().for_each(|page| governed.touch(page));
        governed
    }

    pub fn touch(&mut self, page: u64) {
        self.touched[page as usize] = true;
        if self.cached[page as usize] {
            return;
        }
        self.faults += 1;
        self.add(page);
        for range in self.state.fault(page, self.bounds).ranges() {
            (range.first..range.end).for_each(|page| self.add(page));
        }
    }

    /// Pages that the program came to.
    pub fn touched(&self) -> u64 {
        self.touched.iter().filter(|touched| **touched).count() as u64
    }

    fn add(&mut self, page: u64) {
        let cached = &mut self.cached[page as usize];
        self.read += u64::from(!*cached);
        *cached = true;
    }
}
