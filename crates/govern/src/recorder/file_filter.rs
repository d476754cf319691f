//! Which files are recorded.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_attach::file::matches_any;
use filemap_attach::process::mapped_file_link;
use filemap_attach::{FileId, reason};
use filemap_kernel::storage::{overlay_layer_file, path_of_namespace};
use filemap_recording::assembly::ObservedFile;
use rustix::io::{ReadWriteFlags, preadv2};

/// The default of [`FileFilter::min_bytes`].
pub const DEFAULT_MIN_FILE_BYTES: u64 = 16 << 10;

/// `f_type` of statfs(2) for tmpfs, ramfs and hugetlbfs (`linux/magic.h`), which have no readahead.
const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// The first bytes of programs and libraries.
const ELF_MAGIC: &[u8; 4] = b"\x7fELF";

/// The loader's cache of library paths. It is mapped without a read(2) before, so its first page
/// need not be cached when it is mapped.
const LOADER_CACHE: &str = "ld.so.cache";

/// Selects the files that are recorded.
#[derive(Clone, Debug)]
pub struct FileFilter {
    /// The smallest file that is recorded, in bytes.
    pub min_bytes: u64,
    /// Patterns as for fnmatch(3); the path has to match at least one. Without patterns all files
    /// match except those that the dynamic loader maps: programs, libraries and its cache.
    pub patterns: Vec<OsString>,
}

impl FileFilter {
    /// Whether the file at `path` would be recorded.
    pub fn accepts(&self, path: &Path) -> bool {
        let inode = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|data| data.ino());
        let id = inode.map(|inode| FileId { major: 0, minor: 0, inode });
        let pid = std::process::id();
        let found = ProcessFile { path: path.to_owned(), link: path.to_owned(), pid };
        id.is_some_and(|id| self.recorded_file(id, &found).is_ok())
    }

    /// The description of the file with the inode of `id` that `found` leads to.
    ///
    /// # Errors
    /// It is not recorded.
    pub fn recorded_file(
        &self,
        id: FileId,
        found: &ProcessFile,
    ) -> Result<ObservedFile, Exclusion> {
        let unreadable = |error: io::Error| Exclusion::Unreadable(reason(&error));
        let data = fs::metadata(&found.link).map_err(unreadable)?;
        let filesystem =
            rustix::fs::statfs(&found.link).map_err(|error| unreadable(error.into()))?;
        if data.ino() != id.inode {
            return Err(Exclusion::Replaced);
        }
        if !data.is_file() {
            return Err(Exclusion::NoFile);
        }
        if IN_MEMORY.contains(&filesystem.f_type) {
            return Err(Exclusion::InMemory);
        }
        match self.patterns.as_slice() {
            [] if is_loader_file(found) => return Err(Exclusion::LoaderFile),
            _ if data.len() < self.min_bytes.max(1) => {
                return Err(Exclusion::Small { size_bytes: Reverse(data.len()) });
            }
            [] => {}
            patterns if matches_any(patterns, &found.path) => {}
            _ => return Err(Exclusion::NotIncluded),
        }
        let size_bytes = data.len();
        let layer = found.layer(&data);
        let mut path = found.path.clone();
        if found.link != found.path {
            // The path leads elsewhere here.
            let of_layer = layer.as_ref().map(|(path, _)| path.clone());
            path = found.path_here(&data).or(of_layer).unwrap_or(path);
        }
        let data = layer.map_or(data, |(_, data)| data);
        Ok(ObservedFile { path, device: data.dev(), inode: data.ino(), size_bytes })
    }
}

/// Why a file is not recorded; the most surprising reason first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusion {
    /// It cannot be found or opened, for this reason.
    Unreadable(String),
    /// Another file has its path.
    Replaced,
    /// Its filesystem keeps it in memory.
    InMemory,
    /// Its path matches no pattern.
    NotIncluded,
    /// It is below the minimum size.
    Small {
        /// Its size.
        size_bytes: Reverse<u64>,
    },
    /// It is no regular file.
    NoFile,
    /// It is a program or library, or the loader's cache of their paths.
    LoaderFile,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusion::Unreadable(reason) => write!(formatter, "cannot be opened ({reason})"),
            Exclusion::Replaced => formatter.write_str("is another file by now"),
            Exclusion::InMemory => formatter.write_str("is on a filesystem in memory"),
            Exclusion::NotIncluded => formatter.write_str("matches no --include"),
            Exclusion::Small { size_bytes: Reverse(size_bytes) } => {
                write!(formatter, "has only {size_bytes} bytes (--min-size)")
            }
            Exclusion::NoFile => formatter.write_str("is no regular file"),
            Exclusion::LoaderFile => formatter.write_str("is a program or library (--include)"),
        }
    }
}

