//! Facts about a recorded program: its language and its libraries.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use filemap_job::program::Job;

/// Language in which a program maps its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Language {
    Python,
    Java,
    Go,
    Rust,
}

/// A library in a program that maps files and has no format of its own to be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Library {
    Mdbx,
    RocksDb,
    Badger,
    ExpMmap,
}

/// A recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFacts {
    /// Its language; `None` if unknown, as for C.
    pub language: Option<Language>,
    /// Libraries in the program's file.
    pub libraries: Vec<Library>,
}

/// Interpreters and virtual machines, by the beginning of their file's name.
const INTERPRETERS: [(&str, Language); 4] = [
    ("python", Language::Python),
    ("pypy", Language::Python),
    ("java", Language::Java),
    ("jsvc", Language::Java),
];

/// Bytes of a program's file that tell its language, the first of which counts: the directory of
/// Rust's standard library in messages of panics, and the magic number of Go's build information
/// (`debug/buildinfo`).
const LANGUAGE_MARKS: [(&[u8], Language); 2] =
    [(b"/rustc/", Language::Rust), (b"\xff Go buildinf:", Language::Go)];

/// Bytes of a program's file that tell its libraries: names of shared libraries, text of static
/// ones, and paths of Go packages.
const LIBRARY_MARKS: [(&[u8], Library); 6] = [
    (b"libmdbx", Library::Mdbx),
    (b"mdbx_env_open", Library::Mdbx),
    (b"librocksdb", Library::RocksDb),
    (b"rocksdb.block.cache.miss", Library::RocksDb),
    (b"github.com/dgraph-io/badger", Library::Badger),
    (b"golang.org/x/exp/mmap", Library::ExpMmap),
];

/// Maximum size of a program's file that is searched, in bytes.
const MAX_SEARCHED_BYTES: u64 = 256 << 20;

impl ProgramFacts {
    /// The program of `job`, which was recorded, whose file is at `path` if that is known.
    pub fn of_recording(job: &Job, path: Option<&Path>) -> ProgramFacts {
        // Threads are called by their program, which a script or `exec` can change.
        let language = job.threads.iter().find_map(|thread| interpreter(&thread.name));
        match (language, path) {
            (None, Some(path)) => ProgramFacts::of_file(path),
            _ => ProgramFacts { language, libraries: Vec::new() },
        }
    }

    fn of_file(path: &Path) -> ProgramFacts {
        let mut bytes = Vec::new();
        let file = File::open(path).map(|file| file.take(MAX_SEARCHED_BYTES));
        // A program that cannot be read is one in an unknown language.
        let _ = file.and_then(|mut file| file.read_to_end(&mut bytes));
        ProgramFacts::of_bytes(&bytes)
    }

    fn of_bytes(bytes: &[u8]) -> ProgramFacts {
        let has = |mark: &[u8]| find(bytes, mark);
        let language = LANGUAGE_MARKS.iter().find(|(mark, _)| has(mark));
        let mut libraries = Vec::new();
        for (_, library) in LIBRARY_MARKS.iter().filter(|(mark, _)| has(mark)) {
            if !libraries.contains(library) {
                libraries.push(*library);
            }
        }
        ProgramFacts { language: language.map(|(_, language)| *language), libraries }
    }
}

/// The language of the interpreter called `name`.
fn interpreter(name: &str) -> Option<Language> {
    INTERPRETERS.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, language)| *language)
}

/// Whether `bytes` contain `mark`.
fn find(bytes: &[u8], mark: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == mark[0]) {
        if rest[at..].starts_with(mark) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_language_and_libraries() {
        let go = b"\x7fELF..\xff Go buildinf:\x08\x02..dep\tgolang.org/x/exp/mmap\t";
        let facts = ProgramFacts::of_bytes(go);
        assert_eq!(facts.language, Some(Language::Go));
        assert_eq!(facts.libraries, [Library::ExpMmap]);
        assert_eq!(ProgramFacts::of_bytes(b"\x7fELF..main.c"), ProgramFacts::default());
        let own = std::env::current_exe().unwrap();
        assert_eq!(ProgramFacts::of_file(&own).language, Some(Language::Rust));
    }

    #[test]
    fn names_tell_interpreters() {
        for (name, language) in [
            ("python3.11 4711", Some(Language::Python)),
            ("java 12", Some(Language::Java)),
            ("lookups 3", None),
        ] {
            assert_eq!(interpreter(name), language, "{name}");
        }
    }
}
