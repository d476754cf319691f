//! What to write into a program so that it does what was tried.

use filemap_core::address::vma::ReadHint;

use super::change::{Change, hint_name};
use super::contents::Contents;

/// Where something is written, and what.
pub type Written = (&'static str, String);

/// What to write for `change`, of a file with these `contents`.
pub fn lines(change: &Change, contents: Contents) -> Vec<Written> {
    match change {
        Change::Madvise(_, hint) => madvise(*hint, contents),
        Change::Part(_, hint, part) => of_part(*hint, *part, contents),
        Change::WillNeed(_, parts) => will_need(parts, contents),
        Change::Populate(_, parts) => populate(parts),
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
        Change::Governor | Change::Series(_) => Vec::new(),
    }
}

fn madvise(hint: ReadHint, contents: Contents) -> Vec<Written> {
    let name = hint_name(hint);
    let numpy = format!("array._mmap.madvise(mmap.MADV_{name})  # of numpy.load(mmap_mode='r')");
    let python = match contents {
        Contents::Numpy => numpy,
        _ => format!("mapping.madvise(mmap.MADV_{name})"),
    };
    let mut lines = Vec::new();
    match (contents, hint) {
        (Contents::Lmdb, ReadHint::Random) => lines.push((
            "LMDB",
            "MDB_NORDAHEAD as a flag of mdb_env_open(), or lmdb.open(path, readahead=False) in \
             Python: the same advice"
                .to_string(),
        )),
        (Contents::Lmdb, ReadHint::Normal) => lines.push((
            "LMDB",
            "mdb_env_open() without MDB_NORDAHEAD, or lmdb.open(path, readahead=True) in Python"
                .to_string(),
        )),
        (Contents::Sqlite, _) => lines.push((
            "SQLite",
            "it has no setting for advice. PRAGMA mmap_size=0 makes it read pages with pread(2), \
             which was not tried here: filemap record and advise with it tell"
                .to_string(),
        )),
        _ => {}
    }
    lines.extend([
        ("C", format!("madvise(address, length, MADV_{name});")),
        ("Python", python),
        ("Rust", format!("mapping.advise(memmap2::Advice::{})?;", rust(hint))),
    ]);
    lines
}

fn of_part(hint: ReadHint, (first, pages): (u64, u64), contents: Contents) -> Vec<Written> {
    let name = hint_name(hint);
    let mapping = if contents == Contents::Numpy { "array._mmap" } else { "mapping" };
    vec![
        ("C", format!("madvise(address + {first} * page, {pages} * page, MADV_{name});")),
        (
            "Python",
            format!(
                "{mapping}.madvise(mmap.MADV_{name}, {first} * mmap.PAGESIZE, {pages} * \
                 mmap.PAGESIZE)"
            ),
        ),
        (
            "Rust",
            format!(
                "mapping.advise_range(memmap2::Advice::{}, {first} * page, {pages} * page)?;",
                rust(hint)
            ),
        ),
    ]
}

fn will_need(parts: &[(u64, u64)], contents: Contents) -> Vec<Written> {
    // All of them are ranges of pages that were counted before.
    let [(first, pages)] = parts else {
        let all = "madvise(MADV_WILLNEED) of the used part of each mapping, once it is made";
        return vec![("C", all.to_string())];
    };
    let mapping = if contents == Contents::Numpy { "array._mmap" } else { "mapping" };
    vec![
        ("C", format!("madvise(address + {first} * page, {pages} * page, MADV_WILLNEED);")),
        (
            "Python",
            format!(
                "{mapping}.madvise(mmap.MADV_WILLNEED, {first} * mmap.PAGESIZE, {pages} * \
                 mmap.PAGESIZE)"
            ),
        ),
        (
            "Rust",
            format!(
                "mapping.advise_range(memmap2::Advice::WillNeed, {first} * page, {pages} * page)?;"
            ),
        ),
    ]
}

fn populate(parts: &[(u64, u64)]) -> Vec<Written> {
    // All of them are ranges of pages that were counted before.
    let [(first, pages)] = parts else {
        let all = "madvise(MADV_POPULATE_READ) of the used part of each mapping, once it is made";
        return vec![("C", all.to_string())];
    };
    vec![
        ("C", format!("madvise(address + {first} * page, {pages} * page, MADV_POPULATE_READ);")),
        (
            "Rust",
            format!(
                "mapping.advise_range(memmap2::Advice::PopulateRead, {first} * page, {pages} * \
                 page)?;"
            ),
        ),
    ]
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
