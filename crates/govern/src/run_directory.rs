//! The per-user directory for state that outlives a command: journals of advised mappings, and
//! output of programs until it is read.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Name of the directory in `XDG_RUNTIME_DIR`.
const DIRECTORY_NAME: &str = "filemap-govern";

/// Parent of the directory without `XDG_RUNTIME_DIR`: a tmpfs that every system has.
const SHARED_MEMORY: &str = "/dev/shm";

/// The directory of this user, created if missing. `None` if it cannot be created, or if the path
/// is not a directory accessible to this user alone.
pub fn run_directory() -> Option<PathBuf> {
    let path = default_path();
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => None,
        _ => is_private(&path).then_some(path),
    }
}

/// The existing directories of this user in all candidate locations: a login shell has
/// `XDG_RUNTIME_DIR`, a system service does not.
pub fn run_directories() -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    let of_login = PathBuf::from(format!("/run/user/{user}")).join(DIRECTORY_NAME);
    let mut all = vec![default_path(), of_login, shared_memory_path()];
    all.sort();
    all.dedup();
    all.retain(|path| is_private(path));
    all
}

fn shared_memory_path() -> PathBuf {
    Path::new(SHARED_MEMORY).join(format!("{DIRECTORY_NAME}-{}", geteuid().as_raw()))
}

/// Path of the directory in the current environment.
fn default_path() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|path| path.is_absolute() && path.is_dir()) {
        Some(runtime) => runtime.join(DIRECTORY_NAME),
        None => shared_memory_path(),
    }
}

/// Whether `path` is a directory, not a symbolic link, that is owned by this user and has no
/// permissions for others. Guards against directories planted in `/dev/shm`.
fn is_private(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| {
        data.is_dir() && data.uid() == geteuid().as_raw() && data.mode() & 0o077 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn refuses_directory_of_another_user() {
        let scratch = tempfile::tempdir().unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(is_private(scratch.path()));
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(scratch.path(), &link).unwrap();
        assert!(
            !is_private(&link)
                && !is_private(Path::new("/tmp"))
                && !is_private(Path::new("/nowhere"))
        );
    }
}
