//! Reads two properties of ELF files: the bytes of a section, and the path of the interpreter.
//!
//! Only 64-bit little-endian files are supported; for others, and for truncated files, the result
//! is `None`.

/// Program header type of the interpreter's path.
const PT_INTERP: u32 = 3;

/// Bytes of the section called `name`.
pub(super) fn section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let headers = HeaderTable::sections(file)?;
    let names_index = u16_at(file, 62)?;
    let (names_at, names_len) = section_range(file, headers.entry(names_index)?)?;
    let names = bytes(file, names_at, names_len)?;
    (0..headers.count).find_map(|index| {
        let header = headers.entry(index)?;
        let label = names.get(usize::try_from(u32_at(file, header)?).ok()?..)?;
        let end = label.iter().position(|&byte| byte == 0)?;
        if &label[..end] != name.as_bytes() {
            return None;
        }
        let (at, len) = section_range(file, header)?;
        bytes(file, at, len)
    })
}

/// Path of the program interpreter; `None` for a statically linked file.
pub(super) fn interpreter(file: &[u8]) -> Option<&str> {
    let headers = HeaderTable::programs(file)?;
    (0..headers.count).find_map(|index| {
        let header = headers.entry(index)?;
        if u32_at(file, header)? != PT_INTERP {
            return None;
        }
        let path = bytes(file, u64_at(file, header + 8)?, u64_at(file, header + 32)?)?;
        std::str::from_utf8(path.strip_suffix(&[0])?).ok()
    })
}

/// Whether the functions above can read this file.
pub(super) fn is_elf64(file: &[u8]) -> bool {
    file.starts_with(b"\x7fELF\x02\x01")
}

/// A table of headers within the file.
struct HeaderTable {
    start: usize,
    entry_size: u16,
    count: u16,
}

impl HeaderTable {
    fn programs(file: &[u8]) -> Option<Self> {
        Self::read(file, u64_at(file, 32)?, 54)
    }

    fn sections(file: &[u8]) -> Option<Self> {
        Self::read(file, u64_at(file, 40)?, 58)
    }

    fn read(file: &[u8], start: u64, sizes_at: usize) -> Option<Self> {
        if !is_elf64(file) {
            return None;
        }
        Some(Self {
            start: start.try_into().ok()?,
            entry_size: u16_at(file, sizes_at)?,
            count: u16_at(file, sizes_at + 2)?,
        })
    }

    fn entry(&self, index: u16) -> Option<usize> {
        let offset = usize::from(index) * usize::from(self.entry_size);
        self.start.checked_add(offset).filter(|_| index < self.count)
    }
}

fn section_range(file: &[u8], header: usize) -> Option<(u64, u64)> {
    Some((u64_at(file, header + 24)?, u64_at(file, header + 32)?))
}

fn bytes(file: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    file.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(file.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(file.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_program() {
        let file = std::fs::read("/proc/self/exe").unwrap();
        assert!(section(&file, ".text").is_some_and(|text| !text.is_empty()));
        assert_eq!(section(&file, ".no-such-section"), None);
        if let Some(path) = interpreter(&file) {
            assert!(path.starts_with('/'), "{path}");
        }
    }

    #[test]
    fn cut_files_answer_none() {
        let file = std::fs::read("/proc/self/exe").unwrap();
        for len in (0..64).chain([100, 200, 500]) {
            assert_eq!(section(&file[..len], ".text"), None);
        }
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
    }
}
