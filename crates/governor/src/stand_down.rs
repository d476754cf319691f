//! When the library stops: nothing is observed any more, and what was done for mappings is undone.

use filemap_control::layout::Reason;

use crate::{disposition, file, observer, purpose, start};

/// Stops for good.
pub fn now(reason: Reason) {
    let Some(run) = start::stop() else { return };
    observer::stop();
    purpose::stopped(run, reason);
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
