//! This process ends as a program has that it ran.

use filemap_attach::program::parent::{ChildExit, exit_by_signal};

use crate::Outcome;
use crate::error::Error;

/// Ends as the program has `ended`, after what had to be `written` about it. An error of that is
/// told, and is the exit code where the program has done well.
pub fn outcome(ended: ChildExit, written: Result<(), Error>) -> Outcome {
    if let Err(error) = &written {
        crate::tell(error);
    }
    match (ended.signal, ended.exit_code, written) {
        (Some(signal), ..) => Outcome::Ended(exit_by_signal(signal)),
        (None, Some(0), Err(error)) => Outcome::Ended(error.exit_code()),
        // An exit code has eight bits.
        (None, code, _) => Outcome::Ended(code.unwrap_or(0) as u8),
    }
}
