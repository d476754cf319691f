//! What is remembered of files, in a directory of the user: one file for each, the ones that were
//! not used for longest are removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use filemap_attach::reason;
use filemap_policy::TouchHistory;
use rustix::fs::{AtFlags, StatxFlags, major, minor, statx};
use rustix::process::geteuid;

use crate::history_format::{FileIdentity, FileMemory, MAX_HISTORIES};
use crate::journal::replace_file;

/// Extension of the files.
const EXTENSION: &str = "touches";

/// Maximum number of files that are remembered.
const MAX_FILES: usize = 256;

/// Maximum size of a memory.
const MAX_BYTES: u64 = 2 << 20;

/// A file whose size has changed by at most this factor counts as the same file.
const MAX_SIZE_FACTOR: u64 = 2;

/// The remembered files of a user.
#[derive(Clone, Debug)]
pub struct HistoryStore {
    directory: PathBuf,
}

impl FileIdentity {
    /// The identity of an open file.
    ///
    /// # Errors
    /// statx(2) fails.
    pub fn from_file(file: &File) -> io::Result<FileIdentity> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let found = statx(file, c"", AtFlags::EMPTY_PATH, wanted)?;
        let time = |at: rustix::fs::StatxTimestamp| {
            (at.tv_sec.max(0).cast_unsigned(), u64::from(at.tv_nsec))
        };
        let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(FileIdentity {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            born: has_birth.then(|| time(found.stx_btime)),
            size_bytes: found.stx_size,
            modified: time(found.stx_mtime),
        })
    }

    /// Whether `now` is the same file, which may have been written to since. An inode number is
    /// used again for another file: that has another time of creation. Where that is not known, the
    /// file must be unchanged.
    fn is_same(&self, now: &FileIdentity) -> bool {
        let (least, most) =
            (self.size_bytes.min(now.size_bytes), self.size_bytes.max(now.size_bytes));
        let is_similar = most <= least.saturating_mul(MAX_SIZE_FACTOR);
        let is_it = match (self.born, now.born) {
            (Some(before), Some(now)) => before == now && is_similar,
            _ => self.modified == now.modified && self.size_bytes == now.size_bytes,
        };
        (self.device, self.inode) == (now.device, now.inode) && is_it
    }

    fn file_name(&self) -> String {
        format!("{}-{}-{}.{EXTENSION}", self.device.0, self.device.1, self.inode)
    }
}

impl HistoryStore {
    /// The store in `directory`, which is created if missing.
    ///
    /// # Errors
    /// It cannot be created, or others may write to it: one line that names it.
    pub fn open(directory: &Path) -> Result<HistoryStore, String> {
        let place = directory.display();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|error| format!("'{place}' cannot be created: {}", reason(&error)))?;
        let data = fs::metadata(directory)
            .map_err(|error| format!("'{place}' cannot be examined: {}", reason(&error)))?;
        if data.uid() != geteuid().as_raw() || data.mode() & 0o022 != 0 {
            return Err(format!("others may write to '{place}'"));
        }
        Ok(HistoryStore { directory: directory.to_path_buf() })
    }

    /// What is remembered of the file `identity`, the last history first; nothing if it is another
    /// file by now.
    ///
    /// # Errors
    /// The memory is damaged, or not of this version: one line.
    pub fn load(&self, identity: &FileIdentity) -> Result<Vec<TouchHistory>, String> {
        let path = self.directory.join(identity.file_name());
        let memory = match read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("'{}': {}", path.display(), reason(&error))),
            Ok(bytes) => FileMemory::decode(&bytes),
        };
        match memory {
            Some(memory) if memory.identity.is_same(identity) => Ok(memory.histories),
            Some(_) => Ok(Vec::new()),
            None => Err(format!(
                "'{}' is damaged or of another version, and is ignored",
                path.display()
            )),
        }
    }

    /// Adds what a program has touched of the file `identity` at `path`.
    ///
    /// # Errors
    /// The memory cannot be written: one line.
    pub fn add(
        &self,
        identity: FileIdentity,
        path: &Path,
        history: TouchHistory,
    ) -> Result<(), String> {
        let mut histories = self.load(&identity).unwrap_or_default();
        histories.insert(0, history);
        histories.truncate(MAX_HISTORIES);
        let memory = FileMemory { identity, path: path.to_path_buf(), histories };
        let name = identity.file_name();
        let written = replace_file(&self.directory.join(&name), &memory.encode(), 0o600);
        written.map_err(|error| format!("'{}' cannot be written: {}", name, reason(&error)))?;
        self.remove_oldest();
        Ok(())
    }

    fn remove_oldest(&self) {
        let mut files = self.files();
        let extra = files.len().saturating_sub(MAX_FILES);
        if extra > 0 {
            files.sort();
            files[..extra].iter().for_each(|(_, path)| drop(fs::remove_file(path)));
        }
    }

    /// The memories, with the time of their last change.
    fn files(&self) -> Vec<(SystemTime, PathBuf)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let ours = paths.filter(|path| path.extension() == Some(OsStr::new(EXTENSION)));
        ours.map(|path| {
            let changed = path.symlink_metadata().and_then(|data| data.modified());
            (changed.unwrap_or(SystemTime::UNIX_EPOCH), path)
        })
        .collect()
    }

    /// Removes the histories of the file at `path`, which need not exist any more. Returns
    /// whether there was something.
    pub fn forget(&self, path: &Path) -> bool {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let existing = fs::metadata(path).map(|data| {
            let device = data.dev();
            (major(device), minor(device), data.ino())
        });
        let is_it = |at: &PathBuf| match read(at).ok().and_then(|bytes| FileMemory::decode(&bytes))
        {
            Some(FileMemory { identity, path, .. }) => {
                let own = (identity.device.0, identity.device.1, identity.inode);
                path == absolute || existing.as_ref().is_ok_and(|existing| *existing == own)
            }
            None => false,
        };
        let found = self.files().into_iter().map(|(_, at)| at).filter(is_it);
        found.filter(|at| fs::remove_file(at).is_ok()).count() > 0
    }

    /// Removes everything. Returns the number of files that were remembered.
    pub fn forget_all(&self) -> usize {
        self.files().into_iter().filter(|(_, at)| fs::remove_file(at).is_ok()).count()
    }
}

