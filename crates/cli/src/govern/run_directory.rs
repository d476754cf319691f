//! The directory in which governed processes have their statistics while they run.

use std::fs::{self, DirBuilder, File};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use filemap_control::layout::{HEADER_WORDS, header};
use filemap_control::start_ticks;
use rustix::process::geteuid;

/// Its name in `XDG_RUNTIME_DIR`.
const NAME: &str = "filemap-govern";

/// Where shared memory has names, and this directory too where there is no `XDG_RUNTIME_DIR`.
const SHARED_MEMORY: &str = "/dev/shm";

/// How the names of directories begin in which a command collects the statistics of a program.
const COLLECTING: &str = "collecting-";

/// The directory of this user, made if it is not there; `None` where there is no place for it, or
/// where what has its name is not this user's alone.
pub fn run_directory() -> Option<PathBuf> {
    let path = place(geteuid().as_raw());
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => None,
        _ => is_own(&path).then_some(path),
    }
}

/// Where the directory of `user` is. That of another user can only be guessed.
pub fn place(user: u32) -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = runtime.filter(|path| path.is_absolute() && path.is_dir());
    match own.filter(|_| user == geteuid().as_raw()) {
        Some(runtime) => runtime.join(NAME),
        None => Path::new(SHARED_MEMORY).join(format!("{NAME}-{user}")),
    }
}

/// Whether `path` is a directory of this user, and no link, into which nobody else can look.
fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| {
        data.is_dir() && data.uid() == geteuid().as_raw() && data.mode() & 0o077 == 0
    })
}

/// Removes from `directory` what processes have left that are gone.
pub fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Some(name) = entry.file_name().to_str().map(str::to_string) else { continue };
        if let Some(owner) = name.strip_prefix(COLLECTING) {
            let owner = owner
                .split_once('-')
                .and_then(|(pid, ticks)| Some((pid.parse().ok()?, ticks.parse().ok()?)));
            if owner.is_some_and(|(pid, ticks)| started(pid) != Some(ticks)) {
                let _ = fs::remove_dir_all(&path);
            }
        } else if process_of(&name).is_some_and(|(pid, _)| is_left(&path, pid)) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The process whose statistics are in the file `name`: its number, and which of its images.
pub fn process_of(name: &str) -> Option<(u32, u32)> {
    let (pid, image) = name.split_once('-')?;
    Some((pid.parse().ok()?, image.parse().ok()?))
}

/// When the process `pid` was started, in clock ticks since boot, if it is there.
pub fn started(pid: u32) -> Option<u64> {
    start_ticks(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Whether the statistics at `path` are those of a process `pid` that is gone.
fn is_left(path: &Path, pid: u32) -> bool {
    let Some(now) = started(pid) else { return true };
    // One that has no start yet is being made.
    start_of(path).is_some_and(|then| then != 0 && then != now)
}

fn start_of(path: &Path) -> Option<u64> {
    let mut bytes = [0; HEADER_WORDS * 8];
    File::open(path).ok()?.read_exact(&mut bytes).ok()?;
    let word = bytes.chunks_exact(8).nth(header::START_TICKS)?;
    Some(u64::from_ne_bytes(word.try_into().ok()?))
}

/// The name of the directory in which the process `pid`, started at `ticks`, collects statistics.
pub fn collecting(pid: u32, ticks: u64) -> String {
    format!("{COLLECTING}{pid}-{ticks}")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_the_dead_leave_is_swept() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: String| scratch.path().join(name);
        let own = std::process::id();
        let ticks = started(own).unwrap();
        let statistics = |name: String, ticks: u64| {
            let mut bytes = vec![0u8; HEADER_WORDS * 8];
            bytes[header::START_TICKS * 8..][..8].copy_from_slice(&ticks.to_ne_bytes());
            fs::write(at(name), bytes).unwrap();
        };
        // No process has this number.
        let gone = u32::MAX;
        statistics(format!("{own}-0"), ticks);
        statistics(format!("{own}-1"), ticks + 1);
        statistics(format!("{own}-2"), 0);
        statistics(format!("{gone}-0"), 5);
        statistics("note".to_string(), 5);
        for name in [collecting(own, ticks), collecting(own, ticks + 1), collecting(gone, 1)] {
            fs::create_dir(at(name.clone())).unwrap();
            fs::write(at(name).join("1-0"), "").unwrap();
        }
        sweep(scratch.path());
        let left = fs::read_dir(scratch.path()).unwrap();
        let mut left: Vec<_> =
            left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let mut expected =
            [format!("{own}-0"), format!("{own}-2"), collecting(own, ticks), "note".to_string()];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_directory_of_others_is_not_used() {
        let scratch = tempfile::tempdir().unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(is_own(scratch.path()));
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(scratch.path(), &link).unwrap();
        assert!(!is_own(&link) && !is_own(Path::new("/tmp")) && !is_own(Path::new("/nowhere")));
    }
}
