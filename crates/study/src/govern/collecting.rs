//! A directory for what a program that this command runs leaves there, until it is read.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use filemap_govern::run_directory::{collecting, run_directory};
use filemap_govern::start_ticks;

use crate::error::{Error, reason};

/// The directory that there is, for a process that ends without dropping anything.
static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// A directory of this process' own. It is removed with its owner, or by the next command where
/// that is killed.
pub struct Collecting {
    directory: PathBuf,
}

impl Collecting {
    /// A new directory.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn begin() -> Result<Collecting, Error> {
        let place = run_directory().ok_or_else(|| {
            Error::CannotRun(
                "there is no directory for what a run leaves; set XDG_RUNTIME_DIR to one of your own"
                    .to_string(),
            )
        })?;
        let own = std::process::id();
        let path = place.join(collecting(own, start_ticks(own).unwrap_or(0)));
        let failed = |error: io::Error| {
            let place = place.display();
            Error::CannotRun(format!(
                "no directory can be made in '{place}': {}; set XDG_RUNTIME_DIR to another",
                reason(&error)
            ))
        };
        // Held, so that a signal finds either both or none.
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        *made = Some(path.clone());
        Ok(Collecting { directory: path })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes what is here, for another run.
    pub fn clear(&self) {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.for_each(|entry| drop(fs::remove_file(entry.path())));
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        abandon();
    }
}

/// Removes the directory, for a process that is about to exit without dropping anything.
pub fn abandon() {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = made.take() {
        // A process that goes on may make a file meanwhile.
        let _ = (0..10).any(|_| fs::remove_dir_all(&path).is_ok());
    }
}
