//! A job as a command was given it: a job file or a recording, with flags on top.

mod file;
mod foreign;
mod repeated;

use filemap_job::program::THRASH;
use filemap_job::{Job, JobSpec, ProgramSpec, Record, Workload, Written};
use filemap_model::Profile;

pub use file::{GivenFile, tables};
pub use foreign::{not_of_tables, workload_of};

use crate::error::Error;
use crate::job_flags::JobFlags;
use crate::output::Inputs;
use filemap_study::host::{self, Found};
use filemap_study::input;
use filemap_study::machine_profile;

/// A job that a command was given.
pub struct Given {
    /// The path of its job file or recording, where it comes of one.
    pub path: Option<String>,
    /// The job, with the flags on top.
    pub written: Written,
    /// What flags said.
    pub flags: JobSpec,
    /// The job file with tables is that of the workload `thrash`, which flags say.
    pub is_thrash: bool,
    /// What it says otherwise than the recording that it comes of, if it comes of one.
    pub of_recording: Option<Vec<String>>,
    /// What the command reads.
    pub inputs: Inputs,
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
        Ok(Given { path, written, flags, is_thrash, of_recording: None, inputs })
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
        Ok(Given { path, written, flags, is_thrash: false, of_recording, inputs })
    }

    /// What messages and reports call it.
    pub fn name(&self) -> String {
        self.path.clone().unwrap_or_else(|| format!("--workload {THRASH}"))
    }

    /// What was said with --kernel, or in the file.
    pub fn kernel(&self) -> Option<String> {
        self.written.flags().kernel.clone()
    }

    /// Fills in what `written`, which came of this, does not say of its existing files and of this
    /// machine.
    ///
    /// # Errors
    /// As for [`host::resolve`].
    pub fn resolve(&self, written: &mut Written) -> Result<Found, Error> {
        match written {
            Written::Flags(spec) => host::resolve(spec),
            Written::Tables(spec) => self.resolve_tables(spec),
        }
    }

    fn resolve_tables(&self, spec: &mut ProgramSpec) -> Result<Found, Error> {
        let said = self.of_recording.iter().flatten().cloned();
        let warnings = said.chain(host::existing_files(spec, &self.name())?).collect();
        let mut shared = spec.shared();
        // The first of them says where its files lie. Programs whose segments are mapped are
        // copied.
        if let Some(file) = spec.existing_files().min_by_key(|file| file.is_elf) {
            shared.file = Some(file.path.to_string());
            shared.workload = file.is_elf.then(|| Workload::Elf.to_string());
        }
        let mut found = host::resolve(&mut shared)?;
        *spec = spec.clone().overlay(&shared);
        // What was found of that file was said with the others.
        found.warnings = warnings;
        Ok(found)
    }

    /// `written`, which came of this, as a job that can be run.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn validate(&self, written: &Written) -> Result<Job, Error> {
        self.validate_for(written, input::host_release().as_deref())
    }

    /// The same, for a kernel of this release.
    ///
    /// # Errors
    /// As there.
    pub fn validate_for(&self, written: &Written, release: Option<&str>) -> Result<Job, Error> {
        match written {
            Written::Flags(spec) => Ok(JobSpec::clone(spec).validate(release)?),
            Written::Tables(spec) => spec.validate(release).map_err(|error| Error::InFile {
                path: self.name(),
                error: Box::new(Error::from(error)),
            }),
        }
    }

    /// Leaves the phases of a recording out of `record`: their lists have one number for each
    /// touch, and the recording has them.
    pub fn leave_lists(&self, record: &mut Record) {
        if self.of_recording.is_some()
            && let Written::Tables(spec) = &mut record.job
        {
            spec.thread.iter_mut().for_each(|thread| thread.phase.clear());
        }
    }

    /// What ended it. What its author has to change in a job file with tables names the file.
    pub fn in_file(&self, error: Error) -> Error {
        match self.written.tables() {
            None => error,
            Some(_) => foreign::in_file(&self.name(), error),
        }
    }
}

/// The machine profile that the model of `written` goes by, which it then names.
///
/// # Errors
/// A file that cannot be read, or is no profile.
pub fn profile(written: &mut Written) -> Result<Profile, Error> {
    match written {
        Written::Flags(spec) => machine_profile::of(spec),
        Written::Tables(spec) => {
            let mut shared = spec.shared();
            let profile = machine_profile::of(&mut shared)?;
            **spec = ProgramSpec::clone(spec).overlay(&shared);
            Ok(profile)
        }
    }
}
