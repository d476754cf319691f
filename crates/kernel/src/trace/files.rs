//! The files of a traced job.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use filemap_job::Filesystem;

use super::event::Inode;
use crate::engine::{
    JobNeeds, NeededFile, check, guard_page_cache, probe_storage, scratch_directory,
};
use crate::journal::{Guard, Journal, Undo};
use crate::scratch::{self, Scratch, ScratchSize};
use crate::storage::io_bytes;
use crate::temporary_file::{self, check_calls, require_space};
use crate::{Error, page_size};

/// Maximum number of files of a trace: its filter lists each of them.
const MAX_FILES: usize = 64;

/// Minimum space of a scratch filesystem in bytes.
const SCRATCH_BYTES: u64 = 256 << 20;

/// The files of a job. On drop, created files are removed, and pages of the user's files are
/// dropped from the page cache.
#[derive(Debug)]
pub struct TracedFiles {
    pub(super) paths: Vec<PathBuf>,
    io_bytes: u64,
    _guards: Vec<Guard>,
}

impl TracedFiles {
    /// Path of the first file.
    pub fn path(&self) -> &Path {
        &self.paths[0]
    }

    /// Maximum request size of the first file's device in bytes, which bounds one `read(2)`.
    pub fn io_bytes(&self) -> u64 {
        self.io_bytes
    }

    /// The files as identified in tracepoints.
    pub(super) fn inodes(&self) -> Result<Vec<Inode>, Error> {
        let inodes = self.paths.iter().map(|path| {
            let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
            Ok(Inode::from_metadata(&metadata))
        });
        inodes.collect()
    }
}

/// Creates files of jobs.
#[derive(Debug)]
pub(super) struct FileStore {
    /// Directory for all of them; if `None`, scratch filesystems.
    directory: Option<PathBuf>,
    /// Filesystems kept for the next job: each with its type and its space in bytes.
    made: Vec<(scratch::ScratchFilesystem, u64, Scratch)>,
    journal: Journal,
}

impl FileStore {
    /// Creates files on scratch filesystems, which are recorded in `journal`.
    pub(super) fn scratches(journal: &Journal) -> Self {
        FileStore { directory: None, made: Vec::new(), journal: journal.clone() }
    }

    /// Creates files in a directory that has the filesystem and the readahead size that jobs
    /// require.
    pub(super) fn directory(journal: &Journal, directory: &Path) -> Self {
        FileStore { directory: Some(directory.to_owned()), ..FileStore::scratches(journal) }
    }

    /// The files of `needs`: the user's own, or new ones.
    pub(super) fn create_files(&mut self, needs: &JobNeeds) -> Result<TracedFiles, Error> {
        check(needs)?;
        if needs.machine.cache_limit.is_some() {
            return Err(Error::unavailable(
                "a line-by-line comparison with less memory than the file needs",
                "leave out the memory limit, or compare counters with filemap compare",
            ));
        }
        if needs.files.len() > MAX_FILES {
            return Err(Error::unavailable(
                format!("a trace of {} files", needs.files.len()),
                format!("use {MAX_FILES} files or less, or filemap compare"),
            ));
        }
        let (mut paths, mut guards) = (Vec::new(), Vec::new());
        for (number, needed) in needs.files.iter().enumerate() {
            let (path, guard) = match needed.users_path() {
                Some(path) => self.users_file(needs, needed, path)?,
                None => {
                    let made = self.made_file(needs, needed, number);
                    made.map_err(|error| needs.with_remedy(error))?
                }
            };
            paths.push(path);
            guards.push(guard);
        }
        Ok(TracedFiles { io_bytes: io_bytes(&paths[0])?, paths, _guards: guards })
    }

    fn users_file(
        &self,
        needs: &JobNeeds,
        needed: &NeededFile,
        path: &Path,
    ) -> Result<(PathBuf, Guard), Error> {
        let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
        probe_storage(&needs.machine, path)?;
        let guard = guard_page_cache(&needed.file, &self.journal, &file, path)?;
        check_calls(&needed.called, &file, path)?;
        Ok((path.to_owned(), guard))
    }

    fn made_file(
        &mut self,
        needs: &JobNeeds,
        needed: &NeededFile,
        number: usize,
    ) -> Result<(PathBuf, Guard), Error> {
        let journal = self.journal.clone();
        let (root, behind) = match self.directory.clone() {
            Some(directory) => {
                require_space(&directory, needed.written_bytes())?;
                (directory.clone(), directory)
            }
            None => {
                let scratch = self.scratch(needs)?;
                (scratch.root().to_owned(), scratch.directory().to_owned())
            }
        };
        let path = root.join(format!("file{number}"));
        let (file, guard) = journal.change(Undo::RemoveFile(path.clone()), || {
            File::create_new(&path).map_err(|error| Error::os("create", &path, error))
        })?;
        temporary_file::write(&file, &behind, needed.file.size_bytes, &needed.contents)?;
        Ok((path, guard))
    }

    fn scratch(&mut self, needs: &JobNeeds) -> Result<&Scratch, Error> {
        let kind = match needs.machine.fs {
            Filesystem::Ext4 => scratch::ScratchFilesystem::Ext4,
            Filesystem::Xfs => {
                scratch::ScratchFilesystem::Xfs { block_bytes: needs.machine.block_bytes }
            }
            Filesystem::BasePages => {
                return Err(Error::unavailable(
                    "a scratch filesystem without large folios",
                    "give --fs ext4 or xfs, or the --file to be read",
                ));
            }
        };
        let kib = needs.machine.read_ahead.bytes(page_size()) / 1024;
        let (bytes, written) = (needs.made_bytes(), needs.written_bytes());
        let suits = |(known, room, _): &&(_, u64, Scratch)| *known == kind && *room >= bytes;
        match self.made.iter().find(suits) {
            Some((.., scratch)) => require_space(scratch.directory(), written)?,
            None => {
                let room = bytes.max(SCRATCH_BYTES);
                let directory = scratch_directory(&self.journal)?;
                let space =
                    ScratchSize { files: MAX_FILES as u64, bytes: room, disk_bytes: written };
                let scratch = Scratch::create(&self.journal, &directory, kind, space, kib)?;
                self.made.push((kind, room, scratch));
            }
        }
        let (.., scratch) = self.made.iter().find(suits).expect("there is one now");
        scratch.set_read_ahead(kib)?;
        Ok(scratch)
    }
}
