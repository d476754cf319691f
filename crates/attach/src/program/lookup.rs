//! Finds the executable for a program name.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, accessat, getxattr, statvfs};
use rustix::process::{getgid, getuid};
use rustix::thread::no_new_privs;

/// Search path in the absence of `PATH`, as in execvp(3).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Exit codes of commands that run other commands, such as env and nice.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Failure to run a program, with the exit code that a shell would return.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LaunchError {
    pub code: u8,
    message: String,
}

/// A program to run, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Path of the executable.
    pub path: PathBuf,
    /// The argument vector, beginning with `argv[0]`.
    pub words: Vec<OsString>,
}

/// Finds the program of a command line, searching `PATH` as a shell does.
///
/// # Errors
/// No such program exists, or none that is executable.
pub fn find(words: &[OsString]) -> Result<Program, LaunchError> {
    let name = &words[0];
    let path = find_file(name, std::env::var_os("PATH").as_deref());
    path.map(|path| Program { path, words: words.to_vec() }).map_err(|why| match why {
        LookupError::NotFound => not_found(name),
        LookupError::NotExecutable(path) => not_executable(&path, "it may not be executed"),
        LookupError::Directory(path) => not_executable(&path, "it is a directory"),
    })
}

/// Error for a program that does not exist.
pub(super) fn not_found(name: &OsStr) -> LaunchError {
    let place = if is_path(name) { "" } else { " in PATH" };
    let message = format!("there is no program '{}'{place}; give one", name.display());
    LaunchError { code: NOT_FOUND, message }
}

/// Error for a program that exists but cannot be run.
pub(super) fn not_executable(path: &Path, reason: &str) -> LaunchError {
    let message = format!("'{}' cannot be run: {reason}; give a program", path.display());
    LaunchError { code: NOT_EXECUTABLE, message }
}

/// Reason why a lookup failed.
#[derive(Debug, PartialEq, Eq)]
enum LookupError {
    NotFound,
    NotExecutable(PathBuf),
    Directory(PathBuf),
}

/// Finds the file of program `name`, searching the directories in `path`.
fn find_file(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, LookupError> {
    if name.is_empty() {
        return Err(LookupError::NotFound);
    }
    if is_path(name) {
        return executable(PathBuf::from(name));
    }
    let directories = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut why = LookupError::NotFound;
    for directory in std::env::split_paths(directories) {
        // An empty entry is the working directory.
        let candidate = Path::new(".").join(directory).join(name);
        // Shells skip directories that cannot be searched, and report "not found".
        if fs::metadata(&candidate).is_err() {
            continue;
        }
        match executable(candidate) {
            Ok(path) => return Ok(path),
            Err(LookupError::NotExecutable(path)) => why = LookupError::NotExecutable(path),
            Err(_) => {}
        }
    }
    Err(why)
}

fn is_path(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/')
}

fn executable(path: PathBuf) -> Result<PathBuf, LookupError> {
    match fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(LookupError::NotExecutable(path))
        }
        Err(_) => Err(LookupError::NotFound),
        Ok(data) if data.is_dir() => Err(LookupError::Directory(path)),
        Ok(_) => match accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(path),
            Err(_) => Err(LookupError::NotExecutable(path)),
        },
    }
}

/// Bits of `st_mode`.
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;

/// Describes the privilege that the program at `path` gains over its caller, as the predicate of a
/// sentence about it; `None` if it gains none.
pub fn privilege_gain(path: &Path) -> Option<&'static str> {
    fs::metadata(path).ok().and_then(|data| file_privilege(path, &data))
}

fn file_privilege(path: &Path, data: &Metadata) -> Option<&'static str> {
    let mounted = statvfs(path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NOSUID));
    if mounted || no_new_privs().unwrap_or(false) {
        return None;
    }
    if data.mode() & SET_USER_ID != 0 && data.uid() != getuid().as_raw() {
        return Some("runs with the rights of another user (set-user-ID)");
    }
    let sets_group = SET_GROUP_ID | GROUP_EXECUTES;
    if data.mode() & sets_group == sets_group && data.gid() != getgid().as_raw() {
        return Some("runs with the rights of another group (set-group-ID)");
    }
    let none: &mut [u8] = &mut [];
    let has_capabilities = getxattr(path, "security.capability", none).is_ok_and(|size| size > 0);
    if has_capabilities && !getuid().is_root() {
        Some("runs with capabilities of its file")
    } else {
        None
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
        assert_eq!(find_file(program, Some(&path)), Ok(at("b/program")));
        let only_a = find_file(program, Some(at("a").as_os_str()));
        assert_eq!(only_a, Err(LookupError::NotExecutable(at("a/program"))));
        assert_eq!(find_file(OsStr::new("none"), Some(&path)), Err(LookupError::NotFound));
        assert_eq!(find_file(OsStr::new(""), Some(&path)), Err(LookupError::NotFound));
        // A directory that an ordinary user cannot search.
        fs::create_dir(at("closed")).unwrap();
        fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o0)).unwrap();
        let closed = at("closed");
        assert_eq!(find_file(program, Some(closed.as_os_str())), Err(LookupError::NotFound));
        let named = at("a");
        assert_eq!(find_file(named.as_os_str(), None), Err(LookupError::Directory(named.clone())));
        assert!(find_file(OsStr::new("sh"), None).is_ok());
    }

    #[test]
    fn ordinary_program_gains_no_privileges() {
        assert_eq!(privilege_gain(Path::new("/proc/self/exe")), None);
        assert_eq!(privilege_gain(Path::new("/nowhere")), None);
    }

    #[test]
    fn own_set_user_id_program_gains_no_privileges() {
        let scratch = tempfile::tempdir().unwrap();
        let own = scratch.path().join("own");
        fs::copy("/proc/self/exe", &own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(privilege_gain(&own), None);
    }
}
