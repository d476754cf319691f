//! A job as it was given: of a job file, a recording or flags.

mod command;
mod foreign;

use filemap_job::program::THRASH;
use filemap_job::{Job, JobSpec, ProgramSpec, Record, Workload, Written};
use filemap_model::Profile;

pub use foreign::workload_of;

use crate::error::Error;
use crate::host::{self, Found};
use crate::input;
use crate::machine_profile;

/// A job that was given.
#[derive(Clone, Debug)]
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
}

impl Given {
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
        written.validate(release).map_err(|error| match written {
            Written::Flags(_) => error.into(),
            Written::Tables(_) => {
                Error::InFile { path: self.name(), error: Box::new(Error::from(error)) }
            }
        })
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
