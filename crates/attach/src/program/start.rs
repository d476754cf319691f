//! A program takes the place of this process.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::inherited;
use super::interpreter::interpreter;
use super::lookup::{Program, Refused, not_executable, not_found};
use crate::reason;

/// Turns this process into `program`. Its files, environment and signals are those that this
/// process has, or inherited. It returns only where that fails.
pub fn exec(program: &Program) -> Refused {
    let word = |bytes: &[u8]| CString::new(bytes).expect("words of a command line have no NUL");
    let path = word(program.path.as_os_str().as_bytes());
    let words: Vec<CString> = program.words.iter().map(|own| word(own.as_bytes())).collect();
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    inherited::restore();
    // SAFETY: the path and the words end with a NUL, the list of them with a null pointer, and all
    // of them live on. The path has a slash, so that nothing is looked for.
    unsafe { libc::execvp(path.as_ptr(), pointers.as_ptr()) };
    refused(program, &io::Error::last_os_error())
}

impl Program {
    /// Starts it as a child with the signals that this process inherited, and with files of the
    /// caller's choice.
    pub fn command(&self) -> Command {
        self.command_after(inherited::restore_signals)
    }

    /// The command that starts it after `before`, which runs between fork and exec: it makes system
    /// calls only and allocates nothing.
    pub(super) fn command_after(&self, before: impl Fn() + Send + Sync + 'static) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(&self.words[0]).args(&self.words[1..]);
        // SAFETY: between fork and exec only system calls are made; nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                before();
                Ok(())
            });
        }
        command
    }
}

/// Why the program at `path` is there and yet not found.
fn without_interpreter(path: &Path) -> String {
    match interpreter(path) {
        Some(interpreter) => format!("its interpreter '{}' is missing", interpreter.display()),
        None => "its interpreter is missing".to_string(),
    }
}

/// What `error` says, with which the kernel refused to run `program`.
pub fn refused(program: &Program, error: &io::Error) -> Refused {
    match error.kind() {
        // Its interpreter may be what is missing.
        io::ErrorKind::NotFound if program.path.exists() => {
            not_executable(&program.path, &without_interpreter(&program.path))
        }
        io::ErrorKind::NotFound => not_found(&program.words[0]),
        _ => not_executable(&program.path, &reason(error)),
    }
}
