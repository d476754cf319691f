//! The job of a command: merges its job file or recording with its flags, resolves it on this
//! machine, and prints the command that repeats it.

use std::path::Path;
use std::time::Duration;

use filemap_job::program::{FileSpec, THRASH};
use filemap_job::{EngineKind, Job, JobFlags, JobSpec, KeyLines, Record, SizeText, shell_word};
use filemap_model::{Profile, trace};
use filemap_report::units::{number, time};

use crate::error::Error;
use crate::file_contents::contents_of;
use crate::host::{self, HostFacts};
use crate::input;
use crate::kernel_match;
use crate::machine_profile;
use crate::seeds::{self, RanJob};
use crate::variants::Variant;

/// The source of a job before flags are applied.
#[derive(Clone, Debug)]
pub enum JobSource {
    /// Flags only, or a job file with the same keys and the lines of these.
    Flags(Box<JobFlags>, KeyLines),
    /// A job file with tables.
    Tables(Box<JobSpec>),
    /// A recording.
    Recording(Box<RecordedJob>),
}

/// The job of a recording.
#[derive(Clone, Debug)]
pub struct RecordedJob {
    /// The job, with the touches that were seen.
    pub spec: JobSpec,
    /// Each sentence states an approximation: where the job differs from the recorded program.
    pub approximations: Vec<String>,
    /// The job with the touches that may have been missed, where they can change an answer.
    pub unseen: Option<UnseenTouches>,
    /// The number of further pages that may have been touched and cannot be named; 0 if that cannot
    /// change an answer.
    pub unknown_pages: u64,
}

/// Touches that a recorder may have missed.
#[derive(Clone, Debug)]
pub struct UnseenTouches {
    /// Their maximum number.
    pub pages: u64,
    /// The job with all of them.
    pub spec: JobSpec,
}

impl Default for JobSource {
    fn default() -> Self {
        JobSource::Flags(Box::default(), KeyLines::default())
    }
}

/// The warning about a recording under a memory limit, if it has no events of memory.
const NO_MEMORY: &str = "the recording does not have the program's own memory, so that all of the \
                         memory limit is taken to be for its files; give --anonymous SIZE";

/// The job of a command.
#[derive(Clone, Debug)]
pub struct JobInput {
    /// Path of the job file or recording, if any.
    pub path: Option<String>,
    /// Contents of that file; empty flags without one.
    source: JobSource,
    /// The flags of the command line.
    pub flags: JobFlags,
    /// The job, in which flags override the file.
    pub spec: JobSpec,
}

impl JobInput {
    /// The job of `source`, read from `path`, with `flags` overriding its values.
    ///
    /// # Errors
    /// When a flag does not apply to the job, or an accesses file or program cannot be read.
    pub fn new(path: Option<&str>, source: JobSource, flags: JobFlags) -> Result<JobInput, Error> {
        let path = path.map(String::from);
        let mut input = JobInput { path, source, flags, spec: JobSpec::default() };
        input.spec = input.spec_with(&JobFlags::default())?;
        Ok(input)
    }

    /// The job with `changes` overriding file and flags.
    ///
    /// # Errors
    /// As for [`JobInput::new`].
    pub fn spec_with(&self, changes: &JobFlags) -> Result<JobSpec, Error> {
        let flags = self.flags.clone().overlay(changes.clone());
        let (tables, name) = match &self.source {
            JobSource::Flags(own, lines) => {
                let mut lines = lines.clone();
                lines.remove(&flags);
                let mut flags = own.as_ref().clone().overlay(flags);
                if flags.is_thrash() {
                    host::resolve_cpus(&mut flags);
                }
                let spec = JobSpec::from_flags(&flags);
                let mut spec = spec.map_err(|error| self.in_line(lines.name_line(error)))?;
                spec.origins.lines = lines;
                input::accesses_files(&mut spec)?;
                return Ok(spec);
            }
            JobSource::Tables(spec) => (spec.as_ref().clone(), self.name()),
            JobSource::Recording(job) => (job.spec.clone(), self.name()),
        };
        let mut spec = tables.with_flags(&flags).map_err(|cause| with_flag(&name, cause))?;
        if flags.anonymous.is_some() && self.approximations().is_some() {
            spec.fix_anonymous();
        }
        input::accesses_files(&mut spec)?;
        Ok(spec)
    }

