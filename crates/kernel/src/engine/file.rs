//! The file of a job: the user's, or a temporary one.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_job::{Filesystem, Job};

use crate::cold::require_cold;
use crate::contents::{Contents, check_calls};
use crate::holes::Holes;
use crate::journal::{Guard, Journal, Undo};
use crate::place::Place;
use crate::scratch::{self, Scratch};
use crate::{Error, page_size, temporary};

/// Directories for temporary files, after the user's own.
const DIRECTORIES: [&str; 2] = ["/var/tmp", "/tmp"];

/// The directory for temporary files: `TMPDIR`, or /var/tmp; one on a disk.
///
/// # Errors
/// When each of them is missing or unsuited, such as one in memory.
pub fn temporary_directory() -> Result<PathBuf, Error> {
    let own = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(own) = own {
        // A name that the user gave is not passed over in silence.
        let unsuited = |reason: String| {
            let what = format!("the directory '{}' of TMPDIR, {reason},", own.display());
            Error::unavailable(what, "name one on a disk in TMPDIR, or unset it")
        };
        let place = Place::of(&own).map_err(|error| unsuited(reason(&error)))?;
        return match place.unsuited() {
            Some(reason) => Err(unsuited(format!("which {reason}"))),
            None => Ok(own),
        };
    }
    let mut directories = DIRECTORIES.into_iter().map(PathBuf::from);
    let on_disk =
        |directory: &PathBuf| Place::of(directory).is_ok_and(|place| place.unsuited().is_none());
    directories.find(on_disk).ok_or_else(|| {
        Error::unavailable(
            "a directory on a disk for temporary files",
            "name one in TMPDIR, or give --file",
        )
    })
}

/// What the system said of a directory, in the words of a sentence.
fn reason(error: &Error) -> String {
    match error {
        Error::Os { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            "which does not exist".to_string()
        }
        other => format!("of which filemap could not learn more ({other})"),
    }
}

/// An open file with what it takes to make it.
#[derive(Debug)]
pub(super) struct JobFile {
    /// The file. A temporary one has no name, so that it goes with this process, however that ends.
    pub(super) file: File,
    /// By which name a child can open it.
    pub(super) path: PathBuf,
    /// By which name errors and reports call it.
    pub(super) name: PathBuf,
    /// Where it lies.
    pub(super) place: Place,
    /// Every page of it has a block on disk.
    pub(super) whole: bool,
    bytes: u64,
    // Drops the pages of the user's file again.
    _pages: Option<Guard>,
    // The file has to close before its filesystem goes.
    _scratch: Option<Scratch>,
}

impl JobFile {
    /// The file that `job` names; else a new one in `directory`, or on a scratch filesystem where
    /// the readahead size or the filesystem that the job wants is not that of the directory. A
    /// program whose segments are mapped is copied into a new file.
    pub(super) fn of(job: &Job, journal: &Journal, directory: &Path) -> Result<Self, Error> {
        match &job.file.path {
            Some(path) if job.elf.is_none() => Self::existing(job, journal, Path::new(path)),
            _ if suits(job, &Place::of(directory)?) => {
                let (bytes, contents) = (job.file.size_bytes, Contents::of(job));
                let file = temporary::file(directory, bytes, &contents)?;
                Self::temporary(job, file, directory, None)
            }
            _ => {
                let (bytes, contents) = (job.file.size_bytes, Contents::of(job));
                let room = (bytes, contents.disk_bytes(bytes));
                let filesystem = scratch_filesystem(job)?;
                let scratch =
                    Scratch::create(journal, directory, filesystem, room, read_ahead_kb(job))?;
                let root = scratch.root().to_owned();
                let file = temporary::unnamed(&root)?;
                temporary::write(&file, directory, bytes, &contents)?;
                Self::temporary(job, file, &root, Some(scratch))
            }
        }
    }

    fn existing(job: &Job, journal: &Journal, path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
        let place = place_of(job, path)?;
        let pages = may_drop(job, journal, &file, path)?;
        let file = JobFile {
            whole: false,
            path: path.to_owned(),
            name: path.to_owned(),
            place,
            bytes: job.file.size_bytes,
            _pages: Some(pages),
            _scratch: None,
            file,
        };
        file.check_size()?;
        check_calls(job, &file.file, path)?;
        Ok(file.with_blocks())
    }

