//! What is remembered of files, in a directory of the user: one file for each, the ones that were
//! not used for longest are removed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use filemap_attach::reason;
use filemap_policy::{Costs, TouchHistory};
use rustix::fs::{AtFlags, StatxFlags, major, minor, statx};
use rustix::process::geteuid;

use crate::device_times;
use crate::history_format::{FileIdentity, FileMemory, MAX_HISTORIES};
use crate::journal::replace_file;

/// Extension of the files.
const EXTENSION: &str = "touches";

/// Maximum number of files that are remembered.
const MAX_FILES: usize = 256;

/// Extension of the files with the costs of a device, and their maximum number.
const DEVICE_EXTENSION: &str = "device";
const MAX_DEVICES: usize = 64;

/// Costs are measured again after this time: a device may have been replaced by another.
const MAX_COSTS_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum size of the file of a device.
const MAX_DEVICE_BYTES: u64 = 256;

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
        let memory = match read(&path, MAX_BYTES) {
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

    /// Adds a program's touches of the file `identity` at `path`. A history of cached pages is kept
    /// only until there is one of a cold run.
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
        if !history.is_cached {
            histories.retain(|own| !own.is_cached);
        }
        if !history.is_cached || histories.iter().all(|own| own.is_cached) {
            histories.insert(0, history);
        }
        histories.truncate(MAX_HISTORIES);
        let memory = FileMemory { identity, path: path.to_path_buf(), histories };
        let name = identity.file_name();
        let written = replace_file(&self.directory.join(&name), &memory.encode(), 0o600);
        written.map_err(|error| format!("'{}' cannot be written: {}", name, reason(&error)))?;
        self.remove_oldest(EXTENSION, MAX_FILES);
        Ok(())
    }

    /// What reading costs on `device`, if that was measured lately.
    pub(crate) fn costs(&self, device: (u32, u32)) -> Option<Costs> {
        let path = self.device_path(device);
        let bytes = read(&path, MAX_DEVICE_BYTES).ok()?;
        let age = path.symlink_metadata().ok()?.modified().ok()?.elapsed().ok()?;
        let text = std::str::from_utf8(&bytes).ok().filter(|_| age < MAX_COSTS_AGE)?;
        let (fault, page) = text.strip_suffix('\n')?.split_once('\n')?;
        let number = |line: &str, name: &str| -> Option<u64> {
            let number = line.strip_prefix(name)?.parse().ok()?;
            Some(number).filter(|number| (1..1_000_000_000).contains(number))
        };
        Some(Costs { fault_ns: number(fault, "fault_ns ")?, page_ns: number(page, "page_ns ")? })
    }

    /// [`HistoryStore::costs`] of the device of `file`, which is measured if that is not known. A
    /// measurement that cannot be kept is repeated the next time.
    pub(crate) fn measured_costs(&self, file: &File) -> Option<Costs> {
        let data = file.metadata().ok()?;
        let device = (major(data.dev()), minor(data.dev()));
        if let Some(costs) = self.costs(device) {
            return Some(costs);
        }
        let costs = device_times::measure(file)?;
        let text = format!("fault_ns {}\npage_ns {}\n", costs.fault_ns, costs.page_ns);
        let _ = replace_file(&self.device_path(device), text.as_bytes(), 0o600);
        self.remove_oldest(DEVICE_EXTENSION, MAX_DEVICES);
        Some(costs)
    }

    fn device_path(&self, device: (u32, u32)) -> PathBuf {
        self.directory.join(format!("{}-{}.{DEVICE_EXTENSION}", device.0, device.1))
    }

    fn remove_oldest(&self, extension: &str, most: usize) {
        let mut files = self.files(extension);
        let extra = files.len().saturating_sub(most);
        if extra > 0 {
            files.sort();
            files[..extra].iter().for_each(|(_, path)| drop(fs::remove_file(path)));
        }
    }

    /// The files with this extension, with the time of their last change.
    fn files(&self, extension: &str) -> Vec<(SystemTime, PathBuf)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let ours = paths.filter(|path| path.extension() == Some(OsStr::new(extension)));
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
        let is_it = |at: &PathBuf| match read(at, MAX_BYTES)
            .ok()
            .and_then(|bytes| FileMemory::decode(&bytes))
        {
            Some(FileMemory { identity, path, .. }) => {
                let own = (identity.device.0, identity.device.1, identity.inode);
                path == absolute || existing.as_ref().is_ok_and(|existing| *existing == own)
            }
            None => false,
        };
        let found = self.files(EXTENSION).into_iter().map(|(_, at)| at).filter(is_it);
        found.filter(|at| fs::remove_file(at).is_ok()).count() > 0
    }

    /// Removes everything. Returns the number of files that were remembered.
    pub fn forget_all(&self) -> usize {
        self.files(DEVICE_EXTENSION).iter().for_each(|(_, at)| drop(fs::remove_file(at)));
        self.files(EXTENSION).into_iter().filter(|(_, at)| fs::remove_file(at).is_ok()).count()
    }
}

