//! Allocation and reuse of ids.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::support::{Random, mm};
use filemap_mapcount::{Error, MmId, MmIds};

fn ids(ids: u32) -> MmIds {
    MmIds::new(ids).expect("so many are possible")
}

#[test]
fn allocates_each_id_once() {
    for count in [1, 63, 64, 65, 200] {
        let ids = ids(count);
        let allocated: Vec<u32> =
            (0..count).map(|_| ids.allocate().expect("one is left").get()).collect();
        assert_eq!(allocated, (1..=count).collect::<Vec<_>>());
        assert_eq!(ids.allocate(), Err(Error::NoIdLeft { ids: count }));
        let message = "mm ids are in use; drop an address space to free one";
        assert_eq!(ids.allocate().unwrap_err().to_string(), format!("all {count} {message}"));
    }
}

#[test]
fn has_2_to_the_31_less_one_ids() {
    let all = ids(1 << 20);
    let allocated = (0..1 << 20).filter_map(|_| all.allocate().ok()).count();
    assert_eq!(allocated, 1 << 20);
    assert_eq!(all.allocate(), Err(Error::NoIdLeft { ids: 1 << 20 }));
    assert_eq!(MmId::LAST.get(), u32::MAX >> 1);
    assert_eq!(MmIds::new(1 << 31).map(|_: MmIds| ()), Err(Error::Ids(1 << 31)));
    assert_eq!(MmIds::new(0).map(|_: MmIds| ()), Err(Error::Ids(0)));
}

#[test]
fn allocates_cyclically() {
    let ids = ids(100);
    let first = ids.allocate().expect("one is left");
    ids.release(first);
    assert_eq!(ids.allocate(), Ok(mm(2)));
    (3..=100).for_each(|id| assert_eq!(ids.allocate(), Ok(mm(id))));
    assert_eq!(ids.allocate(), Ok(first));
    ids.release(mm(70));
    ids.release(mm(3));
    // The search starts after the last allocated id, which was the first.
    assert_eq!([ids.allocate(), ids.allocate()], [Ok(mm(3)), Ok(mm(70))]);
}

#[test]
#[should_panic(expected = "mm id 7 is released but not in use")]
fn refuses_a_second_release() {
    let ids = ids(10);
    let allocated: Vec<MmId> = (0..7).map(|_| ids.allocate().expect("one is left")).collect();
    ids.release(allocated[6]);
    ids.release(allocated[6]);
}

#[test]
#[should_panic(expected = "mm id 65 is released but not in use")]
fn refuses_the_release_of_an_unknown_id() {
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
