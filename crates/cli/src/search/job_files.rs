//! A directory with the jobs that a search has found.

use std::fs;
use std::io;
use std::path::Path;

use filemap_job::shell_word;
use filemap_study::search::{Search, variants_flag};

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
            |reason: String| Error::Usage(format!("--output {}: {reason}", shell_word(&path)));
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

    /// Writes the jobs of `search`, and makes their commands those for the files.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, search: &mut Search) -> Result<(), Error> {
        if search.groups.is_empty() {
            return Ok(());
        }
        if let Err(error) = fs::create_dir(&self.path)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(Error::Write { path: self.path.clone(), reason: reason(&error) });
        }
        let variants = variants_flag(&search.variants);
        for (number, group) in (1..).zip(&mut search.groups) {
            for case in &mut group.cases {
                let path = Path::new(&self.path).join(format!("{number:02}-{}.toml", case.case));
                let path = path.into_os_string().into_string().expect("its parts are texts");
                let text = format!("# {}\n{}", group.mechanism, case.job.to_toml());
                Target::open(&path)?.write(text.as_bytes())?;
                case.command = format!("filemap compare {} {variants}", shell_word(&path));
            }
        }
        Ok(())
    }
}
