//! Detection of commands that run a program and must be transparent to signals.

use std::ffi::OsString;

pub use filemap_attach::program::{Program, exec, find, parent, privilege_gain};

/// Commands that run a program.
const COMMANDS: [&str; 2] = ["govern", "record"];

/// A command that runs a program only with a flag, and that flag.
const WITH_FLAG: (&str, &str) = ("advise", "--check");

/// Whether the command line `words` runs a program.
pub fn is_govern_command(words: impl IntoIterator<Item = OsString>) -> bool {
    let mut words = words.into_iter().skip(1);
    let (name, flag) = WITH_FLAG;
    words.next().is_some_and(|word| {
        COMMANDS.iter().any(|name| word == *name)
            || (word == name && words.any(|word| word == flag))
    })
}
