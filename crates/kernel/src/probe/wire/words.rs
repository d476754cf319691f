//! Words, and what is made of them: lists, bytes and paths.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(super) fn bits(flags: &[bool]) -> u64 {
    flags.iter().enumerate().map(|(bit, &flag)| u64::from(flag) << bit).sum()
}

pub(in crate::probe) fn put(out: &mut Vec<u8>, word: u64) {
    out.extend_from_slice(&word.to_ne_bytes());
}

pub(in crate::probe) fn put_all<T>(
    out: &mut Vec<u8>,
    items: &[T],
    put_one: impl Fn(&mut Vec<u8>, &T),
) {
    put(out, items.len() as u64);
    items.iter().for_each(|item| put_one(out, item));
}

pub(in crate::probe) fn put_path(out: &mut Vec<u8>, path: &Path) {
    put_bytes(out, path.as_os_str().as_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(in crate::probe) fn get_path(input: &mut impl Read) -> io::Result<PathBuf> {
    Ok(OsString::from_vec(get_bytes(input)?).into())
}

pub(in crate::probe) fn get(input: &mut impl Read) -> io::Result<u64> {
    let mut word = [0; 8];
    input.read_exact(&mut word)?;
    Ok(u64::from_ne_bytes(word))
}

/// The place of `one` among `all`, which have it.
pub(super) fn position<T: PartialEq>(all: &[T], one: &T) -> u64 {
    all.iter().position(|other| other == one).expect("it is one of them") as u64
}

pub(super) fn get_one_of<T: Copy>(all: &[T], input: &mut impl Read) -> io::Result<T> {
    all.get(get_number(input)?).copied().ok_or(io::ErrorKind::InvalidData.into())
}

pub(super) fn get_number(input: &mut impl Read) -> io::Result<usize> {
    usize::try_from(get(input)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

pub(in crate::probe) fn get_all<R: Read, T>(
    input: &mut R,
    get_one: impl Fn(&mut R) -> io::Result<T>,
) -> io::Result<Vec<T>> {
    let items = get(input)?;
    (0..items).map(|_| get_one(input)).collect()
}

pub(super) fn get_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = get(input)?;
    let mut bytes = Vec::new();
    input.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
