//! The file format of remembered touches: a line with the version, numbers of variable length, and
//! a checksum. Whatever does not decode to a valid memory is refused.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use filemap_policy::{MAX_REGIONS, MAX_RUNS, TouchHistory, TouchRun, TouchedRegion};

/// The first line. A change of the format changes the number.
const MAGIC: &[u8] = b"filemap touches 1\n";

/// Bytes of the checksum at the end.
const CHECKSUM_BYTES: usize = 4;

/// Maximum histories of a file.
pub const MAX_HISTORIES: usize = 3;

/// Maximum length of a remembered path.
const MAX_PATH_BYTES: u64 = 4096;

/// Page numbers are below this: files have at most 2^63 bytes.
const MAX_PAGE: u64 = 1 << 51;

/// What identifies a file, and what changes when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device numbers.
    pub device: (u32, u32),
    pub inode: u64,
    /// Time of creation, in seconds and nanoseconds, where the filesystem has it.
    pub born: Option<(u64, u64)>,
    pub size_bytes: u64,
    /// Time of the last change.
    pub modified: (u64, u64),
}

/// The stored touch histories of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMemory {
    pub identity: FileIdentity,
    /// Its path when it was last mapped.
    pub path: PathBuf,
    /// What programs touched, the last one first.
    pub histories: Vec<TouchHistory>,
}

impl FileMemory {
    /// Its encoding.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let path = self.path.as_os_str().as_bytes();
        let kept = &path[..path.len().min(MAX_PATH_BYTES as usize)];
        put_varint(&mut bytes, kept.len() as u64);
        bytes.extend_from_slice(kept);
        let FileIdentity { device, inode, born, size_bytes, modified } = self.identity;
        let (seconds, nanoseconds) = born.unwrap_or_default();
        let numbers = [device.0.into(), device.1.into(), inode, born.is_some().into(), seconds];
        numbers.into_iter().for_each(|number| put_varint(&mut bytes, number));
        for number in [nanoseconds, size_bytes, modified.0, modified.1] {
            put_varint(&mut bytes, number);
        }
        let histories = &self.histories[..self.histories.len().min(MAX_HISTORIES)];
        put_varint(&mut bytes, histories.len() as u64);
        histories.iter().for_each(|history| put_history(&mut bytes, history));
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Decodes `bytes`. `None` if they are no valid memory of this version.
    pub fn decode(bytes: &[u8]) -> Option<FileMemory> {
        let (body, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM_BYTES)?)?;
        if crc32fast::hash(body).to_le_bytes() != checksum {
            return None;
        }
        let mut input = Input(body.strip_prefix(MAGIC)?);
        let length = input.next_up_to(MAX_PATH_BYTES)?;
        let path = OsString::from_vec(input.take(length as usize)?.to_vec()).into();
        let device = (u32::try_from(input.next()?).ok()?, u32::try_from(input.next()?).ok()?);
        let inode = input.next()?;
        let is_born = input.next_up_to(1)? == 1;
        let born = (input.next()?, input.next()?);
        let (size_bytes, modified) = (input.next()?, (input.next()?, input.next()?));
        let count = input.next_up_to(MAX_HISTORIES as u64)?;
        let histories = (0..count).map(|_| input.next_history()).collect::<Option<Vec<_>>>()?;
        let born = is_born.then_some(born);
        let identity = FileIdentity { device, inode, born, size_bytes, modified };
        input.0.is_empty().then_some(FileMemory { identity, path, histories })
    }
}

fn put_history(bytes: &mut Vec<u8>, history: &TouchHistory) {
    let flags = u64::from(history.is_exact)
        | u64::from(history.is_random) << 1
        | u64::from(history.is_cached) << 2;
    for number in [flags, history.threads, history.total_runs, history.runs.len() as u64] {
        put_varint(bytes, number);
    }
    for run in &history.runs {
        put_varint(bytes, run.first);
        put_varint(bytes, run.pages);
    }
    put_varint(bytes, history.regions.len() as u64);
    for region in &history.regions {
        put_varint(bytes, region.number);
        put_varint(bytes, region.blocks.into());
    }
}

