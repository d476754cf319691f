//! The directory of journals.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// Environment variable that names a directory for journals and temporary files.
pub const STATE_VARIABLE: &str = "FILEMAP_STATE";
const STATE_DIRECTORY: &str = "/var/tmp/filemap-journal";

/// File name suffix of journals.
pub(super) const SUFFIX: &str = "journal";

/// `$FILEMAP_STATE`, or a directory in /var/tmp, with a separate one for each user other than root.
pub fn state_directory() -> PathBuf {
    match std::env::var_os(STATE_VARIABLE) {
        Some(path) if !path.is_empty() => path.into(),
        _ => match rustix::process::geteuid() {
            user if user.is_root() => STATE_DIRECTORY.into(),
            user => format!("{STATE_DIRECTORY}-{}", user.as_raw()).into(),
        },
    }
}

/// Creates the directory if it is missing, and refuses one in which other users could write.
pub(super) fn secure(directory: &Path) -> Result<(), Error> {
    // A process that recovers later may have another working directory.
    if !directory.is_absolute() {
        return Err(unusable(directory, "the path does not begin with /"));
    }
    if directory.exists() && !directory.is_dir() {
        return Err(unusable(directory, "it is no directory"));
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| unusable(directory, error))?;
    let metadata =
        fs::symlink_metadata(directory).map_err(|error| Error::os("read", directory, error))?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && ours && metadata.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(Error::JournalOwner { path: directory.to_owned() })
    }
}

/// The error for a `directory` that cannot hold a journal.
pub(super) fn unusable(directory: &Path, reason: impl ToString) -> Error {
    Error::JournalDirectory { path: directory.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::tests::{directory, directory_with_file};
    use super::super::{Journal, recover};
    use super::*;

    #[test]
    fn refuses_directory_writable_by_others() {
        let directory = directory("open");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(recover(&directory), Err(Error::JournalOwner { .. })));
        assert!(matches!(Journal::open_in(&directory), Err(Error::JournalOwner { .. })));
        fs::remove_dir(&directory).unwrap();
    }

    #[test]
    fn names_unusable_directory_and_remedy() {
        let (directory, file) = directory_with_file("unusable");
        for (place, why) in [
            (file.as_path(), "it is no directory"),
            (&file.join("below"), "Not a directory"),
            (Path::new("relative"), "the path does not begin with /"),
            (Path::new("/proc/filemap-journal"), "No such file or directory"),
        ] {
            let error = Journal::open_in(place).unwrap_err();
            let text = error.to_string();
            let begin = format!("cannot keep a journal in '{}': {why}", place.display());
            assert!(text.starts_with(&begin) && text.contains("FILEMAP_STATE"), "{text}");
            assert!(error.cannot_run_here(), "{text}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
