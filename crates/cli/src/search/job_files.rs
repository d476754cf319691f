//! A directory with the jobs that a search has found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use filemap_job::shell_word;
use filemap_study::search::{Case, Study};

use super::Search;
use crate::error::{Error, reason};
use crate::output::Target;

/// A directory for job files, which is not there yet, or is empty.
pub struct JobFiles {
    path: String,
}

impl JobFiles {
    /// The directory at `path`.
    ///
    /// # Errors
    /// Where something is there already, or the directory that it is to lie in is missing.
    pub fn new(path: String) -> Result<Self, Error> {
        let refused =
            |reason: String| Error::Usage(format!("--out {}: {reason}", shell_word(&path)));
        match fs::read_dir(&path).map(Iterator::count) {
            Ok(0) => {}
            Ok(_) => return Err(refused("it is not empty; give a new directory".to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = Path::new(&path).parent().unwrap_or(Path::new("."));
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                if !parent.is_dir() {
                    let parent = parent.display();
                    return Err(refused(format!(
                        "there is no directory '{parent}'; make it first"
                    )));
                }
            }
            Err(error) => return Err(refused(format!("{}; give a new directory", reason(&error)))),
        }
        Ok(JobFiles { path })
    }

    /// Writes the jobs of `study`, and makes their commands those for the files.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, study: &mut Study, search: &Search) -> Result<(), Error> {
        if study.groups.is_empty() {
            return Ok(());
        }
        let failed =
            |error: io::Error| Error::Write { path: self.path.clone(), reason: reason(&error) };
        match fs::create_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        let variants = search.variants_flag();
        for (number, group) in (1..).zip(&mut study.groups) {
            let cases = [
                ("smallest", &mut group.smallest),
                ("largest-ratio", &mut group.by_ratio),
                ("largest-difference", &mut group.by_cost),
            ];
            for (name, case) in cases {
                let path: PathBuf = Path::new(&self.path).join(format!("{number:02}-{name}.toml"));
                let path = path.into_os_string().into_string().expect("its parts are texts");
                Target::open(&path)?.write(text(&group.mechanism, case).as_bytes())?;
                case.command = format!("filemap compare {} {variants}", shell_word(&path));
                case.job_file = None;
            }
        }
        Ok(())
    }
}

/// The job file of `case`.
fn text(mechanism: &str, case: &Case) -> String {
    format!("# {mechanism}\n{}", case.spec.to_toml())
}
