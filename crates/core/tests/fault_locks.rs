//! Which lock a retry takes, and whether it may drop it: mainline, and with vma-retry.

use filemap_core::address::vma::Advice;
use filemap_core::decision::{Decision, Lock};
use filemap_core::fault::{AccessKind, Fault, FaultResult, Step, View, lock};
use filemap_core::rules::Kernel::{self, V6_18};
use filemap_core::rules::Rules;
use filemap_core::series::{Series, Switch};
use filemap_core::units::{PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{KERNELS, limits, stream, with};
use crate::support::map;

const VMA_RETRY: &[Switch] = &[Switch::VmaRetry];

#[test]
fn retry_takes_mmap_lock_or_with_vma_retry_the_same_lock() {
    let series = Series::BASELINE.with(Switch::VmaRetry);
    for held in [Lock::Vma, Lock::Mmap] {
        for read_alone in [false, true] {
            assert_eq!(lock::retry_lock(held, read_alone, Series::BASELINE), Lock::Mmap);
        }
        assert_eq!(lock::retry_lock(held, false, series), held);
        assert_eq!(lock::retry_lock(held, true, series), Lock::Mmap);
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
        engine.fault(32, AccessKind::Read);
        let course = engine.course();
        assert!(course.ends_with("wait:32 vma map:32..47=7-7 major/2"), "{course}");
        assert!(!course.contains("mmap"), "{course}");
    }
}

/// Serves a fault whose request number `refused`, from 0, for the VMA lock is refused. Returns the
/// locks that it requested.
fn locks(
    switches: &[Switch],
    mut fault: Fault,
    refused: Option<usize>,
) -> (Vec<Lock>, FaultResult) {
    let mut engine = Engine::new(with(switches, limits(V6_18, PageCount(64))), Io::Waited, "64.");
    let mut locks = Vec::new();
    loop {
        let Engine { limits, vma, ra, tables, cache, log, .. } = &mut engine;
        match fault.step(&mut View { limits, vma, ra, tables, cache, log }) {
            Step::Lock(lock) => {
                if refused == Some(locks.len()) && lock == Lock::Vma {
                    fault.on_lock_refused();
                }
                locks.push(lock);
            }
            Step::Read => engine.read_window(*fault.window()),
            Step::Wait(_) => engine.arrive(),
            Step::Done(outcome) => return (locks, outcome),
            Step::Unlock | Step::ReadPage(_) => {}
        }
    }
}

#[test]
fn a_retry_whose_lock_is_refused_takes_mmap_lock_in_the_same_try() {
    let (vma, mmap) = (Lock::Vma, Lock::Mmap);
    let fault = || Fault::new(PageIndex(32), AccessKind::Read);
    let outcome = FaultResult { major: true, tries: 2 };
    let cases: [(&[Switch], Option<usize>, &[Lock]); 6] = [
        (&[], None, &[vma, mmap]),
        (&[], Some(0), &[vma, mmap, mmap]),
        (VMA_RETRY, None, &[vma, vma]),
        (VMA_RETRY, Some(0), &[vma, mmap, mmap]),
        (VMA_RETRY, Some(1), &[vma, vma, mmap]),
        (VMA_RETRY, Some(2), &[vma, vma]),
    ];
    for (switches, refused, expected) in cases {
        assert_eq!(locks(switches, fault(), refused), (expected.to_vec(), outcome), "{refused:?}");
    }
}

/// A fault reads its page itself, without readahead, if the mapping is advised RANDOM, or after
/// many misses. The series as posted does not cover this.
#[test]
fn single_page_read_returns_to_mmap_lock() {
    for kernel in KERNELS {
        let mut engine =
            Engine::new(with(VMA_RETRY, limits(kernel, PageCount(64))), Io::Waited, "64.");
        engine.vma.advice = Advice::RANDOM;
        engine.fault(32, AccessKind::Read);
        let course = engine.course();
        assert!(course.starts_with("vma") && course.contains("mmap"), "{course}");
        let mut engine =
            Engine::new(with(VMA_RETRY, limits(kernel, PageCount(64))), Io::Waited, "64.");
        engine.ra.mmap_miss = 1000;
        engine.fault(32, AccessKind::Read);
        let course = engine.course();
        assert!(course.starts_with("vma") && course.contains("mmap"), "{course}");
    }
}

/// MADV_POPULATE_READ requests no VMA lock, so it has none to come back to.
#[test]
fn populating_returns_to_mmap_lock() {
    let (asked, _) = locks(VMA_RETRY, Fault::populating(PageIndex(5)), None);
    assert_eq!(asked, [Lock::Mmap; 2]);
}

/// Under the VMA lock a retry that is not TRIED may drop the lock once more, and so may the next:
/// only a miss, or `mmap_lock`, makes a retry the last.
#[test]
fn the_retry_of_an_async_window_may_drop_the_lock_of_its_vma() {
    let limits = with(VMA_RETRY, limits(V6_18, PageCount(64)));
    let mut engine = Engine::new(limits, Io::Waited, "20. 12# m3~ 28.");
    engine.limits.fault_around = PageCount(1);
    engine.ra = stream(20, 16, 4, 0);
    let outcome = engine.fault_with(32, AccessKind::Read, |step, engine| {
        if matches!(step, Step::Wait(_)) && !engine.log.iter().any(is_miss) {
            engine.cache = map::cache("64.");
        }
    });
    let course = engine.course();
    // The retry misses, and drops its lock: its own retry is the last.
    assert!(course.contains("wait:32 vma miss:0 drop around:24+16-4 wait:32 vma"), "{course}");
    assert!(!course.contains("mmap"), "{course}");
    assert_eq!(outcome, FaultResult { major: true, tries: 3 });
}

fn is_miss(decision: &Decision) -> bool {
    matches!(decision, Decision::Lookup { hit: false, .. })
}

/// Steps of a fault on page 32 whose first lock is refused, and its course.
fn refused(mut engine: Engine) -> (Vec<Step>, u64, String) {
    let mut fault = Fault::new(PageIndex(32), AccessKind::Read);
    let mut steps = Vec::new();
    loop {
        let Engine { limits, vma, ra, tables, cache, log, .. } = &mut engine;
        let step = fault.step(&mut View { limits, vma, ra, tables, cache, log });
        match step {
            Step::Lock(Lock::Vma) => fault.on_lock_refused(),
            Step::Read => {
                engine.read_window(*fault.window());
                engine.arrive();
            }
            _ => {}
        }
        steps.push(step);
        if matches!(step, Step::Done(_)) {
            return (steps, fault.mapped().0, engine.course());
        }
    }
}

#[test]
fn without_the_lock_of_its_vma_a_fault_takes_mmap_lock() {
    let done = |major, tries| Step::Done(FaultResult { major, tries });
    let (vma, mmap) = (Step::Lock(Lock::Vma), Step::Lock(Lock::Mmap));
    // A hit is served by the first attempt. The refused lock is not in the log.
    let (steps, mapped, course) =
        refused(Engine::new(limits(V6_18, PageCount(64)), Io::Waited, "64#"));
    assert_eq!(steps, [vma, mmap, done(false, 1)]);
    assert_eq!((mapped, course.as_str()), (16, "mmap map:32..47=16-16 minor/1"));
    // A miss drops mmap_lock too, and takes it again.
    let (steps, mapped, course) =
        refused(Engine::new(limits(V6_18, PageCount(64)), Io::Waited, "64."));
    assert!(matches!(steps[..], [_, _, Step::Unlock, Step::Read, _, _]), "{steps:?}");
    assert_eq!([steps[0], steps[1], steps[4], steps[5]], [vma, mmap, mmap, done(true, 2)]);
    let expected = "mmap miss:0 drop around:24+16-4 mmap map:32..47=7-7 major/2";
    assert_eq!((mapped, course.as_str()), (7, expected));
}

#[test]
#[should_panic(expected = "it was asked for")]
fn mmap_lock_is_never_refused() {
    let mut engine = Engine::new(limits(V6_18, PageCount(64)), Io::Waited, "64#");
    let mut fault = Fault::new(PageIndex(32), AccessKind::Read);
    for _ in 0..2 {
        let Engine { limits, vma, ra, tables, cache, log, .. } = &mut engine;
        fault.step(&mut View { limits, vma, ra, tables, cache, log });
        fault.on_lock_refused();
    }
}

/// MADV_POPULATE_READ holds `mmap_lock` from the beginning: its first retry is the last.
#[test]
fn populating_holds_mmap_lock_and_retries_once() {
    let mut engine = Engine::new(limits(V6_18, PageCount(64)), Io::Waited, "64.");
    let mut locks = Vec::new();
    let outcome = engine.serve(Fault::populating(PageIndex(5)), |step, _| {
        if let Step::Lock(lock) = step {
            locks.push(lock);
        }
    });
    assert_eq!((outcome.major, outcome.tries), (true, 2));
    assert_eq!(locks, [Lock::Mmap; 2]);
}

#[test]
fn dontneed_takes_the_vma_lock_since_6_18() {
    for (kernel, expected) in
        [(Kernel::V6_1, Lock::Mmap), (Kernel::V6_12, Lock::Mmap), (V6_18, Lock::Vma)]
    {
        assert_eq!(lock::dontneed_lock(&Rules::new(kernel, Series::BASELINE)), expected);
    }
}
