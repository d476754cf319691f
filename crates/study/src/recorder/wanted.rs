//! Which files are recorded.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::IoSliceMut;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use filemap_attach::FileId;
use filemap_attach::file::any_matches;
use filemap_recording::assembly::Stored;
use rustix::io::{ReadWriteFlags, preadv2};

/// Bytes of the smallest file, where nobody says it.
pub const SMALLEST: u64 = 16 << 10;

/// The `f_type` of statfs(2) of tmpfs, ramfs and hugetlbfs (`linux/magic.h`). Nothing is read ahead
/// there.
const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// How programs and libraries begin.
const ELF: &[u8; 4] = b"\x7fELF";

/// The loader's list of libraries. It is mapped and never read, so that it may not be cached.
const LIST_OF_LIBRARIES: &str = "ld.so.cache";

/// Which files are recorded.
#[derive(Clone, Debug)]
pub struct WantedFiles {
    /// Bytes of the smallest.
    pub min_bytes: u64,
    /// Patterns, one of which their path matches. Where there is none, all are but what the loader
    /// maps: programs, libraries and its list of them.
    pub patterns: Vec<OsString>,
}

impl WantedFiles {
    /// Whether a file at this path would be recorded.
    pub fn has(&self, path: &Path) -> bool {
        let number = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|of| of.ino());
        let inode = number.map(|number| FileId { major: 0, minor: 0, inode: number });
        inode.is_some_and(|inode| self.look(inode, path).is_some())
    }

    /// What is told of the file at `path`, if it is recorded.
    pub fn look(&self, file: FileId, path: &Path) -> Option<Stored> {
        let found = fs::metadata(path).ok()?;
        let is_it = found.is_file() && found.ino() == file.inode;
        let filesystem = rustix::fs::statfs(path).ok()?.f_type;
        let is_recorded = is_it
            && found.len() >= self.min_bytes.max(1)
            && !IN_MEMORY.contains(&filesystem)
            && match self.patterns.as_slice() {
                [] => !is_of_loader(path),
                patterns => any_matches(patterns, path),
            };
        is_recorded.then(|| Stored {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
            size_bytes: found.len(),
        })
    }
}

/// Whether a file of the loader lies at `path`. The loader has read the begin of a program or
/// library just before: a file that would have to be read first is none, and to wait for the disk
/// would be too late.
fn is_of_loader(path: &Path) -> bool {
    if path.file_name().is_some_and(|name| name == LIST_OF_LIBRARIES) {
        return true;
    }
    let mut begin = [0; ELF.len()];
    let Ok(file) = File::open(path) else { return false };
    let read = preadv2(&file, &mut [IoSliceMut::new(&mut begin)], 0, ReadWriteFlags::NOWAIT);
    read.is_ok_and(|read| begin[..read] == ELF[..])
}
