//! Anonymous copy-on-write with children: what each child runs on a thread of its own.
//!
//! The cases `anon-cow-rand` and `anon-cow-seq` of vm-scalability: a parent has written to its
//! pages and forks one child for each CPU. All children write to all pages at the same time, at
//! random or in order, and each write copies a page, as the parent maps it too.
//!
//! ```
//! use filemap_mapcount::anon_cow::{AnonCow, Pattern};
//! use filemap_mapcount::{MmOwner, Order};
//!
//! let mut cow = AnonCow::<MmOwner>::new(64, Order::new(2)?, 2)?;
//! let mut children = cow.children(Pattern::Sequential, 1)?;
//! for child in &mut children {
//!     assert_eq!(child.run(|| 0)?.copied, 64);
//! }
//! // Only now they unmap their pages.
//! drop(children);
//! # Ok::<(), filemap_mapcount::Error>(())
//! ```

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::folio_ops::Sample;
use crate::mapcount::Mapcount;
use crate::mm::{AddressSpace, Contents, Cpu, InUse, KEPT_PAGES, Memory, Written};
use crate::mm_id::MmIds;
use crate::order::Order;

/// In which order a child writes to its pages. It writes to each of them once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// In an order that looks random, another one for each child and each seed.
    Random,
    /// From the first to the last.
    Sequential,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 2] = [Pattern::Random, Pattern::Sequential];

    /// The name of the case in vm-scalability.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Random => "anon-cow-rand",
            Pattern::Sequential => "anon-cow-seq",
        }
    }
}

/// A parent whose pages are written to, and which can have children.
pub struct AnonCow<C: Mapcount> {
    memory: Arc<Memory<C>>,
    parent: AddressSpace<C>,
    pages: usize,
    children: usize,
    /// Its children have it too.
    in_use: Arc<InUse>,
}

impl<C: Mapcount> AnonCow<C> {
    /// A parent of `pages` pages in folios of `order`, with memory for so many `children`.
    ///
    /// # Errors
    /// When there is not as much memory, or there are not as many ids.
    pub fn new(pages: usize, order: Order, children: usize) -> Result<AnonCow<C>, Error> {
        let contents = Contents::new(Self::memory_pages(pages, children), &mut |_| ())?;
        Self::with(&Arc::new(contents), pages, order, children, &mut |_| ())
    }

    /// The same in memory with these contents, which others may use before and after it.
    /// `advise` is told the addresses of frames before they are first used.
    ///
    /// # Errors
    /// When there is not as much memory, or there are not as many ids.
    ///
    /// # Panics
    /// When others use these contents now, such as another one or its children.
    pub fn with(
        contents: &Arc<Contents>,
        pages: usize,
        order: Order,
        children: usize,
        advise: &mut dyn FnMut(Range<usize>),
    ) -> Result<AnonCow<C>, Error> {
        let in_use = Arc::new(InUse::of(contents));
        let memory = Arc::new(Memory::with(contents, advise)?);
        let ids = u32::try_from(children).unwrap_or(u32::MAX).saturating_add(1);
        let ids = Arc::new(MmIds::new(ids)?);
        let mut parent = AddressSpace::new(&memory, &ids, pages)?;
        let mut cpu = Cpu::default();
        let populated = parent.populate(&mut cpu, 0..pages, order);
        memory.drain(&mut cpu);
        populated?;
        Ok(AnonCow { memory, parent, pages, children, in_use })
    }

    /// Pages of memory that it takes: those of the parent, and a copy for each child.
    pub fn memory_pages(pages: usize, children: usize) -> usize {
        let each = pages.saturating_add(KEPT_PAGES);
        each.saturating_mul(children.saturating_add(1))
    }

    /// Forks the children, one after the other. Those of an earlier call must be gone. Where they
    /// write at random, `seed` and the number of a child give the order.
    ///
    /// # Errors
    /// When there is no id left.
    pub fn children(&mut self, pattern: Pattern, seed: u64) -> Result<Vec<Child<C>>, Error> {
        let mut cpu = Cpu::default();
        let fork = |number| {
            let space = self.parent.fork(&mut cpu)?;
            Ok(Child {
                space,
                memory: self.memory.clone(),
                cpu: Cpu::default(),
                pages: pages(self.pages, pattern, seed, number),
                _in_use: self.in_use.clone(),
            })
        };
        let children = (0..self.children).map(fork).collect();
        self.memory.drain(&mut cpu);
        children
    }
}

/// A child that writes to what its parent has.
///
/// It keeps its pages until it is dropped. Whoever times several children drops the first of them
/// when the last has written: what one frees would otherwise hold up the others.
pub struct Child<C: Mapcount> {
    space: AddressSpace<C>,
    memory: Arc<Memory<C>>,
    /// The CPU that it runs on.
    cpu: Cpu,
    pages: Vec<u32>,
    _in_use: Arc<InUse>,
}

impl<C: Mapcount> Child<C> {
    /// Writes to each page. `now_ns` is read right before and right after it. The second time
    /// nothing is left to copy.
    ///
    /// # Errors
    /// When the memory is too little.
    pub fn run(&mut self, mut now_ns: impl FnMut() -> u64) -> Result<Sample, Error> {
        let mut sample = Sample { time_ns: 0, copied: 0, reused: 0 };
        let start = now_ns();
        for &page in &self.pages {
            match self.space.write(&mut self.cpu, page as usize, u64::from(page))? {
                Written::AtOnce => {}
                Written::Copied => sample.copied += 1,
                Written::Reused => sample.reused += 1,
            }
        }
        sample.time_ns = now_ns() - start;
        Ok(sample)
    }

    /// How many pages it writes to.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }
}

impl<C: Mapcount> Drop for Child<C> {
    /// Unmaps everything, and gives back what its CPU kept.
    fn drop(&mut self) {
        self.space.munmap(&mut self.cpu, 0..self.space.pages());
        self.memory.drain(&mut self.cpu);
    }
}

/// The pages of a child in the order of its writes.
fn pages(pages: usize, pattern: Pattern, seed: u64, child: usize) -> Vec<u32> {
    let mut pages: Vec<u32> = (0..pages as u32).collect();
    if pattern == Pattern::Random {
        // Seeds lie far apart, so that no child of one has the order of a child of the next.
        let seed = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(child as u64 + 1);
        shuffle(&mut pages, seed);
    }
    pages
}

/// An order that looks random and is the same in each run.
pub(crate) fn shuffle<T>(values: &mut [T], seed: u64) {
    // xorshift64, from a seed that is not 0.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..values.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values.swap(last, (state % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_child_of_each_seed_has_an_order_of_its_own() {
        let order = |seed, child| pages(64, Pattern::Random, seed, child);
        let seeds = [0, 1, 2, 3, 42, 1000, u64::MAX];
        let orders = seeds.map(|seed| [0, 1, 2, 3].map(|child| order(seed, child)));
        let different: HashSet<_> = orders.iter().flatten().collect();
        assert_eq!(different.len(), 28);
        for mut order in orders.iter().flatten().cloned() {
            order.sort_unstable();
            assert!(order.into_iter().eq(0..64));
        }
        assert_eq!(order(42, 1), orders[4][1]);
        let in_order = pages(64, Pattern::Sequential, 42, 1);
        assert!(in_order.into_iter().eq(0..64));
    }
}
