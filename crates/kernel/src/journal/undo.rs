//! How each change of the machine is undone.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::mount::{UnmountFlags, unmount};

use crate::procstat::selected_word;
use crate::{Error, cold_cache, loop_control};

/// Maximum number of attempts of a step that others obstruct, and the pause between them.
const MAX_ATTEMPTS: u32 = 100;
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Number of attempts after which a busy mount is detached lazily.
const MAX_UNMOUNT_ATTEMPTS: u32 = 20;

/// One undo step. A step may run twice, or although its change was never made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Unmounts the filesystem at this path.
    Unmount(PathBuf),
    /// Removes a file.
    RemoveFile(PathBuf),
    /// Removes an empty directory.
    RemoveDir(PathBuf),
    /// Detaches a loop device, if it is still backed by that file.
    DetachLoop {
        /// The device.
        device: PathBuf,
        /// Its backing file.
        backing: PathBuf,
    },
    /// Moves a memory cgroup's processes to its parent and removes it.
    RemoveCgroup(PathBuf),
    /// Stops and removes a trace instance.
    RemoveTraceInstance(PathBuf),
    /// Writes a value back into a file of sysfs or procfs, unless somebody else has changed it
    /// since.
    Restore {
        /// The file.
        path: PathBuf,
        /// What it held.
        value: String,
        /// What the run sets.
        set: String,
    },
    /// Restores the readahead size of a loop device while that file backs it; afterwards the device
    /// may belong to somebody else. Until then it is the run's own, and nobody else changes it.
    RestoreReadAhead {
        /// The device.
        device: PathBuf,
        /// Its backing file.
        backing: PathBuf,
        /// The previous value.
        value: String,
    },
    /// Drops the pages of a file from the page cache, which had none before.
    DropPages(PathBuf),
}

impl Undo {
    /// Runs the step. Having nothing left to undo is not an error.
    pub fn run(&self) -> Result<UndoResult, Error> {
        retry_while_busy(self, Undo::attempt)
    }

    /// Tries to run the step. `None`: its subject is in use, and another attempt is worthwhile.
    pub(crate) fn attempt(&self, attempt: u32) -> Result<Option<UndoResult>, Error> {
        let is_gone = match self {
            Undo::Restore { path, value, set } => {
                return restore_setting(path, value, set).map(Some);
            }
            Undo::Unmount(path) => try_unmount(path, attempt)?,
            Undo::RemoveFile(path) => ok_if_missing("remove", path, fs::remove_file(path))?,
            Undo::RemoveDir(path) => remove_directory(path)?,
            Undo::DetachLoop { device, backing } => loop_control::detach(device, backing)?,
            Undo::RemoveCgroup(path) => {
                empty_cgroup(path);
                remove_directory(path)?
            }
            Undo::RemoveTraceInstance(path) => {
                ok_if_missing("stop the trace of", path, fs::write(path.join("tracing_on"), "0"))?;
                remove_directory(path)?
            }
            Undo::RestoreReadAhead { device, backing, value } => {
                let path = loop_control::queue_setting(device, "read_ahead_kb");
                loop_control::backing(device).as_ref() != Some(backing)
                    || ok_if_missing("restore", &path, fs::write(&path, value))?
            }
            Undo::DropPages(path) => {
                cold_cache::try_to_drop(path);
                true
            }
        };
        Ok(is_gone.then_some(UndoResult::Gone))
    }

    /// The message for a setting that was not restored.
    pub(super) fn unrestored(&self, undone: &UndoResult) -> Option<String> {
        let (Undo::Restore { path, value, set }, UndoResult::Kept { found }) = (self, undone)
        else {
            return None;
        };
        Some(format!(
            "'{}' is left at '{found}', which somebody else has set: a run had changed it from \
             '{}' to '{}'",
            path.display(),
            setting_value(value),
            setting_value(set),
        ))
    }

    /// Whether a later process runs the step if this one could not. By then other programs may have
    /// begun to use the pages of a file.
    pub(crate) fn outlives_process(&self) -> bool {
        !matches!(self, Undo::DropPages(_))
    }

    /// Whether the step removes the place that `other` refers to.
    pub(crate) fn takes_place_of(&self, other: &Undo) -> bool {
        let (Undo::Unmount(place) | Undo::RemoveDir(place)) = self else { return false };
        match other {
            Undo::Unmount(path)
            | Undo::RemoveFile(path)
            | Undo::RemoveDir(path)
            | Undo::RemoveCgroup(path)
            | Undo::RemoveTraceInstance(path)
            | Undo::DropPages(path)
            | Undo::Restore { path, .. } => path.starts_with(place),
            Undo::DetachLoop { .. } | Undo::RestoreReadAhead { .. } => false,
        }
    }
}

/// Retries `step` until it returns a value.
///
/// # Errors
/// Errors of `step`; [`Error::Os`] after the last attempt.
pub(crate) fn retry_while_busy<T>(
    undo: &Undo,
    mut step: impl FnMut(&Undo, u32) -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    for attempt in 0..MAX_ATTEMPTS {
        if let Some(value) = step(undo, attempt)? {
            return Ok(value);
        }
        sleep(RETRY_INTERVAL);
    }
    let busy = io::Error::from(io::ErrorKind::ResourceBusy);
    match undo {
        Undo::DetachLoop { device, .. } => Err(Error::os("detach", device, busy)),
        Undo::Unmount(path) => Err(Error::os("unmount", path, busy)),
        Undo::RemoveFile(path)
        | Undo::RemoveDir(path)
        | Undo::RemoveCgroup(path)
        | Undo::RemoveTraceInstance(path) => Err(Error::os("remove", path, busy)),
        Undo::Restore { path, .. }
        | Undo::RestoreReadAhead { device: path, .. }
        | Undo::DropPages(path) => Err(Error::os("restore", path, busy)),
    }
}

