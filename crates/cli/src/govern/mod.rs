//! Running a program under the preloaded library: what is looked at before, and what is said to
//! the library.

mod collecting;
pub mod environment;
mod executable;
pub mod inherited;
mod lookup;
mod needed;
mod obstacle;
pub mod parent;
pub mod run_directory;
mod smaps;
pub mod start;
mod statistics;
pub mod status;

pub use collecting::{Collecting, abandon};
pub use environment::Wanted;
pub use lookup::{Program, find};
pub use obstacle::{gain, obstacle};
pub use start::exec;

use std::ffi::OsString;

/// The names of the commands that run a program.
const COMMANDS: [&str; 2] = ["govern", "record"];

/// Whether `words` are those of a command line that runs a program. What stands behind the
/// program's name is the program's.
pub fn is_meant(words: impl IntoIterator<Item = OsString>) -> bool {
    words.into_iter().nth(1).is_some_and(|word| COMMANDS.iter().any(|name| word == *name))
}
