//! Kinds of files, by what they begin with, where they are, and what they are called.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Kind of file, by the program or library that opens it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileContents {
    /// An LMDB environment.
    Lmdb,
    /// An SQLite database.
    Sqlite,
    /// An array of NumPy.
    Numpy,
    /// A file of a Lucene index.
    Lucene,
    /// A bbolt database.
    Bolt,
    /// A sorted table of RocksDB, Pebble or Badger.
    Sst,
    /// A sorted table of LevelDB.
    Leveldb,
    /// A model of llama.cpp.
    Gguf,
    /// Tensors of safetensors.
    Safetensors,
    /// An index of faiss.
    Faiss,
    /// A program or library, or another file that is mapped executable.
    Program,
    /// A locale, a catalogue of messages, or the cache of character set conversions.
    Locale,
    /// A cache of the system, as of fonts or of library paths.
    SystemCache,
    /// Classes and modules of a Java runtime.
    JavaRuntime,
    /// Any other.
    #[default]
    Other,
}

/// Number of leading bytes that identify a kind.
pub const FIRST_BYTES: usize = 24;

/// How a kind of file is identified.
struct Format {
    contents: FileContents,
    /// Pairs of an offset and bytes; one of them has to match.
    magic: &'static [(usize, &'static [u8])],
    /// Extensions of a file without a magic number, or that cannot be read.
    extensions: &'static [&'static str],
}

/// Formats with a magic number, and those that only their name identifies. Sources of the magic
/// numbers, which are little-endian where files have the byte order of the machine: `mdb.c` of
/// LMDB, `db.go` of bbolt, `CodecUtil.java` of Lucene, `gguf.md` of ggml, `index_write.cpp` of
/// faiss, `locale/localeinfo.h`, `locarchive.h`, `gmo.h` and `iconvconfig.h` of glibc, `fcint.h` of
/// fontconfig, `cds.h` and `imageFile.hpp` of OpenJDK.
const FORMATS: [Format; 15] = {
    use FileContents::*;
    const fn format(
        contents: FileContents,
        magic: &'static [(usize, &'static [u8])],
        extensions: &'static [&'static str],
    ) -> Format {
        Format { contents, magic, extensions }
    }
    [
        format(Sqlite, &[(0, b"SQLite format 3\0")], &["sqlite", "sqlite3"]),
        format(Numpy, &[(0, b"\x93NUMPY")], &["npy"]),
        format(Lmdb, &[(16, b"\xde\xc0\xef\xbe"), (16, b"\xbe\xef\xc0\xde")], &["mdb"]),
        format(Bolt, &[(16, b"\xed\xda\x0c\xed")], &["bolt"]),
        format(Lucene, &[(0, b"\x3f\xd7\x6c\x17")], &["cfs", "tim", "vec", "vex", "doc", "dvd"]),
        format(Gguf, &[(0, b"GGUF")], &["gguf"]),
        // The end of the header's length, then the header, in JSON.
        format(Safetensors, &[(5, b"\0\0\0{\"")], &["safetensors"]),
        format(
            Faiss,
            &[
                (0, b"IxFI"),
                (0, b"IxF2"),
                (0, b"IxMp"),
                (0, b"IxM2"),
                (0, b"IxPT"),
                (0, b"IwFl"),
                (0, b"IwPQ"),
                (0, b"IwSq"),
                (0, b"IHNf"),
            ],
            &["faiss"],
        ),
        format(Program, &[(0, b"\x7fELF")], &["so"]),
        format(
            Locale,
            &[
                (0, b"\x09\x01\x02\xde"),
                (1, b"\x11\x03\x20"),
                (0, b"\x17\x10\x05\x20"),
                (0, b"\x20\x07\x09\x20"),
                (0, b"\x24\x03\x01\x20"),
                (0, b"\xde\x12\x04\x95"),
            ],
            &["mo"],
        ),
        format(
            SystemCache,
            &[(0, b"\x04\xfc\x02\xfc"), (0, b"glibc-ld.so.cache"), (0, b"ld.so-1.7.0")],
            &[],
        ),
        format(
            JavaRuntime,
            &[(0, b"\xa2\xab\x0b\xf0"), (0, b"\xa8\xab\x0b\xf0"), (0, b"\xda\xda\xfe\xca")],
            &["jsa"],
        ),
        format(Sst, &[], &["sst"]),
        format(Leveldb, &[], &["ldb"]),
        format(Program, &[], &["pyc"]),
    ]
};

