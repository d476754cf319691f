//! A directory in which the statistics of a program and of all that it starts are kept until they
//! are read.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use filemap_control::{Unkept, socket_name, variable};
use filemap_report::govern::{Told, Unknown};

use super::environment::Variables;
use super::run_directory::{collecting, run_directory, started};
use super::statistics::{processes, unkept};
use crate::error::{Error, reason};

/// The directory that there is, for a process that ends without dropping anything.
static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// A directory for statistics. It is removed with its owner, or by the next command where that is
/// killed.
pub struct Collecting {
    directory: PathBuf,
    /// Where processes say that they cannot make a file there. Without it they are not heard.
    unkept: Option<UnixDatagram>,
}

impl Collecting {
    /// A new directory.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn begin() -> Result<Collecting, Error> {
        let place = run_directory().ok_or_else(|| {
            Error::CannotRun(
                "there is no directory for statistics; set XDG_RUNTIME_DIR to one of your own"
                    .to_string(),
            )
        })?;
        let own = std::process::id();
        let path = place.join(collecting(own, started(own).unwrap_or(0)));
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
        Ok(Collecting { unkept: listen(&path).ok(), directory: path })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is said to the library, so that statistics are kept here.
    pub fn variables(&self) -> Variables {
        let keep = OsString::from("1");
        vec![
            (variable::STATISTICS, self.directory.clone().into_os_string()),
            (variable::KEEP, keep),
        ]
    }

    /// What is here, and who could not leave anything here since this was asked last.
    pub fn told(&self) -> Told {
        Told { processes: processes(&self.directory, None), unknown: self.unknown() }
    }

    fn unknown(&self) -> Vec<Unknown> {
        let Some(socket) = &self.unkept else { return Vec::new() };
        // One byte more, so that what is longer is seen to be something else.
        let mut bytes = [0; Unkept::BYTES + 1];
        let mut unknown = Vec::new();
        while let Ok(length) = socket.recv(&mut bytes) {
            unknown.extend(Unkept::of_bytes(&bytes[..length]).map(unkept));
        }
        unknown.sort();
        unknown.dedup();
        unknown
    }

    /// Removes what is here, for another run.
    pub fn clear(&self) {
        drop(self.unknown());
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.for_each(|entry| drop(fs::remove_file(entry.path())));
    }
}

fn listen(directory: &Path) -> io::Result<UnixDatagram> {
    let name = socket_name(directory.as_os_str().as_bytes());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
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