    /// Name of the job in messages and reports.
    pub fn name(&self) -> String {
        self.path.clone().unwrap_or_else(|| format!("--workload {THRASH}"))
    }

    /// Whether the job comes from a job file with tables, or from a recording.
    pub fn has_tables(&self) -> bool {
        !matches!(self.source, JobSource::Flags(..))
    }

    /// Where the job of a recording differs from the recorded program; `None` for other jobs.
    pub fn approximations(&self) -> Option<&[String]> {
        match &self.source {
            JobSource::Recording(job) => Some(&job.approximations),
            _ => None,
        }
    }

    /// This job with all touches that the recorder may have missed, and their number; `None` where
    /// there are none that can change an answer.
    ///
    /// # Errors
    /// As for [`JobInput::new`].
    pub fn with_unseen_touches(&self) -> Result<Option<(JobInput, u64)>, Error> {
        let JobSource::Recording(job) = &self.source else { return Ok(None) };
        let Some(UnseenTouches { pages, spec }) = job.unseen.clone() else { return Ok(None) };
        let approximations = job.approximations.clone();
        let (unseen, unknown_pages) = (None, 0);
        let job = RecordedJob { spec, approximations, unseen, unknown_pages };
        let source = JobSource::Recording(Box::new(job));
        let most = JobInput::new(self.path.as_deref(), source, self.flags.clone())?;
        Ok(Some((most, pages)))
    }

    /// The number of pages that may have been touched unseen and cannot be named.
    pub fn unknown_pages(&self) -> u64 {
        match &self.source {
            JobSource::Recording(job) => job.unknown_pages,
            _ => 0,
        }
    }

    /// Fills in unset keys of `spec`, a variant of this job, from its existing files and this
    /// machine.
    ///
    /// # Errors
    /// As for [`host::resolve`].
    pub fn resolve(&self, spec: &mut JobSpec) -> Result<HostFacts, Error> {
        let mut found = host::resolve(spec).map_err(|error| match error {
            Error::InFile { .. } | Error::CannotRun(_) => error,
            error if self.has_tables() => self.named(error),
            error => error,
        })?;
        let mut warnings = self.approximations().unwrap_or_default().to_vec();
        warnings.append(&mut found.warnings);
        if self.approximations().is_some() && spec.image.is_some() {
            let made: usize = spec.file.iter_mut().map(|file| usize::from(forget_path(file))).sum();
            let files = if made == 1 { "file" } else { "files" };
            let text = format!("a booted kernel makes {made} {files} of the recorded size anew");
            warnings.extend((made > 0).then_some(text));
        } else if self.approximations().is_some() && host::is_on_kernel(spec.on.as_deref()) {
            warnings.extend(replace_system_files(spec));
        }
        let limits = [&spec.ram, &spec.cache_limit, &spec.memory_high, &spec.memory_max];
        let is_limited = limits.iter().any(|limit| limit.is_some());
        if self.approximations().is_some() && spec.anonymous.is_none() && is_limited {
            warnings.push(NO_MEMORY.to_string());
        }
        warnings.extend(cached_when_recorded(spec).filter(|_| self.approximations().is_some()));
        found.warnings = warnings;
        Ok(found)
    }

    /// Validates `spec`, a variant of this job.
    ///
    /// # Errors
    /// When the job is invalid.
    pub fn validate(&self, spec: &JobSpec) -> Result<Job, Error> {
        self.validate_for(spec, input::host_release().as_deref())
    }

    /// Like [`JobInput::validate`], for a kernel of this `release`.
    ///
    /// # Errors
    /// When the job is invalid.
    pub fn validate_for(&self, spec: &JobSpec, release: Option<&str>) -> Result<Job, Error> {
        spec.validate(release).map_err(|error| self.in_line(error))
    }

