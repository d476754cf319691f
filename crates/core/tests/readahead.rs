//! What the log says of the state that readahead finds when it is entered.

use filemap_core::address::vma::Advice;
use filemap_core::decision::{Cause, Decision, Found};
use filemap_core::fault::Access;
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

/// The old state, with the request that found it.
fn expected(cause: Cause, index: u64, req: u64, mmap_miss: u16) -> Decision {
    let found = Found {
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
    // The hit has been taken from the counter; fault-around took 3 for the neighbours before.
    let mut of_fault = engine("20. 12# M3# 28.");
    of_fault.fault(32, Access::Read);
    assert_eq!(entered(&of_fault), [expected(Cause::AsyncFault, 32, 16, 1)]);
    let mut of_read = engine("20. 12# M3# 28.");
    of_read.read(32, 3);
    assert_eq!(entered(&of_read), [expected(Cause::AsyncRead, 32, 3, 5)]);
}

#[test]
fn a_miss_of_a_stream_enters_with_the_state_before_its_window() {
    let mut sequential = engine("64.");
    sequential.vma = advised(Advice::SEQUENTIAL, sequential.vma);
    sequential.fault(40, Access::Read);
    assert_eq!(entered(&sequential), [expected(Cause::SequentialFault, 40, 16, 5)]);
    let mut read = engine("64.");
    read.read(40, 3);
    assert_eq!(entered(&read), [expected(Cause::ReadStream, 40, 3, 5)]);
}

#[test]
fn read_around_and_single_pages_do_not_enter() {
    let mut around = engine("64.");
    around.fault(40, Access::Read);
    assert_eq!(entered(&around), []);
    let mut random = engine("64.");
    random.vma = advised(Advice::RANDOM, random.vma);
    random.fault(40, Access::Read);
    assert_eq!(entered(&random), []);
}
