//! More threads than can be explored completely: random orders, by shuttle.

use std::sync::atomic::Ordering;

use crate::support::{folio, mm};
use filemap_mapcount::atomics::Atomics;
use filemap_mapcount::{
    Mapcount, MmIds, MmOwner, NoPageMapcount, PageMapcount, PreciseOwners, forward,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};
use shuttle::thread;

/// Integers at which shuttle may switch threads.
struct Shuttle;

#[derive(Default)]
struct ShuttleU32(AtomicU32);

#[derive(Default)]
struct ShuttleU64(AtomicU64);

forward!(ShuttleU32, u32, |it| it.0);
forward!(ShuttleU64, u64, |it| it.0);

impl Atomics for Shuttle {
    type Page = ShuttleU32;
    type U32 = ShuttleU32;
    type U64 = ShuttleU64;

    fn relax() {
        thread::yield_now();
    }
}

const THREADS: u32 = 6;
const LIVES: u32 = 3;
const ORDERS: usize = 400;

/// Six threads live three lives each, with five ids: a batch, a part of it by itself, a PMD entry.
fn lives<C: Mapcount>() {
    shuttle::check_random(
        || {
            let folio = Arc::new(folio::<C>(2));
            let ids = Arc::new(MmIds::<Shuttle>::new(THREADS - 1).expect("five are possible"));
            let mapped = Arc::new(AtomicI64::new(0));
            let live = |_| {
                let (folio, ids, mapped) = (folio.clone(), ids.clone(), mapped.clone());
                thread::spawn(move || {
                    for _ in 0..LIVES {
                        let Ok(id) = ids.allocate() else { continue };
                        let cut = thread_rng().gen_range(1..4);
                        let mut pages = folio.map(id, 0..4).pages;
                        assert!(folio.counts().mappings() >= 4);
                        pages += folio.unmap(id, 0..cut).pages;
                        let owned = folio.counts().owned_by(id);
                        assert!(owned.is_none_or(|mappings| mappings == 4 - cut as u32));
                        pages += folio.map_entirely(id).pages;
                        pages += folio.unmap(id, cut..4).pages;
                        pages += folio.unmap_entirely(id).pages;
                        mapped.fetch_add(pages, Ordering::Relaxed);
                        ids.release(id);
                    }
                })
            };
            let threads: Vec<_> = (0..THREADS).map(live).collect();
            for thread in threads {
                thread.join().expect("the thread ends");
            }
            assert_eq!(folio.counts().mappings(), 0);
            assert_eq!(folio.counts().entire_mappings(), 0);
            assert_eq!([0, 1, 2, 3].map(|page| folio.page_mappings(page)), [0; 4]);
            assert_eq!(mapped.load(Ordering::Relaxed), 0);
            assert!(!folio.counts().maybe_shared());
            assert!((1..THREADS).all(|_| ids.allocate().is_ok()));
        },
        ORDERS,
    );
}

/// Two mms stay while four others come, ask and go.
fn shared_all_the_time<C: Mapcount>() {
    shuttle::check_pct(
        || {
            let folio = Arc::new(folio::<C>(1));
            folio.map(mm(1), 0..2);
            folio.map(mm(2), 0..1);
            let threads = [3, 4, 5, 6].map(|id| {
                let folio = folio.clone();
                thread::spawn(move || {
                    folio.map(mm(id), 0..2);
                    assert!(folio.counts().maybe_shared());
                    let owner = (1..=6).find(|&id| folio.counts().owned_by(mm(id)).is_some());
                    assert_eq!(owner, None);
                    folio.unmap(mm(id), 0..2);
                })
            });
            for thread in threads {
                thread.join().expect("the thread ends");
            }
            assert_eq!(folio.counts().mappings(), 3);
        },
        ORDERS,
        3,
    );
}

macro_rules! configurations {
    ($($name:ident: $type:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn lives() {
                super::lives::<$type>();
            }

            #[test]
            fn shared_all_the_time() {
                super::shared_all_the_time::<$type>();
            }
        }
    )*};
}

configurations! {
    page_mapcount: PageMapcount<Shuttle>;
    mm_owner: MmOwner<Shuttle>;
    no_page_mapcount: NoPageMapcount<Shuttle>;
    precise_owners: PreciseOwners<Shuttle>;
}
