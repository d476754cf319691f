//! How a library or a language is given advice for a file that it maps.
//!
//! The rows are facts about other projects; each names where it was looked up.

use filemap_core::address::vma::ReadHint;

use super::FileContents;
use super::program_facts::{Language, Library, ProgramFacts};

/// Who opened a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// The library of this format.
    Format(FileContents),
    /// The library of this format in a program in this language.
    FormatIn(FileContents, Language),
    /// A library of the program.
    Library(Library),
    /// Code in this language.
    Language(Language),
    /// Code in an unknown language, such as C.
    Unknown,
}

/// A line that advises the read pattern of a mapping.
pub struct AdviceLine {
    pub opener: Opener,
    /// The advice; all of them if empty.
    pub hints: &'static [ReadHint],
    pub place: &'static str,
    /// `{NAME}` stands for the advice as in MADV_RANDOM, `{Name}` for `Random`, and `{NUMBER}` for
    /// the constant of madvise(2).
    pub text: &'static str,
}

const RANDOM: &[ReadHint] = &[ReadHint::Random];
const NORMAL: &[ReadHint] = &[ReadHint::Normal];
const OTHERS: &[ReadHint] = &[ReadHint::Normal, ReadHint::Sequential];
const ANY: &[ReadHint] = &[];

const fn row(
    opener: Opener,
    hints: &'static [ReadHint],
    place: &'static str,
    text: &'static str,
) -> AdviceLine {
    AdviceLine { opener, hints, place, text }
}

