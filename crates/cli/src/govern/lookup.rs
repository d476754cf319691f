//! Which file a program's name means.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::Error;

/// Where programs are looked for without `PATH`, as execvp(3) does.
const WITHOUT_PATH: &str = "/bin:/usr/bin";

/// Exit codes of commands that run another, such as env and nice.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// A program to run, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// What it is called, then its arguments.
    pub words: Vec<OsString>,
}

/// The program that `words` name, looked for in `PATH` as a shell does.
///
/// # Errors
/// When there is none, or none that may be run, with the exit code that says so.
pub fn find(words: &[OsString]) -> Result<Program, Error> {
    let name = &words[0];
    let path = file_of(name, std::env::var_os("PATH").as_deref());
    path.map(|path| Program { path, words: words.to_vec() }).map_err(|refused| match refused {
        Refused::NotFound => not_found(name),
        Refused::NotExecutable(path) => not_executable(&path, "it may not be executed"),
        Refused::Directory(path) => not_executable(&path, "it is a directory"),
    })
}

/// There is no program `name`.
pub fn not_found(name: &OsStr) -> Error {
    let place = if is_path(name) { "" } else { " in PATH" };
    let message = format!("there is no program '{}'{place}; give one", name.display());
    Error::Program { code: NOT_FOUND, message }
}

/// The program at `path` cannot be run.
pub fn not_executable(path: &Path, reason: &str) -> Error {
    let message = format!("'{}' cannot be run: {reason}; give a program", path.display());
    Error::Program { code: NOT_EXECUTABLE, message }
}

/// Why there is no file to run.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    NotFound,
    NotExecutable(PathBuf),
    Directory(PathBuf),
}

/// The file of the program `name` with this `PATH`.
pub fn file_of(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Refused> {
    if name.is_empty() {
        return Err(Refused::NotFound);
    }
    if is_path(name) {
        return executable(PathBuf::from(name));
    }
    let directories = path.unwrap_or(OsStr::new(WITHOUT_PATH));
    let mut refused = Refused::NotFound;
    for directory in std::env::split_paths(directories) {
        // An empty entry is the working directory.
        match executable(Path::new(".").join(directory).join(name)) {
            Ok(path) => return Ok(path),
            Err(Refused::NotExecutable(path)) => refused = Refused::NotExecutable(path),
            Err(_) => {}
        }
    }
    Err(refused)
}

fn is_path(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/')
}

fn executable(path: PathBuf) -> Result<PathBuf, Refused> {
    match fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Refused::NotExecutable(path))
        }
        Err(_) => Err(Refused::NotFound),
        Ok(data) if data.is_dir() => Err(Refused::Directory(path)),
        Ok(_) => match accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(path),
            Err(_) => Err(Refused::NotExecutable(path)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_are_found_as_by_a_shell() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        for (directory, mode) in [("a", 0o644), ("b", 0o755)] {
            fs::create_dir(at(directory)).unwrap();
            let file = at(directory).join("program");
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([at("a"), at("b")]).unwrap();
        let program = OsStr::new("program");
        assert_eq!(file_of(program, Some(&path)), Ok(at("b/program")));
        let only_a = file_of(program, Some(at("a").as_os_str()));
        assert_eq!(only_a, Err(Refused::NotExecutable(at("a/program"))));
        assert_eq!(file_of(OsStr::new("none"), Some(&path)), Err(Refused::NotFound));
        assert_eq!(file_of(OsStr::new(""), Some(&path)), Err(Refused::NotFound));
        let named = at("a");
        assert_eq!(file_of(named.as_os_str(), None), Err(Refused::Directory(named.clone())));
        assert!(file_of(OsStr::new("sh"), None).is_ok());
    }
}