/// Appends a number: seven bits a byte, the lowest first.
fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The bytes that are not decoded yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn next(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << shift;
            if shifted >> shift != bits {
                return None;
            }
            number |= shifted;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn next_up_to(&mut self, most: u64) -> Option<u64> {
        self.next().filter(|number| *number <= most)
    }

    fn next_history(&mut self) -> Option<TouchHistory> {
        let flags = self.next_up_to(7)?;
        let (threads, total_runs) = (self.next()?.max(1), self.next()?);
        let count = self.next_up_to((MAX_RUNS as u64).min(total_runs))?;
        let mut runs = Vec::new();
        for _ in 0..count {
            let (first, pages) = (self.next_up_to(MAX_PAGE)?, self.next_up_to(MAX_PAGE)?);
            runs.push(TouchRun { first, pages: Some(pages).filter(|pages| *pages > 0)? });
        }
        let count = self.next_up_to(MAX_REGIONS as u64)?;
        let mut regions = Vec::new();
        for _ in 0..count {
            let number = self.next_up_to(MAX_PAGE / 512)?;
            regions.push(TouchedRegion { number, blocks: u32::try_from(self.next()?).ok()? });
        }
        let (is_exact, is_random, is_cached) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
        Some(TouchHistory { is_exact, is_random, is_cached, threads, runs, total_runs, regions })
    }
}

#[cfg(test)]
pub mod tests {
    use filemap_policy::TouchCollector;

    use super::*;

    pub fn memory(inode: u64) -> FileMemory {
        let history = |is_exact| {
            let mut collector = TouchCollector::new(is_exact, !is_exact);
            (0..500).for_each(|number| collector.on_touch(number * 7919 % 40_000, number % 3));
            TouchHistory { is_cached: !is_exact, ..collector.history() }
        };
        FileMemory {
            identity: FileIdentity {
                device: (254, 1 << 19),
                inode,
                born: Some((1_700_000_000, 999_999_999)),
                size_bytes: u64::MAX,
                modified: (1, 0),
            },
            path: "/data/größe".into(),
            histories: vec![history(true), history(false)],
        }
    }

    #[test]
    fn memory_decodes_to_itself() {
        let mut some = memory(u64::MAX);
        assert_eq!(FileMemory::decode(&some.encode()), Some(some.clone()));
        some.identity.born = None;
        some.histories.clear();
        assert_eq!(FileMemory::decode(&some.encode()), Some(some));
    }

    /// A changed, missing or additional byte, at any place; with a checksum that fits too.
    #[test]
    fn damaged_memory_is_refused_or_bounded() {
        let whole = memory(7).encode();
        for at in (0..whole.len()).step_by(3) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            assert_eq!(FileMemory::decode(&changed), None, "byte {at}");
            assert_eq!(FileMemory::decode(&whole[..at]), None, "{at} bytes");
            changed.truncate(whole.len() - CHECKSUM_BYTES);
            changed.extend(crc32fast::hash(&changed).to_le_bytes());
            if let Some(memory) = FileMemory::decode(&changed) {
                assert!(memory.histories.iter().all(|own| own.runs.len() <= MAX_RUNS));
            }
        }
        assert_eq!(FileMemory::decode(&[whole, vec![0]].concat()), None);
        for bytes in [&b""[..], b"filemap touches 2\n", &[0xff; 64], MAGIC] {
            assert_eq!(FileMemory::decode(bytes), None);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut collector = TouchCollector::new(true, false);
        (0..200_000).for_each(|number| collector.on_touch(number * 7919, number));
        let histories = vec![collector.history(); MAX_HISTORIES + 2];
        let encoded = FileMemory { histories, ..memory(1) }.encode();
        assert!(encoded.len() < 1 << 20, "{} bytes", encoded.len());
        assert_eq!(FileMemory::decode(&encoded).unwrap().histories.len(), MAX_HISTORIES);
    }
}
