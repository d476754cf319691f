//! Which lock a retry takes, and whether it may drop it: mainline, and with vma-retry.

mod support;

use filemap_core::decision::{Decision, Lock};
use filemap_core::fault::{Access, Fault, Outcome, Step, View, lock};
use filemap_core::rules::Kernel::V6_18;
use filemap_core::series::{Series, Switch};
use filemap_core::units::{PageCount, PageIndex};

use support::engine::{Engine, Io};
use support::machine::{KERNELS, limits, stream, with};
use support::map;

const VMA_RETRY: &[Switch] = &[Switch::VmaRetry];

#[test]
fn a_retry_takes_mmap_lock_or_with_vma_retry_that_of_its_vma() {
    let series = Series::BASELINE.with(Switch::VmaRetry);
    for first in [Lock::Vma, Lock::Mmap] {
        assert_eq!(lock::of_retry(first, Series::BASELINE), Lock::Mmap);
        assert_eq!(lock::of_retry(first, series), first);
    }
}

#[test]
fn the_retry_of_a_miss_or_under_mmap_lock_is_the_last() {
    for was_last in [false, true] {
        for major in [false, true] {
            assert_eq!(lock::is_last(was_last, major, Lock::Vma), was_last || major);
            assert!(lock::is_last(was_last, major, Lock::Mmap));
        }
    }
}

#[test]
fn a_miss_tries_again_under_the_lock_of_its_vma() {
    for kernel in KERNELS {
        let limits = with(VMA_RETRY, limits(kernel, PageCount(64)));
        let mut engine = Engine::new(limits, Io::Waited, "64.");
        engine.fault(32, Access::Read);
        let course = engine.course();
        assert!(course.ends_with("wait:32 vma map:32..47=7-7 major/2"), "{course}");
        assert!(!course.contains("mmap"), "{course}");
    }
}

/// Serves a fault whose asking number `refused`, from 0, for its VMA's lock is refused. Returns the
/// locks that it asked for.
fn locks(switches: &[Switch], mut fault: Fault, refused: Option<usize>) -> (Vec<Lock>, Outcome) {
    let mut engine = Engine::new(with(switches, limits(V6_18, PageCount(64))), Io::Waited, "64.");
    let mut locks = Vec::new();
    loop {
        let Engine { limits, vma, ra, tables, cache, log, .. } = &mut engine;
        match fault.step(&mut View { limits, vma, ra, tables, cache, log }) {
            Step::Lock(lock) => {
                if refused == Some(locks.len()) && lock == Lock::Vma {
                    fault.refused();
                }
                locks.push(lock);
            }
            Step::Read(window) => engine.read_window(window),
            Step::Wait(_) => engine.arrive(),
            Step::Done(outcome) => return (locks, outcome),
            Step::Unlock | Step::ReadPage(_) => {}
        }
    }
}

#[test]
fn a_retry_whose_lock_is_refused_takes_mmap_lock_in_the_same_try() {
    let (vma, mmap) = (Lock::Vma, Lock::Mmap);
    let fault = || Fault::new(PageIndex(32), Access::Read);
    let outcome = Outcome { major: true, tries: 2 };
    let cases: [(&[Switch], Option<usize>, &[Lock]); 6] = [
        (&[], None, &[vma, mmap]),
        (&[], Some(0), &[vma, mmap, mmap]),
        (VMA_RETRY, None, &[vma, vma]),
        (VMA_RETRY, Some(0), &[vma, mmap, vma]),
        (VMA_RETRY, Some(1), &[vma, vma, mmap]),
        (VMA_RETRY, Some(2), &[vma, vma]),
    ];
    for (switches, refused, expected) in cases {
        assert_eq!(locks(switches, fault(), refused), (expected.to_vec(), outcome), "{refused:?}");
    }
}

/// MADV_POPULATE_READ asks for no lock of a VMA, so it has none to come back to.
#[test]
fn populating_comes_back_to_mmap_lock() {
    let (asked, _) = locks(VMA_RETRY, Fault::populating(PageIndex(5)), None);
    assert_eq!(asked, [Lock::Mmap; 2]);
}

/// Under the lock of its VMA a retry that is not TRIED may drop it once more, and the one behind
/// that too: only a miss, or `mmap_lock`, makes a retry the last.
#[test]
fn the_retry_of_an_async_window_may_drop_the_lock_of_its_vma() {
    let limits = with(VMA_RETRY, limits(V6_18, PageCount(64)));
    let mut engine = Engine::new(limits, Io::Waited, "20. 12# m3~ 28.");
    engine.limits.fault_around = PageCount(1);
    engine.ra = stream(20, 16, 4, 0);
    let outcome = engine.fault_with(32, Access::Read, |step, engine| {
        if matches!(step, Step::Wait(_)) && !engine.log.iter().any(is_miss) {
            engine.cache = map::cache("64.");
        }
    });
    let course = engine.course();
    // The retry misses, and drops its lock: its own retry is the last.
    assert!(course.contains("wait:32 vma miss:0 drop around:24+16-4 wait:32 vma"), "{course}");
    assert!(!course.contains("mmap"), "{course}");
    assert_eq!(outcome, Outcome { major: true, tries: 3 });
}

fn is_miss(decision: &Decision) -> bool {
    matches!(decision, Decision::Lookup { hit: false, .. })
}
