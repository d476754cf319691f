//! Address spaces that share folios: what is mapped, copied, reused, free, and counted.

use std::sync::Arc;

use crate::support::Random;
use filemap_mapcount::folio_ops::{FolioOps, Operation, Placement, contents};
use filemap_mapcount::mm::{AddressSpace, Cpu, Item, Memory, Resident, Written};
use filemap_mapcount::{
    Error, Mapcount, MmIds, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};

const PAGES: usize = 4096;

struct World<C: Mapcount> {
    memory: Arc<Memory<C>>,
    ids: Arc<MmIds>,
    cpu: Cpu,
}

impl<C: Mapcount> World<C> {
    fn new() -> World<C> {
        let memory = Arc::new(Memory::new(PAGES).expect("16 MiB are there"));
        World { memory, ids: Arc::new(MmIds::new(64).expect("possible")), cpu: Cpu::default() }
    }

    fn space(&mut self, pages: usize, order: u32) -> AddressSpace<C> {
        let mut space = AddressSpace::new(&self.memory, &self.ids, pages).expect("an id is left");
        let order = Order::new(order).expect("tests name orders that exist");
        space.populate(&mut self.cpu, 0..pages, order).expect("there is memory");
        space
    }

    /// Everything is gone.
    fn is_empty(&mut self) {
        self.memory.drain(&mut self.cpu);
        assert_eq!((self.memory.free_pages(), self.memory.lru_folios()), (PAGES, 0));
        assert_eq!(self.memory.charged_pages(), 0);
        let items = [Item::Mapped, Item::OnLru, Item::PageTables];
        assert_eq!(items.map(|item| self.memory.statistic(item)), [0; 3]);
        assert!((0..64).all(|_| self.ids.allocate().is_ok()));
    }
}

/// Writes to all pages: how many were copied, and how many reused.
fn write_all<C: Mapcount>(space: &mut AddressSpace<C>, cpu: &mut Cpu) -> [usize; 2] {
    let mut faults = [0, 0];
    for page in 0..space.pages() {
        match space.write(cpu, page, 7) {
            Ok(Written::AtOnce) => {}
            Ok(Written::Copied) => faults[0] += 1,
            Ok(Written::Reused) => faults[1] += 1,
            Err(error) => panic!("{error}"),
        }
    }
    faults
}

/// Copies of 1024 pages in folios of an order, by operation.
fn copies<C: Mapcount>(order: u32) -> [usize; 5] {
    copies_of::<C>(1024, order)
}

fn copies_of<C: Mapcount>(pages: usize, order: u32) -> [usize; 5] {
    let order = Order::new(order).expect("it exists");
    let ops = FolioOps::<C>::new(pages, order).expect("it fits");
    // The same folios apart from each other, in memory that others may have had before.
    let scattered = Placement::Scattered;
    let contents = contents(pages, order, scattered, &mut |_| ()).expect("it fits");
    let apart = FolioOps::<C>::with(&contents, pages, order, scattered, &mut |_| ());
    let apart = apart.expect("it fits");
    Operation::ALL.map(|operation| {
        let sample = ops.run(operation, || 0).expect("there is memory");
        let writes = !matches!(operation, Operation::Munmap | Operation::Fork);
        assert_eq!(sample.copied + sample.reused, if writes { pages } else { 0 });
        assert_eq!(apart.run(operation, || 0), Ok(sample));
        sample.copied
    })
}

#[test]
fn a_page_is_copied_or_reused_as_owners_are_known() {
    for order in 1..=9 {
        assert_eq!(copies::<PageMapcount>(order), [0, 0, 1024, 1024, 1024]);
        assert_eq!(copies::<MmOwner>(order), [0, 0, 1024, 0, 0]);
        assert_eq!(copies::<NoPageMapcount>(order), [0, 0, 1024, 0, 0]);
        assert_eq!(copies::<PreciseOwners>(order), [0, 0, 1024, 0, 0]);
    }
    // Folios of one page always knew.
    assert_eq!(copies::<PageMapcount>(0), [0, 0, 1024, 0, 0]);
    assert_eq!(copies::<NoPageMapcount>(0), [0, 0, 1024, 0, 0]);
}

#[test]
fn operations_need_not_fill_a_page_table() {
    assert_eq!(copies_of::<MmOwner>(256, 4), [0, 0, 256, 0, 0]);
    assert_eq!(copies_of::<NoPageMapcount>(700, 9), [0, 0, 700, 0, 0]);
}

