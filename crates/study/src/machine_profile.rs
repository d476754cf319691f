//! Machine profiles: built-in ones, the user's (written by `filemap calibrate`), and files named by
//! a job.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use filemap_job::{EngineKind, JobSpec};
use filemap_model::Profile;

use crate::error::{Error, reason};
use crate::input;

/// Name of the built-in profile that is used if there is no other.
pub const DEFAULT: &str = "default";

/// Name of the built-in profile of a server under memory pressure.
const SERVER: &str = "server";
const SERVER_TEXT: &str = include_str!("../../../data/machines/server.toml");

/// Flag of `filemap calibrate` that selects another path for the profile.
pub const FLAG: &str = "--output";

/// Path of the user's profile below the state directory.
const FILE: &str = "filemap/machine-profile.toml";

/// Maximum size of a profile in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The machine profile for the model of `spec`: the one it names, else the user's, else the
/// built-in one. Stores the name in `spec`.
///
/// # Errors
/// The file cannot be read or is not a profile.
pub fn resolve(spec: &mut JobSpec) -> Result<Profile, Error> {
    resolve_name(&mut spec.machine, spec.on.as_deref())
}

/// Likewise for a job that names `machine` and runs on `engines`.
///
/// # Errors
/// The file cannot be read or is not a profile.
pub fn resolve_name(machine: &mut Option<String>, engines: Option<&str>) -> Result<Profile, Error> {
    let engines = engines.unwrap_or(EngineKind::Model.name());
    let on_model = engines.split(',').any(|engine| engine == EngineKind::Model.name());
    match machine.as_deref() {
        // A real kernel needs no cost model.
        None if !on_model => Ok(Profile::DEFAULT),
        name @ Some(_) => load_profile(name),
        None => {
            let (name, profile) = user_profile()?;
            *machine = Some(name);
            Ok(profile)
        }
    }
}

/// The machine profile called `name`; the built-in one for `None`.
///
/// # Errors
/// The file cannot be read or is not a profile.
pub fn load_profile(name: Option<&str>) -> Result<Profile, Error> {
    match name {
        None | Some(DEFAULT) => Ok(Profile::DEFAULT),
        Some(SERVER) => Ok(Profile::parse(SERVER_TEXT)?),
        Some(path) if !path.contains(['/', '.']) && !Path::new(path).exists() => {
            Err(Error::Usage(format!(
                "unknown machine profile '{path}'; known: {DEFAULT}, {SERVER}, and files of \
                 filemap calibrate",
            )))
        }
        Some(path) => read_profile(path),
    }
}

/// Whether `name` is a built-in profile rather than a file.
pub fn is_built_in(name: &str) -> bool {
    [DEFAULT, SERVER].contains(&name)
}

/// Reads the profile at `path`.
fn read_profile(path: &str) -> Result<Profile, Error> {
    let text = input::read("machine profile", path, MAX_BYTES)?;
    Profile::parse(&text)
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}

/// Path of the user's profile, below `$XDG_STATE_HOME` or `~/.local/state`.
///
/// # Errors
/// If there is no home directory, or its path is not UTF-8.
pub fn path() -> Result<String, Error> {
    // The XDG base directory specification says to ignore relative paths.
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

/// The user's profile and its path, or the built-in one and [`DEFAULT`].
///
/// # Errors
/// If the file exists and is not a valid profile.
pub fn user_profile() -> Result<(String, Profile), Error> {
    let missing = |path: &String| {
        use io::ErrorKind::{NotADirectory, NotFound};
        let found = Path::new(path).symlink_metadata();
        found.is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
    };
    let Some(path) = path().ok().filter(|path| !missing(path)) else {
        return Ok((DEFAULT.to_string(), Profile::DEFAULT));
    };
    match read_profile(&path) {
        Ok(profile) => Ok((path, profile)),
        Err(error) => Err(Error::UserProfile { error: Box::new(error) }),
    }
}

/// Creates the parent directory of the profile's `path`.
///
/// # Errors
/// If it cannot be created.
pub fn make_directory(path: &str) -> Result<(), Error> {
    let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| Error::Open { path: path.to_string(), reason: reason(&error) })
}

/// Whether a command has to name the machine profile `name` to use it.
pub fn needs_flag(name: &str) -> bool {
    user_profile().map_or(true, |(usual, _)| usual != name)
}
