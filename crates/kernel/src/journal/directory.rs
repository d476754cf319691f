//! The directory of the journals.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// Names a directory that holds the journals and temporary files of this program.
pub const STATE_VARIABLE: &str = "FILEMAP_STATE";
const STATE_DIRECTORY: &str = "/var/tmp/filemap-journal";

/// How the names of journals end.
pub(super) const SUFFIX: &str = "journal";

/// `$FILEMAP_STATE`, or a directory in /var/tmp; one of its own for each user but root.
pub fn state_directory() -> PathBuf {
    match std::env::var_os(STATE_VARIABLE) {
        Some(path) if !path.is_empty() => path.into(),
        _ => match rustix::process::geteuid() {
            user if user.is_root() => STATE_DIRECTORY.into(),
            user => format!("{STATE_DIRECTORY}-{}", user.as_raw()).into(),
        },
    }
}

/// Creates the directory when it is missing, and refuses one in which others could write.
pub(super) fn secure(directory: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| Error::os("create", directory, error))?;
    let metadata =
        fs::symlink_metadata(directory).map_err(|error| Error::os("read", directory, error))?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && ours && metadata.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(Error::JournalOwner { path: directory.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::tests::directory;
    use super::super::{Journal, recover};
    use super::*;

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let directory = directory("open");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(recover(&directory), Err(Error::JournalOwner { .. })));
        assert!(matches!(Journal::open_in(&directory), Err(Error::JournalOwner { .. })));
        fs::remove_dir(&directory).unwrap();
    }
}
