//! The libraries that a program names as needed.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::Endianness;
use object::elf::{DT_NEEDED, DT_STRTAB, Dyn64, FileHeader64, PT_DYNAMIC, PT_LOAD};
use object::pod::slice_from_bytes;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use super::executable::BEGINNING;

/// As much of the dynamic section as is looked at; the largest have some hundred entries.
const DYNAMIC_BYTES: u64 = 64 << 10;

/// The longest file name, with its NUL.
const NAME_BYTES: u64 = 256;

/// The libraries that the program at `path` names, for the kind of machine that this is. None
/// where its file cannot be read or makes no sense: the loader says so better.
pub fn needed(path: &Path) -> Vec<OsString> {
    File::open(path).ok().and_then(|file| of_file(&file)).unwrap_or_default()
}

fn of_file(file: &File) -> Option<Vec<OsString>> {
    let beginning = part(file, 0, BEGINNING)?;
    let header = FileHeader64::<Endianness>::parse(&*beginning).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &*beginning).ok()?;
    let dynamic = segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC)?;
    let length = dynamic.p_filesz(endian).min(DYNAMIC_BYTES);
    let bytes = part(file, dynamic.p_offset(endian), length)?;
    let count = bytes.len() / size_of::<Dyn64<Endianness>>();
    let (entries, _) = slice_from_bytes::<Dyn64<Endianness>>(&bytes, count).ok()?;
    let values = |tag: u32| {
        let tagged = entries.iter().filter(move |entry| entry.tag32(endian) == Some(tag));
        tagged.map(|entry| entry.d_val(endian))
    };
    let names = values(DT_STRTAB).next()?;
    let names_offset = segments.iter().find_map(|segment| {
        let within = names.checked_sub(segment.p_vaddr(endian))?;
        let holds = segment.p_type(endian) == PT_LOAD && within < segment.p_filesz(endian);
        if holds { segment.p_offset(endian).checked_add(within) } else { None }
    })?;
    let name = |at: u64| {
        let bytes = part(file, names_offset.checked_add(at)?, NAME_BYTES)?;
        let name = bytes.split(|&byte| byte == 0).next()?;
        Some(OsString::from_vec(name.to_vec()))
    };
    Some(values(DT_NEEDED).filter_map(name).collect())
}

/// Up to `length` bytes of `file` from `offset` on.
fn part(file: &File, offset: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset.checked_add(filled as u64)?).ok()? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_the_c_library() {
        let names = needed(Path::new("/proc/self/exe"));
        assert!(
            names.iter().any(|name| name.to_string_lossy().starts_with("libc.so")),
            "{names:?}"
        );
        assert_eq!(needed(Path::new("/nowhere")), Vec::<OsString>::new());
        assert_eq!(needed(Path::new("/proc/self/cmdline")), Vec::<OsString>::new());
    }
}
