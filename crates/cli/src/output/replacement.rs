//! Atomic replacement of file contents.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags};
use tempfile::{Builder, TempPath};

/// Mode of a new file, before the umask.
const NEW_MODE: u32 = 0o666;

/// Suffix of incomplete files.
const PART: &str = ".part";

/// Mode bits that the new file inherits. Writing to a file clears the others.
const MODE_BITS: u32 = 0o777;

/// New contents of a file, in the same directory. Discarded unless placed.
pub struct Replacement {
    path: PathBuf,
    old: Option<Metadata>,
    file: File,
    /// Its temporary name, on filesystems without `O_TMPFILE`.
    temporary: Option<TempPath>,
}

impl Replacement {
    /// Prepares new contents for `path`, which is not a symbolic link; `old` is the existing file.
    ///
    /// # Errors
    /// If no file can be created in the directory, or the existing one cannot be replaced.
    pub fn new(path: PathBuf, old: Option<Metadata>) -> io::Result<Self> {
        let directory = replaceable(&path, old.as_ref())?;
        let (file, temporary) = match create_unnamed(directory) {
            Ok(file) => (file, None),
            Err(error) if lacks_unnamed_files(&error) => {
                let (file, temporary) = create_named(directory, create)?;
                (file, Some(temporary))
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && old.is_some() => {
                return Err(io::Error::other("no new file can be created in its directory"));
            }
            Err(error) => return Err(error),
        };
        Ok(Replacement { path, old, file, temporary })
    }

    /// [`Replacement::of`] with the name `path.part`, which is left behind if this process is
    /// killed.
    ///
    /// # Errors
    /// As for [`Replacement::of`]; also if `path.part` exists.
    pub fn new_partial(place: PathBuf, old: Option<Metadata>) -> io::Result<Self> {
        replaceable(&place, old.as_ref())?;
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(PART);
        let part = place.with_file_name(name);
        let file = create(&part).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::other(format!(
                "'{}' exists, from a command that is running or was killed; use it, or remove it",
                part.display()
            )),
            _ => error,
        })?;
        let temporary = Some(TempPath::try_from_path(part)?);
        Ok(Replacement { path: place, old, file, temporary })
    }

    /// The file to write the new contents to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Replaces the old contents with the new ones, after syncing them to disk.
    ///
    /// # Errors
    /// If that fails; the old contents are unchanged.
    pub fn commit(self) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        if let Some(old) = &self.old {
            take_over(&self.file, old)?;
        }
        match self.file.sync_all() {
            Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
            _ => {}
        }
        match self.temporary {
            Some(temporary) => temporary.persist(&self.path)?,
            None if self.old.is_none() && link(&self.file, &self.path).is_ok() => {}
            // `linkat(2)` does not replace existing files.
            None => {
                create_named(directory, |path| link(&self.file, path))?.1.persist(&self.path)?
            }
        }
        // The contents are synced; not every filesystem can sync the directory.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

/// Copies the owner and mode of `old` to `file`.
fn take_over(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may change the owner.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(Permissions::from_mode(old.mode() & MODE_BITS))
}

/// The directory of `path`, if the file may be replaced.
fn replaceable<'a>(path: &'a Path, old: Option<&Metadata>) -> io::Result<&'a Path> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    if old.is_some_and(|old| is_kept_in_place(path, old, directory)) {
        Err(io::Error::other("it cannot be replaced where it is"))
    } else {
        Ok(directory)
    }
}

/// Whether `path` is writable but cannot be replaced: it is a mount point, or belongs to another
/// user in a sticky directory such as `/tmp`.
fn is_kept_in_place(path: &Path, old: &Metadata, directory: &Path) -> bool {
    let stat = rustix::fs::statx(CWD, path, AtFlags::NO_AUTOMOUNT, StatxFlags::empty());
    let mounted = stat.is_ok_and(|s| s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    let user = rustix::process::geteuid().as_raw();
    let sticky = fs::metadata(directory).is_ok_and(|directory| {
        directory.mode() & 0o1000 != 0 && directory.uid() != user && old.uid() != user
    });
    mounted || (sticky && user != 0)
}

/// Creates an unnamed file in `directory`, which vanishes when this process exits for any reason.
fn create_unnamed(directory: &Path) -> io::Result<File> {
    if !Path::new("/proc/self/fd").exists() {
        return Err(rustix::io::Errno::OPNOTSUPP.into());
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open(directory, flags, Mode::from_raw_mode(NEW_MODE))?.into())
}

/// Whether the error means that the filesystem does not support unnamed files.
fn lacks_unnamed_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOSYS))
}

/// Links the unnamed `file` as `path`.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Temporary names that this process has created.
static NAMED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Calls `make` with an unused name in `directory`.
fn create_named<T>(
    directory: &Path,
    make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, TempPath)> {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let made = Builder::new().prefix(".filemap-").suffix(".tmp").make_in(directory, make)?;
    let (made, path) = made.into_parts();
    named.push(path.to_path_buf());
    Ok((made, path))
}

/// Removes all temporary names before the process exits without running destructors. The lock is
/// kept, so no more names are created.
pub fn abandon() {
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.iter().for_each(|path| drop(fs::remove_file(path)));
    std::mem::forget(named);
}

/// Creates a file at `path`, which must not exist.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(NEW_MODE).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// A replacement of `path` as on a filesystem without `O_TMPFILE`.
    fn with_name(path: &Path) -> Replacement {
        let (file, temporary) = create_named(path.parent().unwrap(), create).unwrap();
        let old = fs::metadata(path).ok();
        Replacement { path: path.to_owned(), old, file, temporary: Some(temporary) }
    }

    #[test]
    fn temporary_file_is_renamed_or_removed() {
        use std::io::Write;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for contents in ["first", "second"] {
            let mut replacement = with_name(&path);
            replacement.file().write_all(contents.as_bytes()).unwrap();
            assert_eq!(names(directory.path()).len(), 1 + usize::from(contents == "second"));
            replacement.commit().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), contents);
            assert_eq!(names(directory.path()), ["file"]);
        }
        drop(with_name(&path));
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[test]
    fn failed_replacement_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("place");
        for replacement in [with_name(&path), Replacement::new(path.clone(), None).unwrap()] {
            fs::create_dir_all(&path).unwrap();
            assert!(replacement.commit().is_err());
        }
        assert_eq!(names(directory.path()), ["place"]);
    }
}
