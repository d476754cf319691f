//! The files of a job: the user's, or temporary ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_job::{Filesystem, Machine};

use super::needs::{JobNeeds, NeededFile};

use crate::cold_cache::require_cold;
use crate::holes::hole_ranges;
use crate::journal::{Guard, Journal, Undo};
use crate::probe::raise_limit;
use crate::scratch::{self, Scratch, ScratchSize};
use crate::storage::Storage;
use crate::temporary_file::{FileContents, check_calls, require_space};
use crate::{Error, page_size, temporary_file};

/// Directories for temporary files, after the user's own.
const DIRECTORIES: [&str; 2] = ["/var/tmp", "/tmp"];

/// The directory for temporary files, which has to be on a disk: `TMPDIR`, or /var/tmp.
///
/// # Errors
/// None of the candidates exists and is suitable; tmpfs is not.
pub fn temporary_directory() -> Result<PathBuf, Error> {
    let tmpdir = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(tmpdir) = tmpdir {
        // If the user named the directory, the reason is reported.
        let unsuited = |reason: String| {
            let directory = format!("the directory '{}' of TMPDIR, {reason},", tmpdir.display());
            Error::unavailable(directory, "name one on a disk in TMPDIR, or unset it")
        };
        let storage = Storage::find(&tmpdir).map_err(|error| unsuited(reason(&error)))?;
        return match storage.unsuitable_reason() {
            Some(reason) => Err(unsuited(format!("which {reason}"))),
            None => Ok(tmpdir),
        };
    }
    let mut directories = DIRECTORIES.into_iter().map(PathBuf::from);
    let on_disk = |directory: &PathBuf| {
        Storage::find(directory).is_ok_and(|storage| storage.unsuitable_reason().is_none())
    };
    directories.find(on_disk).ok_or_else(|| {
        Error::unavailable(
            "a directory on a disk for temporary files",
            "name one in TMPDIR, or give --file",
        )
    })
}

/// Why a directory is unusable, as a relative clause.
fn reason(error: &Error) -> String {
    match error {
        Error::Os { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "which does not exist".to_string()
        }
        other => format!("of which filemap could not learn more ({other})"),
    }
}

/// An open file of a job.
#[derive(Debug)]
pub(super) struct JobFile {
    /// Temporary files are unnamed, so they disappear with this process.
    pub(super) file: File,
    /// Path by which a child can open it.
    pub(super) path: PathBuf,
    /// Name in errors and reports.
    pub(super) name: PathBuf,
    /// Whether every page has a block on disk.
    pub(super) has_all_blocks: bool,
    bytes: u64,
    // Drops the pages of the user's file again.
    _pages: Option<Guard>,
}

/// The files of a job, at least one.
#[derive(Debug)]
pub(super) struct JobFiles {
    // Files have to close before their filesystem goes.
    pub(super) files: Vec<JobFile>,
    /// Storage of the first file.
    pub(super) storage: Storage,
    _scratch: Option<Scratch>,
}

/// File descriptors needed in addition to a job's files.
const EXTRA_DESCRIPTORS: u64 = 256;

impl JobFiles {
    /// Opens or creates the files of `needs`. New files are created in `directory`, or on one
    /// scratch filesystem if `directory` does not have the readahead size or filesystem of the job.
    /// A program whose segments are mapped is copied to a new file.
    pub(super) fn create(
        needs: &JobNeeds,
        journal: &Journal,
        directory: &Path,
    ) -> Result<Self, Error> {
        raise_limit(needs.files.len() as u64 + EXTRA_DESCRIPTORS)?;
        let makes = needs.files.iter().any(|needed| needed.users_path().is_none());
        let scratch = if makes && !suits(&needs.machine, &Storage::find(directory)?) {
            Some(scratch_for(needs, journal, directory)?)
        } else {
            None
        };
        let root = scratch.as_ref().map_or(directory, Scratch::root);
        if makes && scratch.is_none() {
            require_space(directory, needs.written_bytes())?;
        }
        let files = needs.files.iter().map(|needed| match needed.users_path() {
            Some(path) => JobFile::existing(needed, &needs.machine, journal, path),
            None => JobFile::temporary(needed, root, directory),
        });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let first = needs.files[0].users_path().unwrap_or(root);
        Ok(JobFiles { files, storage: Storage::find(first)?, _scratch: scratch })
    }

    /// Paths by which a child opens them.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }
}

