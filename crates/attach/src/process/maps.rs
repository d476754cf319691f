//! Parses `/proc/PID/maps`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::read;
use crate::{Error, FileId, MappedFile, MappedRange};

/// Lists the mappings of a process in order of addresses.
pub fn maps(pid: u32) -> Result<Vec<MappedRange>, Error> {
    let text = read(pid, "maps")?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse_maps_line).collect())
}

/// Parses a line such as `7f1c2000-7f1c4000 r--p 00001000 fe:01 1234    /usr/lib/libc.so`. Returns
/// `None` for anything else.
pub fn parse_maps_line(line: &[u8]) -> Option<MappedRange> {
    let mut rest = line;
    let (address, end) =
        (parse_hex(take_word(&mut rest, b'-')), parse_hex(take_word(&mut rest, b' ')));
    let (address, end) = (address?, end?);
    let &[read, write, execute, shared] = take_word(&mut rest, b' ') else { return None };
    let offset_bytes = parse_hex(take_word(&mut rest, b' '))?;
    let major = u32::try_from(parse_hex(take_word(&mut rest, b':'))?).ok()?;
    let minor = u32::try_from(parse_hex(take_word(&mut rest, b' '))?).ok()?;
    let inode = std::str::from_utf8(take_word(&mut rest, b' ')).ok()?.parse().ok()?;
    let id = FileId { major, minor, inode };
    let name = rest.trim_ascii_start();
    // Anonymous mappings have names as well, such as [stack].
    let file = (inode != 0 && name.first() == Some(&b'/'))
        .then(|| MappedFile { id, path: OsString::from_vec(unescape_path(name)).into() });
    let bit = |is_set, bit: i32| if is_set { bit.cast_unsigned() } else { 0 };
    Some(MappedRange {
        address,
        length_bytes: end.checked_sub(address)?,
        offset_bytes,
        file,
        protection: bit(read == b'r', libc::PROT_READ)
            | bit(write == b'w', libc::PROT_WRITE)
            | bit(execute == b'x', libc::PROT_EXEC),
        is_shared: shared == b's',
    })
}

/// Splits off the text before the next `end`, and drops that byte.
fn take_word<'a>(rest: &mut &'a [u8], end: u8) -> &'a [u8] {
    let length = rest.iter().position(|byte| *byte == end).unwrap_or(rest.len());
    let (word, behind) = rest.split_at(length);
    *rest = behind.get(1..).unwrap_or_default();
    word
}

fn parse_hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits
        .iter()
        .try_fold(0, |value, digit| Some(value << 4 | u64::from((*digit as char).to_digit(16)?)))
}

/// Decodes the only escape that the kernel writes in paths: `\012`, a line feed.
fn unescape_path(name: &[u8]) -> Vec<u8> {
    const LINE_FEED: &[u8] = b"\\012";
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        plain.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (byte, length) = if rest.starts_with(LINE_FEED) { (b'\n', 4) } else { (b'\\', 1) };
        plain.push(byte);
        rest = &rest[length..];
    }
    plain.extend_from_slice(rest);
    plain
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn line_path(line: &[u8]) -> Option<PathBuf> {
        parse_maps_line(line).expect("a mapping").file.map(|file| file.path)
    }

    #[test]
    fn parses_maps_line() {
        let line = b"7f0cb3e00000-7f0cb3e28000 r-xs 0001f000 fe:01 1049632                    /a b";
        let file = MappedFile {
            id: FileId { major: 0xfe, minor: 1, inode: 1_049_632 },
            path: "/a b".into(),
        };
        let range = MappedRange {
            address: 0x7f0c_b3e0_0000,
            length_bytes: 0x28000,
            offset_bytes: 0x1f000,
            file: Some(file),
            protection: 5,
            is_shared: true,
        };
        assert_eq!(parse_maps_line(line), Some(range));
    }

    #[test]
    fn hostile_names_are_kept() {
        let named = |name: &str| line_path(format!("1000-2000 rw-p 0 00:1 5 {name}").as_bytes());
        assert_eq!(named("/x\\012y"), Some("/x\ny".into()));
        assert_eq!(named("/x\\01"), Some("/x\\01".into()));
        assert_eq!(named("/x\\"), Some("/x\\".into()));
        assert_eq!(named("/x (deleted)"), Some("/x (deleted)".into()));
        assert_eq!(named("/x  1000-2000 r"), Some("/x  1000-2000 r".into()));
        let no_utf8 = [b"1000-2000 rw-p 0 00:1 5 /".as_slice(), &[0xff]].concat();
        assert!(line_path(&no_utf8).is_some());
    }

    #[test]
    fn anonymous_mapping_has_no_file() {
        let anonymous = |line: &str| line_path(line.as_bytes()).is_none();
        assert!(anonymous("7ffe0000-7ffe1000 rw-p 00000000 00:00 0          [stack]"));
        assert!(anonymous("1000-2000 rw-p 00000000 00:00 0 "));
        assert!(anonymous("1000-2000 rw-p 00000000 00:00 0"));
        let last = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]";
        assert!(anonymous(last));
    }

    #[test]
    fn ignores_malformed_lines() {
        let lines: [&[u8]; 7] = [
            b"",
            b"-",
            b"1000-2000",
            b"2000-1000 r--p 0 0:0 0",
            b"1000-2000 r-- 0 0:0 0",
            b"x-y r--p 0 0:0 0",
            b"11111111111111111-2 r--p 0 0:0 0",
        ];
        assert!(lines.iter().all(|line| parse_maps_line(line).is_none()));
    }
}
