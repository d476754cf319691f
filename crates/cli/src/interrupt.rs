//! Ctrl-C.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::park;

use filemap_kernel::journal::Journal;
use filemap_kernel::probe;

use crate::error::Error;
use crate::output;

/// Exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// Clears the line of a terminal, on which a progress bar may stand.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Set before anything is ended: what fails from then on fails because of that.
static ENDING: AtomicBool = AtomicBool::new(false);

/// What has to be undone before the command ends.
static JOURNAL: Mutex<Option<Journal>> = Mutex::new(None);

/// Makes Ctrl-C end the command at once: children first, then what the journal lists is undone.
pub fn exit_on_interrupt() {
    // Without a handler Ctrl-C kills the command, and the next one undoes what it left.
    let _ = ctrlc::set_handler(|| {
        ENDING.store(true, Ordering::SeqCst);
        if stderr().is_terminal() {
            let _ = stderr().write_all(CLEAR_LINE.as_bytes());
        }
        probe::kill_all();
        let journal = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for error in journal.map(|journal| journal.undo_all()).unwrap_or_default().failed {
            let _ = writeln!(stderr(), "filemap: {error}");
        }
        output::abandon();
        std::process::exit(INTERRUPTED)
    });
}

/// Does not return once the command is being interrupted: the handler has the last word.
pub fn wait_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        park();
    }
}

/// As long as it lives, Ctrl-C undoes what the journal lists.
pub struct Undoing(());

impl Drop for Undoing {
    fn drop(&mut self) {
        *JOURNAL.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A journal that is undone on Ctrl-C too, as long as the second value lives.
///
/// # Errors
/// When there is no place for it.
pub fn journal() -> Result<(Journal, Undoing), Error> {
    let journal = Journal::open()?;
    *JOURNAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(journal.clone());
    Ok((journal, Undoing(())))
}