impl JobFile {
    fn existing(
        needed: &NeededFile,
        machine: &Machine,
        journal: &Journal,
        path: &Path,
    ) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
        let storage = probe_storage(machine, path)?;
        let pages = guard_page_cache(&needed.file, journal, &file, path)?;
        let (path, bytes) = (path.to_owned(), needed.file.size_bytes);
        let name = path.clone();
        let file = JobFile { file, path, name, has_all_blocks: false, bytes, _pages: Some(pages) };
        file.check_size()?;
        check_calls(&needed.called, &file.file, &file.path)?;
        Ok(file.with_blocks(&storage))
    }

    /// A new file in `root`, whose blocks come from the filesystem of `directory`.
    fn temporary(needed: &NeededFile, root: &Path, directory: &Path) -> Result<Self, Error> {
        let bytes = needed.file.size_bytes;
        let file = temporary_file::unnamed(root)?;
        temporary_file::write(&file, directory, bytes, &needed.contents)?;
        let storage = Storage::find(root)?;
        let path = temporary_file::name_for_children(&file);
        let name = root.join(match (&needed.contents, &needed.name) {
            (FileContents::CopyOf(path), _) => {
                format!("(copy of {})", path.file_name().unwrap_or_default().display())
            }
            (_, Some(name)) => format!("(temporary: {name})"),
            (_, None) => "(temporary)".to_owned(),
        });
        let file = JobFile { file, path, name, has_all_blocks: false, bytes, _pages: None };
        Ok(file.with_blocks(&storage))
    }

    fn with_blocks(mut self, storage: &Storage) -> Self {
        // Compressed or packed blocks do not correspond to pages.
        let plain = matches!(storage.filesystem.as_str(), "ext4" | "xfs");
        let blocks = self.file.metadata().map_or(0, |metadata| metadata.blocks());
        let has_all = blocks.saturating_mul(512) >= self.bytes;
        self.has_all_blocks = plain && has_all && hole_ranges(&self.file).is_empty();
        self
    }

    /// Refuses a file whose size differs from the job's, or has changed.
    pub(super) fn check_size(&self) -> Result<(), Error> {
        let metadata = self.file.metadata();
        let metadata =
            metadata.map_err(|error| Error::os("read the size of", &self.name, error))?;
        if metadata.len() == self.bytes {
            return Ok(());
        }
        let (path, bytes, expected) = (self.name.clone(), metadata.len(), self.bytes);
        Err(Error::SizeChanged { path, bytes, expected })
    }
}

/// Creates one filesystem with the job's readahead size for the files to be created.
fn scratch_for(needs: &JobNeeds, journal: &Journal, directory: &Path) -> Result<Scratch, Error> {
    let made = needs.files.iter().filter(|needed| needed.users_path().is_none());
    let filesystem = scratch_filesystem(&needs.machine)?;
    // Each file occupies whole blocks.
    let bytes = needs.made_bytes();
    let (files, disk_bytes) = (made.count() as u64, needs.written_bytes().min(bytes));
    let room = ScratchSize { files, bytes, disk_bytes };
    Scratch::create(journal, directory, filesystem, room, read_ahead_kb(&needs.machine))
}

/// Refuses to drop the pages of the user's `file` if other programs may need them and the job does
/// not allow it. The guard drops what runs leave in the page cache.
///
/// # Errors
/// [`Error::InPageCache`].
pub(crate) fn guard_page_cache(
    of_job: &filemap_job::File,
    journal: &Journal,
    file: &File,
    path: &Path,
) -> Result<Guard, Error> {
    if !of_job.cold {
        require_cold(file, path)?;
    }
    let path = std::path::absolute(path).map_err(|error| Error::os("find", path, error))?;
    journal.change(Undo::DropPages(path), || Ok(())).map(|((), guard)| guard)
}

/// The directory for the files that back scratch filesystems: the one for temporary files, or the
/// journal's if no such directory is on a disk.
///
/// # Errors
/// The directory in TMPDIR is unsuitable.
pub(crate) fn scratch_directory(journal: &Journal) -> Result<PathBuf, Error> {
    let named = std::env::var_os("TMPDIR").is_some_and(|path| !path.is_empty());
    temporary_directory()
        .or_else(|error| if named { Err(error) } else { Ok(journal.directory().to_owned()) })
}

/// Storage of a file that the job names.
///
/// # Errors
/// The file cannot be made cold there, or its readahead or filesystem differs from `machine`.
pub(crate) fn probe_storage(machine: &Machine, path: &Path) -> Result<Storage, Error> {
    let storage = Storage::find(path)?;
    if let Some(reason) = storage.unsuitable_reason() {
        return Err(Error::unavailable(
            format!("a cold '{}', which {reason}", path.display()),
            "give a file on a disk",
        ));
    }
    if !suits(machine, &storage) {
        return Err(Error::unavailable(
            format!(
                "{} with a readahead of {} KiB for '{}'",
                machine.fs,
                read_ahead_kb(machine),
                path.display()
            ),
            match storage.read_ahead_kb {
                Some(kib) => {
                    format!(
                        "give --read-ahead-kb {kib}, its own --fs and --block-size, or no --file"
                    )
                }
                None => "its device has no readahead size: give a file on a disk".to_owned(),
            },
        ));
    }
    Ok(storage)
}

/// Whether `storage` has the readahead size and the filesystem of `machine`.
fn suits(machine: &Machine, storage: &Storage) -> bool {
    machine.fs == storage.folios()
        && (machine.fs != Filesystem::Xfs || machine.block_bytes == storage.block_bytes)
        && storage.read_ahead_kb == Some(read_ahead_kb(machine))
        && storage.unsuitable_reason().is_none()
}

fn read_ahead_kb(machine: &Machine) -> u64 {
    machine.read_ahead.bytes(page_size()) >> 10
}

fn scratch_filesystem(machine: &Machine) -> Result<scratch::ScratchFilesystem, Error> {
    match machine.fs {
        Filesystem::Ext4 => Ok(scratch::ScratchFilesystem::Ext4),
        Filesystem::Xfs => Ok(scratch::ScratchFilesystem::Xfs { block_bytes: machine.block_bytes }),
        Filesystem::BasePages => Err(Error::unavailable(
            format!("a new filesystem other than ext4 and xfs with {} KiB", read_ahead_kb(machine)),
            "give --fs ext4 or xfs, name a directory on one in TMPDIR, or give --on model",
        )),
    }
}
