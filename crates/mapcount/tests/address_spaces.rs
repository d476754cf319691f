//! Address spaces that share folios: what is mapped, copied, reused, free, and counted.

use std::sync::Arc;

use crate::support::Random;
use filemap_mapcount::folio_ops::{FolioOps, Operation, contents};
use filemap_mapcount::mm::{AddressSpace, Cpu, Memory, StatItem, WriteKind};
use filemap_mapcount::{
    Error, Mapcount, MmIds, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};

const PAGES: usize = 4096;

struct TestMemory<C: Mapcount> {
    memory: Arc<Memory<C>>,
    ids: Arc<MmIds>,
    cpu: Cpu,
}

impl<C: Mapcount> TestMemory<C> {
    fn new() -> TestMemory<C> {
        let memory = Arc::new(Memory::new(PAGES).expect("16 MiB are there"));
        TestMemory { memory, ids: Arc::new(MmIds::new(64).expect("possible")), cpu: Cpu::default() }
    }

    fn space(&mut self, pages: usize, order: u32) -> AddressSpace<C> {
        let mut space = AddressSpace::new(&self.memory, &self.ids, pages).expect("an id is left");
        let order = Order::new(order).expect("tests name orders that exist");
        space.populate(&mut self.cpu, 0..pages, order).expect("there is memory");
        space
    }

    /// Everything is free again.
    fn assert_empty(&mut self) {
        self.memory.drain(&mut self.cpu);
        assert_eq!((self.memory.free_pages(), self.memory.lru_folios()), (PAGES, 0));
        assert_eq!(self.memory.charged_pages(), 0);
        let items = [StatItem::Mapped, StatItem::OnLru, StatItem::PageTables];
        assert_eq!(items.map(|item| self.memory.statistic(item)), [0; 3]);
        assert!((0..64).all(|_| self.ids.allocate().is_ok()));
    }
}

/// Writes to all pages. Returns how many were copied and how many reused.
fn write_all<C: Mapcount>(space: &mut AddressSpace<C>, cpu: &mut Cpu) -> [usize; 2] {
    let mut faults = [0, 0];
    for page in 0..space.pages() {
        match space.write(cpu, page, 7) {
            Ok(WriteKind::NoFault) => {}
            Ok(WriteKind::Copied) => faults[0] += 1,
            Ok(WriteKind::Reused) => faults[1] += 1,
            Err(error) => panic!("{error}"),
        }
    }
    faults
}

/// Copied pages of 1024 in folios of an order, by operation.
fn copies<C: Mapcount>(order: u32) -> [usize; 5] {
    copies_in::<C>(1024, order)
}

fn copies_in<C: Mapcount>(pages: usize, order: u32) -> [usize; 5] {
    let order = Order::new(order).expect("it exists");
    let contents = contents(pages, &mut |_| ()).expect("it fits");
    let ops = FolioOps::<C>::new(&contents, pages, order, &mut |_| ()).expect("it fits");
    Operation::ALL.map(|operation| {
        let sample = ops.run(operation, || 0).expect("there is memory");
        let writes = !matches!(operation, Operation::Munmap | Operation::Fork);
        assert_eq!(sample.copied + sample.reused, if writes { pages } else { 0 });
        sample.copied
    })
}

#[test]
fn pages_are_reused_where_the_owner_is_known() {
    for order in 1..=9 {
        assert_eq!(copies::<PageMapcount>(order), [0, 0, 1024, 1024, 1024]);
        assert_eq!(copies::<MmOwner>(order), [0, 0, 1024, 0, 0]);
        assert_eq!(copies::<NoPageMapcount>(order), [0, 0, 1024, 0, 0]);
        assert_eq!(copies::<PreciseOwners>(order), [0, 0, 1024, 0, 0]);
    }
    // The owner of a single page is always known.
    assert_eq!(copies::<PageMapcount>(0), [0, 0, 1024, 0, 0]);
    assert_eq!(copies::<NoPageMapcount>(0), [0, 0, 1024, 0, 0]);
}

#[test]
fn operations_may_end_within_a_page_table() {
    assert_eq!(copies_in::<MmOwner>(256, 4), [0, 0, 256, 0, 0]);
    assert_eq!(copies_in::<NoPageMapcount>(700, 9), [0, 0, 700, 0, 0]);
}

