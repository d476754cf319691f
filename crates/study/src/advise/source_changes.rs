//! Code and settings that implement a change.

use filemap_core::address::vma::ReadHint;
use filemap_job::program::Madvise;
use serde::{Deserialize, Serialize};

use super::FileContents;
use super::change::{AdviceChange, ask_name, hint_name};
use super::libraries::advice_lines;
use super::program_facts::{Language, ProgramFacts};
use super::record::ReadAheadDevice;

/// Code or settings for a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourceChange {
    /// The change.
    pub change: String,
    pub lines: Vec<SourceLine>,
}

/// A line of code or a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SourceLine {
    /// Language or kind of setting.
    pub place: String,
    pub text: String,
}

fn line(place: &str, text: impl Into<String>) -> SourceLine {
    SourceLine { place: place.to_string(), text: text.into() }
}

/// What the lines of a change depend on.
#[derive(Clone, Copy, Debug)]
pub struct SourceContext<'a> {
    /// Kind of the file.
    pub contents: FileContents,
    /// The program; `None` if a job describes it.
    pub program: Option<&'a ProgramFacts>,
    /// Devices of the files.
    pub devices: &'a [ReadAheadDevice],
}

impl SourceContext<'_> {
    /// Whether lines in `language` are wanted.
    fn is_in(&self, language: Language) -> bool {
        self.program.is_none_or(|program| program.language == Some(language))
    }

    /// Whether lines in C are wanted.
    fn is_in_c(&self) -> bool {
        self.program.is_none_or(|program| program.language.is_none())
    }
}

/// Lines that implement `change`.
pub fn lines(change: &AdviceChange, context: SourceContext) -> Vec<SourceLine> {
    match change {
        AdviceChange::Madvise(_, hint) => madvise(*hint, context),
        AdviceChange::Ask(_, ask, parts) => prefetch_lines(*ask, parts, context),
        AdviceChange::Fadvise(_, hint) => fadvise(*hint, context),
        AdviceChange::OmitPrefetch(_) if context.contents == FileContents::Bolt => {
            vec![line("bbolt", "bbolt.Options{MmapFlags: 0}, without syscall.MAP_POPULATE")]
        }
        AdviceChange::OmitPrefetch(_) => vec![line(
            "C",
            "mmap() without MAP_POPULATE and MAP_LOCKED; no madvise() with MADV_POPULATE_READ or \
             MADV_WILLNEED, no posix_fadvise() with POSIX_FADV_WILLNEED, and no readahead()",
        )],
        AdviceChange::ReadAhead(kb) => {
            const WHOSE: &str = "files that are open keep the old size, and every program on the \
                                 device gets the new one";
            let place = |device: &ReadAheadDevice| {
                line("As root", format!("echo {kb} > {}; {WHOSE}", device.setting))
            };
            let unknown = format!(
                "echo {kb} > /sys/class/bdi/MAJOR:MINOR/read_ahead_kb, with the numbers that \
                 mountpoint -d prints for the filesystem; {WHOSE}"
            );
            match context.devices {
                [] => vec![line("As root", unknown)],
                devices => devices.iter().map(place).collect(),
            }
        }
        AdviceChange::FaultAround(bytes) => vec![line(
            "As root",
            format!(
                "echo {bytes} > /sys/kernel/debug/fault_around_bytes; every program on the \
                 machine gets it"
            ),
        )],
        AdviceChange::Governor => Vec::new(),
    }
}

fn madvise(hint: ReadHint, context: SourceContext) -> Vec<SourceLine> {
    let number = match hint {
        ReadHint::Normal => "0",
        ReadHint::Random => "1",
        ReadHint::Sequential => "2",
    };
    let fill = |text: &str| {
        let text = text.replace("{NAME}", &hint_name(hint)).replace("{NUMBER}", number);
        text.replace("{Name}", &format!("{hint:?}"))
    };
    let rows = advice_lines(hint, context.contents, context.program).into_iter();
    rows.map(|row| line(row.place, fill(row.text))).collect()
}

