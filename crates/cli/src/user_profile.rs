//! The machine profile that belongs to the user: what `filemap calibrate` found.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use filemap_model::Profile;

use crate::error::{Error, reason};
use crate::input;

/// What `--machine` calls the profile that is built in.
pub const BUILT_IN: &str = "default";

/// The flag of `filemap calibrate` that names another place for the profile.
pub const FLAG: &str = "--out";

/// Its file, below the state directory of the user.
const FILE: &str = "filemap/machine-profile.toml";

/// Where it is: below `$XDG_STATE_HOME`, or `~/.local/state` where that is not set.
///
/// # Errors
/// When the user has no directory for it, or one whose name is no text.
pub fn path() -> Result<String, Error> {
    // A relative path is to be ignored, as the XDG base directory specification has it.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let path = state.and_then(|state| state.join(FILE).into_os_string().into_string().ok());
    path.ok_or_else(|| {
        Error::Usage(format!(
            "there is no place for the machine profile of this user; give {FLAG} PROFILE.toml, \
             or set HOME"
        ))
    })
}

/// It and its path; where there is none, the built-in one and [`BUILT_IN`].
///
/// # Errors
/// A file that is there and cannot be used.
pub fn read() -> Result<(String, Profile), Error> {
    let missing = |path: &String| {
        use io::ErrorKind::{NotADirectory, NotFound};
        let found = Path::new(path).symlink_metadata();
        found.is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
    };
    let Some(path) = path().ok().filter(|path| !missing(path)) else {
        return Ok((BUILT_IN.to_string(), Profile::DEFAULT));
    };
    match input::profile_at(&path) {
        Ok(profile) => Ok((path, profile)),
        Err(error) => Err(Error::UserProfile { error: Box::new(error) }),
    }
}

/// Makes the directory of `path`, which is that of the profile.
///
/// # Errors
/// When it cannot be made.
pub fn make_directory(path: &str) -> Result<(), Error> {
    let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| Error::Open { path: path.to_string(), reason: reason(&error) })
}
