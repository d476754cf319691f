//! The readahead state in the log when readahead is entered.

use filemap_core::address::vma::Advice;
use filemap_core::decision::{Cause, Decision, ReadaheadSnapshot};
use filemap_core::fault::AccessKind;
use filemap_core::readahead::ReadaheadState;
use filemap_core::rules::Kernel::V6_18;
use filemap_core::units::{Order, PageCount, PageIndex};

use crate::support::engine::{Engine, Io};
use crate::support::machine::{advised, limits, stream};

fn engine(before: &str) -> Engine {
    let mut engine = Engine::new(limits(V6_18, PageCount(64)), Io::Immediate, before);
    engine.ra =
        ReadaheadState { mmap_miss: 5, previous_end: Some(123_456), ..stream(20, 16, 4, 2) };
    engine
}

fn entered(engine: &Engine) -> Vec<Decision> {
    let is_entered = |decision: &&Decision| matches!(decision, Decision::Entered { .. });
    engine.log.iter().filter(is_entered).copied().collect()
}

/// The entries of a fault on page `index` of a mapping with this advice.
fn entered_by_fault(before: &str, advice: Advice, index: u64) -> Vec<Decision> {
    let mut engine = engine(before);
    engine.vma = advised(advice, engine.vma);
    engine.fault(index, AccessKind::Read);
    entered(&engine)
}

/// The entries of a read of 3 pages from page `index`.
fn entered_by_read(before: &str, index: u64) -> Vec<Decision> {
    let mut engine = engine(before);
    engine.read(index, 3);
    entered(&engine)
}

/// The old state, with the request that found it.
fn expected(cause: Cause, index: u64, req: u64, mmap_miss: u16) -> Decision {
    let found = ReadaheadSnapshot {
        index: PageIndex(index),
        req: PageCount(req),
        order: Order(2),
        size: PageCount(16),
        async_size: PageCount(4),
        mmap_miss,
        previous_end: Some(123_456),
    };
    Decision::Entered { cause, found }
}

#[test]
fn a_mark_enters_with_the_state_before_its_window() {
    let before = "20. 12# M3# 28.";
    // The hit has been credited; fault-around credited 3 for the neighbours before.
    let of_fault = entered_by_fault(before, Advice::NORMAL, 32);
    assert_eq!(of_fault, [expected(Cause::AsyncFault, 32, 16, 1)]);
    assert_eq!(entered_by_read(before, 32), [expected(Cause::AsyncRead, 32, 3, 5)]);
}

#[test]
fn a_miss_of_a_stream_enters_with_the_state_before_its_window() {
    let sequential = entered_by_fault("64.", Advice::SEQUENTIAL, 40);
    assert_eq!(sequential, [expected(Cause::SequentialFault, 40, 16, 5)]);
    assert_eq!(entered_by_read("64.", 40), [expected(Cause::ReadStream, 40, 3, 5)]);
}

#[test]
fn read_around_and_single_pages_do_not_enter() {
    for advice in [Advice::NORMAL, Advice::RANDOM] {
        assert_eq!(entered_by_fault("64.", advice, 40), []);
    }
}
