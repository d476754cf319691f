//! When the library stops: all mappings go back to the kernel, and nothing is observed any more.

use filemap_control::layout::{Reason, State};

use crate::disposition::{self, with_signals_blocked};
use crate::observer::perf;
use crate::start;
use crate::table::TABLE;
use crate::{advice, file, statistics};

/// Stops for good.
pub fn now(reason: Reason) {
    let Some(run) = start::stop() else { return };
    statistics::reason(reason);
    perf::stop();
    with_signals_blocked(|| {
        let _held = TABLE.hold();
        for (number, slot) in TABLE.used().filter(|(_, slot)| !slot.is_free()) {
            let range = slot.range();
            advice::as_by_itself(&range);
            slot.known().keep(&(range.start..range.start), run.page_size);
            statistics::end(number, State::GivenBack, None);
        }
    });
}

/// Whether the library had to stop: a debugger is attached by now, or the handler is lost. Asked
/// where a mapping could be governed.
pub fn is_due() -> bool {
    let reason = if disposition::is_lost() {
        Reason::HandlerLost
    } else if file::is_traced() {
        Reason::Traced
    } else {
        return false;
    };
    now(reason);
    true
}
