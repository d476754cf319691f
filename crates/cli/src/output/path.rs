//! Resolution of paths.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links to follow, as in the kernel.
const MAX_LINKS: u32 = 40;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedPath {
    /// A file descriptor of this process, as for `/dev/stdout`.
    Descriptor(RawFd),
    /// A directory entry that is not a symbolic link, or does not exist yet.
    Entry(PathBuf),
}

impl ResolvedPath {
    /// Follows the symbolic links of `path`, including dangling ones.
    ///
    /// # Errors
    /// A missing or inaccessible directory; too many links.
    pub fn resolve(path: &Path) -> io::Result<ResolvedPath> {
        let mut path = path.to_path_buf();
        for _ in 0..MAX_LINKS {
            let bytes = path.as_os_str().as_encoded_bytes();
            let (Some(name), false) = (path.file_name(), is_directory_name(bytes)) else {
                return Err(no_file(&path));
            };
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
            if let Some(descriptor) = descriptor(&directory, name.to_str()) {
                return Ok(ResolvedPath::Descriptor(descriptor));
            }
            let entry = directory.join(name);
            match fs::symlink_metadata(&entry) {
                Ok(data) if data.is_symlink() => path = directory.join(fs::read_link(&entry)?),
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => return Ok(ResolvedPath::Entry(entry)),
            }
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }
}

/// Whether a path can only refer to a directory.
fn is_directory_name(path: &[u8]) -> bool {
    path.ends_with(b"/") || path.ends_with(b"/.")
}

/// The error of `path` as the name of a file, if it can only refer to a directory.
fn no_file(path: &Path) -> io::Error {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => ErrorKind::IsADirectory.into(),
        Ok(_) => ErrorKind::NotADirectory.into(),
        Err(error) => error,
    }
}

/// The file descriptor that `name` in `directory` refers to, if it is one of this process.
fn descriptor(directory: &Path, name: Option<&str>) -> Option<RawFd> {
    let own = ["/proc/self/fd", "/proc/thread-self/fd"];
    let is_own = own.iter().any(|own| fs::canonicalize(own).is_ok_and(|own| own == directory));
    name?.parse().ok().filter(|number| is_own && *number >= 0)
}

/// Identifies a file independently of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// An existing file, by device and inode.
    Inode(u64, u64),
    /// A new file, by device and inode of its directory, and its name.
    New(u64, u64, OsString),
}

impl Identity {
    /// The identity of the file at `path`. `None` for devices such as `/dev/null` or a terminal,
    /// which can be shared, and for paths that cannot be opened.
    pub fn from_path(path: &Path) -> Option<Identity> {
        if let Ok(data) = fs::metadata(path) {
            return Identity::from_metadata(&data);
        }
        let Ok(ResolvedPath::Entry(entry)) = ResolvedPath::resolve(path) else { return None };
        let directory = fs::metadata(entry.parent()?).ok()?;
        Some(Identity::New(directory.dev(), directory.ino(), entry.file_name()?.to_owned()))
    }

    /// The identity of an open file.
    pub fn from_fd(file: BorrowedFd<'_>) -> Option<Identity> {
        let data = file.try_clone_to_owned().and_then(|file| File::from(file).metadata());
        Identity::from_metadata(&data.ok()?)
    }

    /// The identity of the file with this metadata.
    pub fn from_metadata(data: &Metadata) -> Option<Identity> {
        let kind = data.file_type();
        let shared = kind.is_char_device() || kind.is_socket();
        (!shared).then(|| Identity::Inode(data.dev(), data.ino()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_resolve_to_one_file() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        fs::create_dir(path("d")).unwrap();
        fs::write(path("d/file"), "").unwrap();
        fs::hard_link(path("d/file"), path("hard")).unwrap();
        symlink(path("d"), path("directory")).unwrap();
        symlink("d/new", path("dangling")).unwrap();
        symlink("circle", path("circle")).unwrap();
        let same = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|name| Identity::from_path(&path(name)));
            assert!(one.is_some());
            one == other
        };
        assert!(same("d/file", "hard") && same("directory/./file", "d/../hard"));
        assert!(same("d/new", "dangling") && same("directory/new", "dangling"));
        assert!(!same("d/new", "d/file") && !same("d/new", "new"));
        assert_eq!(Identity::from_path(&path("circle")), None);
        assert_eq!(Identity::from_path(Path::new("/dev/null")), None);
        for (name, kind) in [
            ("no/file", ErrorKind::NotFound),
            ("d/", ErrorKind::IsADirectory),
            ("d/..", ErrorKind::IsADirectory),
        ] {
            assert_eq!(ResolvedPath::resolve(&path(name)).unwrap_err().kind(), kind, "{name}");
        }
    }

    #[test]
    fn resolves_open_descriptors() {
        for name in ["/proc/self/fd/2", "/dev/fd/2", "/dev/stderr"] {
            if Path::new(name).exists() {
                assert_eq!(
                    ResolvedPath::resolve(Path::new(name)).unwrap(),
                    ResolvedPath::Descriptor(2),
                    "{name}"
                );
            }
        }
    }
}
