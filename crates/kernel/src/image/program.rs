//! The program that becomes init, with its shared libraries if it has any.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Error, elf};
use crate::child;

/// An executable and the files that it needs to start.
pub(super) struct InitProgram {
    /// The executable itself.
    pub(super) bytes: Vec<u8>,
    /// Loader and libraries with their absolute paths; none for a statically linked program.
    pub(super) libraries: Vec<(PathBuf, Vec<u8>)>,
}

impl InitProgram {
    /// Reads the program at `path`.
    pub(super) fn load(path: &Path) -> Result<Self, Error> {
        let bytes = read(path)?;
        let libraries = match elf::interpreter(&bytes) {
            None => Vec::new(),
            Some(loader) => needed(loader, path)?
                .into_iter()
                .map(|library| read(&library).map(|bytes| (library, bytes)))
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { bytes, libraries })
    }
}

/// The loader and every library that it would load for `program`.
fn needed(loader: &str, program: &Path) -> Result<Vec<PathBuf>, Error> {
    let output = child::output(Command::new(loader).arg("--list").arg(program))
        .map_err(|source| Error::io(format!("start {loader}"), source))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<_> = text.lines().filter_map(listed_path).map(PathBuf::from).collect();
    if !paths.iter().any(|path| path == Path::new(loader)) {
        paths.push(loader.into());
    }
    Ok(paths)
}

/// The path in a line such as `libc.so.6 => /lib/libc.so.6 (0x00007f)`; the vDSO has none.
fn listed_path(line: &str) -> Option<&str> {
    let (before, _address) = line.trim().rsplit_once(" (")?;
    let path = before.split_once(" => ").map_or(before, |(_name, path)| path);
    path.starts_with('/').then_some(path)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::io(format!("read {}", path.display()), source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loader_lines() {
        let listed = [
            ("\tlinux-vdso.so.1 (0x00007ffc)", None),
            ("\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f0)", Some("/lib/x/libc.so.6")),
            ("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)", Some("/lib64/ld-linux-x86-64.so.2")),
            ("\tstatically linked", None),
        ];
        for (line, path) in listed {
            assert_eq!(listed_path(line), path, "{line}");
        }
    }

    #[test]
    fn this_program_with_its_libraries() {
        let program = InitProgram::load(Path::new("/proc/self/exe")).unwrap();
        let is_static = elf::interpreter(&program.bytes).is_none();
        assert_eq!(program.libraries.is_empty(), is_static);
    }
}
