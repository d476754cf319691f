//! What is timed: one operation over anonymous memory in folios of one size.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::Error;
use crate::mapcount::Mapcount;
use crate::mm::{AddressSpace, Contents, Cpu, InUse, KEPT_PAGES, Memory, Written, scattered_pages};
use crate::mm_id::MmIds;
use crate::order::Order;

/// An operation over all pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The only mm unmaps everything.
    Munmap,
    /// It is forked.
    Fork,
    /// It was forked, and writes a byte to each page.
    CowByte,
    /// The same, after the child is gone.
    ReuseByte,
    /// The child writes, after the parent is gone.
    ChildReuseByte,
}

impl Operation {
    /// All, in the order of the published tables.
    pub const ALL: [Operation; 5] = [
        Operation::Munmap,
        Operation::Fork,
        Operation::CowByte,
        Operation::ReuseByte,
        Operation::ChildReuseByte,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Munmap => "munmap",
            Operation::Fork => "fork",
            Operation::CowByte => "cow-byte",
            Operation::ReuseByte => "reuse-byte",
            Operation::ChildReuseByte => "child-reuse-byte",
        }
    }
}

/// One run of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its time, by the caller's clock.
    pub time_ns: u64,
    /// Write faults that copied a page.
    pub copied: usize,
    /// Write faults that reused one.
    pub reused: usize,
}

/// Where folios lie that are made one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One after the other, as in memory that nobody used before.
    InOrder,
    /// Apart, as on a machine on which others use memory too.
    Scattered,
}

/// Memory in which operations run, one after the other.
pub struct FolioOps<C: Mapcount> {
    contents: Arc<Contents>,
    memory: Arc<Memory<C>>,
    ids: Arc<MmIds>,
    pages: usize,
    order: Order,
}

impl<C: Mapcount> FolioOps<C> {
    /// For operations over `pages` pages in folios of `order`. It takes twice the memory, as each
    /// page may be copied.
    ///
    /// # Errors
    /// When there is not as much memory.
    pub fn new(pages: usize, order: Order) -> Result<FolioOps<C>, Error> {
        let contents = contents(pages, order, Placement::InOrder, &mut |_| ())?;
        Self::with(&contents, pages, order, Placement::InOrder, &mut |_| ())
    }

    /// The same in memory with these [`contents`]. Configurations that are compared should have
    /// the same ones: they take less memory, and none is slower because its pages lie elsewhere.
    /// `advise` is told the addresses of frames before they are first used.
    ///
    /// # Errors
    /// When there is no memory for the frames.
    pub fn with(
        contents: &Arc<Contents>,
        pages: usize,
        order: Order,
        placement: Placement,
        advise: &mut dyn FnMut(Range<usize>),
    ) -> Result<FolioOps<C>, Error> {
        let memory = Arc::new(Memory::with(contents, advise)?);
        if placement == Placement::Scattered {
            memory.scatter(order);
        }
        let (contents, ids) = (contents.clone(), Arc::new(MmIds::new(SPACES)?));
        Ok(FolioOps { contents, memory, ids, pages, order })
    }

    /// Runs `operation` once. `now_ns` is read right before and right after it.
    ///
    /// # Errors
    /// When the memory is too little.
    ///
    /// # Panics
    /// When others use the same contents meanwhile.
    pub fn run(&self, operation: Operation, now_ns: impl FnMut() -> u64) -> Result<Sample, Error> {
        let _in_use = InUse::of(&self.contents);
        let mut cpu = Cpu::default();
        let sample = self.run_on(&mut cpu, operation, now_ns);
        self.memory.drain(&mut cpu);
        sample
    }

    fn run_on(
        &self,
        cpu: &mut Cpu,
        operation: Operation,
        mut now_ns: impl FnMut() -> u64,
    ) -> Result<Sample, Error> {
        let mut parent = AddressSpace::new(&self.memory, &self.ids, self.pages)?;
        parent.populate(cpu, 0..self.pages, self.order)?;
        let mut timed = |act: &mut dyn FnMut() -> Result<[usize; 2], Error>| {
            let start = now_ns();
            let [copied, reused] = act()?;
            Ok(Sample { time_ns: now_ns() - start, copied, reused })
        };
        match operation {
            Operation::Munmap => timed(&mut || {
                parent.munmap(cpu, 0..self.pages);
                Ok([0, 0])
            }),
            Operation::Fork => {
                let mut child = None;
                timed(&mut || {
                    child = Some(parent.fork(cpu)?);
                    Ok([0, 0])
                })
            }
            Operation::CowByte => {
                let _child = parent.fork(cpu)?;
                timed(&mut || write_all(&mut parent, cpu, self.pages))
            }
            Operation::ReuseByte => {
                drop(parent.fork(cpu)?);
                timed(&mut || write_all(&mut parent, cpu, self.pages))
            }
            Operation::ChildReuseByte => {
                let mut child = parent.fork(cpu)?;
                drop(parent);
                timed(&mut || write_all(&mut child, cpu, self.pages))
            }
        }
    }
}

/// What is in the pages of all that run one after the other: `pages` pages, and a copy of each.
///
/// A kernel reaches its pages and frames through huge pages. A caller who wants this here asks
/// for them in `advise`, which is told the addresses before they are first used.
///
/// # Errors
/// When there is not as much memory.
pub fn contents(
    pages: usize,
    order: Order,
    placement: Placement,
    advise: &mut dyn FnMut(Range<usize>),
) -> Result<Arc<Contents>, Error> {
    let twice = pages.saturating_mul(2).saturating_add(SPARE_PAGES);
    let all = match placement {
        Placement::InOrder => twice,
        Placement::Scattered => scattered_pages(twice, order),
    };
    Contents::new(all, advise).map(Arc::new)
}

/// More than a CPU keeps for itself, and what alignment costs.
const SPARE_PAGES: usize = KEPT_PAGES.next_multiple_of(1 << Order::PMD.get());

/// Address spaces that exist at a time, and some more.
const SPACES: u32 = 8;

/// Writes to the first `pages` pages: how many were copied, and how many reused.
fn write_all<C: Mapcount>(
    space: &mut AddressSpace<C>,
    cpu: &mut Cpu,
    pages: usize,
) -> Result<[usize; 2], Error> {
    let mut faults = [0, 0];
    for page in 0..pages {
        match space.write(cpu, page, page as u64)? {
            Written::AtOnce => {}
            Written::Copied => faults[0] += 1,
            Written::Reused => faults[1] += 1,
        }
    }
    Ok(faults)
}

/// L: nanoseconds that one locked read-modify-write takes, which waits neither for another thread
/// nor for the one before it, as the counts of two pages are in two cache lines.
///
/// What a change of counters saves, in units of L, carries over to other machines. A percentage
/// says as much about the work around it.
pub fn read_modify_write_ns(mut now_ns: impl FnMut() -> u64) -> f64 {
    const ROUNDS: usize = 16_384;
    let lines: [Line; 64] = std::array::from_fn(|_| Line::default());
    let start = now_ns();
    for _ in 0..ROUNDS {
        for line in black_box(&lines) {
            line.0.fetch_add(1, Relaxed);
        }
    }
    (now_ns() - start) as f64 / (ROUNDS * lines.len()) as f64
}

/// A count with a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Line(AtomicU32);