/// Parent and child write in turns, and each reads its own values.
fn writes_are_private<C: Mapcount>() {
    let mut test = TestMemory::<C>::new();
    let mut parent = test.space(512, 4);
    (0..512).for_each(|page| {
        parent.write(&mut test.cpu, page, page as u64).expect("mapped");
    });
    let mut child = parent.fork(&mut test.cpu).expect("an id is left");
    (0..512).step_by(3).for_each(|page| {
        assert_eq!(parent.write(&mut test.cpu, page, 1), Ok(WriteKind::Copied));
    });
    (0..512).step_by(5).for_each(|page| {
        child.write(&mut test.cpu, page, 2).expect("mapped");
    });
    for page in 0..512 {
        let expected = |step: usize, new| if page % step == 0 { new } else { page as u64 };
        assert_eq!(parent.read(page), Ok(expected(3, 1)));
        assert_eq!(child.read(page), Ok(expected(5, 2)));
    }
    child.munmap(&mut test.cpu, 100..300);
    assert_eq!(child.read(100), Err(Error::NotMapped { page: 100 }));
    assert_eq!(child.write(&mut test.cpu, 512, 1), Err(Error::NotMapped { page: 512 }));
    assert_eq!(child.resident(), 312);
    drop((parent, child));
    test.assert_empty();
}

/// A folio stays allocated until its last page is unmapped.
fn partial_munmap_keeps_the_folio<C: Mapcount>() {
    let mut test = TestMemory::<C>::new();
    let mut parent = test.space(1024, 9);
    let mut child = parent.fork(&mut test.cpu).expect("an id is left");
    for space in [&mut child, &mut parent] {
        space.munmap(&mut test.cpu, 3..1024);
        assert_eq!(space.resident(), 3);
    }
    test.memory.drain(&mut test.cpu);
    assert_eq!(test.memory.free_pages(), PAGES - 512);
    let expected = if size_of::<C::Page>() > 0 { 3 } else { 512 };
    assert_eq!(test.memory.statistic(StatItem::Mapped), expected);
    drop((parent, child));
    test.assert_empty();
}

/// Random operations of up to five mms, against a vector of values for each.
fn random_histories_match_vectors<C: Mapcount>(seed: u64) {
    let mut random = Random(seed);
    let mut test = TestMemory::<C>::new();
    let order = random.below(6) as u32;
    let mut spaces = vec![(test.space(128, order), vec![Some(0); 512])];
    spaces[0].1[128..].fill(None);
    for step in 1..300 {
        let at = random.below(spaces.len() as u64) as usize;
        let page = random.below(140) as usize;
        let until = page + random.below(20) as usize;
        let count = spaces.len();
        let (space, values) = &mut spaces[at];
        match random.below(8) {
            0 if count < 5 => {
                let forked = (space.fork(&mut test.cpu).expect("an id is left"), values.clone());
                spaces.push(forked);
            }
            1 if count > 1 => drop(spaces.remove(at)),
            2 => {
                space.munmap(&mut test.cpu, page..until);
                values[page..until].fill(None);
            }
            3 => {
                let order = Order::new(order).expect("it exists");
                space.populate(&mut test.cpu, page..until, order).expect("there is memory");
                values[page..until].iter_mut().for_each(|page| *page = page.or(Some(0)));
            }
            _ => {
                let written = space.write(&mut test.cpu, page, step);
                assert_eq!(written.is_ok(), values[page].is_some());
                values[page] = values[page].map(|_| step);
            }
        }
        for (space, values) in &spaces {
            assert!((0..160).all(|page| space.read(page).ok() == values[page]));
            assert_eq!(space.resident(), values.iter().flatten().count());
        }
    }
    drop(spaces);
    test.assert_empty();
}

macro_rules! each_scheme {
    ($($test:ident($($argument:expr)?);)*) => {$(
        #[test]
        fn $test() {
            super::$test::<PageMapcount>($($argument)?);
            super::$test::<MmOwner>($($argument)?);
            super::$test::<NoPageMapcount>($($argument)?);
            super::$test::<PreciseOwners>($($argument)?);
        }
    )*};
}

mod schemes {
    use super::*;

    each_scheme! {
        writes_are_private();
        partial_munmap_keeps_the_folio();
    }

    #[test]
    fn random_histories_match_vectors() {
        for seed in 1..=60 {
            super::random_histories_match_vectors::<PageMapcount>(seed);
            super::random_histories_match_vectors::<MmOwner>(seed);
            super::random_histories_match_vectors::<NoPageMapcount>(seed);
            super::random_histories_match_vectors::<PreciseOwners>(seed);
        }
    }
}

