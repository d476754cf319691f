//! Programs of several processes, on the running kernel.

use filemap_job::program::JobSpec;
use filemap_job::{Engine, Run};
use filemap_kernel::engine::HostKernel;
use filemap_kernel::storage::Storage;

use crate::Bench;
use crate::skip::skip;

/// A run of a program with the filesystem and readahead of the tests' directory.
fn run(bench: &Bench, text: &str) -> Option<Run> {
    let place = Storage::find(&bench.directory).unwrap();
    let mut spec = JobSpec::from_toml(text).unwrap();
    spec.on = Some("kernel".into());
    spec.read_ahead_kb = place.read_ahead_kb;
    let is_known = place.filesystem.parse::<filemap_job::Filesystem>().is_ok();
    spec.fs = Some(if is_known { place.filesystem } else { "base-pages".into() });
    let program = spec.validate(None).unwrap();
    let kernel = HostKernel::in_directory(bench.journal.clone(), bench.directory.clone());
    match kernel.run(&program) {
        Ok(ran) => ran.runs.into_iter().next(),
        Err(error) if error.cannot_run_here() => {
            skip(error);
            None
        }
        Err(error) => panic!("{text}: {error}"),
    }
}

const FILES: &str = "file = [{ name = 'f', size = '1m' }]\n\
                     open = [{ name = 'o', file = 'f' }]\n\
                     mapping = [{ name = 'm', open = 'o' }]\n";

/// Two processes of two threads each, which meet, protect, fork, and repeat.
pub(crate) fn processes_meet_protect_and_fork_in_rounds(bench: &Bench) {
    let thread = |name: &str, process: &str, page: u64| {
        format!(
            "[[thread]]\nname = '{name}'\nprocess = '{process}'\nrepeat = 3\n\
             phase = [{{ barrier = 'b' }}, {{ mapping = 'm', pages = [{page}] }}, \
             {{ mapping = 'm', mprotect = 'write' }}, {{ mapping = 'm', mprotect = 'as-mapped' }}, \
             {{ fork = true }}, {{ sleep_ns = 1000 }}]\n"
        )
    };
    let threads = [("a", "main", 0), ("b", "main", 64), ("c", "other", 0), ("d", "other", 64)];
    let threads = threads.map(|(name, process, page)| thread(name, process, page));
    let Some(run) = run(bench, &format!("{FILES}{}", threads.concat())) else { return };
    assert_eq!(run.counters.rounds, Some(12), "{run:?}");
    assert_eq!(run.counters.accesses, Some(12), "{run:?}");
    let faults = |counters: &filemap_job::Counters| {
        counters.minor_faults.unwrap() + counters.major_faults.unwrap()
    };
    for thread in &run.threads {
        assert_eq!((thread.counters.rounds, faults(&thread.counters)), (Some(3), 1), "{run:?}");
    }
}

/// A page that both processes touch is a fault in each: they share no page tables.
pub(crate) fn processes_have_own_page_tables(bench: &Bench) {
    let threads = "[[thread]]\nname = 'a'\nphase = [{ mapping = 'm', pages = [0, 0] }]\n\
                   [[thread]]\nname = 'b'\nprocess = 'other'\n\
                   phase = [{ mapping = 'm', pages = [0], \
                   after = [{ thread = 'a', phase = 1 }] }]\n";
    let Some(run) = run(bench, &format!("{FILES}{threads}")) else { return };
    let counters = run.threads.iter().map(|thread| thread.counters);
    let faults: Vec<_> =
        counters.map(|counter| (counter.minor_faults, counter.major_faults)).collect();
    assert_eq!(faults, [(Some(0), Some(1)), (Some(1), Some(0))], "{run:?}");
}

/// Threads start rounds for this long.
pub(crate) fn rounds_last_as_long_as_asked(bench: &Bench) {
    let thread = "[[thread]]\nprocess = 'other'\nfor = '50ms'\n\
                  phase = [{ mapping = 'm', pages = [0] }, { sleep_ns = 1000000 }]\n";
    let Some(run) = run(bench, &format!("{FILES}{thread}")) else { return };
    let rounds = run.counters.rounds.unwrap();
    // A thread notices at the next tick that its time is over, at most 10 ms later.
    assert!((1..=60).contains(&rounds), "{run:?}");
    assert!(run.elapsed_ns >= Some(50_000_000), "{run:?}");
}

/// Threads that fork their process wait for each other, and the waits are reported.
pub(crate) fn forking_threads_wait_for_each_other(bench: &Bench) {
    let thread = |name: &str| {
        format!("[[thread]]\nname = '{name}'\nrepeat = 1000\nphase = [{{ fork = true }}]\n")
    };
    let Some(run) = run(bench, &format!("{FILES}{}", ["a", "b", "c"].map(thread).concat())) else {
        return;
    };
    let Some(waits) = run.counters.mmap_lock_waits else {
        return skip("this kernel does not tell of mmap_lock");
    };
    assert!(waits > 0, "{run:?}");
    let count = run.waits.iter().map(|wait| wait.count).sum::<u64>();
    assert_eq!(count, waits, "{run:?}");
    assert!(run.waits.iter().all(|wait| wait.cause == "mmap_lock to write"), "{run:?}");
}
