//! Passes on the exit status of a program that was run.

use filemap_attach::program::parent::{ChildExit, exit_by_signal};

use crate::Outcome;
use crate::error::Error;

/// The outcome of a command whose program has exited with `ended`. `written` is the result of
/// writing the report: an error is printed, and determines the exit code if the program succeeded.
pub fn outcome(ended: ChildExit, written: Result<(), Error>) -> Outcome {
    if let Err(error) = &written {
        crate::print_error(error);
    }
    match (ended.signal, ended.exit_code, written) {
        (Some(signal), ..) => Outcome::Ended(exit_by_signal(signal)),
        (None, Some(0), Err(error)) => Outcome::Ended(error.exit_code()),
        // Exit codes have eight bits.
        (None, code, _) => Outcome::Ended(code.unwrap_or(0) as u8),
    }
}