fn fadvise(hint: ReadHint, context: SourceContext) -> Vec<SourceLine> {
    let name = hint_name(hint);
    let mut lines = Vec::new();
    if context.is_in_c() {
        lines.push(line("C", format!("posix_fadvise(fd, 0, 0, POSIX_FADV_{name});")));
    }
    if context.is_in(Language::Python) {
        let python = format!("os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_{name})");
        lines.push(line("Python", python));
    }
    if context.is_in(Language::Rust) {
        let rust = format!("rustix::fs::fadvise(&file, 0, None, Advice::{hint:?})?;");
        lines.push(line("Rust", rust));
    }
    if context.is_in(Language::Go) {
        let go = format!("unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_{name})");
        lines.push(line("Go", go));
    }
    if lines.is_empty() {
        lines.push(line("C", format!("posix_fadvise(fd, 0, 0, POSIX_FADV_{name});")));
    }
    lines
}

fn prefetch_lines(ask: Madvise, parts: &[(u64, u64)], context: SourceContext) -> Vec<SourceLine> {
    let name = ask_name(ask);
    // Several parts: the program loops over ranges it has computed.
    let [(first, pages)] = parts else {
        let all = format!("madvise(MADV_{name}) of the used part of each mapping, once it is made");
        return vec![line("C", all)];
    };
    let mut lines = Vec::new();
    if context.contents == FileContents::Bolt && ask == Madvise::PopulateRead {
        let option = "bbolt.Options{MmapFlags: syscall.MAP_POPULATE} reads the whole file";
        lines.push(line("bbolt", option));
    }
    if context.contents == FileContents::Lucene {
        let preload = "directory.setPreload(MMapDirectory.ALL_FILES) reads all files as a whole";
        lines.push(line("Lucene", preload));
    }
    let c = format!("madvise(address + {first} * page, {pages} * page, MADV_{name});");
    if context.is_in_c() {
        lines.push(line("C", c.clone()));
    }
    // Python has no constant for MADV_POPULATE_READ.
    if context.is_in(Language::Python) {
        let advice = match ask {
            Madvise::WillNeed => "mmap.MADV_WILLNEED",
            _ => "22",
        };
        let map = match context.contents {
            FileContents::Numpy => "a._mmap",
            _ => "m",
        };
        let python =
            format!("{map}.madvise({advice}, {first} * mmap.PAGESIZE, {pages} * mmap.PAGESIZE)");
        lines.push(line("Python", python));
    }
    if context.is_in(Language::Rust) {
        let advice = format!("memmap2::Advice::{ask:?}");
        let rust = format!("map.advise_range({advice}, {first} * page, {pages} * page)?;");
        lines.push(line("Rust", rust));
    }
    if context.is_in(Language::Go) {
        let range = format!("b[{first}*page:{}*page]", first + pages);
        lines.push(line("Go", format!("unix.Madvise({range}, unix.MADV_{name})")));
    }
    if context.is_in(Language::Java) && context.program.is_some() {
        let java = format!("buffer.slice({first} * page, {pages} * page).load() touches each page");
        lines.push(line("Java", java));
    }
    if lines.is_empty() {
        lines.push(line("C", c));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::change::AdviceTarget;
    use super::super::program_facts::Library;
    use super::*;

    fn lines_of(
        hint: ReadHint,
        contents: FileContents,
        program: Option<(Option<Language>, &[Library])>,
    ) -> Vec<(String, String)> {
        let on = AdviceTarget { file: 0, name: "data".to_string(), numbers: vec![0] };
        let program =
            program.map(|(language, own)| ProgramFacts { language, libraries: own.to_vec() });
        let context = SourceContext { contents, program: program.as_ref(), devices: &[] };
        let lines = lines(&AdviceChange::Madvise(on, hint), context);
        lines.into_iter().map(|line| (line.place, line.text)).collect()
    }

    #[test]
    fn lines_are_of_what_opened_the_file() {
        use FileContents::{Bolt, Gguf, Leveldb, Lmdb, Lucene, Numpy, Other, Sqlite, Sst};
        use Language::{Go, Java, Python, Rust};
        type Row<'a> = (FileContents, Option<Language>, &'a [Library], &'a [(&'a str, &'a str)]);
        let rows: [Row; 16] = [
            (
                Numpy,
                Some(Python),
                &[],
                &[
                    ("NumPy", "a._mmap.madvise(mmap.MADV_RANDOM)"),
                    ("Python", "m.madvise(mmap.MADV_RANDOM)"),
                ],
            ),
            (
                Other,
                Some(Python),
                &[],
                &[
                    ("Python", "m.madvise(mmap.MADV_RANDOM)"),
                    ("NumPy", "a._mmap.madvise(mmap.MADV_RANDOM)  # a = numpy.memmap("),
                ],
            ),
            (
                Lmdb,
                Some(Python),
                &[],
                &[("LMDB", "lmdb.open(path, readahead=False)"), ("Python", "m.")],
            ),
            (Lmdb, Some(Go), &[], &[("LMDB", "env.Open(path, flags|lmdb.NoRead"), ("Go", "unix.")]),
            (Lmdb, Some(Java), &[], &[("LMDB", ".open(path, EnvFlags.MDB_"), ("Java", "Linker.")]),
            (Lmdb, None, &[], &[("LMDB", "MDB_NORDAHEAD as a flag of"), ("C", "madvise(addr")]),
            (
                Lucene,
                Some(Java),
                &[],
                &[
                    ("Java", "-Dorg.apache.lucene.store.defaultReadAdvice=RANDOM"),
                    ("Lucene", "directory.setReadAdvice("),
                    ("Java", "Linker.nativeLinker()"),
                ],
            ),
            (Other, Some(Java), &[], &[("Java", "Linker.nativeLinker()")]),
            (Other, Some(Go), &[], &[("Go", "unix.Madvise(b, unix.MADV_RANDOM)")]),
            (Other, Some(Go), &[Library::ExpMmap], &[("Go", "mmap.ReaderAt"), ("Go", "unix.")]),
            (Bolt, Some(Go), &[], &[("bbolt", "bbolt.Open() gives this"), ("Go", "unix.")]),
            (Other, Some(Rust), &[], &[("Rust", "map.advise(memmap2::Advice::Random)?;")]),
            (Sst, None, &[Library::RocksDb], &[("RocksDB", "options.allow_mmap"), ("C", "madv")]),
            (Leveldb, None, &[], &[("LevelDB", "it has no option"), ("C", "madvise(")]),
            (Sqlite, None, &[], &[("SQLite", "it has no setting"), ("C", "madvise(")]),
            (Gguf, None, &[], &[("llama.cpp", "--numa distribute"), ("C", "madvise(")]),
        ];
        for (contents, language, libraries, expected) in rows {
            let found = lines_of(ReadHint::Random, contents, Some((language, libraries)));
            let agrees = found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|((place, text), (own, begin))| place == own && text.starts_with(begin));
            assert!(agrees, "{contents:?} {language:?}: {found:?}");
        }
        let java = &lines_of(ReadHint::Sequential, Other, Some((Some(Java), &[])))[0];
        assert!(java.1.contains("byteSize(), 2)"), "{java:?}");
        // A job may be of a program in any language.
        let places = lines_of(ReadHint::Random, Other, None).into_iter().map(|line| line.0);
        assert_eq!(places.collect::<Vec<_>>(), ["Python", "Java", "Go", "Rust", "C"]);
    }

    #[test]
    fn a_part_is_given_in_pages() {
        let on = AdviceTarget { file: 0, name: "data".to_string(), numbers: vec![0] };
        let ask = AdviceChange::Ask(on, Madvise::WillNeed, vec![(8, 16)]);
        let text = |language| {
            let program = ProgramFacts { language, libraries: Vec::new() };
            let contents = FileContents::Other;
            let context = SourceContext { contents, program: Some(&program), devices: &[] };
            lines(&ask, context).into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        assert_eq!(text(None), ["madvise(address + 8 * page, 16 * page, MADV_WILLNEED);"]);
        assert_eq!(
            text(Some(Language::Go)),
            ["unix.Madvise(b[8*page:24*page], unix.MADV_WILLNEED)"]
        );
    }
}
