//! Ctrl-C.

use std::io::{IsTerminal, Write, stderr};

/// Exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// Clears the line of a terminal, on which a progress bar may stand.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Makes Ctrl-C end the command at once. The model leaves nothing behind that would have to be
/// removed.
pub fn exit_on_interrupt() {
    // Without a handler Ctrl-C kills the command, which is as well.
    let _ = ctrlc::set_handler(|| {
        if stderr().is_terminal() {
            let _ = stderr().write_all(CLEAR_LINE.as_bytes());
        }
        std::process::exit(INTERRUPTED)
    });
}