/// All rows, in the order in which they are shown.
pub const ADVICE_LINES: [AdviceLine; 28] = {
    use FileContents as F;
    use Language::{Go, Java, Python, Rust};
    use Opener::{Format, FormatIn, Unknown};
    [
        // https://lmdb.readthedocs.io: Environment(readahead).
        row(FormatIn(F::Lmdb, Python), RANDOM, "LMDB", "lmdb.open(path, readahead=False)"),
        row(FormatIn(F::Lmdb, Python), NORMAL, "LMDB", "lmdb.open(path, readahead=True)"),
        // github.com/bmatsuo/lmdb-go/lmdb: constants of Env.Open.
        row(FormatIn(F::Lmdb, Go), RANDOM, "LMDB", "env.Open(path, flags|lmdb.NoReadahead, 0644)"),
        // docs.rs/heed: EnvFlags.
        row(
            FormatIn(F::Lmdb, Rust),
            RANDOM,
            "LMDB",
            "unsafe { options.flags(heed::EnvFlags::NO_READ_AHEAD) }  // EnvOpenOptions of heed",
        ),
        // github.com/lmdbjava/lmdbjava: EnvFlags.
        row(FormatIn(F::Lmdb, Java), RANDOM, "LMDB", ".open(path, EnvFlags.MDB_NORDAHEAD)"),
        // lmdb.h: "Turn off readahead"; mdb_env_map() of mdb.c makes MADV_RANDOM of it.
        row(Format(F::Lmdb), RANDOM, "LMDB", "MDB_NORDAHEAD as a flag of mdb_env_open()"),
        row(Format(F::Lmdb), NORMAL, "LMDB", "mdb_env_open() without MDB_NORDAHEAD"),
        // mdbx.h: MDBX_env_flags.
        row(
            Opener::Library(Library::Mdbx),
            RANDOM,
            "MDBX",
            "MDBX_NORDAHEAD as a flag of mdbx_env_open()",
        ),
        // sqlite.org/mmap.html, sqlite.org/pragma.html#pragma_mmap_size.
        row(
            Format(F::Sqlite),
            ANY,
            "SQLite",
            "it has no setting for advice. PRAGMA mmap_size=0 makes it read pages with pread(2), \
             which was not tried here; filemap record and filemap advise with it would tell",
        ),
        // numpy.org: numpy.memmap keeps its mmap object in _mmap; ndarrays of
        // numpy.load(mmap_mode=...) are of that class.
        row(
            FormatIn(F::Numpy, Python),
            ANY,
            "NumPy",
            "a._mmap.madvise(mmap.MADV_{NAME})  # a = numpy.load(path, mmap_mode='r')",
        ),
        // lucene.apache.org/core/10_3_0: MMapDirectory.setReadAdvice(), ReadAdvice, and Constants
        // for the property, which began with 10.0.
        row(
            Format(F::Lucene),
            ANY,
            "Java",
            "-Dorg.apache.lucene.store.defaultReadAdvice={NAME} for all files (Lucene 10)",
        ),
        row(
            Format(F::Lucene),
            ANY,
            "Lucene",
            "directory.setReadAdvice((name, context) -> Optional.of(ReadAdvice.{NAME})); for the \
             files of an MMapDirectory (10.3)",
        ),
        // go.etcd.io/bbolt: mmap() of bolt_unix.go.
        row(
            Format(F::Bolt),
            RANDOM,
            "bbolt",
            "bbolt.Open() gives this advice itself; other code that maps the file does not",
        ),
        row(
            Format(F::Bolt),
            OTHERS,
            "bbolt",
            "it has no option: change unix.Madvise() in mmap() of its bolt_unix.go",
        ),
        // github.com/dgraph-io/badger: Options of v1 and v2; v3 maps all tables.
        row(
            Opener::Library(Library::Badger),
            ANY,
            "Badger",
            "options.WithTableLoadingMode(options.FileIO) reads tables with pread(2) (v1 and v2); \
             later versions have no setting",
        ),
        // github.com/facebook/rocksdb: options.h, and env/io_posix.h, whose PosixMmapReadableFile
        // has no Hint(), so that advise_random_on_open has no effect on it.
        row(
            Opener::Library(Library::RocksDb),
            ANY,
            "RocksDB",
            "options.allow_mmap_reads = false; mapped tables get no advice. With pread(2), \
             options.advise_random_on_open (true by default) advises POSIX_FADV_RANDOM",
        ),
        // github.com/google/leveldb: PosixEnv::NewRandomAccessFile of util/env_posix.cc.
        row(
            Format(F::Leveldb),
            ANY,
            "LevelDB",
            "it has no option: madvise(mmap_base, file_size, MADV_{NAME}); after mmap() in \
             PosixEnv::NewRandomAccessFile",
        ),
        // github.com/ggml-org/llama.cpp: llama_mmap of src/llama-mmap.cpp, and common/arg.cpp.
        row(
            Format(F::Gguf),
            RANDOM,
            "llama.cpp",
            "--numa distribute advises this; otherwise it asks for the whole file when it maps it",
        ),
        row(Format(F::Gguf), OTHERS, "llama.cpp", "--no-mmap reads the file in order instead"),
        // huggingface.co/docs/safetensors: safetensors.torch.load(data).
        row(
            FormatIn(F::Safetensors, Python),
            ANY,
            "safetensors",
            "safe_open() and load_file() map the file and have no setting; \
             safetensors.torch.load(open(path, 'rb').read()) reads it in order",
        ),
        // github.com/facebookresearch/faiss: index_io.h.
        row(
            Format(F::Faiss),
            ANY,
            "faiss",
            "faiss.read_index(path, faiss.IO_FLAG_MMAP) has no setting; faiss.read_index(path) \
             reads the file in order",
        ),
        // pkg.go.dev/golang.org/x/exp/mmap: ReaderAt does not show its slice.
        row(
            Opener::Library(Library::ExpMmap),
            ANY,
            "Go",
            "mmap.ReaderAt of golang.org/x/exp/mmap cannot advise; map the file with unix.Mmap()",
        ),
        // docs.python.org/3/library/mmap.html: mmap.madvise(), since 3.8.
        row(
            Opener::Language(Python),
            ANY,
            "Python",
            "m.madvise(mmap.MADV_{NAME})  # m = mmap.mmap(file.fileno(), 0, ...)",
        ),
        // As for numpy.load(): a file without a header is mapped by numpy.memmap.
        row(
            FormatIn(F::Other, Python),
            ANY,
            "NumPy",
            "a._mmap.madvise(mmap.MADV_{NAME})  # a = numpy.memmap(path, ...)",
        ),
        // docs.oracle.com: java.lang.foreign, final in Java 22; FileChannel.map() has no advice.
        row(
            Opener::Language(Java),
            ANY,
            "Java",
            "Linker.nativeLinker().downcallHandle(Linker.nativeLinker().defaultLookup()\
             .find(\"madvise\").get(), FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, \
             JAVA_INT)).invoke(segment, segment.byteSize(), {NUMBER}); with segment = \
             MemorySegment.ofBuffer(channel.map(...)) (Java 22)",
        ),
        // pkg.go.dev/golang.org/x/sys/unix: Mmap, Madvise.
        row(
            Opener::Language(Go),
            ANY,
            "Go",
            "unix.Madvise(b, unix.MADV_{NAME})  // b, err := unix.Mmap(int(file.Fd()), ...)",
        ),
        // docs.rs/memmap2: Mmap::advise.
        row(
            Opener::Language(Rust),
            ANY,
            "Rust",
            "map.advise(memmap2::Advice::{Name})?;  // let map = memmap2::Mmap::map(&file)?",
        ),
        row(Unknown, ANY, "C", "madvise(address, length, MADV_{NAME});"),
    ]
};

/// The rows for `hint` on a file with these `contents` in `program`; without a program, for all
/// languages.
pub fn advice_lines(
    hint: ReadHint,
    contents: FileContents,
    program: Option<&ProgramFacts>,
) -> Vec<&'static AdviceLine> {
    let language = program.and_then(|program| program.language);
    let has = |library| program.is_some_and(|program| program.libraries.contains(&library));
    // A library of another language is bound to this one by a line of its own.
    let is_bound = |format: FileContents| {
        language.is_some_and(|language| {
            let opener = Opener::FormatIn(format, language);
            ADVICE_LINES.iter().any(|row| row.opener == opener)
        })
    };
    let suits = |row: &&AdviceLine| {
        let is_opener = match row.opener {
            Opener::Format(format) => format == contents && !is_bound(format),
            Opener::FormatIn(format, own) => format == contents && language == Some(own),
            Opener::Library(library) => has(library),
            Opener::Language(own) => language.map_or(program.is_none(), |language| language == own),
            Opener::Unknown => language.is_none(),
        };
        is_opener && (row.hints.is_empty() || row.hints.contains(&hint))
    };
    ADVICE_LINES.iter().filter(suits).collect()
}