/// Directories of locales and of caches of the system.
const DIRECTORIES: [(&str, FileContents); 5] = [
    ("/usr/lib/locale", FileContents::Locale),
    ("/usr/share/locale", FileContents::Locale),
    ("/usr/share/i18n", FileContents::Locale),
    ("/usr/share/zoneinfo", FileContents::Locale),
    ("/var/cache/fontconfig", FileContents::SystemCache),
];

/// Names of files of locales, for files that cannot be read.
const LOCALE_NAMES: [&str; 2] = ["locale-archive", "gconv-modules.cache"];

impl FileContents {
    /// Kind of the file at `path`, or of that name, that begins with `first`; by name alone if
    /// `first` is empty because the file does not exist.
    pub fn identify(first: &[u8], path: &Path) -> FileContents {
        let of_directory = DIRECTORIES.iter().find(|(directory, _)| path.starts_with(directory));
        if let Some((_, contents)) = of_directory {
            return *contents;
        }
        let has_magic =
            |(at, magic): &(usize, &[u8])| first.get(*at..*at + magic.len()) == Some(*magic);
        let by_magic = FORMATS.iter().find(|format| format.magic.iter().any(has_magic));
        if let Some(format) = by_magic {
            return format.contents;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        let is_named = |format: &&Format| {
            (first.is_empty() || format.magic.is_empty())
                && extension.is_some_and(|own| format.extensions.contains(&own))
        };
        let is_locale =
            || first.is_empty() && (name.starts_with("LC_") || LOCALE_NAMES.contains(&&*name));
        match FORMATS.iter().find(is_named) {
            Some(format) => format.contents,
            None if first.is_empty() && name.contains(".so.") => FileContents::Program,
            None if is_locale() => FileContents::Locale,
            None => FileContents::Other,
        }
    }

    /// Whether a program's owner does not open such a file, but the loader, the C library or a
    /// runtime does.
    pub fn is_of_system(self) -> bool {
        matches!(
            self,
            FileContents::Program
                | FileContents::Locale
                | FileContents::SystemCache
                | FileContents::JavaRuntime
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn identify(first: &[u8], path: &str) -> FileContents {
        FileContents::identify(first, Path::new(path))
    }

    #[test]
    fn first_bytes_tell_before_the_name_does() {
        let lmdb = [&[0; 16][..], &0xbeef_c0de_u32.to_le_bytes(), &[1, 0, 0, 0]].concat();
        let bolt = [&[0; 16][..], &0xed0c_daed_u32.to_le_bytes(), &[2, 0, 0, 0]].concat();
        for (first, name, contents) in [
            (&lmdb[..], "anything", FileContents::Lmdb),
            (&bolt[..], "data.mdb", FileContents::Bolt),
            (b"SQLite format 3\0\x10\0", "data.mdb", FileContents::Sqlite),
            (b"\x93NUMPY\x01\0", "a", FileContents::Numpy),
            (b"\x3f\xd7\x6c\x17\x13Lucene90", "_0.cfs", FileContents::Lucene),
            (b"\x48\0\0\0\0\0\0\0{\"a\":{", "a", FileContents::Safetensors),
            (b"", "data.mdb", FileContents::Lmdb),
            (b"", "x.npy", FileContents::Numpy),
            (b"\0\x0bkey of a table", "/db/000012.sst", FileContents::Sst),
            (b"no database at all..", "data.mdb", FileContents::Other),
            (b"", "mdb", FileContents::Other),
            (&lmdb[..18], "a", FileContents::Other),
        ] {
            assert_eq!(identify(first, name), contents, "{name}");
        }
    }

    /// Files of this machine, as far as it has them.
    #[test]
    fn libraries_locales_and_caches_are_of_the_system() {
        let own = std::env::current_exe().unwrap();
        for path in [
            own.to_str().unwrap(),
            "/usr/lib/locale/C.utf8/LC_CTYPE",
            "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache",
            "/etc/ld.so.cache",
            "/usr/lib/jvm/java-17-openjdk-amd64/lib/modules",
            "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/classes.jsa",
        ] {
            let Ok(first) = std::fs::read(path) else { continue };
            // As in another directory, and under another name.
            let contents = identify(&first[..FIRST_BYTES.min(first.len())], "/tmp/copy");
            assert!(contents.is_of_system(), "{path}: {contents:?}");
        }
        for gone in ["/usr/lib/locale/x/LC_TIME", "LC_CTYPE", "libjvm.so", "libc.so.6", "a.jsa"] {
            assert!(identify(b"", gone).is_of_system(), "{gone}");
        }
        for data in ["/usr/share/GeoIP/city.mmdb", "/data/a", "lc_file"] {
            assert!(!identify(b"", data).is_of_system(), "{data}");
        }
    }
}