/// Parent and child write in turns; each reads its own.
fn writes_are_seen_by_one_mm<C: Mapcount>() {
    let mut world = World::<C>::new();
    let mut parent = world.space(512, 4);
    (0..512).for_each(|page| {
        parent.write(&mut world.cpu, page, page as u64).expect("mapped");
    });
    let mut child = parent.fork(&mut world.cpu).expect("an id is left");
    (0..512).step_by(3).for_each(|page| {
        assert_eq!(parent.write(&mut world.cpu, page, 1), Ok(Written::Copied));
    });
    (0..512).step_by(5).for_each(|page| {
        child.write(&mut world.cpu, page, 2).expect("mapped");
    });
    for page in 0..512 {
        let either = |step: usize, new| if page % step == 0 { new } else { page as u64 };
        assert_eq!(parent.read(page), Ok(either(3, 1)));
        assert_eq!(child.read(page), Ok(either(5, 2)));
    }
    child.munmap(&mut world.cpu, 100..300);
    assert_eq!(child.read(100), Err(Error::NothingMapped { page: 100 }));
    assert_eq!(child.write(&mut world.cpu, 512, 1), Err(Error::NothingMapped { page: 512 }));
    assert_eq!(child.resident().rss, 312);
    drop((parent, child));
    world.is_empty();
}

fn batches_and_single_pages_end_the_same<C: Mapcount>() {
    for single in [false, true] {
        let mut world = World::<C>::new();
        let mut parent = world.space(1024, 9);
        let mut child = parent.fork(&mut world.cpu).expect("an id is left");
        for space in [&mut child, &mut parent] {
            if single {
                space.munmap_single_pages(&mut world.cpu, 3..1024)
            } else {
                space.munmap(&mut world.cpu, 3..1024)
            }
            assert_eq!(space.resident().rss, 3);
        }
        world.memory.drain(&mut world.cpu);
        // Three pages hold the first folio.
        assert_eq!(world.memory.free_pages(), PAGES - 512);
        assert!(world.cpu.left_in_part > 0);
        let expected = if size_of::<C::Page>() > 0 { 3 } else { 512 };
        assert_eq!(world.cpu.mapped_pages, expected);
        drop((parent, child));
        world.is_empty();
    }
}

/// A parent of 32 pages in two folios, a child that keeps 8 of them, both asked.
fn resident<C: Mapcount>() -> [Resident; 2] {
    let mut world = World::<C>::new();
    let mut parent = world.space(32, 4);
    let mut child = parent.fork(&mut world.cpu).expect("an id is left");
    child.munmap(&mut world.cpu, 8..32);
    [parent.resident(), child.resident()]
}

#[test]
fn counts_of_pages_make_pss_and_uss_exact() {
    let exact = [Resident { rss: 32, pss: 28.0, uss: 24 }, Resident { rss: 8, pss: 4.0, uss: 0 }];
    assert_eq!(resident::<PageMapcount>(), exact);
    assert_eq!(resident::<MmOwner>(), exact);
    // 24 mappings of 16 pages: 1.5, which is rounded to 2, for pages of the first folio.
    let by_folio =
        [Resident { rss: 32, pss: 24.0, uss: 16 }, Resident { rss: 8, pss: 4.0, uss: 0 }];
    assert_eq!(resident::<NoPageMapcount>(), by_folio);
    assert_eq!(resident::<PreciseOwners>(), by_folio);
}

/// Random operations of up to five mms against plain vectors of what each of them reads.
fn random_histories_read_what_was_written<C: Mapcount>(seed: u64) {
    let mut random = Random(seed);
    let mut world = World::<C>::new();
    let order = random.below(6) as u32;
    let mut spaces = vec![(world.space(128, order), vec![Some(0); 512])];
    spaces[0].1[128..].fill(None);
    for step in 1..300 {
        let at = random.below(spaces.len() as u64) as usize;
        let page = random.below(140) as usize;
        let until = page + random.below(20) as usize;
        let many = spaces.len();
        let (space, truth) = &mut spaces[at];
        match random.below(8) {
            0 if many < 5 => {
                let forked = (space.fork(&mut world.cpu).expect("an id is left"), truth.clone());
                spaces.push(forked);
            }
            1 if many > 1 => drop(spaces.remove(at)),
            2 => {
                space.munmap(&mut world.cpu, page..until);
                truth[page..until].fill(None);
            }
            3 => {
                let order = Order::new(order).expect("it exists");
                space.populate(&mut world.cpu, page..until, order).expect("there is memory");
                truth[page..until].iter_mut().for_each(|page| *page = page.or(Some(0)));
            }
            _ => {
                let written = space.write(&mut world.cpu, page, step);
                assert_eq!(written.is_ok(), truth[page].is_some());
                truth[page] = truth[page].map(|_| step);
            }
        }
        for (space, truth) in &spaces {
            assert!((0..160).all(|page| space.read(page).ok() == truth[page]));
            assert_eq!(space.resident().rss, truth.iter().flatten().count());
        }
    }
    drop(spaces);
    world.is_empty();
}

