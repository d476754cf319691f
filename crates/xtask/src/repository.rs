//! The files of this repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directories of build products.
const BUILD_DIRECTORIES: [&str; 5] =
    ["target", "corpus", "artifacts", "mutants.out", "mutants.out.old"];

/// Hidden directories that belong to the source.
const HIDDEN_SOURCES: [&str; 2] = [".ci", ".cargo"];

/// The text files of the repository.
#[derive(Clone, Debug, Default)]
pub struct Repository {
    /// In order of their paths.
    pub files: Vec<File>,
}

/// A text file.
#[derive(Clone, Debug)]
pub struct File {
    /// From the repository's root, with `/`.
    pub path: String,
    /// Its contents.
    pub text: String,
}

impl Repository {
    /// Reads this repository, without files that are not UTF-8.
    ///
    /// # Errors
    /// When a file or directory cannot be read.
    pub fn read() -> Result<Repository> {
        let mut files = Vec::new();
        read_directory(&root(), "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Repository { files })
    }

    /// A repository of these files, each a path and its text.
    pub fn from_files(files: &[(&str, &str)]) -> Repository {
        let file = |&(path, text): &(&str, &str)| File { path: path.into(), text: text.into() };
        Repository { files: files.iter().map(file).collect() }
    }

    /// The text of the file at `path`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// The files whose path begins with `start` and ends with `end`.
    pub fn under<'a>(&'a self, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |f| f.path.starts_with(start) && f.path.ends_with(end))
    }
}

/// The root of this workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read_directory(directory: &Path, prefix: &str, files: &mut Vec<File>) -> Result<()> {
    let shown = || format!("{} cannot be read", directory.display());
    for entry in fs::read_dir(directory).with_context(shown)? {
        let entry = entry.with_context(shown)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().with_context(shown)?;
        if kind.is_dir() {
            let skipped = name.starts_with('.') && !HIDDEN_SOURCES.contains(&name.as_str());
            if !skipped && !BUILD_DIRECTORIES.contains(&name.as_str()) {
                read_directory(&entry.path(), &format!("{path}/"), files)?;
            }
        // In a worktree, .git is a file with an absolute path.
        } else if kind.is_file() && name != ".git" {
            match fs::read_to_string(entry.path()) {
                Ok(text) => files.push(File { path, text }),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                // Deleted since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("{path} cannot be read")),
            }
        }
    }
    Ok(())
}
