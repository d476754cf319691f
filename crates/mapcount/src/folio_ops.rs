//! The benchmark: one operation over anonymous memory in folios of one size.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::Error;
use crate::folio::Order;
use crate::mapcount::Mapcount;
use crate::mm::{AddressSpace, Contents, ContentsGuard, Cpu, MAX_CPU_PAGES, Memory, WriteKind};
use crate::mm_id::MmIds;

/// An operation over all pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The only mm unmaps everything.
    Munmap,
    /// It forks.
    Fork,
    /// After a fork the parent writes a byte to each page.
    CowByte,
    /// The same after the child has exited.
    ReuseByte,
    /// The child writes after the parent has exited.
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
    /// Duration, by the caller's clock.
    pub time_ns: u64,
    /// Write faults that copied a page.
    pub copied: usize,
    /// Write faults that reused a page.
    pub reused: usize,
}

/// Memory in which operations run, one at a time.
pub struct FolioOps<C: Mapcount> {
    contents: Arc<Contents>,
    memory: Arc<Memory<C>>,
    ids: Arc<MmIds>,
    pages: usize,
    order: Order,
}

impl<C: Mapcount> FolioOps<C> {
    /// For operations over `pages` pages in folios of `order`, in memory with these [`contents`].
    ///
    /// Schemes that are compared should share their contents: this takes less memory, and none of
    /// them is slower because its pages lie elsewhere. `advise` gets the addresses of frames before
    /// their first use.
    ///
    /// # Errors
    /// When there is no memory for the frames.
    pub fn new(
        contents: &Arc<Contents>,
        pages: usize,
        order: Order,
        advise: &mut dyn FnMut(Range<usize>),
    ) -> Result<FolioOps<C>, Error> {
        let memory = Arc::new(Memory::with_contents(contents, advise)?);
        let (contents, ids) = (contents.clone(), Arc::new(MmIds::new(MAX_SPACES)?));
        Ok(FolioOps { contents, memory, ids, pages, order })
    }

    /// Runs `operation` once. `now_ns` is read right before and right after it.
    ///
    /// # Errors
    /// When the memory is too small.
    ///
    /// # Panics
    /// When the contents are in use elsewhere.
    pub fn run(&self, operation: Operation, now_ns: impl FnMut() -> u64) -> Result<Sample, Error> {
        let _guard = ContentsGuard::acquire(&self.contents);
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

/// Contents for operations over `pages` pages, with room for a copy of each.
///
/// A kernel reaches its pages and frames through huge pages. To have that here too, request them in
/// `advise`, which gets the addresses before their first use.
///
/// # Errors
/// There is not enough memory.
pub fn contents(
    pages: usize,
    advise: &mut dyn FnMut(Range<usize>),
) -> Result<Arc<Contents>, Error> {
    let twice = pages.saturating_mul(2).saturating_add(SPARE_PAGES);
    Contents::new(twice, advise).map(Arc::new)
}

/// Pages for a CPU's free lists and for alignment.
const SPARE_PAGES: usize = MAX_CPU_PAGES.next_multiple_of(1 << Order::PMD.get());

/// Maximum number of address spaces at a time.
const MAX_SPACES: u32 = 8;

/// Writes to the first `pages` pages. Returns how many were copied and how many reused.
fn write_all<C: Mapcount>(
    space: &mut AddressSpace<C>,
    cpu: &mut Cpu,
    pages: usize,
) -> Result<[usize; 2], Error> {
    let mut faults = [0, 0];
    for page in 0..pages {
        match space.write(cpu, page, page as u64)? {
            WriteKind::NoFault => {}
            WriteKind::Copied => faults[0] += 1,
            WriteKind::Reused => faults[1] += 1,
        }
    }
    Ok(faults)
}

/// L: the time of one locked read-modify-write that waits neither for another thread nor for the
/// previous one (the counts of two pages are in two cache lines).
///
/// What a scheme saves in units of L carries over to other machines; a percentage depends on the
/// work around the counters.
pub fn read_modify_write_ns(mut now_ns: impl FnMut() -> u64) -> f64 {
    const ROUNDS: usize = 16_384;
    let lines: [CacheLine; 64] = std::array::from_fn(|_| CacheLine::default());
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
struct CacheLine(AtomicU32);
