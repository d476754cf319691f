//! A job as written: how it is read, and what it names.

use crate::Error;
use crate::flags::JobSpec;
use crate::job_file::{self, Form};
use crate::workload::{EXEC, Workload};

impl JobSpec {
    /// Reads a job file.
    ///
    /// # Errors
    /// In one line, with the line of the file: what is no TOML, a key that is unknown or given
    /// twice, or a value of the wrong type.
    pub fn from_toml(text: &str) -> Result<JobSpec, Error> {
        toml::from_str(text).map_err(|error| match job_file::has_tables(text) {
            true => Error::IsProgram,
            false => job_file::in_one_line(text, Form::OneFile, &error),
        })
    }

    /// The job as a job file, with what it says and nothing else.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a job's keys and values are all TOML's")
    }

    /// Whether it maps the segments of an ELF file, whose headers are then wanted in `elf`.
    pub fn maps_elf(&self) -> bool {
        self.workloads().any(|name| name == Workload::Elf.to_string())
    }

    /// Whether it calls what it maps.
    pub(crate) fn calls(&self) -> bool {
        self.workloads().any(|name| {
            name == EXEC || name.parse().is_ok_and(|workload: Workload| workload.is_exec())
        })
    }

    fn workloads(&self) -> impl Iterator<Item = &str> {
        let phases = self.phase.iter().filter_map(|phase| phase.workload.as_deref());
        self.workload.as_deref().into_iter().chain(phases)
    }

    /// The accesses files that the job names, with the place for the text of each.
    pub fn accesses_files(&mut self) -> impl Iterator<Item = (&str, &mut Option<String>)> {
        let own = self.accesses_file.as_deref().map(|path| (path, &mut self.accesses_text));
        let phases = self.phase.iter_mut().filter_map(|phase| {
            phase.accesses_file.as_deref().map(|path| (path, &mut phase.accesses_text))
        });
        own.into_iter().chain(phases)
    }
}
