//! Threads that map, read and unmap a file each.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use filemap_core::units::PageCount;
use filemap_kernel::cgroup::{CgroupLimits, MemoryCgroup};
use filemap_kernel::probe::{Progress, Thrash, Thrashing};
use filemap_kernel::{Error, page_size};
use rustix::process::{Pid, Signal, kill_process};

use crate::Bench;
use crate::skip::skip;

/// The longest that a child may take to end, on a machine with other work.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// A thrash of so many files without blocks in `directory`, each of `pages` pages.
fn thrash(directory: &Path, files: usize, pages: u64) -> Thrash {
    let file = |number: usize| {
        let path = directory.join(number.to_string());
        File::create(&path).unwrap().set_len(pages * page_size()).unwrap();
        path
    };
    Thrash { files: (0..files).map(file).collect(), pages: PageCount(pages), ..Thrash::default() }
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn rounds(bench: &Bench) {
    let directory = tempfile::tempdir_in(&bench.directory).unwrap();
    let mut thrash = thrash(directory.path(), 3, 32);
    (thrash.writers, thrash.noise, thrash.stagger) = (1, 1, Duration::from_millis(30));
    let mut thrashing = Thrashing::start(&thrash).unwrap();
    let nothing = Progress { rounds: vec![0; 3], ..Progress::default() };
    assert_eq!(thrashing.progress().unwrap(), nothing, "nobody told it to begin");
    thrashing.begin();
    let start = Instant::now();
    let mut progress = nothing;
    while progress.rounds.iter().any(|&rounds| rounds < 10) || progress.changes < 2 {
        assert!(start.elapsed() < Duration::from_secs(60), "{progress:?}");
        thrashing.run_for(Duration::from_millis(100)).unwrap();
        progress = thrashing.progress().unwrap();
    }
    let (pages, rounds) = (progress.pages, progress.all_rounds());
    // The counts of a round that ends while they are read may come from both sides of its end.
    assert!(pages / 32 <= rounds + 6 && rounds <= pages / 32 + 3, "{progress:?}");
    let pid = thrashing.pid();
    drop(thrashing);
    assert!(!is_alive(pid));
}

pub(crate) fn limited(bench: &Bench) {
    if !bench.needs_root() {
        return;
    }
    let limits = CgroupLimits { max_bytes: Some(128 << 20), high_bytes: None };
    let cgroup = match MemoryCgroup::create(&bench.journal, limits) {
        Ok(cgroup) => cgroup,
        Err(error) => return skip(error),
    };
    let directory = tempfile::tempdir_in(&bench.directory).unwrap();
    let mut thrash = thrash(directory.path(), 64, (16 << 20) / page_size());
    thrash.writers = 2;
    let mut thrashing = Thrashing::start(&thrash).unwrap();
    cgroup.add(thrashing.pid()).unwrap();
    thrashing.begin();
    let start = Instant::now();
    let limit_pages = (128 << 20) / page_size();
    while thrashing.progress().unwrap().pages < 2 * limit_pages {
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", thrashing.progress());
        thrashing.run_for(Duration::from_millis(200)).unwrap();
    }
    // A kernel adds up to 64 pages for a thread before it compares the sum with the limit, and
    // takes them away again.
    let tried_pages = 64 * thrash.files.len() as u64;
    let usage = cgroup.usage_bytes().unwrap();
    assert!(usage <= (limit_pages + tried_pages) * page_size(), "{usage}");
    let (pid, path) = (thrashing.pid(), cgroup.path().to_owned());
    let ending = Instant::now();
    drop(thrashing);
    drop(cgroup);
    assert!(ending.elapsed() < ENDS_WITHIN, "{:?}", ending.elapsed());
    assert!(!is_alive(pid) && !path.exists());
}

pub(crate) fn killed(bench: &Bench) {
    let directory = tempfile::tempdir_in(&bench.directory).unwrap();
    let mut thrashing = Thrashing::start(&thrash(directory.path(), 4, 16)).unwrap();
    thrashing.begin();
    while thrashing.progress().unwrap().all_rounds() == 0 {
        thrashing.run_for(Duration::from_millis(10)).unwrap();
    }
    let pid = Pid::from_raw(thrashing.pid() as i32).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let error = thrashing.run_for(Duration::from_secs(60)).unwrap_err();
    assert!(matches!(error, Error::ChildKilled { signal: 9, .. }), "{error}");
    assert!(thrashing.progress().unwrap().all_rounds() > 0, "what it did is still known");
    // Nobody told this one to begin, and nobody will.
    let waiting = Thrashing::start(&thrash(directory.path(), 4, 16)).unwrap();
    let pid = waiting.pid();
    drop(waiting);
    assert!(!is_alive(pid));
}

pub(crate) fn refusals(bench: &Bench) {
    let directory = tempfile::tempdir_in(&bench.directory).unwrap();
    let good = thrash(directory.path(), 2, 8);
    let message = |thrash: Thrash| Thrashing::start(&thrash).unwrap_err().to_string();
    let none = message(Thrash { files: Vec::new(), ..good.clone() });
    assert!(none.contains("0 threads do nothing"), "{none}");
    let empty = message(Thrash { pages: PageCount(0), ..good.clone() });
    assert!(empty.contains("0 pages"), "{empty}");
    let short = message(Thrash { pages: PageCount(9), ..good.clone() });
    assert!(short.contains("has 8 pages, and 9 are to be mapped"), "{short}");
    let gone = message(Thrash { files: vec![directory.path().join("none")], ..good });
    assert!(gone.contains("cannot open"), "{gone}");
}
