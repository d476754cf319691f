//! A program takes the place of this process.

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

/// Turns this process into `program`. Its files, environment and signals are those that this
/// process has, or inherited. It returns only where that fails.
pub fn exec(program: &Program) -> LaunchError {
    let word = |bytes: &[u8]| CString::new(bytes).expect("words of a command line have no NUL");
    let path = word(program.path.as_os_str().as_bytes());
    let words: Vec<CString> = program.words.iter().map(|own| word(own.as_bytes())).collect();
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    inherited::restore();
    // SAFETY: the path and the words end with a NUL, the list of them with a null pointer, and all
    // of them live on. The path has a slash, so that nothing is looked for.
    unsafe { libc::execvp(path.as_ptr(), pointers.as_ptr()) };
    launch_error(program, &io::Error::last_os_error())
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
fn missing_interpreter(path: &Path) -> String {
    match interpreter(path) {
        Some(interpreter) => format!("its interpreter '{}' is missing", interpreter.display()),
        None => "its interpreter is missing".to_string(),
    }
}

/// What `error` says, with which the kernel refused to run `program`.
pub fn launch_error(program: &Program, error: &io::Error) -> LaunchError {
    match error.kind() {
        // Its interpreter may be what is missing.
        io::ErrorKind::NotFound if program.path.exists() => {
            not_executable(&program.path, &missing_interpreter(&program.path))
        }
        io::ErrorKind::NotFound => not_found(&program.words[0]),
        _ => not_executable(&program.path, &reason(error)),
    }
}

/// As much of a file as is looked at. The headers of programs and their interpreter's name stand
/// at the beginning.
const MAX_HEADER_BYTES: u64 = 64 << 10;

/// As much of the first line of a script as the kernel looks at.
const MAX_SCRIPT_LINE: usize = 256;

/// The interpreter of the program at `path`, if it names one.
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
        let of = |text: &str| script_interpreter(text.as_bytes());
        assert_eq!(of("/bin/sh\necho"), Some("/bin/sh".into()));
        assert_eq!(of(" /usr/bin/env  python3 \n"), Some("/usr/bin/env".into()));
        assert_eq!(of("\n"), None);
    }

    #[test]
    fn programs_have_loaders() {
        let loader = interpreter(Path::new("/proc/self/exe")).unwrap();
        assert!(loader.to_str().unwrap().contains("/ld-"), "{loader:?}");
        assert_eq!(interpreter(Path::new("/proc/self/status")), None);
        assert_eq!(interpreter(Path::new("/nowhere")), None);
    }
}
