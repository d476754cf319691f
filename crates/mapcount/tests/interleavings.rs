//! Two and three threads on one folio, in every order with few switches: loom.
//!
//! Two threads are switched at most three times where they need not be, three threads once, which
//! keeps the tests short. A load may return an old value where the memory model allows it. Loom
//! does not move an operation before an earlier one of the same thread, so it cannot show that an
//! order is needed between two read-modify-writes of different counts.

use std::sync::atomic::Ordering;

use crate::support::{folio, mm};
use filemap_mapcount::atomics::Atomics;
use filemap_mapcount::{
    Folio, Mapcount, MmIds, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners, forward,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};
use loom::thread;

/// Integers of which loom decides what a load returns, and when threads are switched.
struct Loom;

#[derive(Default)]
struct LoomU32(AtomicU32);

/// A word of which a bit may be a lock.
#[derive(Default)]
struct LoomU64(Exchanged);

/// A store with release order is an exchange.
///
/// Loom may order a store of one thread before a read-modify-write of another one that has read
/// what the store replaces. The memory model forbids this, as nothing comes between the two halves
/// of a read-modify-write. A lock that is given back by a store would never be free.
#[derive(Default)]
struct Exchanged(AtomicU64);

impl Exchanged {
    fn store(&self, value: u64, order: Ordering) {
        if order == Ordering::Release {
            self.0.swap(value, order);
        } else {
            self.0.store(value, order);
        }
    }
}

impl std::ops::Deref for Exchanged {
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

/// A folio of two pages, with the statistics that its changes add up to.
struct Shared<C: Mapcount> {
    folio: Folio<C>,
    mapped: AtomicI64,
}

impl<C: Mapcount> Shared<C> {
    fn new() -> Arc<Shared<C>> {
        Arc::new(Shared { folio: folio(1), mapped: AtomicI64::new(0) })
    }

    fn map(&self, id: u32) {
        let change = self.folio.map(mm(id), 0..2);
        self.mapped.fetch_add(change.pages, Ordering::Relaxed);
    }

    fn unmap(&self, id: u32) {
        let change = self.folio.unmap(mm(id), 0..2);
        self.mapped.fetch_add(change.pages, Ordering::Relaxed);
    }

    fn owner(&self, ids: &[u32]) -> Option<u32> {
        ids.iter().copied().find(|&id| self.folio.counts().owned_by(mm(id)).is_some())
    }

    /// Both pages are mapped by so many mms.
    fn has(&self, mms: u32) {
        assert_eq!(self.folio.counts().mappings(), 2 * mms);
        assert_eq!([0, 1].map(|page| self.folio.page_mappings(page)), [mms; 2]);
        let pages = if mms > 0 { 2 } else { 0 };
        assert_eq!(self.mapped.load(Ordering::Relaxed), pages);
    }
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    explore_with(3, model);
}

fn explore_with(switches: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(model);
}

/// Which owners a configuration knows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Knows {
    Nobody,
    OwnersInSlots,
    EveryOwner,
}

/// Two mms map and unmap: nothing is lost, and nothing is left that hides the next owner.
fn two_come_and_go<C: Mapcount>(knows: Knows) {
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
        shared.has(0);
        assert!(!shared.folio.counts().maybe_shared());
        shared.map(3);
        assert_eq!(shared.owner(&[1, 2, 3]), (knows != Knows::Nobody).then_some(3));
        shared.has(1);
    });
}

/// Two children are forked at once. Three threads: one switch where none is needed.
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
        shared.has(3);
        assert!(shared.folio.counts().maybe_shared());
        assert_eq!(shared.owner(&[1, 2, 3]), None);
    });
}

/// A child is forked while somebody asks who owns the folio.
fn a_fork_while_somebody_asks<C: Mapcount>() {
    explore(|| {
        let shared = Shared::<C>::new();
        shared.map(1);
        let other = shared.clone();
        let thread = thread::spawn(move || other.map(2));
        // The parent maps both pages all the time: nobody else can be the only one.
        assert_eq!(shared.owner(&[2]), None);
        let owned = shared.folio.counts().owned_by(mm(1));
        assert!(owned.is_none_or(|mappings| mappings == 2), "{owned:?}");
        thread.join().expect("the thread ends");
        shared.has(2);
        assert_eq!(shared.owner(&[1, 2]), None);
    });
}