    /// `error`, with the path of the job file if it is about a line or a table of that.
    fn in_line(&self, error: filemap_job::Error) -> Error {
        if self.has_tables() || matches!(error, filemap_job::Error::JobFile { .. }) {
            self.named(error.into())
        } else {
            error.into()
        }
    }

    fn named(&self, error: Error) -> Error {
        Error::InFile { path: self.name(), error: Box::new(error) }
    }

    /// Removes the phases of a recording from `record`: they list every access, and the recording
    /// has them already.
    pub fn leave_lists(&self, record: &mut Record) {
        if self.approximations().is_some() {
            record.job.thread.iter_mut().for_each(|thread| thread.phase.clear());
            record.job.file.iter_mut().for_each(|file| file.cached = None);
        }
    }

    /// Adds the name of the job file to `error` if the cause is in that file.
    pub fn in_file(&self, error: Error) -> Error {
        use filemap_kernel::Error as KernelError;
        use filemap_model::Error as ModelError;
        let is_of_file = match &error {
            Error::Job(error @ filemap_job::Error::JobFile { .. }) => {
                return self.in_line(error.clone());
            }
            Error::Model(error) => matches!(
                error,
                ModelError::Bus { .. }
                    | ModelError::OutOfMemory { .. }
                    | ModelError::ProgramOutOfMemory { .. }
                    | ModelError::OomKill { .. }
                    | ModelError::SettledThreads { .. }
            ),
            Error::Kernel(error) => matches!(
                error.root_cause(),
                KernelError::BeyondFile { .. } | KernelError::OutOfMemory { .. }
            ),
            _ => false,
        };
        let is_program = self.has_tables() || !self.spec.is_single_mapping();
        if is_of_file && is_program { self.named(error) } else { error }
    }

    /// The command `name` that repeats `job`, a variant of this job: file and flags as given, then
    /// `words`, plus the kernel version whose rules the model used if neither names it.
    pub fn command(&self, name: &str, job: &Job, words: &[String]) -> String {
        let mut flags = self.flags.clone();
        if self.path.is_none() && !matches!(job.engine, EngineKind::Kernel) {
            flags.kernel.get_or_insert(job.rules.kernel.name().to_string());
        }
        self.command_with(name, &flags, words)
    }

    /// The command `name` with the file of this job, `flags` and `words`.
    pub fn command_with(&self, name: &str, flags: &JobFlags, words: &[String]) -> String {
        repeat_command(name, self.path.as_slice(), flags, words)
    }

    /// Text of the job file; for a recording, the command that shows it.
    pub fn text(&self) -> String {
        match &self.source {
            JobSource::Recording(..) => {
                format!("# filemap record --show {}\n", shell_word(&self.name()))
            }
            _ => self.spec.to_toml(),
        }
    }

    /// The job in `variant`, with its advice for named mappings and files.
    ///
    /// # Errors
    /// When a setting does not apply to the job.
    pub fn in_variant(&self, variant: &Variant) -> Result<JobSpec, Error> {
        let mut spec = self.spec_with(&variant.apply_to(&JobFlags::default()))?;
        for (name, advice) in variant.advice_at() {
            spec.advise(Some(name), &advice)?;
        }
        Ok(spec)
    }

    /// `spec`, a job of a search that begins with this one, in `variant`.
    ///
    /// # Errors
    /// When a setting does not apply to the job, or it is invalid.
    pub fn validate_variant(&self, spec: &JobSpec, variant: &Variant) -> Result<Job, Error> {
        let settings = variant.apply_to(&JobFlags::default());
        let name = || self.path.clone().unwrap_or_else(|| "a job of the search".to_string());
        let spec = spec.clone().with_flags(&settings);
        let mut spec = spec.map_err(|cause| variant.error(with_flag(&name(), cause)))?;
        for (name, advice) in variant.advice_at() {
            spec.advise(Some(name), &advice).map_err(|error| variant.error(error.into()))?;
        }
        self.validate(&spec).map_err(|error| variant.error(error))
    }

