//! Machine profiles: built-in ones, the user's (written by `filemap calibrate`), and files named by
//! a job.

use std::env;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use filemap_job::JobSpec;
use filemap_model::Profile;

use crate::device_profile;
use crate::error::{Error, reason};
use crate::host::is_on_model;
use crate::input;
use crate::record::shorten_name;

/// Name of the built-in profile that is used if there is no other.
pub const DEFAULT: &str = "default";

/// Other built-in profiles by name: a server under memory pressure, and common devices.
const BUILT_IN: [(&str, &str); 7] = [
    ("server", include_str!("../../../data/machines/server.toml")),
    ("nvme", include_str!("../../../data/machines/nvme.toml")),
    ("sata-ssd", include_str!("../../../data/machines/sata-ssd.toml")),
    ("virtio", include_str!("../../../data/machines/virtio.toml")),
    ("gp3", include_str!("../../../data/machines/gp3.toml")),
    ("nfs", include_str!("../../../data/machines/nfs.toml")),
    ("lustre", include_str!("../../../data/machines/lustre.toml")),
];

/// Flag of `filemap calibrate` that selects another path for the profile.
pub const FLAG: &str = "--output";

/// Path of the user's profile below the state directory.
const FILE: &str = "filemap/machine-profile.toml";

/// Maximum width of a profile's path in a report, in characters.
const PATH_COLUMNS: usize = 24;

/// Maximum size of a profile in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The machine profile for the model of `spec`: the one it names, else the user's, else that of the
/// device of its files, else the built-in one. Stores the name in `spec`.
///
/// # Errors
/// The file cannot be read or is not a profile.
pub fn resolve(spec: &mut JobSpec) -> Result<Profile, Error> {
    let is_named = spec.machine.is_some();
    let profile = resolve_name(&mut spec.machine, spec.on.as_deref())?;
    let is_default = spec.machine.as_deref() == Some(DEFAULT) && !is_named;
    match device_profile::find_for_job(spec).filter(|_| is_default) {
        Some(kept) => {
            let profile = load_profile(Some(&kept))?;
            spec.machine = Some(kept);
            Ok(profile)
        }
        None => Ok(profile),
    }
}

/// Likewise for a job that names `machine` and runs on `engines`.
///
/// # Errors
/// The file cannot be read or is not a profile.
pub fn resolve_name(machine: &mut Option<String>, engines: Option<&str>) -> Result<Profile, Error> {
    match machine.as_deref() {
        // A real kernel needs no cost model.
        None if !is_on_model(engines) => Ok(Profile::DEFAULT),
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
    let built_in = BUILT_IN.iter().find(|(known, _)| Some(*known) == name);
    if let Some((_, text)) = built_in {
        return Ok(Profile::parse(text)?);
    }
    match name {
        None | Some(DEFAULT) => Ok(Profile::DEFAULT),
        Some(path) if !path.contains(['/', '.']) && !Path::new(path).exists() => {
            Err(Error::Usage(format!(
                "unknown machine profile '{path}'; known: {DEFAULT}, {}, and files of filemap \
                 calibrate",
                BUILT_IN.map(|(known, _)| known).join(", ")
            )))
        }
        Some(path) => read_profile(path),
    }
}

/// Whether `name` is a built-in profile rather than a file.
pub fn is_built_in(name: &str) -> bool {
    name == DEFAULT || BUILT_IN.iter().any(|(known, _)| *known == name)
}

/// Reads the profile at `path`.
fn read_profile(path: &str) -> Result<Profile, Error> {
    let text = input::read("machine profile", path, MAX_BYTES)?;
    Profile::parse(&text)
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}

/// The user's state directory.
pub(crate) fn state_directory() -> Option<PathBuf> {
    // The XDG base directory specification says to ignore relative paths.
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME");
    state.or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
}

/// Path of the user's profile, below `$XDG_STATE_HOME` or `~/.local/state`.
///
/// # Errors
/// If there is no home directory, or its path is not UTF-8.
pub fn path() -> Result<String, Error> {
    let path = state_directory();
    let path = path.and_then(|state| state.join(FILE).into_os_string().into_string().ok());
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

/// What times are predicted by, in words: the machine profile called `name`, measured at a date or
/// not.
pub(crate) fn name_in_words(name: Option<&str>, measured: Option<&str>) -> String {
    match (name, measured) {
        (None | Some(DEFAULT), _) => format!("the assumed profile '{DEFAULT}'"),
        (_, Some(date)) => format!("a machine profile measured on {date}"),
        (Some(name), None) => format!("machine profile '{}'", shorten_name(name, PATH_COLUMNS)),
    }
}

/// How far predictions were off, for times by a measured profile; empty for others, whose error is
/// unknown.
pub(crate) fn known_error(measured: Option<&str>) -> String {
    let Some(_) = measured else { return String::new() };
    let [programs, median, worst] = COLD_ERRORS;
    format!(
        " Those of {programs} programs that began cold, on a busy machine, were off by {median} % \
         in the median, {worst} % at worst."
    )
}

/// Programs of `data/measured/predicted-times.toml` that began cold: how many, and the median and
/// the maximum of the absolute errors in percent.
const COLD_ERRORS: [u64; 3] = [14, 28, 69];

/// Whether a command has to name the machine profile `name` to use it.
pub fn needs_flag(name: &str) -> bool {
    user_profile().map_or(true, |(usual, _)| usual != name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_errors_are_those_of_the_table() {
        let text = include_str!("../../../data/measured/predicted-times.toml");
        let data: toml::Table = text.parse().unwrap();
        let table = &data["table"][0];
        let rows = table["rows"].as_array().unwrap().iter().map(|row| row.as_array().unwrap());
        let cold = rows.filter(|row| row[1].as_str() == Some("cold"));
        let mut errors: Vec<i64> = cold
            .map(|row| row[4].as_str().unwrap().trim_end_matches(" %").parse().unwrap())
            .map(i64::abs)
            .collect();
        errors.sort_unstable();
        let middle = errors.len() / 2;
        let median = if errors.len() % 2 == 1 {
            errors[middle]
        } else {
            // Half a percent counts up.
            (errors[middle - 1] + errors[middle] + 1) / 2
        };
        let found = [errors.len() as u64, median as u64, *errors.last().unwrap() as u64];
        assert_eq!(found, COLD_ERRORS);
    }
}
