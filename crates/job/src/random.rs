//! Random jobs: shared by all generators, so that a seed gives the same job everywhere.

use filemap_core::rules::{Kernel, Rules};
use filemap_core::series::{Series, Switch};

use crate::Workload;
use crate::elf::{Elf, Load};

/// A pseudo-random number generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True with a probability of `percent` percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A random element of `from`, which is not empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A workload over `pages` pages: one that touches, or with `reads` possibly one of `read(2)`.
pub fn workload(rng: &mut Rng, pages: u64, reads: bool) -> Workload {
    let stride = Workload::Stride(1 + rng.below(200));
    let streams = Workload::Interleave(1 + rng.below(pages.min(5)));
    match rng.below(if reads { 10 } else { 7 }) {
        0 | 1 => Workload::Random,
        2 => stride,
        3 | 4 => Workload::Sequential,
        5 => Workload::Reverse,
        6 => streams,
        7 | 8 => Workload::ReadRandom,
        _ => Workload::ReadSequential,
    }
}

/// An ELF file of `pages` pages of `page_size` bytes with random segments, which may share pages.
pub fn elf(rng: &mut Rng, pages: u64, page_size: u64) -> Elf {
    let mut address = 0;
    let count = 1 + rng.below(5);
    let loads = (0..count as usize).map(|number| {
        let first = rng.below(pages);
        let length = 1 + rng.below(pages - first);
        let into_page = rng.below(page_size);
        let start = address + into_page;
        address += (length + rng.below(3)) * page_size;
        Load {
            number,
            offset: first * page_size + into_page,
            file_bytes: length * page_size - into_page,
            address: start,
            executable: rng.chance(30),
            writable: false,
        }
    });
    let loads = loads.collect();
    Elf { size_bytes: pages * page_size, fixed: rng.chance(50), loads }
}

/// Random switches supported by `kernel`, joined by `+`.
pub fn series(rng: &mut Rng, kernel: Kernel) -> String {
    let rules = Rules::new(kernel, Series::BASELINE);
    let switches = Switch::ALL.map(|switch| rng.chance(40).then_some(switch));
    let switches = switches.into_iter().flatten().filter(|&switch| rules.lacks(switch).is_none());
    switches.fold(Series::BASELINE, Series::with).to_string()
}