    fn temporary(
        job: &Job,
        file: File,
        directory: &Path,
        scratch: Option<Scratch>,
    ) -> Result<Self, Error> {
        let bytes = job.file.size_bytes;
        let place = Place::of(directory)?;
        let path = temporary::name_for_children(&file);
        let name = directory.join(match Contents::of(job) {
            Contents::CopyOf(path) => {
                format!("(copy of {})", path.file_name().unwrap_or_default().display())
            }
            _ => "(temporary)".to_owned(),
        });
        let whole = false;
        let file =
            JobFile { file, path, name, place, whole, bytes, _pages: None, _scratch: scratch };
        Ok(file.with_blocks())
    }

    fn with_blocks(mut self) -> Self {
        // Where blocks are compressed or packed, what is read says nothing of pages.
        let plain = matches!(self.place.filesystem.as_str(), "ext4" | "xfs");
        let blocks = self.file.metadata().map_or(0, |metadata| metadata.blocks());
        let has_all = blocks.saturating_mul(512) >= self.bytes;
        self.whole = plain && has_all && Holes::of(&self.file) == Holes::None;
        self
    }

    /// Refuses a file whose size is not that of the job, or no longer.
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

/// What the file that is made for `job` takes on disk.
pub(super) fn written_bytes(job: &Job) -> u64 {
    match &job.file.path {
        Some(_) if job.elf.is_none() => 0,
        _ => Contents::of(job).disk_bytes(job.file.size_bytes),
    }
}

/// Refuses to drop the pages of the user's `file` at `path` where programs may need them, unless
/// `job` says so. What the runs of `job` leave of it in the page cache goes with the guard, so that
/// a cold file stays one.
///
/// # Errors
/// [`Error::Hot`].
pub(crate) fn may_drop(
    job: &Job,
    journal: &Journal,
    file: &File,
    path: &Path,
) -> Result<Guard, Error> {
    if !job.file.cold {
        require_cold(file, path)?;
    }
    let path = std::path::absolute(path).map_err(|error| Error::os("find", path, error))?;
    journal.change(Undo::DropPages(path), || Ok(())).map(|((), guard)| guard)
}

/// The directory for the files behind scratch filesystems: that for temporary files, or the
/// journal's where there is no such directory on a disk.
///
/// # Errors
/// When the user named one in TMPDIR that does not suit.
pub(crate) fn scratch_directory(journal: &Journal) -> Result<PathBuf, Error> {
    let named = std::env::var_os("TMPDIR").is_some_and(|path| !path.is_empty());
    temporary_directory().or_else(|error| match named {
        true => Err(error),
        false => Ok(journal.directory().to_owned()),
    })
}

/// Where a file that `job` names lies.
///
/// # Errors
/// When it cannot be made cold there, or what `job` says of its readahead and filesystem is not so.
pub(crate) fn place_of(job: &Job, path: &Path) -> Result<Place, Error> {
    let place = Place::of(path)?;
    if let Some(reason) = place.unsuited() {
        return Err(Error::unavailable(
            format!("a cold '{}', which {reason}", path.display()),
            "give a file on a disk",
        ));
    }
    if !suits(job, &place) {
        return Err(Error::unavailable(
            format!(
                "{} with a readahead of {} KiB for '{}'",
                job.machine.fs,
                read_ahead_kb(job),
                path.display()
            ),
            match place.read_ahead_kb {
                Some(kib) => {
                    format!("give --read-ahead-kb {kib} and its own --fs, or no --file")
                }
                None => "its device has no readahead size: give a file on a disk".to_owned(),
            },
        ));
    }
    Ok(place)
}

/// Whether `place` has the readahead size and the filesystem of `job`.
fn suits(job: &Job, place: &Place) -> bool {
    job.machine.fs == place.folios()
        && place.read_ahead_kb == Some(read_ahead_kb(job))
        && place.unsuited().is_none()
}

fn read_ahead_kb(job: &Job) -> u64 {
    job.machine.read_ahead.bytes(page_size()) >> 10
}

fn scratch_filesystem(job: &Job) -> Result<scratch::Filesystem, Error> {
    match job.machine.fs {
        Filesystem::Ext4 => Ok(scratch::Filesystem::Ext4),
        Filesystem::Xfs => Ok(scratch::Filesystem::Xfs),
        Filesystem::BasePages => Err(Error::unavailable(
            format!("a new filesystem other than ext4 and xfs with {} KiB", read_ahead_kb(job)),
            "give --fs ext4 or xfs, name a directory on one in TMPDIR, or give --on model",
        )),
    }
}
