//! Kinds of files that determine where advice is given.

use serde::{Deserialize, Serialize};

/// Kind of file, by the library that opens it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileContents {
    /// An LMDB environment.
    Lmdb,
    /// An SQLite database.
    Sqlite,
    /// An array of NumPy.
    Numpy,
    /// Any other.
    #[default]
    Other,
}

/// Number of leading bytes that identify a kind.
pub const FIRST_BYTES: usize = 24;

/// Magic of an SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Magic of a NumPy array.
const NUMPY: &[u8] = b"\x93NUMPY";

/// Offset (after the header of the first page) and magic number of LMDB.
const LMDB: (usize, u32) = (16, 0xbeef_c0de);

impl FileContents {
    /// Kind of the file called `name` that begins with `first`; by name alone if `first` is empty
    /// because the file does not exist.
    pub fn identify(first: &[u8], name: &str) -> FileContents {
        let magic = first.get(LMDB.0..LMDB.0 + 4).and_then(|bytes| bytes.try_into().ok());
        let magic =
            magic.map(|bytes: [u8; 4]| [u32::from_le_bytes(bytes), u32::from_be_bytes(bytes)]);
        match name.rsplit_once('.') {
            _ if first.starts_with(SQLITE) => FileContents::Sqlite,
            _ if first.starts_with(NUMPY) => FileContents::Numpy,
            _ if magic.is_some_and(|either| either.contains(&LMDB.1)) => FileContents::Lmdb,
            _ if !first.is_empty() => FileContents::Other,
            Some((_, "mdb")) => FileContents::Lmdb,
            Some((_, "sqlite" | "sqlite3")) => FileContents::Sqlite,
            Some((_, "npy")) => FileContents::Numpy,
            _ => FileContents::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_before_the_name_does() {
        let lmdb = [&[0; 16][..], &0xbeef_c0de_u32.to_le_bytes(), &[1, 0, 0, 0]].concat();
        for (first, name, contents) in [
            (&lmdb[..], "anything", FileContents::Lmdb),
            (b"SQLite format 3\0\x10\0", "data.mdb", FileContents::Sqlite),
            (b"\x93NUMPY\x01\0", "a", FileContents::Numpy),
            (b"", "data.mdb", FileContents::Lmdb),
            (b"", "x.npy", FileContents::Numpy),
            (b"no database at all..", "data.mdb", FileContents::Other),
            (b"", "mdb", FileContents::Other),
            (&lmdb[..18], "a", FileContents::Other),
        ] {
            assert_eq!(FileContents::identify(first, name), contents, "{name}");
        }
    }
}
