//! What a job requires of a machine; refuses jobs that this machine cannot run.

use std::ops::Range;
use std::path::Path;

use filemap_core::rules::{Family, Rules};
use filemap_core::series::Series;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::{Access, Job, ProgramStep};
use filemap_job::{File, Machine, merge_ranges};

use crate::probe::{MAX_READ_BYTES, cpus};
use crate::temporary_file::FileContents;
use crate::{Error, page_size};

/// Remedy: what takes less space in a program.
const SMALLER_PROGRAM: &str = "a smaller size or sparse = true in its [[file]] tables";

/// Requirements of a job.
#[derive(Clone, Debug)]
pub struct JobNeeds {
    pub(crate) rules: Rules,
    pub(crate) machine: Machine,
    pub(crate) files: Vec<NeededFile>,
    /// Maximum anonymous memory.
    pub(crate) anonymous: PageCount,
    pub(crate) accesses: u64,
    pub(crate) longest_read_bytes: u64,
    pub(crate) cpus: Option<u64>,
}

/// A file of a job.
#[derive(Clone, Debug)]
pub struct NeededFile {
    /// Name in the job file, if any.
    pub(crate) name: Option<String>,
    pub(crate) file: File,
    pub(crate) contents: FileContents,
    /// Pages whose code is called.
    pub(crate) called: Vec<Range<PageIndex>>,
}

impl NeededFile {
    /// Path of a user's file; `None` if the file is to be created.
    pub(crate) fn users_path(&self) -> Option<&Path> {
        let is_copied = matches!(self.contents, FileContents::CopyOf(_));
        self.file.path.as_deref().filter(|_| !is_copied).map(Path::new)
    }

    /// Disk space needed if the file is created.
    pub(crate) fn written_bytes(&self) -> u64 {
        match self.users_path() {
            Some(_) => 0,
            None => self.contents.disk_bytes(self.file.size_bytes),
        }
    }
}

impl JobNeeds {
    /// Whether a job file describes a program: only its files have names.
    pub(crate) fn is_program(&self) -> bool {
        self.files.iter().any(|needed| needed.name.is_some())
    }

    /// `error`, with a remedy if there is no space for the files.
    pub(crate) fn with_remedy(&self, error: Error) -> Error {
        if self.is_program() { error.with_space_remedy(SMALLER_PROGRAM) } else { error }
    }

    /// Total size of the files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, needed| sum.saturating_add(needed.file.size_bytes))
    }

    /// Total size of the files to be created, in whole pages.
    pub(crate) fn made_bytes(&self) -> u64 {
        let made = self.files.iter().filter(|needed| needed.users_path().is_none());
        made.fold(0, |sum, needed| {
            sum.saturating_add(needed.file.size_bytes.next_multiple_of(page_size()))
        })
    }

    /// Disk space of the files to be created.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, needed| sum.saturating_add(needed.written_bytes()))
    }
}

impl From<&Job> for JobNeeds {
    fn from(program: &Job) -> Self {
        let reads = program.steps().map(|step| match step {
            ProgramStep::Read { accesses, .. } => accesses.bs_bytes,
            _ => 0,
        });
        let copied = program.steps().map(|step| match step {
            ProgramStep::Touch { access: Access::Write, accesses, mapping, .. } => {
                accesses.accesses.min(program.mappings[*mapping].mapping.pages.0)
            }
            _ => 0,
        });
        let files = program.files.iter().enumerate().map(|(number, named)| NeededFile {
            name: (!program.is_single_mapping()).then(|| named.name.clone()),
            file: named.file.clone(),
            contents: FileContents::for_job_file(program, number),
            called: called(program, number),
        });
        JobNeeds {
            rules: program.rules,
            machine: program.machine.clone(),
            files: files.collect(),
            anonymous: PageCount(
                copied.fold(
                    program.limited_anonymous(program.max_anonymous()).0,
                    u64::saturating_add,
                ),
            ),
            accesses: program.steps().map(ProgramStep::accesses).fold(0, u64::saturating_add),
            longest_read_bytes: reads.max().unwrap_or(0),
            cpus: program.cpus.map(u64::from),
        }
    }
}

/// The pages of a file that `program` calls.
fn called(program: &Job, file: usize) -> Vec<Range<PageIndex>> {
    let end = PageIndex(program.file_pages(file).0);
    let steps = program.steps().filter(|step| step.calls());
    let mappings =
        steps.filter_map(ProgramStep::touched_mapping).map(|number| &program.mappings[number]);
    let parts = mappings
        .filter(|mapping| program.opens[mapping.open].file == file)
        .map(|mapping| {
            mapping.mapping.offset..(mapping.mapping.offset + mapping.mapping.pages).min(end)
        })
        .filter(|part| !part.is_empty());
    merge_ranges(parts.collect())
}

