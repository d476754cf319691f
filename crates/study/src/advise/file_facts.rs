//! Facts about the files of a job besides its accesses.

use std::ffi::OsString;
use std::path::Path;

use filemap_attach::file::matches_any;
use filemap_job::program::{Job, NamedFile};
pub use filemap_kernel::storage::ReadAheadSetting;
use filemap_kernel::storage::read_ahead_setting;

use super::FileContents;
use crate::file_contents::contents_of;

/// A file of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Its kind.
    pub contents: FileContents,
    /// Whether it gets an answer. Other files count in totals only.
    pub is_answered: bool,
    /// Where the readahead size of its device is set, if the file exists.
    pub read_ahead: Option<ReadAheadSetting>,
}

/// Selects the files that get an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSelection {
    /// All files.
    All,
    /// Those that the program's owner has: not programs, libraries, locales and the like.
    Own,
    /// Those whose path matches one of these patterns, as for fnmatch(3).
    Matching(Vec<OsString>),
}

impl FileFacts {
    /// Facts about each file of `job`.
    pub fn of_job(job: &Job, selection: &FileSelection) -> Vec<FileFacts> {
        let mut is_executable = vec![false; job.files.len()];
        for mapping in &job.mappings {
            is_executable[job.opens[mapping.open].file] |=
                mapping.mapping.exec || !mapping.segments.is_empty();
        }
        let files = job.files.iter().zip(is_executable);
        files.map(|(file, is_executable)| FileFacts::new(file, is_executable, selection)).collect()
    }

    fn new(file: &NamedFile, is_executable: bool, selection: &FileSelection) -> FileFacts {
        let path = file.file.path.as_ref().map(Path::new);
        let named = path.unwrap_or(Path::new(&file.name));
        let contents =
            if is_executable { FileContents::Program } else { contents_of(path, &file.name) };
        let is_answered = match selection {
            FileSelection::All => true,
            FileSelection::Own => !contents.is_of_system(),
            FileSelection::Matching(patterns) => {
                matches_any(patterns, named) || matches_any(patterns, Path::new(&file.name))
            }
        };
        FileFacts { contents, is_answered, read_ahead: path.and_then(read_ahead_setting) }
    }
}
