//! What observes major faults: a perf event, or where that is not permitted a thread that looks at
//! the page tables.

pub mod descriptor;
pub mod perf;
pub mod polling;

use filemap_control::Purpose;
use filemap_control::layout::Observer;

/// Prepares to observe this process for `purpose`: by which observer; `None` where there is none.
pub fn open(purpose: Purpose) -> Option<Observer> {
    if perf::open() {
        return Some(Observer::PerfEvent);
    }
    // A recording has each touch in order, which only the event reports.
    (purpose == Purpose::Govern && polling::open()).then_some(Observer::Pagemap)
}

/// Sees that faults are observed from the first mapping on that somebody wants to know of.
pub fn begin() {
    if polling::is_open() {
        polling::start_if_needed();
    } else {
        perf::enable();
    }
}

/// Observes nothing any more.
pub fn stop() {
    if !polling::is_open() {
        perf::stop();
    }
}

/// Makes no call any more that the program does not make.
pub fn leave() {
    polling::end();
}

/// In the child of a fork, before it does anything.
pub fn after_fork() {
    polling::after_fork();
}

/// Observes the child of a fork as its parent is observed. Returns whether that is possible.
pub fn reopen() -> bool {
    // It is the parent's event, or its page tables.
    let had_one = descriptor::get().is_some();
    descriptor::drop_it();
    had_one && !polling::is_open() && perf::open()
}
