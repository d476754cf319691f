//! The files that a program maps, seen from outside while it runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use filemap_attach::process::{maps, with_children};

/// Interval between two looks at the mappings.
const INTERVAL: Duration = Duration::from_millis(5);

/// Minimum size of a file whose pages matter to a run.
const MIN_BYTES: u64 = 1 << 20;

const EXECUTABLE: u32 = libc::PROT_EXEC.cast_unsigned();

/// Runs `run`, which starts processes. Returns its result and the files of 1 MiB or more that these
/// have mapped meanwhile, without programs and libraries. A mapping of some milliseconds is missed.
pub fn watch_mapped_files<T>(run: impl FnOnce() -> T) -> (T, BTreeSet<PathBuf>) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut files = BTreeSet::new();
            while !is_over.load(Ordering::Acquire) {
                let own = std::process::id();
                let others = with_children(&[own]).into_iter().filter(|pid| *pid != own);
                others.for_each(|pid| add_mapped_files(pid, &mut files));
                thread::sleep(INTERVAL);
            }
            files
        });
        let result = run();
        is_over.store(true, Ordering::Release);
        let files = watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (result, files.into_iter().filter(|path| is_large_file(path)).collect())
    })
}

/// The files of 1 MiB or more that a command line names.
pub fn named_files(words: &[OsString]) -> Vec<PathBuf> {
    let words = words.iter().skip(1).filter_map(|word| std::path::absolute(word).ok());
    words.filter(|path| is_large_file(path)).collect()
}

fn add_mapped_files(pid: u32, files: &mut BTreeSet<PathBuf>) {
    // It may exit at any time.
    let maps = maps(pid).unwrap_or_default();
    let code: BTreeSet<_> = maps
        .iter()
        .filter(|map| map.protection & EXECUTABLE != 0)
        .filter_map(|map| map.file.as_ref())
        .map(|file| file.id)
        .collect();
    let data = maps.iter().filter_map(|map| map.file.as_ref());
    for file in data.filter(|file| !code.contains(&file.id)) {
        if !files.contains(&file.path) {
            files.insert(file.path.clone());
        }
    }
}

fn is_large_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() >= MIN_BYTES)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn sees_what_a_child_maps_before_it_touches_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        fs::write(&path, vec![1; MIN_BYTES as usize]).unwrap();
        let program = "import mmap, sys, time\nfile = open(sys.argv[1], 'rb')\n\
                       map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\ntime.sleep(0.2)";
        let child = || Command::new("python3").args(["-c", program]).arg(&path).status();
        let (status, files) = watch_mapped_files(child);
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no Python");
            return;
        }
        assert!(files.contains(&path), "{files:?}");
        let words = ["program", "x", path.to_str().unwrap()].map(OsString::from);
        assert_eq!(named_files(&words), [path]);
    }
}