/// One mm leaves, then another comes: at no moment is the folio shared.
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

/// Two mms stay while a third one comes and goes: the folio is shared at any moment.
fn shared_all_the_time<C: Mapcount>() {
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
        shared.has(2);
        assert_eq!(shared.owner(&[1, 2, 3]), None);
    });
}

/// One mm leaves while another comes, which may take its slot or find none.
fn a_slot_changes_hands<C: Mapcount>(knows: Knows) {
    explore(move || {
        let shared = Shared::<C>::new();
        shared.map(1);
        shared.map(2);
        let other = shared.clone();
        let thread = thread::spawn(move || other.unmap(2));
        shared.map(3);
        assert_eq!(shared.owner(&[1, 2, 3]), None);
        thread.join().expect("the thread ends");
        shared.has(2);
        assert_eq!(shared.owner(&[1, 2, 3]), None);
        shared.unmap(1);
        let owner = shared.owner(&[1, 2, 3]);
        let may_be_unknown = knows != Knows::EveryOwner;
        assert!(owner == Some(3) || owner.is_none() && may_be_unknown, "{owner:?}");
        shared.has(1);
    });
}

/// Two threads share one id: whoever has it is the only one with mappings, and sees what the last
/// one with this id did.
fn an_id_is_reused<C: Mapcount>(knows: Knows) {
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
            let owned = (knows != Knows::Nobody).then_some(2);
            assert_eq!(shared.folio.counts().owned_by(id), owned);
            shared.unmap(id.get());
            ids.release(id);
            1
        };
        let (other, its_ids, its_lives) = (shared.clone(), ids.clone(), lives.clone());
        let thread = thread::spawn(move || live(&other, &its_ids, &its_lives));
        let ours = live(&shared, &ids, &lives);
        let its = thread.join().expect("the thread ends");
        assert_eq!(lives.load(Ordering::Relaxed), ours + its);
        shared.has(0);
        assert_eq!(ids.allocate().map(filemap_mapcount::MmId::get), Ok(1));
    });
}

/// One maps the whole folio while another maps its pages.
fn entire_and_single_mappings<C: Mapcount>() {
    explore(|| {
        let shared = Shared::<C>::new();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.map(2);
            other.unmap(2);
        });
        let mut mapped = shared.folio.map_entirely(mm(1)).pages;
        mapped += shared.folio.unmap_entirely(mm(1)).pages;
        shared.mapped.fetch_add(mapped, Ordering::Relaxed);
        thread.join().expect("the thread ends");
        shared.has(0);
        assert_eq!(shared.folio.counts().entire_mappings(), 0);
    });
}

macro_rules! configurations {
    ($($name:ident: $type:ty, knows $knows:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn two_come_and_go() {
                super::two_come_and_go::<$type>($knows);
            }

            #[test]
            fn two_forks() {
                super::two_forks::<$type>();
            }

            #[test]
            fn a_fork_while_somebody_asks() {
                super::a_fork_while_somebody_asks::<$type>();
            }

            #[test]
            fn never_shared() {
                super::never_shared::<$type>();
            }

            #[test]
            fn shared_all_the_time() {
                super::shared_all_the_time::<$type>();
            }

            #[test]
            fn a_slot_changes_hands() {
                super::a_slot_changes_hands::<$type>($knows);
            }

            #[test]
            fn an_id_is_reused() {
                super::an_id_is_reused::<$type>($knows);
            }

            #[test]
            fn entire_and_single_mappings() {
                super::entire_and_single_mappings::<$type>();
            }
        }
    )*};
}

configurations! {
    page_mapcount: PageMapcount<Loom>, knows Knows::Nobody;
    mm_owner: MmOwner<Loom>, knows Knows::OwnersInSlots;
    no_page_mapcount: NoPageMapcount<Loom>, knows Knows::OwnersInSlots;
    precise_owners: PreciseOwners<Loom>, knows Knows::EveryOwner;
}
