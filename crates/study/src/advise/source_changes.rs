//! Code and settings that implement a change.

use filemap_core::address::vma::ReadHint;
use filemap_job::program::Madvise;
use serde::{Deserialize, Serialize};

use super::change::{AdviceChange, ask_name, hint_name};
use super::contents::FileContents;

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

/// Lines that implement `change` for a file with these `contents`.
pub fn lines(change: &AdviceChange, contents: FileContents) -> Vec<SourceLine> {
    match change {
        AdviceChange::Madvise(_, hint) => madvise(*hint, contents),
        AdviceChange::Ask(_, ask, parts) => prefetch_lines(*ask, parts, contents),
        AdviceChange::Fadvise(_, hint) => {
            let name = hint_name(*hint);
            vec![
                line("C", format!("posix_fadvise(fd, 0, 0, POSIX_FADV_{name});")),
                line("Python", format!("os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_{name})")),
                line("Rust", format!("rustix::fs::fadvise(&file, 0, None, Advice::{hint:?})?;")),
            ]
        }
        AdviceChange::OmitPrefetch(_) => vec![line(
            "C",
            "mmap() without MAP_POPULATE and MAP_LOCKED; no madvise() with MADV_POPULATE_READ or \
             MADV_WILLNEED, no posix_fadvise() with POSIX_FADV_WILLNEED, and no readahead()",
        )],
        AdviceChange::ReadAhead(kb) => vec![line(
            "As root",
            format!(
                "echo {kb} > /sys/class/bdi/MAJOR:MINOR/read_ahead_kb, with the numbers that \
                 mountpoint -d prints for the filesystem; files that are open keep the old size, \
                 and every program on the device gets the new one"
            ),
        )],
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

/// The database's own setting for the advice, if it has one.
fn database_line(hint: ReadHint, contents: FileContents) -> Option<SourceLine> {
    match (contents, hint) {
        (FileContents::Lmdb, ReadHint::Random) => Some(line(
            "LMDB",
            "MDB_NORDAHEAD as a flag of mdb_env_open(), or lmdb.open(path, readahead=False) in \
             Python: the same advice",
        )),
        (FileContents::Lmdb, ReadHint::Normal) => Some(line(
            "LMDB",
            "mdb_env_open() without MDB_NORDAHEAD, or lmdb.open(path, readahead=True) in Python",
        )),
        (FileContents::Sqlite, _) => Some(line(
            "SQLite",
            "it has no setting for advice. PRAGMA mmap_size=0 makes it read pages with pread(2), \
             which was not tried here; filemap record and filemap advise with it would tell",
        )),
        _ => None,
    }
}

/// Python expression of the mapping, and a comment on it.
fn mapping(contents: FileContents) -> (&'static str, &'static str) {
    match contents {
        FileContents::Numpy => ("array._mmap", "  # of numpy.load(mmap_mode='r')"),
        _ => ("mapping", ""),
    }
}

fn madvise(hint: ReadHint, contents: FileContents) -> Vec<SourceLine> {
    let (name, (mapping, note)) = (hint_name(hint), mapping(contents));
    let calls = [
        line("C", format!("madvise(address, length, MADV_{name});")),
        line("Python", format!("{mapping}.madvise(mmap.MADV_{name}){note}")),
        line("Rust", format!("mapping.advise(memmap2::Advice::{hint:?})?;")),
    ];
    database_line(hint, contents).into_iter().chain(calls).collect()
}

fn prefetch_lines(ask: Madvise, parts: &[(u64, u64)], contents: FileContents) -> Vec<SourceLine> {
    let (name, (mapping, _)) = (ask_name(ask), mapping(contents));
    // Several parts: the program loops over ranges it has computed.
    let [(first, pages)] = parts else {
        let all = format!("madvise(MADV_{name}) of the used part of each mapping, once it is made");
        return vec![line("C", all)];
    };
    let python = format!(
        "{mapping}.madvise(mmap.MADV_{name}, {first} * mmap.PAGESIZE, {pages} * mmap.PAGESIZE)"
    );
    let rust =
        format!("mapping.advise_range(memmap2::Advice::{ask:?}, {first} * page, {pages} * page)?;");
    let c = format!("madvise(address + {first} * page, {pages} * page, MADV_{name});");
    // Python has no constant for MADV_POPULATE_READ.
    let python = (ask == Madvise::WillNeed).then(|| line("Python", python));
    [line("C", c)].into_iter().chain(python).chain([line("Rust", rust)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::change::AdviceTarget;
    use super::*;

    #[test]
    fn a_database_has_its_own_setting_first() {
        let on = AdviceTarget { file: 0, name: "data.mdb".to_string(), numbers: vec![0] };
        let random = AdviceChange::Madvise(on.clone(), ReadHint::Random);
        let lmdb = lines(&random, FileContents::Lmdb);
        assert!(lmdb[0].text.contains("MDB_NORDAHEAD") && lmdb[0].text.contains("readahead=False"));
        let other = lines(&random, FileContents::Other);
        let expected = [
            ("C", "madvise(address, length, MADV_RANDOM);"),
            ("Python", "mapping.madvise(mmap.MADV_RANDOM)"),
            ("Rust", "mapping.advise(memmap2::Advice::Random)?;"),
        ];
        assert_eq!(other, expected.map(|(place, text)| line(place, text)));
        let sqlite = lines(&AdviceChange::Madvise(on, ReadHint::Sequential), FileContents::Sqlite);
        assert!(sqlite[0].text.contains("mmap_size=0"), "{sqlite:?}");
    }
}
