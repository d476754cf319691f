//! Which file a program's name means.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

/// Where programs are looked for without `PATH`, as execvp(3) does.
const WITHOUT_PATH: &str = "/bin:/usr/bin";

/// Exit codes of commands that run another, such as env and nice.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Why a program cannot be run, with the exit code that shells have for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    pub code: u8,
    message: String,
}

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
/// When there is none, or none that may be run.
pub fn find(words: &[OsString]) -> Result<Program, Refused> {
    let name = &words[0];
    let path = file_of(name, std::env::var_os("PATH").as_deref());
    path.map(|path| Program { path, words: words.to_vec() }).map_err(|why| match why {
        Why::NotFound => not_found(name),
        Why::NotExecutable(path) => not_executable(&path, "it may not be executed"),
        Why::Directory(path) => not_executable(&path, "it is a directory"),
    })
}

/// There is no program `name`.
pub(super) fn not_found(name: &OsStr) -> Refused {
    let place = if is_path(name) { "" } else { " in PATH" };
    let message = format!("there is no program '{}'{place}; give one", name.display());
    Refused { code: NOT_FOUND, message }
}

/// The program at `path` cannot be run.
pub(super) fn not_executable(path: &Path, reason: &str) -> Refused {
    let message = format!("'{}' cannot be run: {reason}; give a program", path.display());
    Refused { code: NOT_EXECUTABLE, message }
}

/// Why there is no file to run.
#[derive(Debug, PartialEq, Eq)]
enum Why {
    NotFound,
    NotExecutable(PathBuf),
    Directory(PathBuf),
}

/// The file of the program `name` with this `PATH`.
fn file_of(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Why> {
    if name.is_empty() {
        return Err(Why::NotFound);
    }
    if is_path(name) {
        return executable(PathBuf::from(name));
    }
    let directories = path.unwrap_or(OsStr::new(WITHOUT_PATH));
    let mut why = Why::NotFound;
    for directory in std::env::split_paths(directories) {
        // An empty entry is the working directory.
        let candidate = Path::new(".").join(directory).join(name);
        // Shells skip directories that cannot be searched, and report "not found".
        if fs::metadata(&candidate).is_err() {
            continue;
        }
        match executable(candidate) {
            Ok(path) => return Ok(path),
            Err(Why::NotExecutable(path)) => why = Why::NotExecutable(path),
            Err(_) => {}
        }
    }
    Err(why)
}

fn is_path(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/')
}

fn executable(path: PathBuf) -> Result<PathBuf, Why> {
    match fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Why::NotExecutable(path))
        }
        Err(_) => Err(Why::NotFound),
        Ok(data) if data.is_dir() => Err(Why::Directory(path)),
        Ok(_) => match accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(path),
            Err(_) => Err(Why::NotExecutable(path)),
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
        assert_eq!(only_a, Err(Why::NotExecutable(at("a/program"))));
        assert_eq!(file_of(OsStr::new("none"), Some(&path)), Err(Why::NotFound));
        assert_eq!(file_of(OsStr::new(""), Some(&path)), Err(Why::NotFound));
        // A directory that an ordinary user cannot search.
        fs::create_dir(at("closed")).unwrap();
        fs::set_permissions(at("closed"), fs::Permissions::from_mode(0)).unwrap();
        let closed = at("closed");
        assert_eq!(file_of(program, Some(closed.as_os_str())), Err(Why::NotFound));
        let named = at("a");
        assert_eq!(file_of(named.as_os_str(), None), Err(Why::Directory(named.clone())));
        assert!(file_of(OsStr::new("sh"), None).is_ok());
    }
}
