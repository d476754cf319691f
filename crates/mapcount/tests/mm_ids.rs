//! Ids are given out once, and again when they are back.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::support::{Random, mm};
use filemap_mapcount::{Error, MmId, MmIds};

fn ids(ids: u32) -> MmIds {
    MmIds::new(ids).expect("so many are possible")
}

#[test]
fn each_id_is_given_out_once() {
    for count in [1, 63, 64, 65, 200] {
        let ids = ids(count);
        let given: Vec<u32> =
            (0..count).map(|_| ids.allocate().expect("one is left").get()).collect();
        assert_eq!(given, (1..=count).collect::<Vec<_>>());
        assert_eq!(ids.allocate(), Err(Error::NoIdLeft { ids: count }));
        let message = "mm ids are in use; one is free again when an mm is gone";
        assert_eq!(ids.allocate().unwrap_err().to_string(), format!("all {count} {message}"));
    }
}

#[test]
fn there_are_as_many_as_31_bits_hold_without_0() {
    let all = ids(1 << 20);
    let given = (0..1 << 20).filter_map(|_| all.allocate().ok()).count();
    assert_eq!(given, 1 << 20);
    assert_eq!(all.allocate(), Err(Error::NoIdLeft { ids: 1 << 20 }));
    assert_eq!(MmId::LAST.get(), u32::MAX >> 1);
    assert_eq!(MmIds::new(1 << 31).map(|_: MmIds| ()), Err(Error::Ids(1 << 31)));
    assert_eq!(MmIds::new(0).map(|_: MmIds| ()), Err(Error::Ids(0)));
}

#[test]
fn an_id_comes_back_in_a_circle() {
    let ids = ids(100);
    let first = ids.allocate().expect("one is left");
    ids.release(first);
    assert_eq!(ids.allocate(), Ok(mm(2)));
    (3..=100).for_each(|id| assert_eq!(ids.allocate(), Ok(mm(id))));
    assert_eq!(ids.allocate(), Ok(first));
    ids.release(mm(70));
    ids.release(mm(3));
    // After the id that was given out last, which was the first.
    assert_eq!([ids.allocate(), ids.allocate()], [Ok(mm(3)), Ok(mm(70))]);
}

#[test]
#[should_panic(expected = "an id that is given back is in use; mm id 7 was not")]
fn an_id_is_given_back_once() {
    let ids = ids(10);
    let given: Vec<MmId> = (0..7).map(|_| ids.allocate().expect("one is left")).collect();
    ids.release(given[6]);
    ids.release(given[6]);
}

#[test]
#[should_panic(expected = "an id that is given back is in use; mm id 65 was not")]
fn an_id_behind_the_last_is_nobodys() {
    ids(64).release(mm(65));
}

#[test]
fn two_threads_never_have_the_same_id() {
    let ids = ids(70);
    let held = Mutex::new(BTreeSet::new());
    let live = |seed: u64| {
        let mut random = Random(seed);
        for _ in 0..2_000 {
            let mine: Vec<MmId> =
                (0..random.below(40)).filter_map(|_| ids.allocate().ok()).collect();
            for id in &mine {
                assert!(held.lock().expect("nobody panics").insert(*id), "{id:?} has two owners");
            }
            for id in mine {
                held.lock().expect("nobody panics").remove(&id);
                ids.release(id);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| live(1));
        scope.spawn(|| live(2));
    });
    assert_eq!((0..70).filter(|_| ids.allocate().is_ok()).count(), 70);
}