/// Treats "not found" as success.
fn ok_if_missing(action: &'static str, path: &Path, result: io::Result<()>) -> Result<bool, Error> {
    match result {
        Err(source) if !is_missing(path) => Err(Error::os(action, path, source)),
        _ => Ok(true),
    }
}

/// Whether `path` is a mount point.
fn is_mounted(path: &Path) -> bool {
    let stat = statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::empty());
    stat.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Removes a directory. Returns false while it is busy.
fn remove_directory(path: &Path) -> Result<bool, Error> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(false),
        result => ok_if_missing("remove", path, result),
    }
}

/// Moves the remaining processes of a cgroup to its parent.
fn empty_cgroup(path: &Path) {
    let procs = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let Some(parent) = path.parent() else { return };
    for pid in procs.lines() {
        // The last process leaves the list a moment before it is gone.
        let _ = fs::write(parent.join("cgroup.procs"), pid);
    }
}

/// Unmounts a filesystem. After some attempts it is detached lazily, so that a busy one disappears
/// with its last user.
fn try_unmount(path: &Path, attempt: u32) -> Result<bool, Error> {
    use rustix::io::Errno;
    let patient = attempt < MAX_UNMOUNT_ATTEMPTS;
    let flags = if patient { UnmountFlags::empty() } else { UnmountFlags::DETACH };
    match unmount(path, flags) {
        // Something else may have been mounted over it.
        Ok(()) => Ok(!is_mounted(path)),
        Err(Errno::INVAL | Errno::NOENT) => Ok(true),
        // A user without the right to mount has no right to unmount either.
        Err(Errno::PERM) if !is_mounted(path) => Ok(true),
        Err(Errno::BUSY) => Ok(false),
        Err(errno) => Err(Error::os("unmount", path, errno)),
    }
}

/// Restores the setting at `path` to `value`, after a run that wrote `set`. A third value was
/// written by somebody else, and stays.
///
/// # Errors
/// The setting cannot be read or written.
pub(super) fn restore_setting(path: &Path, value: &str, set: &str) -> Result<UndoResult, Error> {
    let found = match fs::read_to_string(path) {
        Ok(text) => setting_value(&text),
        Err(_) if is_missing(path) => return Ok(UndoResult::Gone),
        Err(source) => return Err(Error::os("read", path, source)),
    };
    if found == setting_value(value) {
        return Ok(UndoResult::Gone);
    }
    if found != setting_value(set) {
        return Ok(UndoResult::Kept { found });
    }
    fs::write(path, value).map_err(|source| Error::os("restore", path, source))?;
    Ok(UndoResult::Restored)
}

/// The value in the text of a setting: of several words, the one in brackets.
pub(super) fn setting_value(text: &str) -> String {
    selected_word(text).unwrap_or_else(|| text.trim().to_owned())
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoResult {
    /// Nothing of the change is left, or it was never made.
    Gone,
    /// A machine setting was restored.
    Restored,
    /// Somebody else has changed the setting since, so it is left as it is.
    Kept {
        /// Its current value.
        found: String,
    },
}

/// Whether `path` does not exist. The error of removing it does not say so on a read-only
/// filesystem.
pub(crate) fn is_missing(path: &Path) -> bool {
    matches!(fs::symlink_metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::super::tests::directory;
    use super::*;

    #[test]
    fn mount_contains_its_files() {
        let instance = Undo::RemoveTraceInstance("/a/trace/instances/x".into());
        let (mount, root) = (Undo::Unmount("/a/trace".into()), Undo::RemoveDir("/a/trace".into()));
        assert!(mount.takes_place_of(&instance) && root.takes_place_of(&mount));
        assert!(!instance.takes_place_of(&mount));
        assert!(!Undo::Unmount("/a/tra".into()).takes_place_of(&instance));
    }

    #[test]
    fn undoing_nothing_succeeds() {
        let missing = PathBuf::from("/var/tmp/filemap-no-such-thing");
        for undo in [
            Undo::RemoveFile(missing.clone()),
            Undo::RemoveDir(missing.clone()),
            Undo::RemoveCgroup(missing.clone()),
            Undo::RemoveTraceInstance(missing.clone()),
            Undo::DetachLoop { device: missing.clone(), backing: missing.clone() },
            Undo::DropPages(missing),
        ] {
            undo.run().unwrap();
        }
    }

    #[test]
    fn keeps_settings_that_others_changed() {
        let directory = directory("setting");
        let path = directory.join("enabled");
        let back = |held: &str| {
            fs::write(&path, held).unwrap();
            let undone = restore_setting(&path, "never\n", "madvise").unwrap();
            (undone, fs::read_to_string(&path).unwrap())
        };
        let restored = (UndoResult::Restored, "never\n".to_owned());
        assert_eq!(back("always [madvise] never\n"), restored);
        assert_eq!(back("madvise\n"), restored);
        let held = "always madvise [never]";
        assert_eq!(back(held), (UndoResult::Gone, held.to_owned()));
        let others = "[always] madvise never\n";
        let left = UndoResult::Kept { found: "always".to_owned() };
        assert_eq!(back(others), (left, others.to_owned()));
        fs::remove_file(&path).unwrap();
        assert_eq!(restore_setting(&path, "never", "madvise").unwrap(), UndoResult::Gone);
        fs::remove_dir(&directory).unwrap();
    }
}