/// A file of a process.
#[derive(Clone, Debug)]
pub struct ProcessFile {
    /// Its path as the process sees it.
    pub path: PathBuf,
    /// A path by which this process can open it: the same, or a link in `/proc/PID`.
    pub link: PathBuf,
    /// The process.
    pub pid: u32,
}

impl ProcessFile {
    /// Finds the file with the inode of `id` that process `pid` has mapped at `address`, or has had
    /// open, as `path`. The process may have another root directory or mount namespace, in which
    /// the path leads elsewhere than here.
    pub fn find(pid: u32, id: FileId, path: &Path, address: Option<u64>) -> ProcessFile {
        let found = |link: PathBuf| ProcessFile { path: path.to_owned(), link, pid };
        if has_own_root(pid) {
            return found(path.to_owned());
        }
        let mapped = address.and_then(|address| mapped_file_link(pid, address));
        let relative = path.strip_prefix("/").unwrap_or(path);
        let in_root = Path::new(&format!("/proc/{pid}/root")).join(relative);
        let is_it = |link: &PathBuf| {
            fs::metadata(link).is_ok_and(|data| data.is_file() && data.ino() == id.inode)
        };
        let link = mapped.into_iter().chain([in_root.clone()]).find(is_it);
        // The process may have exited.
        found(link.unwrap_or_else(|| if in_root.exists() { in_root } else { path.to_owned() }))
    }

    /// The current size in bytes; `None` if it is another file than `stored`. The device of a file
    /// of an overlay is its layer's.
    pub fn current_size_bytes(&self, stored: &ObservedFile) -> Option<u64> {
        let data = fs::metadata(&self.link).ok()?;
        (data.ino() == stored.inode).then_some(data.len())
    }

    /// The path of this file, with the metadata `data`, in the mount namespace of this process.
    fn path_here(&self, data: &fs::Metadata) -> Option<PathBuf> {
        let mounts = fs::read(format!("/proc/{}/mountinfo", self.pid)).ok()?;
        // After chroot(2) the path begins at the namespace's root, and the mount points do not.
        let root = fs::read_link(format!("/proc/{}/root", self.pid)).unwrap_or_default();
        let within = self.path.strip_prefix(&root).ok().map(|within| Path::new("/").join(within));
        let paths = [self.path.clone()].into_iter().chain(within);
        let mounts = String::from_utf8_lossy(&mounts);
        paths.into_iter().find_map(|path| path_of_namespace(&mounts, &path, data))
    }

    /// The file of a layer that holds the pages of this file, and its metadata, if the filesystem
    /// of this file, which gives it `data`, is an overlay.
    fn layer(&self, data: &fs::Metadata) -> Option<(PathBuf, fs::Metadata)> {
        let filesystem = rustix::fs::statfs(&self.link).ok()?.f_type;
        if filesystem != libc::OVERLAYFS_SUPER_MAGIC {
            return None;
        }
        let mounts = fs::read(format!("/proc/{}/mountinfo", self.pid)).ok()?;
        let layer = overlay_layer_file(&String::from_utf8_lossy(&mounts), &self.path, data)?;
        let data = fs::metadata(&layer).ok()?;
        Some((layer, data))
    }
}

/// Whether process `pid` has the root directory and mount namespace of this process. If it has
/// exited, its paths are taken as ours.
fn has_own_root(pid: u32) -> bool {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let root = |process: &str| {
        let data = fs::metadata(format!("/proc/{process}/root")).ok()?;
        Some((data.dev(), data.ino()))
    };
    let pid = pid.to_string();
    let is_same_namespace = namespace(&pid).is_none_or(|other| Some(other) == namespace("self"));
    is_same_namespace && root(&pid).is_none_or(|other| Some(other) == root("self"))
}

/// Whether the dynamic loader maps a file. The loader has just read the ELF header of a
/// program or library, so its first page is cached. A file whose first page is not cached is
/// neither, and is not read: waiting for the disk here would delay the recording.
fn is_loader_file(found: &ProcessFile) -> bool {
    if found.path.file_name().is_some_and(|name| name == LOADER_CACHE) {
        return true;
    }
    let mut start = [0; ELF_MAGIC.len()];
    let Ok(file) = File::open(&found.link) else { return false };
    let read = preadv2(&file, &mut [IoSliceMut::new(&mut start)], 0, ReadWriteFlags::NOWAIT);
    read.is_ok_and(|read| start[..read] == ELF_MAGIC[..])
}
