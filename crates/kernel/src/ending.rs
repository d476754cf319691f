//! Whether a signal ends this process: from then on nothing is begun any more.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, child};

static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends every child and waits until they are gone; no other child is started from now on. Work
/// that takes long fails soon with [`Error::Ending`].
pub fn begin() {
    ENDING.store(true, Ordering::SeqCst);
    child::kill_all();
}

/// Whether [`begin`] was called.
pub fn has_begun() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// For loops that take long.
///
/// # Errors
/// [`Error::Ending`] once [`begin`] was called.
pub(crate) fn check() -> Result<(), Error> {
    if has_begun() { Err(Error::Ending) } else { Ok(()) }
}
