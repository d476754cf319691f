//! Reading the job of a command: a job file or a recording, overridden by flags.

use std::fs::Metadata;

use filemap_job::{JobFlags, JobSpec, format_size};
use filemap_recording::convert::UnseenPages;
use filemap_study::input;
pub use filemap_study::job_input::{JobInput, JobSource};
use filemap_study::job_input::{RecordedJob, UnseenTouches};

use crate::error::Error;
use crate::job_flags::JobFlagValues;
use crate::output::Inputs;
use crate::recording;

/// Reads the job at `path`, if given, overridden by `flags`. Also returns the files that are read
/// for it.
///
/// # Errors
/// A file that cannot be read; a flag that conflicts with the job.
pub fn read(path: Option<&str>, flags: &JobFlagValues) -> Result<(JobInput, Inputs), Error> {
    let source = path.map(read_source).transpose()?.unwrap_or_default();
    let input = JobInput::new(path, source, flags.spec.clone())?;
    let inputs = Inputs::from_flags(flags, &input);
    Ok((input, inputs))
}

/// Reads the recording or the job file at `path`. A file that cannot be read twice is a job file
/// without tables.
fn read_source(path: &str) -> Result<JobSource, Error> {
    let flat = || {
        let (flags, lines) = input::job_file(path)?;
        Ok(JobSource::Flags(Box::new(flags), lines))
    };
    let data = std::fs::metadata(path).ok().filter(Metadata::is_file);
    let Some(data) = data else { return flat() };
    if data.len() == 0 {
        let (expected, reason) = ("job file or recording", "it is empty".to_string());
        return Err(Error::Read { what: expected, path: path.to_string(), reason });
    }
    if recording::is_recording_path(path) {
        let job = recording::read_job(path, UnseenPages::Untouched)?;
        let approximations = job.approximations.iter().map(ToString::to_string).collect();
        let unseen = if job.unseen_pages > 0 {
            let spec = recording::read_job(path, UnseenPages::Touched)?.program;
            Some(UnseenTouches { pages: job.unseen_pages, spec })
        } else {
            None
        };
        let (spec, unknown_pages) = (job.program, job.unknown_pages);
        let job = RecordedJob { spec, approximations, unseen, unknown_pages };
        return Ok(JobSource::Recording(Box::new(job)));
    }
    if data.len() > input::MAX_JOB_BYTES {
        let reason = format!(
            "it is no recording, and longer than {}, the most for a job file",
            format_size(input::MAX_JOB_BYTES)
        );
        return Err(Error::Read { what: "job file or recording", path: path.to_string(), reason });
    }
    let text = input::read("job file", path, input::MAX_JOB_BYTES)?;
    if !JobSpec::is_meant(&text) {
        return flat();
    }
    JobSpec::from_toml(&text)
        .map(|spec| JobSource::Tables(Box::new(spec)))
        .map_err(|error| Error::InFile { path: path.to_string(), error: Box::new(error.into()) })
}

/// The error for `flag`, given with the job file with tables at `path`.
pub fn not_of_tables(flag: &str, path: &str) -> Error {
    Error::Usage(format!(
        "{flag} is for a job of one file, and {path} is a program; remove the flag, or give a job \
         of one file"
    ))
}

/// `flags` without those that select where a job runs.
pub fn without_place(flags: &JobFlags) -> JobFlags {
    JobFlags { on: None, kernel: None, image: None, modules: None, with: None, ..flags.clone() }
}