/// Reads at most one byte more than `most`, and only from a regular file.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

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

    /// Runs with a warm cache do not displace what a cold one has shown.
    #[test]
    fn cached_touches_are_kept_only_alone() {
        let (_scratch, store) = store();
        let FileMemory { identity, path, histories } = memory(5);
        let add = |is_cached, threads| {
            let history = TouchHistory { is_cached, threads, ..histories[0].clone() };
            store.add(identity, &path, history).unwrap();
            let kept = store.load(&identity).unwrap();
            kept.iter().map(|own| own.threads).collect::<Vec<_>>()
        };
        assert_eq!(add(true, 1), [1]);
        assert_eq!(add(true, 2), [2, 1]);
        assert_eq!(add(false, 3), [3]);
        assert_eq!(add(true, 4), [3]);
        assert_eq!(add(false, 5), [5, 3]);
    }

    #[test]
    fn costs_of_a_device_are_kept_for_a_day() {
        let (scratch, store) = store();
        let mut file = File::create_new(scratch.path().join("file")).unwrap();
        file.write_all(&vec![7; 20 << 20]).unwrap();
        file.sync_all().unwrap();
        let data = file.metadata().unwrap();
        let device = (major(data.dev()), minor(data.dev()));
        assert_eq!(store.costs(device), None);
        // Some filesystems cannot read past the page cache.
        let Some(costs) = store.measured_costs(&file) else { return };
        assert_eq!(store.costs(device), Some(costs));
        assert_eq!(store.measured_costs(&file), Some(costs));
        let at = store.device_path(device);
        for text in ["", "fault_ns 0\npage_ns 1\n", "fault_ns 1\npage_ns 1", "fault_ns -1\n"] {
            fs::write(&at, text).unwrap();
            assert_eq!(store.costs(device), None, "{text}");
        }
        fs::write(&at, "fault_ns 7\npage_ns 5\n").unwrap();
        assert_eq!(store.costs(device), Some(Costs { fault_ns: 7, page_ns: 5 }));
        let old = SystemTime::now() - MAX_COSTS_AGE;
        File::options().write(true).open(&at).unwrap().set_modified(old).unwrap();
        assert_eq!(store.costs(device), None);
        assert_eq!((store.forget_all(), at.exists()), (0, false));
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
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(inode + 1);
            File::options().write(true).open(at).and_then(|file| file.set_modified(then)).unwrap();
        }
        assert!(store.files(EXTENSION).len() <= MAX_FILES);
        let is_known = |inode| !store.load(&memory(inode).identity).unwrap().is_empty();
        assert!(!is_known(0) && is_known(MAX_FILES as u64 + 2));
        assert!(store.forget_all() == MAX_FILES && store.files(EXTENSION).is_empty());
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
