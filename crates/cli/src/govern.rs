//! Commands that run a program as if nothing stood between it and whoever called.

use std::ffi::OsString;

pub use filemap_attach::program::{Program, exec, find, parent, privilege_gain};

/// The names of the commands that run a program.
const COMMANDS: [&str; 2] = ["govern", "record"];

/// Another command, and the flag by which it runs a program.
const WITH_FLAG: (&str, &str) = ("advise", "--check");

/// Whether `words` are those of a command line that runs a program. What stands after the
/// program's name is the program's.
pub fn is_meant(words: impl IntoIterator<Item = OsString>) -> bool {
    let mut words = words.into_iter().skip(1);
    let (name, flag) = WITH_FLAG;
    words.next().is_some_and(|word| {
        COMMANDS.iter().any(|name| word == *name)
            || (word == name && words.any(|word| word == flag))
    })
}