macro_rules! each_configuration {
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

mod configurations {
    use super::*;

    each_configuration! {
        writes_are_seen_by_one_mm();
        batches_and_single_pages_end_the_same();
    }

    #[test]
    fn random_histories_read_what_was_written() {
        for seed in 1..=60 {
            super::random_histories_read_what_was_written::<PageMapcount>(seed);
            super::random_histories_read_what_was_written::<MmOwner>(seed);
            super::random_histories_read_what_was_written::<NoPageMapcount>(seed);
            super::random_histories_read_what_was_written::<PreciseOwners>(seed);
        }
    }
}

#[test]
fn too_little_memory_is_an_error_that_says_how_little() {
    let mut world = World::<MmOwner>::new();
    let _space = world.space(PAGES - 256, 9);
    let mut other = AddressSpace::new(&world.memory, &world.ids, 512).expect("an id is left");
    let error = other.populate(&mut world.cpu, 0..512, Order::PMD).expect_err("it does not fit");
    let message = "a folio of 512 pages does not fit into 256 free pages of memory; give it more \
                   memory";
    assert_eq!(error.to_string(), message);
    let error = Memory::<MmOwner>::new(1 << 48).err().expect("no machine has as much");
    let message = "there is no memory for 281474976710656 pages of 4 KiB; ask for fewer pages";
    assert_eq!(error.to_string(), message);
}

/// Single pages that are free do not hide a larger folio that can be split.
#[test]
fn a_folio_is_split_although_single_pages_are_free() {
    let mut world = World::<MmOwner>::new();
    let mut space = world.space(PAGES - 512, 9);
    let mut other = AddressSpace::new(&world.memory, &world.ids, 512).expect("an id is left");
    other.populate(&mut world.cpu, 0..512, Order::SINGLE).expect("512 pages are left");
    other.munmap(&mut world.cpu, 0..100);
    space.munmap(&mut world.cpu, 0..512);
    world.memory.drain(&mut world.cpu);
    assert_eq!(world.memory.free_pages(), 612);
    let order = Order::new(4).expect("it exists");
    space.populate(&mut world.cpu, 0..512, order).expect("512 of them lie in one folio");
    assert_eq!(world.memory.free_pages(), 100);
    drop((space, other));
    world.is_empty();
}

/// All memory is free in large blocks again, whatever was freed in which order.
#[test]
fn free_blocks_become_larger_ones() {
    let mut world = World::<PreciseOwners>::new();
    for size in 0..=9 {
        let mut space = world.space(PAGES, size);
        (0..4).for_each(|part| {
            let pages = (0..PAGES / 16).map(|at| at * 16 + part * 4);
            pages.for_each(|page| space.munmap(&mut world.cpu, page..page + 4));
        });
        drop(space);
        world.memory.drain(&mut world.cpu);
        let mut space = AddressSpace::new(&world.memory, &world.ids, PAGES).expect("an id is left");
        let largest = space.populate(&mut world.cpu, 0..PAGES, Order::PMD);
        largest.expect("all memory is free in large blocks");
        assert_eq!(world.memory.free_pages(), 0);
    }
    world.is_empty();
}

/// What is counted while something is mapped, with the CPU's own part.
#[test]
fn statistics_are_exact_when_a_cpu_has_told_its_part() {
    let mut world = World::<MmOwner>::new();
    let mut parent = world.space(1000, 4);
    let mut cpu = Cpu::default();
    let child = parent.fork(&mut cpu).expect("an id is left");
    world.memory.drain(&mut cpu);
    world.memory.drain(&mut world.cpu);
    let items = [Item::Mapped, Item::OnLru, Item::PageTables];
    assert_eq!(items.map(|item| world.memory.statistic(item)), [1000, 1000, 4]);
    assert_eq!(world.memory.charged_pages(), 1000);
    drop((parent, child));
    world.is_empty();
}

/// Children write at the same time on threads of their own, and each has
/// all of its pages in the end.
#[test]
fn children_copy_on_threads_of_their_own() {
    let mut world = World::<NoPageMapcount>::new();
    let mut parent = world.space(512, 6);
    let children: Vec<_> =
        (0..3).map(|_| parent.fork(&mut world.cpu).expect("an id is left")).collect();
    drop(parent);
    let memory = &world.memory;
    let faults = std::thread::scope(|scope| {
        let write = |mut child: AddressSpace<NoPageMapcount>| {
            move || {
                let mut cpu = Cpu::default();
                let [copied, reused] = write_all(&mut child, &mut cpu);
                memory.drain(&mut cpu);
                (copied + reused, child.resident().rss)
            }
        };
        let threads: Vec<_> = children.into_iter().map(|child| scope.spawn(write(child))).collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("no count is wrong"));
        ends.collect::<Vec<_>>()
    });
    assert_eq!(faults, [(512, 512); 3]);
    world.is_empty();
}