#[test]
fn refuses_too_little_memory() {
    let mut test = TestMemory::<MmOwner>::new();
    let _space = test.space(PAGES - 256, 9);
    let mut other = AddressSpace::new(&test.memory, &test.ids, 512).expect("an id is left");
    let error = other.populate(&mut test.cpu, 0..512, Order::PMD).expect_err("it does not fit");
    let message = "a folio of 512 pages does not fit into 256 free pages of memory; give it more \
                   memory";
    assert_eq!(error.to_string(), message);
    let error = Memory::<MmOwner>::new(1 << 48).err().expect("no machine has as much");
    let message = "no memory for 281474976710656 pages of 4 KiB; ask for fewer pages";
    assert_eq!(error.to_string(), message);
}

/// Free single pages do not hide a free folio that can be split.
#[test]
fn splits_a_folio_despite_free_single_pages() {
    let mut test = TestMemory::<MmOwner>::new();
    let mut space = test.space(PAGES - 512, 9);
    let mut other = AddressSpace::new(&test.memory, &test.ids, 512).expect("an id is left");
    other.populate(&mut test.cpu, 0..512, Order::SINGLE).expect("512 pages are left");
    other.munmap(&mut test.cpu, 0..100);
    space.munmap(&mut test.cpu, 0..512);
    test.memory.drain(&mut test.cpu);
    assert_eq!(test.memory.free_pages(), 612);
    let order = Order::new(4).expect("it exists");
    space.populate(&mut test.cpu, 0..512, order).expect("512 of them lie in one folio");
    assert_eq!(test.memory.free_pages(), 100);
    drop((space, other));
    test.assert_empty();
}

/// All memory is in large blocks again, whichever folios were freed in which order.
#[test]
fn free_blocks_merge() {
    let mut test = TestMemory::<PreciseOwners>::new();
    for size in 0..=9 {
        let mut space = test.space(PAGES, size);
        (0..4).for_each(|part| {
            let pages = (0..PAGES / 16).map(|at| at * 16 + part * 4);
            pages.for_each(|page| space.munmap(&mut test.cpu, page..page + 4));
        });
        drop(space);
        test.memory.drain(&mut test.cpu);
        let mut space = AddressSpace::new(&test.memory, &test.ids, PAGES).expect("an id is left");
        let largest = space.populate(&mut test.cpu, 0..PAGES, Order::PMD);
        largest.expect("all memory is free in large blocks");
        assert_eq!(test.memory.free_pages(), 0);
    }
    test.assert_empty();
}

/// Statistics with mapped pages, including a CPU's pending part.
#[test]
fn statistics_are_exact_after_draining() {
    let mut test = TestMemory::<MmOwner>::new();
    let mut parent = test.space(1000, 4);
    let mut cpu = Cpu::default();
    let child = parent.fork(&mut cpu).expect("an id is left");
    test.memory.drain(&mut cpu);
    test.memory.drain(&mut test.cpu);
    let items = [StatItem::Mapped, StatItem::OnLru, StatItem::PageTables];
    assert_eq!(items.map(|item| test.memory.statistic(item)), [1000, 1000, 4]);
    assert_eq!(test.memory.charged_pages(), 1000);
    drop((parent, child));
    test.assert_empty();
}

/// Children write at the same time, each on its own thread, and all have all of their pages.
#[test]
fn children_copy_on_threads() {
    let mut test = TestMemory::<NoPageMapcount>::new();
    let mut parent = test.space(512, 6);
    let children: Vec<_> =
        (0..3).map(|_| parent.fork(&mut test.cpu).expect("an id is left")).collect();
    drop(parent);
    let memory = &test.memory;
    let faults = std::thread::scope(|scope| {
        let write = |mut child: AddressSpace<NoPageMapcount>| {
            move || {
                let mut cpu = Cpu::default();
                let [copied, reused] = write_all(&mut child, &mut cpu);
                memory.drain(&mut cpu);
                (copied + reused, child.resident())
            }
        };
        let threads: Vec<_> = children.into_iter().map(|child| scope.spawn(write(child))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("no count is wrong"));
        ends.collect::<Vec<_>>()
    });
    assert_eq!(faults, [(512, 512); 3]);
    test.assert_empty();
}
