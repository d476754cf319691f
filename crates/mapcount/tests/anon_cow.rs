//! Children that write to a parent's pages at the same time, each on its own thread.

use std::sync::Arc;
use std::time::Instant;

use filemap_mapcount::anon_cow::{AnonCow, Child, WriteOrder};
use filemap_mapcount::folio_ops::Sample;
use filemap_mapcount::mm::Contents;
use filemap_mapcount::{
    Error, Mapcount, MmOwner, NoPageMapcount, Order, PageMapcount, PreciseOwners,
};

const PAGES: usize = 1024;
const SEED: u64 = 42;

fn order(order: u32) -> Order {
    Order::new(order).expect("tests name orders that exist")
}

fn run_all<C: Mapcount>(children: Vec<Child<C>>) -> Vec<Sample> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let run = |mut child: Child<C>| {
            scope.spawn(move || {
                let sample = child.run(|| start.elapsed().as_nanos() as u64).expect("memory");
                (sample, child)
            })
        };
        let threads: Vec<_> = children.into_iter().map(run).collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("no count is wrong"));
        let (samples, _children): (Vec<_>, Vec<_>) = ends.unzip();
        samples
    })
}

/// The parent maps everything too, so each child copies all pages with any scheme. Dropped children
/// free their pages for the next ones.
fn each_child_copies_all<C: Mapcount>() {
    for (size, children) in [(0, 2), (2, 3), (9, 2)] {
        let mut cow = AnonCow::<C>::new(PAGES, order(size), children).expect("memory and ids");
        for write_order in WriteOrder::ALL.into_iter().chain(WriteOrder::ALL) {
            let forked = cow.children(write_order, SEED).expect("the ids are free again");
            assert!(forked.iter().all(|child| child.pages() == PAGES));
            let samples = run_all(forked);
            assert_eq!(samples.len(), children);
            for sample in samples {
                assert_eq!((sample.copied, sample.reused), (PAGES, 0), "{}", write_order.name());
                assert!(sample.time_ns > 0);
            }
        }
    }
}

#[test]
fn each_child_copies_all_pages() {
    each_child_copies_all::<PageMapcount>();
    each_child_copies_all::<MmOwner>();
    each_child_copies_all::<NoPageMapcount>();
    each_child_copies_all::<PreciseOwners>();
}

/// Freeing the pages of one child must not be in the time of another.
#[test]
fn a_child_keeps_its_copies_until_dropped() {
    let mut cow = AnonCow::<MmOwner>::new(PAGES, order(4), 2).expect("memory and ids");
    let mut children = cow.children(WriteOrder::Random, SEED).expect("two ids");
    for child in &mut children {
        assert_eq!(child.run(|| 0).map(|sample| sample.copied), Ok(PAGES));
        let again = child.run(|| 0).map(|sample| (sample.copied, sample.reused));
        assert_eq!(again, Ok((0, 0)));
    }
    let error = cow.children(WriteOrder::Random, SEED).err().expect("the ids are in use");
    assert_eq!(error, Error::NoIdLeft { ids: 3 });
    drop(children);
    let next = cow.children(WriteOrder::Random, SEED).expect("the ids are free again");
    assert!(run_all(next).iter().all(|sample| sample.copied == PAGES));
}

#[test]
fn unused_children_release_their_ids() {
    let mut cow = AnonCow::<NoPageMapcount>::new(64, order(4), 2).expect("memory and ids");
    drop(cow.children(WriteOrder::Random, SEED).expect("two ids"));
    let first = cow.children(WriteOrder::Random, SEED).expect("two ids");
    let error = cow.children(WriteOrder::Random, SEED).err().expect("the ids are in use");
    assert_eq!(error, Error::NoIdLeft { ids: 3 });
    drop(first);
    assert_eq!(cow.children(WriteOrder::Random, SEED).map(|children| children.len()), Ok(2));
}

#[test]
fn schemes_share_contents() {
    let pages = AnonCow::<MmOwner>::memory_pages(PAGES, 2);
    let mut content_bytes = 0;
    let mut advise = |addresses: std::ops::Range<usize>| content_bytes += addresses.len();
    let contents = Arc::new(Contents::new(pages, &mut advise).expect("memory"));
    assert_eq!(content_bytes, pages * 4096);
    let mut base =
        AnonCow::<PageMapcount>::with_contents(&contents, PAGES, order(4), 2, &mut |_| ())
            .expect("it fits");
    let samples = run_all(base.children(WriteOrder::Random, SEED).expect("two ids"));
    drop(base);
    let mut frame_bytes = 0;
    let mut advise = |addresses: std::ops::Range<usize>| frame_bytes += addresses.len();
    let mut owner = AnonCow::<MmOwner>::with_contents(&contents, PAGES, order(4), 2, &mut advise)
        .expect("it fits");
    assert_eq!(frame_bytes, pages * 64);
    let others = run_all(owner.children(WriteOrder::Sequential, SEED).expect("two ids"));
    assert!(samples.iter().chain(&others).all(|sample| sample.copied == PAGES));
}

/// The guard lives as long as the last child.
#[test]
#[should_panic(expected = "the contents of these pages are in use by another memory")]
fn refuses_contents_in_use() {
    let pages = AnonCow::<MmOwner>::memory_pages(64, 1);
    let contents = Arc::new(Contents::new(pages, &mut |_| ()).expect("memory"));
    let mut first = AnonCow::<MmOwner>::with_contents(&contents, 64, order(4), 1, &mut |_| ())
        .expect("it fits");
    let _children = first.children(WriteOrder::Sequential, SEED).expect("an id");
    drop(first);
    let _second = AnonCow::<PageMapcount>::with_contents(&contents, 64, order(4), 1, &mut |_| ());
}

#[test]
fn refuses_too_little_memory() {
    let contents = Arc::new(Contents::new(512, &mut |_| ()).expect("2 MiB are there"));
    let few = AnonCow::<MmOwner>::with_contents(&contents, PAGES, order(4), 1, &mut |_| ());
    assert_eq!(few.err(), Some(Error::NoMemory { needed: 16, free: 0 }));
    let none = AnonCow::<MmOwner>::new(1 << 40, order(4), 1 << 40).err().expect("no such machine");
    assert!(matches!(none, Error::Memory { .. }), "{none}");
}
