//! Job files with tables, and recordings.

use filemap_job::ProgramSpec;

use crate::error::Error;
use crate::recording;
use filemap_study::input;

/// A job file with tables that a command is given.
pub struct GivenFile {
    /// The job.
    pub spec: ProgramSpec,
    /// What it says otherwise than the recording that it comes of, a sentence each; `None` where it
    /// comes of a job file.
    pub of_recording: Option<Vec<String>>,
}

/// The job file with tables at `path`, or the job of the recording there; `None` where that is a
/// job of one file, or cannot be read twice.
///
/// # Errors
/// A file that is empty, or what is wrong with it.
pub fn tables(path: &str) -> Result<Option<GivenFile>, Error> {
    let data = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let Some(data) = data else { return Ok(None) };
    if data.len() == 0 {
        let (what, reason) = ("job file or recording", "it is empty".to_string());
        return Err(Error::Read { what, path: path.to_string(), reason });
    }
    if recording::is_meant(path) {
        let job = recording::job(path)?;
        let said = job.approximations.iter().map(ToString::to_string).collect();
        return Ok(Some(GivenFile { spec: job.program, of_recording: Some(said) }));
    }
    let text = input::read("job file", path, input::MAX_JOB_BYTES)?;
    if !ProgramSpec::is_meant(&text) {
        return Ok(None);
    }
    let spec = ProgramSpec::from_toml(&text);
    spec.map(|spec| Some(GivenFile { spec, of_recording: None }))
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}
