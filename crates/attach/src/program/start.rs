//! Executes a program in place of this process, or as a child.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};

use super::inherited;
use super::lookup::{LaunchError, Program, not_executable, not_found};
use crate::reason;

/// Replaces this process by `program`, with the environment and files of this process and the
/// signals it inherited. Returns only on failure.
pub fn exec(program: &Program) -> LaunchError {
    let word = |bytes: &[u8]| CString::new(bytes).expect("arguments of a program contain no NUL");
    let path = word(program.path.as_os_str().as_bytes());
    let words: Vec<CString> = program.words.iter().map(|own| word(own.as_bytes())).collect();
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    inherited::restore();
    // SAFETY: the strings are NUL-terminated, the list ends with a null pointer, and all outlive
    // the call. The path contains a slash, so `PATH` is not searched.
    unsafe { libc::execvp(path.as_ptr(), pointers.as_ptr()) };
    launch_error(program, &io::Error::last_os_error())
}

impl Program {
    /// Command that starts the program with the signals that this process inherited; the caller
    /// sets its standard files.
    pub fn command(&self) -> Command {
        self.command_after(inherited::restore_signals)
    }

    /// Command that calls `before` between fork and exec. It must be async-signal-safe: system
    /// calls only, no allocation.
    pub(super) fn command_after(&self, before: impl Fn() + Send + Sync + 'static) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(&self.words[0]).args(&self.words[1..]);
        // SAFETY: `before` makes system calls only and does not allocate.
        unsafe {
            command.pre_exec(move || {
                before();
                Ok(())
            });
        }
        command
    }
}

/// Explains ENOENT for a program that exists: its interpreter does not.
fn missing_interpreter(path: &Path) -> String {
    match interpreter(path) {
        Some(interpreter) => format!("its interpreter '{}' is missing", interpreter.display()),
        None => "its interpreter is missing".to_string(),
    }
}

/// Converts the error of exec for `program`.
pub fn launch_error(program: &Program, error: &io::Error) -> LaunchError {
    match error.kind() {
        // exec(2) also returns ENOENT if the interpreter is missing.
        io::ErrorKind::NotFound if program.path.exists() => {
            not_executable(&program.path, &missing_interpreter(&program.path))
        }
        io::ErrorKind::NotFound => not_found(&program.words[0]),
        _ => not_executable(&program.path, &reason(error)),
    }
}

/// Bytes of an executable to read: ELF headers and interpreter name are at its start.
const MAX_HEADER_BYTES: u64 = 64 << 10;

/// Length of a script's first line that the kernel examines (BINPRM_BUF_SIZE).
const MAX_SCRIPT_LINE: usize = 256;

/// The ELF interpreter or `#!` interpreter of the program at `path`, if it has one.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_HEADER_BYTES).read_to_end(&mut bytes).ok()?;
    match bytes.strip_prefix(b"#!") {
        Some(line) => script_interpreter(line),
        None => elf_interpreter(&bytes).ok()?,
    }
}

fn elf_interpreter(bytes: &[u8]) -> Result<Option<PathBuf>, object::read::Error> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, bytes)? {
        if let Some(name) = segment.interpreter(endian, bytes)? {
            return Ok(Some(PathBuf::from(OsStr::from_bytes(name))));
        }
    }
    Ok(None)
}

fn script_interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = &line[..line.len().min(MAX_SCRIPT_LINE)];
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let name = line.split(|byte| *byte == b' ' || *byte == b'\t').next().unwrap_or_default();
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreters() {
        let interpreter = |text: &str| script_interpreter(text.as_bytes());
        assert_eq!(interpreter("/bin/sh\necho"), Some("/bin/sh".into()));
        assert_eq!(interpreter(" /usr/bin/env  python3 \n"), Some("/usr/bin/env".into()));
        assert_eq!(interpreter("\n"), None);
    }

    #[test]
    fn programs_have_loaders() {
        let loader = interpreter(Path::new("/proc/self/exe")).unwrap();
        assert!(loader.to_str().unwrap().contains("/ld-"), "{loader:?}");
        assert_eq!(interpreter(Path::new("/proc/self/status")), None);
        assert_eq!(interpreter(Path::new("/nowhere")), None);
    }
}
