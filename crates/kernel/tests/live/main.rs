//! The crate on the running kernel.
//!
//! The binary has a `main` of its own because probes run it again as their child. A test that needs
//! root prints that it is skipped without it.

mod engine;
#[path = "../support/harness.rs"]
mod harness;
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
use std::process::ExitCode;

use filemap_kernel::journal::{Journal, Undo, recover};
use filemap_kernel::page_size;
use filemap_kernel::probe::main_if_child;
use filemap_kernel::storage::Storage;

use skip::skip;

/// Makes this binary change the machine and wait to be killed.
const HOLD: &str = "__hold";

const TESTS: &[harness::Test<Bench>] = harness::tests![
    probing::touching_mapped_pages_costs_nothing,
    probing::fault_around_follows_virtual_addresses,
    probing::reads_cold_file_only,
    probing::read_and_map_share_readahead,
    probing::each_piece_has_its_protection,
    probing::maps_each_segment_at_its_place,
    probing::calls_code,
    probing::refuses_impossible_steps,
    probing::shrinking_file_ends_probe,
    probing::killed_child_is_an_error,
    probing::failing_thread_ends_the_others,
    probing::maps_again_at_the_same_address,
    processes::processes_meet_protect_and_fork_in_rounds,
    processes::processes_have_own_page_tables,
    processes::rounds_last_as_long_as_asked,
    processes::forking_threads_wait_for_each_other,
    probing::keeps_pages_that_others_map,
    tracing::traces_decisions,
    observing::observes_job_in_comparable_form,
    tracing::overflowing_trace_is_an_error,
    machine::scratch_filesystem_has_own_readahead,
    machine::killed_process_is_recovered,
    machine::memory_cgroup_limits_child,
    engine::runs_jobs,
    engine::reads_sparse_file_without_storage,
    engine::other_readahead_size_gets_own_filesystem,
    engine::memory_cgroup_evicts,
    engine::refuses_what_this_kernel_lacks,
    engine::changing_file_size_ends_job,
];

fn main() -> ExitCode {
    main_if_child();
    if let [_, argument, directory] = &std::env::args().collect::<Vec<_>>()[..]
        && argument == HOLD
    {
        machine::hold(Path::new(directory));
    }
    harness::run(TESTS, Bench::new)
}

/// Undoes the changes of a killed run, by the journals of all its tests.
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

/// A directory with a journal, removed at the end, also on a panic.
struct Bench {
    journal: Journal,
    directory: PathBuf,
    root: bool,
}

impl Bench {
    fn new() -> Result<Self, String> {
        let directory = session::place("test", undone);
        let journal = Journal::open_in(&directory).unwrap();
        let bench = Bench { journal, directory, root: rustix::process::geteuid().is_root() };
        match Storage::find(&bench.directory).unwrap().unsuitable_reason() {
            Some(reason) => Err(format!("{} {reason}", bench.directory.display())),
            None => Ok(bench),
        }
    }

    /// A written file of `pages` pages, and the guard that removes it.
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
