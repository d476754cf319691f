//! A job as a command was given it: a job file or a recording, with flags on top.

mod file;
mod foreign;

use filemap_job::{JobSpec, Written};

pub use file::{GivenFile, tables};
pub use filemap_study::given::{Given, profile};
pub use foreign::not_of_tables;

use crate::error::Error;
use crate::job_flags::JobFlags;
use crate::output::Inputs;
use filemap_study::{host, input};

/// The job of the file at `path`, if there is one, with `flags` on top, and what is read for it.
///
/// # Errors
/// A file that cannot be read; a flag that no job file with tables takes.
pub fn job(path: Option<&str>, flags: &JobFlags) -> Result<(Given, Inputs), Error> {
    if let Some(path) = path
        && let Some(file) = tables(path)?
    {
        return of_tables(path, file, flags);
    }
    let of_file = path.map_or(Ok(JobSpec::default()), input::job_file)?;
    let mut spec = of_file.overlay(flags.spec.clone());
    let inputs = Inputs::of(path, flags, &spec);
    input::accesses_files(&mut spec)?;
    if let Some(path) = spec.file.as_ref().filter(|_| spec.maps_elf()) {
        spec.elf = Some(input::segments(path)?);
    }
    let is_thrash = spec.is_thrash();
    let (written, flags) = if is_thrash {
        host::resolve_cpus(&mut spec);
        (Written::Tables(Box::new(spec.thrash()?)), spec)
    } else {
        (Written::Flags(Box::new(spec)), flags.spec.clone())
    };
    let path = path.map(String::from);
    Ok((Given { path, written, flags, is_thrash, of_recording: None }, inputs))
}

/// The job of `file` at `path`, with `flags` on top, and what is read for it.
pub fn of_tables(path: &str, file: GivenFile, flags: &JobFlags) -> Result<(Given, Inputs), Error> {
    let GivenFile { spec, of_recording } = file;
    foreign::check(&flags.spec, path)?;
    let spec = spec.overlay_advised(&flags.spec)?;
    let mut inputs = Inputs::of(Some(path), flags, &spec.shared());
    spec.file.iter().for_each(|file| inputs.add_file_of_program(file));
    let given = Given {
        path: Some(path.to_string()),
        written: Written::Tables(Box::new(spec)),
        flags: flags.spec.clone(),
        is_thrash: false,
        of_recording,
    };
    Ok((given, inputs))
}