/// Maximum accesses of one run: all are held in memory before it begins.
pub const MAX_RUN_ACCESSES: u64 = 1 << 22;

pub(super) fn check_accesses(needs: &JobNeeds) -> Result<(), Error> {
    let (accesses, bytes) = (needs.accesses, needs.longest_read_bytes);
    let of_program = needs.is_program();
    if accesses > MAX_RUN_ACCESSES {
        let how = if of_program { "in all phases" } else { "with --accesses" };
        return Err(Error::unavailable(
            format!("a run of {accesses} accesses"),
            format!("give at most {MAX_RUN_ACCESSES} {how}, or --on model"),
        ));
    }
    if bytes > MAX_READ_BYTES {
        let key = if of_program { "bs =" } else { "--bs" };
        return Err(Error::unavailable(
            format!("a read of {bytes} bytes"),
            format!("give {key} {}m or less, or --on model", MAX_READ_BYTES >> 20),
        ));
    }
    Ok(())
}

/// Refuses jobs that this kernel or machine cannot run, whatever its settings.
pub(super) fn check_machine(needs: &JobNeeds) -> Result<(), Error> {
    check_series(&needs.rules)?;
    check_architecture(&needs.machine)?;
    check_accesses(needs)?;
    if needs.files.iter().any(|needed| !needed.called.is_empty() && needed.file.sparse) {
        return Err(Error::unavailable(
            "a call of code in a sparse file",
            "leave out --sparse, or sparse = true in a job file, or give --on model",
        ));
    }
    check_cpus(needs, cpus::allowed_cpus())?;
    if needs.machine.ram_bytes.is_some() {
        return Err(Error::unavailable(
            "another size of RAM",
            "give --memory-max, boot a machine of that size with --image, or give --on model",
        ));
    }
    Ok(())
}

/// Refuses more CPUs than the `allowed` ones.
pub(super) fn check_cpus(needs: &JobNeeds, allowed: u64) -> Result<(), Error> {
    let key = if needs.is_program() { "cpus =" } else { "--cpus" };
    match needs.cpus.filter(|&cpus| cpus > allowed) {
        None => Ok(()),
        Some(cpus) => Err(Error::unavailable(
            format!("a machine with {cpus} CPUs"),
            format!("give {key} {allowed} or less, or --on model"),
        )),
    }
}

/// Refuses series, since the running kernel cannot change its rules.
fn check_series(rules: &Rules) -> Result<(), Error> {
    if rules.series == Series::BASELINE {
        return Ok(());
    }
    Err(Error::unavailable(
        format!("{} in the running kernel", rules.series),
        "leave it out, give a patched kernel to --image, or give --on model",
    ))
}

/// Refuses jobs that no kernel on this architecture can run.
pub(super) fn check_architecture(machine: &Machine) -> Result<(), Error> {
    let refuse = |feature: String, remedy: &str| Err(Error::unavailable(feature, remedy));
    let family = if cfg!(target_arch = "aarch64") { Family::Arm64 } else { Family::X86_64 };
    let arch = machine.arch;
    if arch.family != family || arch.page_size != page_size() {
        return refuse(
            format!("{} with pages of {} bytes", arch.family.name(), arch.page_size),
            "leave out --arch and --page-size, or give --on model",
        );
    }
    if machine.implied_cache_limit() != machine.cache_limit {
        return refuse(
            "a limit of the page cache alone".into(),
            "give --memory-max instead of --cache-limit, or --on model",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use filemap_job::{JobFlags, JobSpec};

    use super::*;
    use crate::temporary_file::require_space;

    #[test]
    fn no_space_has_remedy_of_job_form() {
        let message = |needs: JobNeeds| {
            let error = require_space(Path::new("/tmp"), u64::MAX).unwrap_err();
            needs.with_remedy(error).to_string()
        };
        let job = JobFlags::from_toml("workload = 'first'\nfile_size = '1m'").unwrap();
        let of_job = message(JobNeeds::from(&job.validate(None).unwrap()));
        assert!(of_job.contains("--file-size"), "{of_job}");
        let program = "file = [{ name = 'a', size = '1m' }]\nopen = [{ name = 'o', file = 'a' }]\n\
                       thread = [{ phase = [{ open = 'o', workload = 'read-sequential', bs = '4k', \
                       accesses = 1 }] }]";
        let program = JobSpec::from_toml(program).unwrap().validate(None).unwrap();
        let of_program = message(JobNeeds::from(&program));
        assert!(of_program.contains("[[file]]"), "{of_program}");
        assert!(!of_program.contains("--file-size"), "{of_program}");
    }
}
