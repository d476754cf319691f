//! Ensures that an output is neither an input nor another output.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file::is_stdout;
use crate::error::Error;
use crate::job_flags::JobFlagValues;
use crate::job_input::JobInput;
use filemap_attach::program::Program;
use filemap_study::machine_profile;

/// The files that a command reads, each with a description.
#[derive(Debug, Default)]
pub struct Inputs(Vec<(String, PathBuf)>);

impl Inputs {
    /// The inputs of the job `input`, with the kernel images of `flags`.
    pub fn from_flags(flags: &JobFlagValues, input: &JobInput) -> Self {
        let mut inputs = Inputs::default();
        let spec = &input.spec;
        input.path.iter().for_each(|path| inputs.add("the job file", path));
        for file in &spec.file {
            let label = if spec.is_single_mapping() {
                "--file".to_string()
            } else {
                format!("the file '{}' of the job file", file.name)
            };
            file.path.iter().for_each(|path| inputs.add(&label, path));
        }
        let phases = spec.thread.iter().flat_map(|thread| &thread.phase);
        for path in phases.filter_map(|phase| phase.accesses_file.as_ref()) {
            let is_flag = input.flags.accesses_file.is_some();
            let label = if is_flag { "--accesses-file" } else { "the accesses_file of a phase" };
            inputs.add(label, path);
        }
        flags.image.iter().chain(&spec.image).for_each(|path| inputs.add("--image", path));
        spec.machine.iter().for_each(|name| inputs.add_profile("--machine", name));
        inputs
    }

    /// Adds all inputs of `others`.
    pub fn extend(&mut self, others: Inputs) {
        self.0.extend(others.0);
    }

    /// Adds the file at `path`, described by `label`.
    pub fn add(&mut self, label: &str, path: impl AsRef<OsStr>) {
        self.0.push((label.to_string(), PathBuf::from(path.as_ref())));
    }

    /// Adds a program and the files among its arguments.
    pub fn add_program(&mut self, program: &Program) {
        self.add("the program", &program.path);
        let arguments = program.words.iter().skip(1);
        arguments.for_each(|word| self.add("an argument of the program,", word));
    }

    /// Adds the machine profile `name`, unless it is built in.
    pub fn add_profile(&mut self, label: &str, name: &str) {
        if !machine_profile::is_built_in(name) {
            self.add(label, name);
        }
    }

    /// The description of the input that is the file of `identity`.
    fn find(&self, identity: (u64, u64)) -> Option<String> {
        let found = self.0.iter().find(|(_, path)| self::identity(path) == Some(identity));
        found.map(|(label, path)| format!("{label} '{}'", path.display()))
    }
}

/// Device and inode of a regular file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let data = fs::metadata(path).ok().filter(|data| data.is_file())?;
    Some((data.dev(), data.ino()))
}

/// Rejects `outputs`, each a flag and its value, that are an input or another output. Nothing is
/// opened, created or changed.
pub fn check(outputs: &[(&'static str, &str)], inputs: &Inputs) -> Result<(), Error> {
    for (at, &(flag, path)) in outputs.iter().enumerate() {
        let own = identity(Path::new(path));
        let is_same = |&&(_, other): &&(&str, &str)| {
            let is_new_or_stdout = is_stdout(path) || !Path::new(path).exists();
            (path == other && is_new_or_stdout)
                || (own.is_some() && own == identity(Path::new(other)))
        };
        let other = outputs[..at].iter().find(is_same);
        if let Some((other_flag, other)) = other.filter(|_| is_stdout(path)) {
            return Err(Error::Usage(format!(
                "{other_flag} {other} and {flag} {path} cannot both go to stdout; give one a file"
            )));
        }
        let other = other.map(|(flag, path)| format!("{flag} '{path}'"));
        if let Some(other) = other.or_else(|| inputs.find(own?)) {
            return Err(Error::Usage(format!(
                "{flag} '{path}' is the same file as {other}; give {flag} another file"
            )));
        }
    }
    Ok(())
}