    /// Resolves the job on this machine, and validates it.
    ///
    /// # Errors
    /// When the job is invalid or cannot be resolved.
    pub fn plan(&self) -> Result<PlannedJob<'_>, Error> {
        let mut spec = self.spec.clone();
        let found = self.resolve(&mut spec)?;
        let profile = found.on_device(machine_profile::resolve(&mut spec)?);
        let job = self.validate(&spec)?;
        kernel_match::check(&job)?;
        Ok(PlannedJob { input: self, job, profile, warnings: found.warnings })
    }
}

/// Maximum number of replaced files that are named.
const MAX_NAMED: usize = 3;

/// Replaces the libraries, locales and the like of a recording by new files of the same size, as
/// running programs have them mapped, so that their pages cannot be dropped. Returns a warning.
fn replace_system_files(spec: &mut JobSpec) -> Option<String> {
    let is_executable = |file: &str| {
        let maps = |open: &str| spec.open.iter().any(|own| own.name == open && own.file == file);
        spec.mapping.iter().any(|mapping| mapping.exec && maps(&mapping.open))
    };
    let is_of_system = |file: &FileSpec| {
        let path = file.path.as_ref().map(Path::new);
        path.is_some()
            && (is_executable(&file.name) || contents_of(path, &file.name).is_of_system())
    };
    let replaced: Vec<bool> = spec.file.iter().map(is_of_system).collect();
    let mut names = Vec::new();
    for (file, _) in spec.file.iter_mut().zip(replaced).filter(|(_, is_replaced)| *is_replaced) {
        if forget_path(file) {
            names.push(file.name.clone());
        }
    }
    let named = names.iter().take(MAX_NAMED).map(|name| format!("'{name}'"));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let stand = if names.len() == 1 {
        "a new file of its size stands"
    } else {
        "new files of the same sizes stand"
    };
    (!names.is_empty()).then(|| {
        format!(
            "{stand} for {named}{more}: programs of this machine use them, so their pages stay as \
             they are"
        )
    })
}

/// A warning if files of a recording were cached when it was made, and the job begins cold.
fn cached_when_recorded(spec: &JobSpec) -> Option<String> {
    if spec.start.as_deref().is_some_and(|start| start != "cold") {
        return None;
    }
    let page_size = spec.page_size.as_ref().and_then(|size| size.bytes().ok()).unwrap_or(4096);
    let (mut cached_bytes, mut all_bytes) = (0, 0);
    for file in &spec.file {
        let found = file.found.as_ref().map(|found| found.size_bytes);
        let given = file.size.as_ref().and_then(|size| size.bytes().ok());
        let pages = file.cached.iter().flat_map(|cached| cached.iter()).map(|[_, pages]| pages);
        let size_bytes = found.or(given).unwrap_or(0);
        let bytes = pages.fold(0u64, |sum, pages| sum.saturating_add(*pages));
        cached_bytes += bytes.saturating_mul(page_size).min(size_bytes);
        all_bytes += size_bytes;
    }
    let percent = cached_bytes as f64 * 100.0 / all_bytes.max(1) as f64;
    (percent >= 1.0).then(|| {
        format!(
            "the page cache is cold at the beginning; when the program was recorded, it had \
             {percent:.0} % of the files (--start recorded)"
        )
    })
}

/// Replaces the path of `file` by its size, for a kernel that cannot read it; returns whether it
/// had one. Programs keep theirs, as their segments are copied.
fn forget_path(file: &mut FileSpec) -> bool {
    let Some(found) = file.found.take_if(|found| found.elf.is_none()) else { return false };
    (file.size, file.sparse) = (Some(SizeText::from_bytes(found.size_bytes)), found.sparse);
    file.path.take().is_some()
}

/// The error `cause` of a flag for the job called `job`.
fn with_flag(job: &str, cause: filemap_job::Error) -> Error {
    match cause {
        filemap_job::Error::SeveralTables { flag, table } => Error::Usage(format!(
            "--{flag} is for a job with one [[{table}]], and {job} is not; remove the flag, or put \
             its value into {job}"
        )),
        filemap_job::Error::OfThrash { flag } => Error::Usage(format!(
            "--{flag} is for --workload {THRASH}, and {job} is a program; remove the flag"
        )),
        filemap_job::Error::IsThrash => Error::Usage(format!(
            "--workload {THRASH} is a program of its own, and so is {job}; remove the flag, or \
             give it without {job}"
        )),
        cause => cause.into(),
    }
}

