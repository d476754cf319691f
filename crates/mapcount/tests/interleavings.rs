//! Two and three threads on one folio in every order, by loom.
//!
//! Two threads are preempted at most three times, three threads once, to keep the tests short.
//! Loads may return old values where the memory model allows it. Loom does not reorder operations
//! of one thread, so it cannot show that an ordering between two read-modify-writes is needed.

use std::sync::atomic::Ordering;

use crate::support::{folio, mm};
use filemap_mapcount::atomics::Atomics;
use filemap_mapcount::{
    Folio, Mapcount, MmIds, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners, forward,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};
use loom::thread;

/// Loom's integers.
struct Loom;

#[derive(Default)]
struct LoomU32(AtomicU32);

/// A word that may have a lock bit.
#[derive(Default)]
struct LoomU64(ExchangedU64);

/// A word whose release stores are exchanges.
///
/// Loom may order a store before another thread's read-modify-write that has read the replaced
/// value. The memory model forbids this, since a read-modify-write is atomic. A lock released by a
/// store would stay locked.
#[derive(Default)]
struct ExchangedU64(AtomicU64);

impl ExchangedU64 {
    fn store(&self, value: u64, order: Ordering) {
        if order == Ordering::Release {
            self.0.swap(value, order);
        } else {
            self.0.store(value, order);
        }
    }
}

impl std::ops::Deref for ExchangedU64 {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        &self.0
    }
}

forward!(LoomU32, u32, |it| it.0);
forward!(LoomU64, u64, |it| it.0);

impl Atomics for Loom {
    type Page = LoomU32;
    type U32 = LoomU32;
    type U64 = LoomU64;

    fn relax() {
        thread::yield_now();
    }
}

/// A folio of two pages, and the sum of its changes in mapped pages.
struct Shared<C: Mapcount> {
    folio: Folio<C>,
    mapped: AtomicI64,
}

impl<C: Mapcount> Shared<C> {
    fn new() -> Arc<Shared<C>> {
        Arc::new(Shared { folio: folio(1), mapped: AtomicI64::new(0) })
    }

    fn map(&self, id: u32) {
        let pages = self.folio.map(mm(id), 0..2);
        self.mapped.fetch_add(pages, Ordering::Relaxed);
    }

    fn unmap(&self, id: u32) {
        let pages = self.folio.unmap(mm(id), 0..2);
        self.mapped.fetch_add(pages, Ordering::Relaxed);
    }

    fn owner(&self, ids: &[u32]) -> Option<u32> {
        ids.iter().copied().find(|&id| self.folio.counts().owned_by(mm(id)).is_some())
    }

    /// Both pages are mapped by this many mms.
    fn assert_mapped_by(&self, mms: u32) {
        assert_eq!(self.folio.counts().mappings(), 2 * mms);
        for page in [0, 1] {
            assert!(self.folio.page_mappings(page).is_none_or(|mappings| mappings == mms));
        }
        let pages = if mms > 0 { 2 } else { 0 };
        assert_eq!(self.mapped.load(Ordering::Relaxed), pages);
    }
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    explore_with(3, model);
}

fn explore_with(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Which owners a scheme knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownOwners {
    None,
    InSlots,
    All,
}

/// Two mms map and unmap: no update is lost, and nothing remains that hides the next owner.
fn two_map_and_unmap<C: Mapcount>(known: KnownOwners) {
    explore(move || {
        let shared = Shared::<C>::new();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.map(2);
            other.unmap(2);
        });
        shared.map(1);
        shared.unmap(1);
        thread.join().expect("the thread ends");
        shared.assert_mapped_by(0);
        assert!(!shared.folio.counts().maybe_shared());
        shared.map(3);
        assert_eq!(shared.owner(&[1, 2, 3]), (known != KnownOwners::None).then_some(3));
        shared.assert_mapped_by(1);
    });
}

/// Two children are forked at the same time, by three threads.
fn two_forks<C: Mapcount>() {
    explore_with(1, || {
        let shared = Shared::<C>::new();
        shared.map(1);
        let threads = [2, 3].map(|child| {
            let shared = shared.clone();
            thread::spawn(move || shared.map(child))
        });
        for thread in threads {
            thread.join().expect("the thread ends");
        }
        shared.assert_mapped_by(3);
        assert!(shared.folio.counts().maybe_shared());
        assert_eq!(shared.owner(&[1, 2, 3]), None);
    });
}

/// A child is forked during an owner query.
fn fork_during_owner_query<C: Mapcount>() {
    explore(|| {
        let shared = Shared::<C>::new();
        shared.map(1);
        let other = shared.clone();
        let thread = thread::spawn(move || other.map(2));
        // The parent maps both pages throughout, so no other mm is the only one.
        assert_eq!(shared.owner(&[2]), None);
        let owned = shared.folio.counts().owned_by(mm(1));
        assert!(owned.is_none_or(|mappings| mappings == 2), "{owned:?}");
        thread.join().expect("the thread ends");
        shared.assert_mapped_by(2);
        assert_eq!(shared.owner(&[1, 2]), None);
    });
}

