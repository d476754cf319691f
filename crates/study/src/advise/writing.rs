//! What to write into a program so that it does what was tried.

use filemap_core::address::vma::ReadHint;

use super::change::{Ask, Change, hint_name};
use super::contents::Contents;

/// Where something is written, and what.
pub type Written = (&'static str, String);

/// What to write for `change`, of a file with these `contents`.
pub fn lines(change: &Change, contents: Contents) -> Vec<Written> {
    match change {
        Change::Madvise(_, hint) => madvise(*hint, contents),
        Change::Ask(_, ask, parts) => asked(*ask, parts, contents),
        Change::Fadvise(_, hint) => {
            let name = hint_name(*hint);
            vec![
                ("C", format!("posix_fadvise(fd, 0, 0, POSIX_FADV_{name});")),
                ("Python", format!("os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_{name})")),
                ("Rust", format!("rustix::fs::fadvise(&file, 0, None, Advice::{})?;", rust(*hint))),
            ]
        }
        Change::ReadAhead(kb) => vec![(
            "As root",
            format!(
                "echo {kb} > /sys/class/bdi/MAJOR:MINOR/read_ahead_kb, with the numbers that \
                 mountpoint -d prints for the filesystem; files that are open keep the old size, \
                 and every program on the device gets the new one"
            ),
        )],
        Change::FaultAround(bytes) => vec![(
            "As root",
            format!(
                "echo {bytes} > /sys/kernel/debug/fault_around_bytes; every program on the \
                 machine gets it"
            ),
        )],
        Change::Governor => Vec::new(),
    }
}

/// What databases call the same advice, where they have a setting for it.
fn of_database(hint: ReadHint, contents: Contents) -> Option<Written> {
    match (contents, hint) {
        (Contents::Lmdb, ReadHint::Random) => Some((
            "LMDB",
            "MDB_NORDAHEAD as a flag of mdb_env_open(), or lmdb.open(path, readahead=False) in \
             Python: the same advice"
                .to_string(),
        )),
        (Contents::Lmdb, ReadHint::Normal) => Some((
            "LMDB",
            "mdb_env_open() without MDB_NORDAHEAD, or lmdb.open(path, readahead=True) in Python"
                .to_string(),
        )),
        (Contents::Sqlite, _) => Some((
            "SQLite",
            "it has no setting for advice. PRAGMA mmap_size=0 makes it read pages with pread(2), \
             which was not tried here: filemap record and advise with it tell"
                .to_string(),
        )),
        _ => None,
    }
}

fn madvise(hint: ReadHint, contents: Contents) -> Vec<Written> {
    let name = hint_name(hint);
    let of_numpy =
        if contents == Contents::Numpy { "  # of numpy.load(mmap_mode='r')" } else { "" };
    let mapping = mapping(contents);
    let calls = [
        ("C", format!("madvise(address, length, MADV_{name});")),
        ("Python", format!("{mapping}.madvise(mmap.MADV_{name}){of_numpy}")),
        ("Rust", format!("mapping.advise(memmap2::Advice::{})?;", rust(hint))),
    ];
    of_database(hint, contents).into_iter().chain(calls).collect()
}

/// What a mapping is in Python.
fn mapping(contents: Contents) -> &'static str {
    if contents == Contents::Numpy { "array._mmap" } else { "mapping" }
}

fn of_part(name: &str, rust: &str, (first, pages): (u64, u64), contents: Contents) -> Vec<Written> {
    let (mapping, size) = (mapping(contents), "mmap.PAGESIZE");
    vec![
        ("C", format!("madvise(address + {first} * page, {pages} * page, MADV_{name});")),
        (
            "Python",
            format!("{mapping}.madvise(mmap.MADV_{name}, {first} * {size}, {pages} * {size})"),
        ),
        (
            "Rust",
            format!(
                "mapping.advise_range(memmap2::Advice::{rust}, {first} * page, {pages} * page)?;"
            ),
        ),
    ]
}

fn asked(ask: Ask, parts: &[(u64, u64)], contents: Contents) -> Vec<Written> {
    let name = ask.name();
    // All of them are ranges of pages that were counted before.
    let [part] = parts else {
        let all = format!("madvise(MADV_{name}) of the used part of each mapping, once it is made");
        return vec![("C", all)];
    };
    match ask {
        Ask::WillNeed => of_part(name, "WillNeed", *part, contents),
        Ask::PopulateRead => {
            let mut lines = of_part(name, "PopulateRead", *part, contents);
            lines.retain(|(place, _)| *place != "Python");
            lines
        }
    }
}

/// The name in Rust libraries.
fn rust(hint: ReadHint) -> &'static str {
    match hint {
        ReadHint::Normal => "Normal",
        ReadHint::Random => "Random",
        ReadHint::Sequential => "Sequential",
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::Target;
    use super::*;

    #[test]
    fn a_database_has_its_own_setting_first() {
        let on = Target { file: 0, name: "data.mdb".to_string(), numbers: vec![0] };
        let random = Change::Madvise(on.clone(), ReadHint::Random);
        let lmdb = lines(&random, Contents::Lmdb);
        assert!(lmdb[0].1.contains("MDB_NORDAHEAD") && lmdb[0].1.contains("readahead=False"));
        let other = lines(&random, Contents::Other);
        let expected = [
            ("C", "madvise(address, length, MADV_RANDOM);"),
            ("Python", "mapping.madvise(mmap.MADV_RANDOM)"),
            ("Rust", "mapping.advise(memmap2::Advice::Random)?;"),
        ];
        assert_eq!(other, expected.map(|(place, text)| (place, text.to_string())));
        let sqlite = lines(&Change::Madvise(on, ReadHint::Sequential), Contents::Sqlite);
        assert!(sqlite[0].1.contains("mmap_size=0"), "{sqlite:?}");
    }
}
