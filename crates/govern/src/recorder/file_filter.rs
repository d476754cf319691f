//! Which files are recorded.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::IoSliceMut;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use filemap_attach::FileId;
use filemap_attach::file::matches_any;
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
        id.is_some_and(|id| self.recorded_file(id, path).is_some())
    }

    /// The description of the file at `path`, if it has the inode of `id` and is recorded.
    pub fn recorded_file(&self, id: FileId, path: &Path) -> Option<ObservedFile> {
        let data = fs::metadata(path).ok()?;
        let filesystem = rustix::fs::statfs(path).ok()?.f_type;
        let is_recorded = data.is_file()
            && data.ino() == id.inode
            && data.len() >= self.min_bytes.max(1)
            && !IN_MEMORY.contains(&filesystem)
            && match self.patterns.as_slice() {
                [] => !is_loader_file(path),
                patterns => matches_any(patterns, path),
            };
        is_recorded.then(|| ObservedFile {
            path: path.to_owned(),
            device: data.dev(),
            inode: data.ino(),
            size_bytes: data.len(),
        })
    }
}

/// Whether the dynamic loader maps the file at `path`. The loader has just read the ELF header of a
/// program or library, so its first page is cached. A file whose first page is not cached is
/// neither, and is not read: waiting for the disk here would delay the recording.
fn is_loader_file(path: &Path) -> bool {
    if path.file_name().is_some_and(|name| name == LOADER_CACHE) {
        return true;
    }
    let mut start = [0; ELF_MAGIC.len()];
    let Ok(file) = File::open(path) else { return false };
    let read = preadv2(&file, &mut [IoSliceMut::new(&mut start)], 0, ReadWriteFlags::NOWAIT);
    read.is_ok_and(|read| start[..read] == ELF_MAGIC[..])
}