/// One mm unmaps, then another maps: the folio is never shared.
fn never_shared<C: Mapcount>() {
    explore(|| {
        let shared = Shared::<C>::new();
        shared.folio.map(mm(1), 0..1);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.folio.unmap(mm(1), 0..1);
            other.folio.map(mm(3), 0..1);
        });
        assert!(!shared.folio.counts().maybe_shared());
        assert_eq!(shared.owner(&[2]), None);
        thread.join().expect("the thread ends");
        assert!(!shared.folio.counts().maybe_shared());
    });
}

/// Two mms stay while a third one maps and unmaps: the folio is always shared.
fn always_shared<C: Mapcount>() {
    explore(|| {
        let shared = Shared::<C>::new();
        shared.map(1);
        shared.map(2);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.map(3);
            other.unmap(3);
        });
        assert!(shared.folio.counts().maybe_shared());
        assert_eq!(shared.owner(&[1, 2, 3]), None);
        thread.join().expect("the thread ends");
        shared.assert_mapped_by(2);
        assert_eq!(shared.owner(&[1, 2, 3]), None);
    });
}

/// One mm unmaps while another maps, which may take its slot or find none.
fn slot_changes_owner<C: Mapcount>(known: KnownOwners) {
    explore(move || {
        let shared = Shared::<C>::new();
        shared.map(1);
        shared.map(2);
        let other = shared.clone();
        let thread = thread::spawn(move || other.unmap(2));
        shared.map(3);
        assert_eq!(shared.owner(&[1, 2, 3]), None);
        thread.join().expect("the thread ends");
        shared.assert_mapped_by(2);
        assert_eq!(shared.owner(&[1, 2, 3]), None);
        shared.unmap(1);
        let owner = shared.owner(&[1, 2, 3]);
        let may_be_unknown = known != KnownOwners::All;
        assert!(owner == Some(3) || owner.is_none() && may_be_unknown, "{owner:?}");
        shared.assert_mapped_by(1);
    });
}

/// Two threads share one id: its owner is the only one with mappings, and sees what the previous
/// owner did.
fn id_is_reused<C: Mapcount>(known: KnownOwners) {
    explore(move || {
        let shared = Shared::<C>::new();
        let ids = Arc::new(MmIds::<Loom>::new(1).expect("one id is possible"));
        let lives = Arc::new(AtomicU32::new(0));
        let live = move |shared: &Shared<C>, ids: &MmIds<Loom>, lives: &AtomicU32| {
            let Ok(id) = ids.allocate() else { return 0 };
            let earlier = lives.load(Ordering::Relaxed);
            lives.store(earlier + 1, Ordering::Relaxed);
            shared.map(id.get());
            assert_eq!(shared.folio.counts().mappings(), 2);
            let owned = (known != KnownOwners::None).then_some(2);
            assert_eq!(shared.folio.counts().owned_by(id), owned);
            shared.unmap(id.get());
            ids.release(id);
            1
        };
        let (other, its_ids, its_lives) = (shared.clone(), ids.clone(), lives.clone());
        let thread = thread::spawn(move || live(&other, &its_ids, &its_lives));
        let first = live(&shared, &ids, &lives);
        let second = thread.join().expect("the thread ends");
        assert_eq!(lives.load(Ordering::Relaxed), first + second);
        shared.assert_mapped_by(0);
        assert_eq!(ids.allocate().map(filemap_mapcount::MmId::get), Ok(1));
    });
}

macro_rules! schemes {
    ($($name:ident: $type:ty, knows $known:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn two_map_and_unmap() {
                super::two_map_and_unmap::<$type>($known);
            }

            #[test]
            fn two_forks() {
                super::two_forks::<$type>();
            }

            #[test]
            fn fork_during_owner_query() {
                super::fork_during_owner_query::<$type>();
            }

            #[test]
            fn never_shared() {
                super::never_shared::<$type>();
            }

            #[test]
            fn always_shared() {
                super::always_shared::<$type>();
            }

            #[test]
            fn slot_changes_owner() {
                super::slot_changes_owner::<$type>($known);
            }

            #[test]
            fn id_is_reused() {
                super::id_is_reused::<$type>($known);
            }
        }
    )*};
}

schemes! {
    page_mapcount: PageMapcount<Loom>, knows KnownOwners::None;
    mm_owner: MmOwner<Loom>, knows KnownOwners::InSlots;
    no_page_mapcount: NoPageMapcount<Loom>, knows KnownOwners::InSlots;
    precise_owners: PreciseOwners<Loom>, knows KnownOwners::All;
}