/// The command `name` that repeats a report: job files, flags, and `words` that are quoted already.
pub fn repeat_command(name: &str, files: &[String], flags: &JobFlags, words: &[String]) -> String {
    let mut command = vec!["filemap".to_string(), name.to_string()];
    command.extend(files.iter().map(|file| shell_word(file)));
    command.extend(flags.flags());
    command.extend_from_slice(words);
    command.join(" ")
}

/// A validated job, ready to run.
#[derive(Debug)]
pub struct PlannedJob<'a> {
    /// The input that it was planned from.
    pub input: &'a JobInput,
    /// The job.
    pub job: Job,
    /// The model's profile.
    pub profile: Profile,
    /// Warnings for the reader of the report.
    pub warnings: Vec<String>,
}

impl PlannedJob<'_> {
    /// Adds warnings to `record`, the outcome of this job with `seeds` seeds. `took` is the
    /// processor time that this process spent on it.
    ///
    /// # Errors
    /// When a kernel image cannot be read or a thread cannot be started.
    pub fn warn(
        &self,
        record: &mut Record,
        seeds: Option<u64>,
        took: Duration,
    ) -> Result<(), Error> {
        let PlannedJob { input, job, profile, warnings } = self;
        input.leave_lists(record);
        record.warnings = warnings.clone();
        if let Some((most, pages)) = input.with_unseen_touches()? {
            record.warnings.push(unseen_text(pages, &[("the model", &most.plan()?.job, profile)])?);
        }
        record.warnings.extend(job.idle_settings());
        record.warnings.extend(job.seed_warnings(seeds.unwrap_or(1)));
        let kernel = input.spec.kernel.as_deref();
        record.warnings.extend(kernel_match::warnings(kernel, &[job])?);
        if seeds.is_none() {
            let cell = RanJob { name: "this job", job, profile, record };
            let warnings = seeds::warnings(&[cell], took)?;
            record.warnings.extend(warnings);
        }
        Ok(())
    }
}

/// A warning: what the model has for the named jobs, in which all `pages` are touched that the
/// recorder may have missed.
///
/// # Errors
/// When the model cannot run one of the jobs.
pub fn unseen_text(pages: u64, jobs: &[(&str, &Job, &Profile)]) -> Result<String, Error> {
    let figures = |(name, job, profile): &(&str, &Job, &Profile)| {
        let run = trace(job, profile, &mut ())?;
        let read = run.counters.bytes_read.unwrap_or_default() / job.page_size();
        let faults = run.counters.major_faults.unwrap_or_default();
        Ok::<_, Error>(format!(
            "{name} reads {} pages, with {} major faults, in {}",
            number(read as f64),
            number(faults as f64),
            time(run.elapsed_ns.unwrap_or_default() as f64)
        ))
    };
    let all = jobs.iter().map(figures).collect::<Result<Vec<_>, Error>>()?.join("; ");
    Ok(format!(
        "{} pages may have been touched unseen while the program was recorded; the figures are \
         those without touches of them; with touches of all, {all}",
        number(pages as f64)
    ))
}

#[cfg(test)]
mod tests {
    use filemap_job::program::FoundFile;

    use super::*;

    #[test]
    fn booted_kernels_make_files_of_recorded_size() {
        let found = FoundFile { size_bytes: 5000, sparse: true, holes: Vec::new(), elf: None };
        let path = Some("/data".to_string());
        let mut file = FileSpec { path, found: Some(found), ..FileSpec::default() };
        assert!(forget_path(&mut file) && !forget_path(&mut file));
        let size = Some(SizeText::from_bytes(5000));
        assert_eq!(file, FileSpec { size, sparse: true, ..FileSpec::default() });
    }
}
