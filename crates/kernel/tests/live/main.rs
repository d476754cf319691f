//! The crate on the kernel that runs these tests.
//!
//! The binary has a main of its own because probes run it again as their child. What needs root
//! is passed over, with a line that says so, where there is none.

mod engine;
mod folios;
#[path = "../support/in_turn.rs"]
mod in_turn;
mod machine;
mod observing;
mod probing;
mod processes;
#[path = "../support/session.rs"]
mod session;
#[path = "../support/skip.rs"]
mod skip;
mod tracing;

use std::fs;
use std::path::{Path, PathBuf};

use filemap_kernel::journal::{Journal, Undo, recover};
use filemap_kernel::page_size;
use filemap_kernel::probe::main_if_child;
use filemap_kernel::storage::Storage;

use skip::skip;

/// Has this binary change the machine and wait to be killed.
const HOLD: &str = "__hold";

/// Has this binary measure folios with changed settings until it is killed.
const FOLIOS: &str = "__folios";

const TESTS: [in_turn::Test<Bench>; 33] = [
    ("touching what is mapped costs nothing", probing::quiet),
    ("fault-around follows virtual addresses", probing::shifted),
    ("a cold file is read, a warm one is not", probing::cold_and_warm),
    ("read and map share readahead", probing::reads),
    ("pieces have their own protection", probing::pieces),
    ("segments are mapped each at its place", probing::segments),
    ("code is called", probing::calls),
    ("what cannot be run is refused", probing::refusals),
    ("a file that shrinks ends the probe", probing::shrinking),
    ("a child that is killed is an error", probing::killed),
    ("a thread that fails ends the others", probing::failing_thread),
    ("a mapping comes back at its address", probing::unmapped_room),
    ("processes meet, protect and fork in rounds", processes::rounds),
    ("processes have page tables of their own", processes::own_page_tables),
    ("a thread begins rounds for so long", processes::lasting),
    ("threads that fork wait for each other", processes::waits),
    ("pages that others map stay", probing::still_cached),
    ("decisions are traced", tracing::traced),
    ("a job is observed in the form that is compared", observing::observed),
    ("a trace that overflows is an error", tracing::overflow),
    ("a scratch filesystem reads ahead its own way", machine::scratch),
    ("a killed process leaves nothing for long", machine::killed_and_recovered),
    ("a memory cgroup limits its child", machine::memory_cgroup),
    ("a job runs on the running kernel", engine::jobs),
    ("a sparse file is read without storage", engine::sparse_jobs),
    ("another readahead size gets a filesystem of its own", engine::scratch_jobs),
    ("a job in a memory cgroup evicts", engine::limited_jobs),
    ("what is not this kernel's is refused", engine::impossible_jobs),
    ("a file that changes its size ends the job", engine::changing_files),
    ("pages of folios of each size are copied and reused", folios::sizes),
    ("sizes of folios that are not allowed are named", folios::not_allowed),
    ("folios that are not given are not timed", folios::not_given),
    ("a killed run leaves no sizes of folios changed", folios::killed),
];

fn main() {
    main_if_child();
    if let [_, argument, directory] = &std::env::args().collect::<Vec<_>>()[..]
        && argument == HOLD
    {
        machine::hold(Path::new(directory));
    }
    if let [_, argument, directory] = &std::env::args().collect::<Vec<_>>()[..]
        && argument == FOLIOS
    {
        folios::hold(Path::new(directory));
    }
    let bench = Bench::new();
    if let Some(reason) = Storage::of(&bench.directory).unwrap().unsuited() {
        return skip(format!("{} {reason}", bench.directory.display()));
    }
    in_turn::run("live", &TESTS, &bench);
}

/// Undoes what a run that was killed had changed, with the journals of all its tests.
fn undone(directory: &Path) {
    let journals = fs::read_dir(directory).into_iter().flatten().flatten();
    let journals = journals.map(|entry| entry.path()).filter(|path| path.is_dir());
    for journal in journals.chain([directory.to_path_buf()]) {
        match recover(&journal) {
            Ok(recovery) if recovery.failed.is_empty() => {}
            failed => println!("{}: {failed:?}", journal.display()),
        }
    }
}

/// A directory with a journal, removed in the end, also on a panic.
struct Bench {
    journal: Journal,
    directory: PathBuf,
    root: bool,
}

impl Bench {
    fn new() -> Self {
        let directory = session::place("test", undone);
        let journal = Journal::open_in(&directory).unwrap();
        Bench { journal, directory, root: rustix::process::geteuid().is_root() }
    }

    /// A written file of `pages` pages, and what removes it.
    pub(crate) fn file(&self, name: &str, pages: u64) -> (PathBuf, impl Drop + use<>) {
        let path = self.directory.join(name);
        let write = || {
            fs::write(&path, vec![7; (pages * page_size()) as usize]).unwrap();
            Ok(())
        };
        let ((), guard) = self.journal.change(Undo::RemoveFile(path.clone()), write).unwrap();
        (path, guard)
    }

    pub(crate) fn needs_root(&self) -> bool {
        if !self.root {
            skip("it needs root");
        }
        self.root
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
