//! A job as a command was given it: a job file or a recording, with flags on top.

mod file;
mod foreign;

use std::ops::{Deref, DerefMut};

use filemap_job::{JobSpec, Written};

pub use file::{GivenFile, tables};
pub use filemap_study::given::profile;
pub use foreign::not_of_tables;

use crate::error::Error;
use crate::job_flags::JobFlags;
use crate::output::Inputs;
use filemap_study::{given, host, input};

/// A job that a command was given.
pub struct Given {
    job: given::Given,
    /// What the command reads.
    pub inputs: Inputs,
}

impl Deref for Given {
    type Target = given::Given;

    fn deref(&self) -> &given::Given {
        &self.job
    }
}

impl DerefMut for Given {
    fn deref_mut(&mut self) -> &mut given::Given {
        &mut self.job
    }
}

impl From<Given> for given::Given {
    fn from(given: Given) -> Self {
        given.job
    }
}

impl Given {
    /// The job of the file at `path`, if there is one, with `flags` on top.
    ///
    /// # Errors
    /// A file that cannot be read; a flag that no job file with tables takes.
    pub fn new(path: Option<String>, flags: JobFlags) -> Result<Given, Error> {
        if let Some(path) = &path
            && let Some(file) = tables(path)?
        {
            return Given::of_tables(path, file, flags);
        }
        let (images, modules) = (flags.image.clone(), flags.modules.clone());
        let flags = JobSpec::from(flags);
        let of_file = path.as_deref().map_or(Ok(JobSpec::default()), input::job_file)?;
        let mut spec = of_file.overlay(flags.clone());
        let inputs = Inputs::of(path.as_deref(), &images, &modules, &spec);
        input::accesses_files(&mut spec)?;
        if let Some(path) = spec.file.as_ref().filter(|_| spec.maps_elf()) {
            spec.elf = Some(input::segments(path)?);
        }
        let is_thrash = spec.is_thrash();
        let (written, flags) = if is_thrash {
            host::resolve_cpus(&mut spec);
            (Written::Tables(Box::new(spec.thrash()?)), spec)
        } else {
            (Written::Flags(Box::new(spec)), flags)
        };
        let job = given::Given { path, written, flags, is_thrash, of_recording: None };
        Ok(Given { job, inputs })
    }

    /// The job of `file` at `path`, with `flags` on top.
    pub fn of_tables(path: &str, file: GivenFile, flags: JobFlags) -> Result<Given, Error> {
        let GivenFile { spec, of_recording } = file;
        let (images, modules) = (flags.image.clone(), flags.modules.clone());
        let flags = JobSpec::from(flags);
        foreign::check(&flags, path)?;
        let spec = spec.overlay_advised(&flags)?;
        let mut inputs = Inputs::of(Some(path), &images, &modules, &spec.shared());
        spec.file.iter().for_each(|file| inputs.add_file_of_program(file));
        let (path, written) = (Some(path.to_string()), Written::Tables(Box::new(spec)));
        let job = given::Given { path, written, flags, is_thrash: false, of_recording };
        Ok(Given { job, inputs })
    }
}
