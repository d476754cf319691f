//! What `filemap govern` remembers of files.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_govern::HistoryStore;
use rustix::process::geteuid;

use crate::args::GovernArgs;
use crate::error::Error;
use crate::{Outcome, print_message};

/// Directory of the memory below the user's state directory.
const DIRECTORY: &str = "filemap/touches";

/// Where touches are remembered. Without a place, files are governed from the first touch; a user
/// is told that, unless the state directory cannot exist.
pub fn store(args: &GovernArgs) -> Option<HistoryStore> {
    if args.no_memory {
        return None;
    }
    let directory = directory(args)?;
    let found = directory.symlink_metadata();
    if found.is_err_and(|error| error.kind() == ErrorKind::NotADirectory) {
        return None;
    }
    HistoryStore::open(&directory)
        .inspect_err(|reason| {
            print_message(format!(
                "nothing is remembered, and files are governed from the first touch: {reason}; \
                 give --memory DIR, or --no-memory"
            ));
        })
        .ok()
}

/// Removes what is remembered of the named files, or of all.
pub fn forget(args: &GovernArgs) -> Result<Outcome, Error> {
    let none = || Error::Usage("there is no home directory; give --memory DIR".to_string());
    let directory = directory(args).ok_or_else(none)?;
    if !directory.exists() {
        print_message("nothing is remembered");
        return Ok(Outcome::Done);
    }
    let store = HistoryStore::open(&directory).map_err(Error::CannotRun)?;
    if args.program.is_empty() {
        print_message(match store.forget_all() {
            0 => "nothing is remembered".to_string(),
            1 => "1 file is forgotten".to_string(),
            count => format!("{count} files are forgotten"),
        });
        return Ok(Outcome::Done);
    }
    let unknown = args.program.iter().filter(|path| !store.forget(Path::new(path)));
    match unknown.map(|path| path.to_string_lossy().into_owned()).next() {
        Some(path) => Err(Error::Usage(format!(
            "nothing is remembered of '{path}'; give the path that programs map, or none for all \
             files"
        ))),
        None => Ok(Outcome::Done),
    }
}

/// The directory of the memory.
fn directory(args: &GovernArgs) -> Option<PathBuf> {
    if let Some(directory) = &args.memory {
        return Some(directory.clone());
    }
    // The XDG base directory specification says to ignore relative paths.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| home(absolute("HOME")).map(|home| home.join(".local/state")));
    state.map(|state| state.join(DIRECTORY))
}

/// The home directory; root's own where sudo(8) has kept that of a user, who could not use the
/// files that root leaves there.
fn home(named: Option<PathBuf>) -> Option<PathBuf> {
    let is_other = |path: &PathBuf| {
        geteuid().is_root() && fs::metadata(path).is_ok_and(|data| data.uid() != 0)
    };
    if named.as_ref().is_some_and(is_other) { Some("/root".into()) } else { named }
}
