//! Anonymous copy-on-write by several children, each on its own thread.
//!
//! The cases `anon-cow-rand` and `anon-cow-seq` of vm-scalability: a parent writes to its pages and
//! forks one child for each CPU. All children write to all pages at the same time, in random or
//! ascending order. Each write copies a page, since the parent maps it too.
//!
//! ```
//! use filemap_mapcount::anon_cow::{AnonCow, WriteOrder};
//! use filemap_mapcount::{MmOwner, Order};
//!
//! let mut cow = AnonCow::<MmOwner>::new(64, Order::new(2)?, 2)?;
//! let mut children = cow.children(WriteOrder::Sequential, 1)?;
//! for child in &mut children {
//!     assert_eq!(child.run(|| 0)?.copied, 64);
//! }
//! // Dropping them unmaps their pages.
//! drop(children);
//! # Ok::<(), filemap_mapcount::Error>(())
//! ```

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::folio::Order;
use crate::folio_ops::Sample;
use crate::mapcount::Mapcount;
use crate::mm::{AddressSpace, Contents, ContentsGuard, Cpu, MAX_CPU_PAGES, Memory, WriteKind};
use crate::mm_id::MmIds;

/// The order in which a child writes to its pages, once to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Pseudorandom, different for each child and each seed.
    Random,
    /// Ascending.
    Sequential,
}

impl WriteOrder {
    /// All of them.
    pub const ALL: [WriteOrder; 2] = [WriteOrder::Random, WriteOrder::Sequential];

    /// The name of the case in vm-scalability.
    pub fn name(self) -> &'static str {
        match self {
            WriteOrder::Random => "anon-cow-rand",
            WriteOrder::Sequential => "anon-cow-seq",
        }
    }
}

/// A parent that has written to its pages and can fork children.
pub struct AnonCow<C: Mapcount> {
    memory: Arc<Memory<C>>,
    parent: AddressSpace<C>,
    pages: usize,
    children: usize,
    /// Shared with the children.
    guard: Arc<ContentsGuard>,
}

impl<C: Mapcount> AnonCow<C> {
    /// A parent of `pages` pages in folios of `order`, with memory for this many `children`.
    ///
    /// # Errors
    /// When there is not enough memory, or there are not enough ids.
    pub fn new(pages: usize, order: Order, children: usize) -> Result<AnonCow<C>, Error> {
        let contents = Contents::new(Self::memory_pages(pages, children), &mut |_| ())?;
        Self::with_contents(&Arc::new(contents), pages, order, children, &mut |_| ())
    }

    /// Likewise, in memory with these contents, which others may use before and after it. `advise`
    /// gets the addresses of frames before their first use.
    ///
    /// # Errors
    /// There is not enough memory, or there are not enough ids.
    ///
    /// # Panics
    /// The contents are in use elsewhere.
    pub fn with_contents(
        contents: &Arc<Contents>,
        pages: usize,
        order: Order,
        children: usize,
        advise: &mut dyn FnMut(Range<usize>),
    ) -> Result<AnonCow<C>, Error> {
        let guard = Arc::new(ContentsGuard::acquire(contents));
        let memory = Arc::new(Memory::with_contents(contents, advise)?);
        let ids = u32::try_from(children).unwrap_or(u32::MAX).saturating_add(1);
        let ids = Arc::new(MmIds::new(ids)?);
        let mut parent = AddressSpace::new(&memory, &ids, pages)?;
        let mut cpu = Cpu::default();
        let populated = parent.populate(&mut cpu, 0..pages, order);
        memory.drain(&mut cpu);
        populated?;
        Ok(AnonCow { memory, parent, pages, children, guard })
    }

    /// Pages of memory that are needed: the parent's, and a copy for each child.
    pub fn memory_pages(pages: usize, children: usize) -> usize {
        let each = pages.saturating_add(MAX_CPU_PAGES);
        each.saturating_mul(children.saturating_add(1))
    }

    /// Forks the children, one after the other. Earlier ones must have been dropped. A random order
    /// depends on `seed` and the number of the child.
    ///
    /// # Errors
    /// When there is no id left.
    pub fn children(&mut self, order: WriteOrder, seed: u64) -> Result<Vec<Child<C>>, Error> {
        let mut cpu = Cpu::default();
        let fork = |number| {
            let space = self.parent.fork(&mut cpu)?;
            Ok(Child {
                space,
                memory: self.memory.clone(),
                cpu: Cpu::default(),
                pages: pages(self.pages, order, seed, number),
                _guard: self.guard.clone(),
            })
        };
        let children = (0..self.children).map(fork).collect();
        self.memory.drain(&mut cpu);
        children
    }
}

/// A child that writes to its parent's pages.
///
/// It keeps its pages until it is dropped. To time several children, drop the first one after the
/// last has written: freeing pages would slow the others down.
pub struct Child<C: Mapcount> {
    space: AddressSpace<C>,
    memory: Arc<Memory<C>>,
    /// The CPU that it runs on.
    cpu: Cpu,
    pages: Vec<u32>,
    _guard: Arc<ContentsGuard>,
}

impl<C: Mapcount> Child<C> {
    /// Writes to each page. `now_ns` is read right before and right after it. A second run copies
    /// nothing.
    ///
    /// # Errors
    /// When the memory is too small.
    pub fn run(&mut self, mut now_ns: impl FnMut() -> u64) -> Result<Sample, Error> {
        let mut sample = Sample { time_ns: 0, copied: 0, reused: 0 };
        let start = now_ns();
        for &page in &self.pages {
            match self.space.write(&mut self.cpu, page as usize, u64::from(page))? {
                WriteKind::NoFault => {}
                WriteKind::Copied => sample.copied += 1,
                WriteKind::Reused => sample.reused += 1,
            }
        }
        sample.time_ns = now_ns() - start;
        Ok(sample)
    }

    /// Number of pages that it writes to.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }
}

impl<C: Mapcount> Drop for Child<C> {
    /// Unmaps everything and returns the pages of its CPU's lists.
    fn drop(&mut self) {
        self.space.munmap(&mut self.cpu, 0..self.space.pages());
        self.memory.drain(&mut self.cpu);
    }
}

/// The pages of a child in the order of its writes.
fn pages(pages: usize, order: WriteOrder, seed: u64, child: usize) -> Vec<u32> {
    let mut pages: Vec<u32> = (0..pages as u32).collect();
    if order == WriteOrder::Random {
        // Multiplied, so that children of neighbouring seeds have different orders.
        let seed = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(child as u64 + 1);
        shuffle(&mut pages, seed);
    }
    pages
}

/// Shuffles `values` in a pseudorandom order that depends on `seed` only.
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
    fn orders_differ_by_child_and_seed() {
        let order = |seed, child| pages(64, WriteOrder::Random, seed, child);
        let seeds = [0, 1, 2, 3, 42, 1000, u64::MAX];
        let orders = seeds.map(|seed| [0, 1, 2, 3].map(|child| order(seed, child)));
        let different: HashSet<_> = orders.iter().flatten().collect();
        assert_eq!(different.len(), 28);
        for mut order in orders.iter().flatten().cloned() {
            order.sort_unstable();
            assert!(order.into_iter().eq(0..64));
        }
        assert_eq!(order(42, 1), orders[4][1]);
        let in_order = pages(64, WriteOrder::Sequential, 42, 1);
        assert!(in_order.into_iter().eq(0..64));
    }
}
