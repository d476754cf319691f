//! What kind of program a file is.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};

/// As much of a file as is looked at. The headers of programs and their interpreter's name stand
/// at the beginning.
pub const BEGINNING: u64 = 64 << 10;

/// As much of the first line of a script as the kernel looks at.
const FIRST_LINE: usize = 256;

/// What kind of program a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executable {
    /// A program in the machine's own code.
    Elf {
        /// Whether it is for another kind of machine than this program.
        foreign: bool,
        /// What loads it and its libraries; `None` where nothing does.
        loader: Option<PathBuf>,
    },
    /// A script: its interpreter, and what that is told.
    Script(PathBuf, Option<OsString>),
    /// Something else, or what cannot be looked at.
    Other,
}

impl Executable {
    /// What the file at `path` is.
    pub fn of(path: &Path) -> Executable {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
        if read.is_err() {
            return Executable::Other;
        }
        Executable::of_bytes(&bytes, &own_header())
    }

    /// What a file that begins with `bytes` is, for a machine of which `own` is the beginning of a
    /// program.
    fn of_bytes(bytes: &[u8], own: &[u8]) -> Executable {
        if let Some(line) = bytes.strip_prefix(b"#!") {
            return script(line);
        }
        if !bytes.starts_with(b"\x7fELF") {
            return Executable::Other;
        }
        // Class and order of bytes; the machine.
        let kind = |bytes: &[u8]| Some((bytes.get(4..6)?.to_vec(), bytes.get(18..20)?.to_vec()));
        match kind(bytes) == kind(own) {
            false => Executable::Elf { foreign: true, loader: None },
            true => match loader(bytes) {
                Ok(loader) => Executable::Elf { foreign: false, loader },
                Err(_) => Executable::Other,
            },
        }
    }
}

/// The beginning of this program.
fn own_header() -> Vec<u8> {
    let mut bytes = Vec::new();
    let own = File::open("/proc/self/exe");
    let _ = own.and_then(|file| file.take(64).read_to_end(&mut bytes));
    bytes
}

fn loader(bytes: &[u8]) -> Result<Option<PathBuf>, object::read::Error> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, bytes)? {
        if let Some(name) = segment.interpreter(endian, bytes)? {
            return Ok(Some(PathBuf::from(OsStr::from_bytes(name))));
        }
    }
    Ok(None)
}

fn script(line: &[u8]) -> Executable {
    let line = &line[..line.len().min(FIRST_LINE)];
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let is_blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
    let end = line.iter().position(is_blank).unwrap_or(line.len());
    let (interpreter, rest) = line.split_at(end);
    if interpreter.is_empty() {
        return Executable::Other;
    }
    let rest = rest.trim_ascii();
    let told = (!rest.is_empty()).then(|| OsStr::from_bytes(rest).to_owned());
    Executable::Script(PathBuf::from(OsStr::from_bytes(interpreter)), told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreters() {
        let of = |text: &str| Executable::of_bytes(text.as_bytes(), &[]);
        let script = |path: &str, told: Option<&str>| {
            Executable::Script(path.into(), told.map(OsString::from))
        };
        assert_eq!(of("#!/bin/sh\necho"), script("/bin/sh", None));
        assert_eq!(of("#! /usr/bin/env  python3 \n"), script("/usr/bin/env", Some("python3")));
        assert_eq!(of("#!\n"), Executable::Other);
        assert_eq!(of("echo"), Executable::Other);
    }

    #[test]
    fn programs_have_loaders() {
        let own = Executable::of(Path::new("/proc/self/exe"));
        let Executable::Elf { foreign: false, loader: Some(loader) } = own else {
            panic!("{own:?}")
        };
        assert!(loader.to_str().unwrap().contains("/ld-"), "{loader:?}");
        let mut header = own_header();
        header[18] ^= 1;
        let foreign = Executable::Elf { foreign: true, loader: None };
        assert_eq!(Executable::of_bytes(&header, &own_header()), foreign);
        assert_eq!(Executable::of_bytes(&own_header(), &own_header()), Executable::Other);
    }
}
