//! What the kernel starts for a program: the interpreter of a script, or what loads libraries.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, ProgramHeader};

/// As much of a file as is looked at. The headers of programs and their interpreter's name stand
/// at the beginning.
const BEGINNING: u64 = 64 << 10;

/// As much of the first line of a script as the kernel looks at.
const FIRST_LINE: usize = 256;

/// The interpreter of the program at `path`, if it names one.
pub fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(BEGINNING).read_to_end(&mut bytes).ok()?;
    match bytes.strip_prefix(b"#!") {
        Some(line) => of_script(line),
        None => of_elf(&bytes).ok()?,
    }
}

fn of_elf(bytes: &[u8]) -> Result<Option<PathBuf>, object::read::Error> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, bytes)? {
        if let Some(name) = segment.interpreter(endian, bytes)? {
            return Ok(Some(PathBuf::from(OsStr::from_bytes(name))));
        }
    }
    Ok(None)
}

fn of_script(line: &[u8]) -> Option<PathBuf> {
    let line = &line[..line.len().min(FIRST_LINE)];
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let name = line.split(|byte| *byte == b' ' || *byte == b'\t').next().unwrap_or_default();
    (!name.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreters() {
        let of = |text: &str| of_script(text.as_bytes());
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