/// Reads a memory, of bounded size and only from a regular file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history_format::tests::memory;

    fn store() -> (tempfile::TempDir, HistoryStore) {
        let scratch = tempfile::tempdir().unwrap();
        let store = HistoryStore::open(&scratch.path().join("a/b")).unwrap();
        (scratch, store)
    }

    #[test]
    fn last_histories_are_kept_first() {
        let (_scratch, store) = store();
        let FileMemory { identity, path, histories } = memory(5);
        assert_eq!(store.load(&identity), Ok(Vec::new()));
        for number in 0..MAX_HISTORIES + 2 {
            let history = TouchHistory { threads: number as u64 + 1, ..histories[0].clone() };
            store.add(identity, &path, history).unwrap();
        }
        let threads: Vec<u64> =
            store.load(&identity).unwrap().iter().map(|own| own.threads).collect();
        assert_eq!(threads, [5, 4, 3]);
        assert!(store.forget(&path) && !store.forget(&path));
        assert_eq!(store.load(&identity), Ok(Vec::new()));
    }

    /// A file that was written to is the same; another one in its place is not.
    #[test]
    fn other_file_of_same_inode_is_unknown() {
        let (_scratch, store) = store();
        let FileMemory { mut identity, path, histories } = memory(5);
        identity.size_bytes = 1000;
        store.add(identity, &path, histories[0].clone()).unwrap();
        let is_known = |changed: FileIdentity| !store.load(&changed).unwrap().is_empty();
        assert!(is_known(FileIdentity { modified: (9, 9), size_bytes: 1999, ..identity }));
        assert!(!is_known(FileIdentity { size_bytes: 2001, ..identity }));
        assert!(!is_known(FileIdentity { size_bytes: 499, ..identity }));
        assert!(!is_known(FileIdentity { born: Some((0, 0)), ..identity }));
        assert!(!is_known(FileIdentity { device: (1, 1), ..identity }));
        let unborn = FileIdentity { born: None, ..identity };
        assert!(is_known(unborn));
        assert!(!is_known(FileIdentity { modified: (9, 9), ..unborn }));
    }

    #[test]
    fn oldest_files_are_forgotten() {
        let (_scratch, store) = store();
        for inode in 0..MAX_FILES as u64 + 3 {
            let FileMemory { identity, path, .. } = memory(inode);
            store.add(identity, &path, TouchHistory::default()).unwrap();
            let at = store.directory.join(identity.file_name());
            let then = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(inode + 1);
            File::options().write(true).open(at).and_then(|file| file.set_modified(then)).unwrap();
        }
        assert!(store.files().len() <= MAX_FILES);
        let is_known = |inode| !store.load(&memory(inode).identity).unwrap().is_empty();
        assert!(!is_known(0) && is_known(MAX_FILES as u64 + 2));
        assert!(store.forget_all() == MAX_FILES && store.files().is_empty());
    }

    #[test]
    fn damaged_and_foreign_files_are_named() {
        let (_scratch, store) = store();
        let FileMemory { identity, path, histories } = memory(5);
        let at = store.directory.join(identity.file_name());
        for bytes in [&b""[..], b"filemap touches 9\n1234", &[7; 3 << 20]] {
            fs::write(&at, bytes).unwrap();
            assert!(store.load(&identity).unwrap_err().contains("is ignored"));
        }
        store.add(identity, &path, histories[0].clone()).unwrap();
        assert_eq!(store.load(&identity).unwrap().len(), 1, "a damaged one is replaced");
        fs::remove_file(&at).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &at).unwrap();
        assert!(store.load(&identity).is_err(), "links are not followed");
        let open = store.directory.join("open");
        DirBuilder::new().create(&open).unwrap();
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(HistoryStore::open(&open).unwrap_err().contains("others may write"));
        assert!(HistoryStore::open(Path::new("/dev/null/x")).is_err());
    }
}
