//! The regions of a file that a program came to.

use std::collections::BTreeMap;
use std::mem;

use crate::pages::Pages;
use crate::region::{Open, REGION_PAGES, Region};

/// Regions of one generation. Two of them are kept: 20 MiB of memory at the most, which is enough
/// for 128 GiB of a file.
const GENERATION: usize = 32_768;

/// The regions by number. When a generation is full, the one before it is forgotten, but for the
/// regions that were come to since.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    young: BTreeMap<u64, Region>,
    old: BTreeMap<u64, Region>,
    open: Open,
}

impl Regions {
    /// The sums over the regions that were come to and not bought.
    pub const fn open(&self) -> Open {
        self.open
    }

    /// Does something with the region of `page`.
    pub fn with<T>(&mut self, page: u64, change: impl FnOnce(&mut Region) -> T) -> T {
        let number = page / REGION_PAGES;
        let Regions { young, old, open } = self;
        if !young.contains_key(&number) {
            let region = old.remove(&number).unwrap_or(Region::NEW);
            if young.len() >= GENERATION {
                for (&number, forgotten) in &mem::replace(old, mem::take(young)) {
                    open.take(forgotten.open(number));
                }
            }
            young.insert(number, region);
        }
        let region = young.get_mut(&number).expect("it was inserted");
        open.take(region.open(number));
        let result = change(region);
        open.add(region.open(number));
        result
    }

    /// Notes that these pages are in memory or will be.
    pub fn add(&mut self, pages: Pages) {
        let mut first = pages.first;
        while first < pages.end {
            let end = (first / REGION_PAGES + 1).saturating_mul(REGION_PAGES).min(pages.end);
            self.with(first, |region| region.add(Pages { first, end }));
            first = end;
        }
    }
}
