//! A temporary directory for the output of a program that this command runs.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::governing::Error;
use crate::journal::start_ticks;
use crate::run_directory::run_directory;

/// Prefix of the directory names: `collecting-PID-STARTTICKS`.
const NAME_PREFIX: &str = "collecting-";

/// The current directory, for an exit that runs no destructors.
static CURRENT: Mutex<Option<PathBuf>> = Mutex::new(None);

/// A directory owned by this process. Removed on drop; if the process is killed, the next command
/// removes it ([`remove_stale_directories`]).
pub struct OutputDirectory {
    directory: PathBuf,
}

impl OutputDirectory {
    /// Creates the directory, with mode 0700.
    ///
    /// # Errors
    /// No run directory, or the directory cannot be created in it.
    pub fn create() -> Result<OutputDirectory, Error> {
        let own = std::process::id();
        let place = run_directory().ok_or(Error::NoRunDirectory)?;
        let path = place.join(directory_name(own, start_ticks(own).unwrap_or(0)));
        // Locked across both steps, so that a signal handler's thread sees either both or neither.
        let mut made = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|cause| Error::CreateDirectory { parent: place, cause })?;
        *made = Some(path.clone());
        Ok(OutputDirectory { directory: path })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        remove_output_directory();
    }
}

/// Removes the directory, before an exit that runs no destructors.
pub fn remove_output_directory() {
    let mut made = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = made.take() {
        // A program that is still running may create files concurrently, which fails the removal.
        let _ = (0..10).any(|_| fs::remove_dir_all(&path).is_ok());
    }
}

/// Removes the directories in `directory` whose owners no longer run.
pub fn remove_stale_directories(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(NAME_PREFIX)).and_then(|owner| {
                let (pid, ticks) = owner.split_once('-')?;
                Some((pid.parse().ok()?, ticks.parse().ok()?))
            });
        if owner.is_some_and(|(pid, ticks)| start_ticks(pid) != Some(ticks)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The name for process `pid`, started `ticks` clock ticks after boot: a reused PID has another
/// start time.
fn directory_name(pid: u32, ticks: u64) -> String {
    format!("{NAME_PREFIX}{pid}-{ticks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_directories_of_dead_processes() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: String| scratch.path().join(name);
        let own = std::process::id();
        let ticks = start_ticks(own).unwrap();
        fs::write(at("note".to_string()), "").unwrap();
        // u32::MAX is never a PID.
        for (pid, ticks) in [(own, ticks), (own, ticks + 1), (u32::MAX, 1)] {
            let directory = at(directory_name(pid, ticks));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("given"), "").unwrap();
        }
        remove_stale_directories(scratch.path());
        let left = fs::read_dir(scratch.path()).unwrap();
        let mut left: Vec<_> =
            left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, [directory_name(own, ticks), "note".to_string()]);
    }
}
