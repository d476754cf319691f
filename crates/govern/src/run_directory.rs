//! The directory in which commands keep what others have to find: what a governor has advised, and
//! what a run of a program leaves until it is read.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Its name in `XDG_RUNTIME_DIR`.
const DIRECTORY_NAME: &str = "filemap-govern";

/// Where shared memory has names, and this directory too where there is no `XDG_RUNTIME_DIR`.
const SHARED_MEMORY: &str = "/dev/shm";

/// The directory of this user, made if it is not there; `None` where there is no place for it, or
/// where what has its name is not this user's alone.
pub fn run_directory() -> Option<PathBuf> {
    let path = default_path();
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => None,
        _ => is_private(&path).then_some(path),
    }
}

/// The directories of this user that are there, whatever environment they were made in: a service
/// has no `XDG_RUNTIME_DIR`, and a shell has.
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

/// Where the directory is.
fn default_path() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match runtime.filter(|path| path.is_absolute() && path.is_dir()) {
        Some(runtime) => runtime.join(DIRECTORY_NAME),
        None => shared_memory_path(),
    }
}

/// Whether `path` is a directory of this user, and no link, into which nobody else can look.
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
    fn a_directory_of_others_is_not_used() {
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
