//! `filemap run` of a program: a job file with tables.

use filemap_job::program::{Program, ProgramRecord, THRASH};
use filemap_job::{EngineKind, Flag, JobSpec, Of, ProgramSpec, Workload};
use filemap_model::{Profile, trace_program};
use filemap_report::explain::{ProgramHistory, ProgramRecorder};
use filemap_report::program;

use super::GivenJob;
use crate::Outcome;
use crate::args::RunArgs;
use crate::decided;
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::host::{self, Found};
use crate::input::{self, GivenFile};
use crate::job_flags::JobFlags;
use crate::judged::{self, Judged};
use crate::log::LineLog;
use crate::machine_profile;
use crate::output::Inputs;

/// Runs the program that was `asked` for and prints what it did.
pub fn run(asked: GivenProgram, args: RunArgs, engines: &impl Engines) -> Result<Outcome, Error> {
    if args.seeds.is_some() {
        return Err(not_of_programs("--seeds", &asked.path));
    }
    let log = ("--log", args.log.as_deref());
    let mut output = args.output.open(&asked.inputs, &[log])?;
    let mut spec = asked.spec.clone();
    let found = asked.resolve(&mut spec)?;
    let profile = found.on_device(profile(&mut spec)?);
    let program = asked.validate(&spec)?;
    judged::check(&Judged::from(&program))?;
    let is_one = program.threads.len() == 1 && program.processes.len() == 1;
    if program.engine == EngineKind::Kernel && args.log.is_some() && !is_one {
        let message = "--log of a kernel is of one thread; give --on model, or leave it out";
        return Err(Error::CannotRun(message.to_string()));
    }
    if let Some(target) = output.take("--log") {
        let mut log = LineLog::new(target);
        match program.engine {
            EngineKind::Model => {
                trace_program(&program, &profile, &mut log)?;
                log.finish()?;
            }
            EngineKind::Kernel => log.write_observed(&decided::observe(&program)?)?,
        }
    }
    let (programs, mut profiles) = (std::slice::from_ref(&program), [profile]);
    let ran = engine::run_seeds(engines, programs, &mut profiles, 1, args.apply)?;
    let ran = ran.into_iter().next().expect("one program has run");
    let mut record = ProgramRecord::of(&program, ran);
    asked.leave_lists(&mut record);
    record.warnings = found.warnings;
    let kernel = asked.spec.kernel.as_deref();
    record.warnings.extend(judged::warnings(kernel, &[Judged::from(&program)])?);
    // One table can stand for many files, of which the record has the sum.
    let has_history = program.engine == EngineKind::Model && !program.is_counted();
    let history = match output.has_record() && has_history {
        true => Some(history(&program, &profiles[0], &record)?),
        false => None,
    };
    output.write(&program::report(&record, history.as_ref(), asked.command("run")))?;
    Ok(Outcome::Done)
}

/// The course of the first run in `record`, which is of `program`.
fn history(
    program: &Program,
    profile: &Profile,
    record: &ProgramRecord,
) -> Result<ProgramHistory, Error> {
    let read = record.run.files.iter().map(|file| file.data_pages_read.unwrap_or(0));
    let mut recorder = ProgramRecorder::new(program, &read.collect::<Vec<_>>());
    trace_program(program, profile, &mut recorder)?;
    Ok(recorder.finish())
}

/// A program as it was asked for.
pub struct GivenProgram {
    /// The program with the flags on top.
    pub spec: ProgramSpec,
    /// What messages call it: the path of its job file.
    pub path: String,
    /// Whether flags say all of it, and no job file.
    pub is_of_flags: bool,
    /// What it says otherwise than the recording that it comes of, if it comes of one.
    pub of_recording: Option<Vec<String>>,
    /// What flags said: on top of the job file, where there is one.
    pub flags: JobSpec,
    /// What the command reads.
    pub inputs: Inputs,
}

impl GivenProgram {
    /// The program of the job file at `path`, with `flags` on top.
    ///
    /// # Errors
    /// A flag that no program has.
    pub fn new(given: GivenFile, path: &str, flags: JobFlags) -> Result<Self, Error> {
        let GivenFile { spec, of_recording, .. } = given;
        let (images, modules) = (flags.image.clone(), flags.modules.clone());
        let flags = JobSpec::from(flags);
        if flags.is_thrash() {
            return Err(Error::Usage(format!(
                "--workload {THRASH} is a program of its own, and so is {path}; remove the flag, or \
                 give it without {path}"
            )));
        }
        if let Some(flag) = ProgramSpec::foreign_flag(&flags) {
            return Err(foreign(&flag, path));
        }
        let spec = spec.overlay_advised(&flags)?;
        let mut inputs = Inputs::of(Some(path), &images, &modules, &spec.shared());
        spec.file.iter().for_each(|file| inputs.add_file_of_program(file));
        let path = path.to_string();
        Ok(GivenProgram { spec, path, is_of_flags: false, of_recording, flags, inputs })
    }

    /// The program of the workload `thrash` that `flags` say, or a job file of the same keys.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_thrash((asked, mut flags): (GivenJob, JobSpec)) -> Result<Self, Error> {
        host::resolve_cpus(&mut flags);
        Ok(GivenProgram {
            spec: flags.thrash()?,
            path: asked.file.unwrap_or(format!("--workload {THRASH}")),
            is_of_flags: true,
            of_recording: None,
            flags,
            inputs: asked.inputs,
        })
    }

    /// Fills in what `spec`, which came of this, does not say of its existing files and of this
    /// machine, as for a job of one file.
    ///
    /// # Errors
    /// As for [`host::resolve`].
    pub fn resolve(&self, spec: &mut ProgramSpec) -> Result<Found, Error> {
        let said = self.of_recording.iter().flatten().cloned();
        let warnings = said.chain(host::existing_files(spec, &self.path)?).collect();
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

    /// `spec`, which came of this, as a program that can be run.
    ///
    /// # Errors
    /// What is wrong in the job file.
    pub fn validate(&self, spec: &ProgramSpec) -> Result<Program, Error> {
        self.validate_for(spec, input::host_release().as_deref())
    }

    /// The same, for a kernel of this release.
    ///
    /// # Errors
    /// As there.
    pub fn validate_for(
        &self,
        spec: &ProgramSpec,
        release: Option<&str>,
    ) -> Result<Program, Error> {
        let path = self.path.clone();
        spec.validate(release)
            .map_err(|error| Error::InFile { path, error: Box::new(Error::from(error)) })
    }

    /// Leaves the phases of a recording out of `record`: their lists have one number for each
    /// touch, and the recording has them.
    pub fn leave_lists(&self, record: &mut ProgramRecord) {
        if self.of_recording.is_some() {
            record.program.thread.iter_mut().for_each(|thread| thread.phase.clear());
        }
    }

    /// The text of its job file.
    pub fn text(&self) -> String {
        match self.of_recording {
            Some(_) => format!("# filemap record --show {}\n", filemap_job::shell_word(&self.path)),
            None => toml::to_string(&self.spec).unwrap_or_default(),
        }
    }

    /// The command that does the same again.
    pub fn command(&self, name: &str) -> String {
        let words = ["filemap".to_string(), name.to_string()];
        let file = (!self.is_of_flags).then(|| filemap_job::shell_word(&self.path));
        words.into_iter().chain(file).chain(self.flags.flags()).collect::<Vec<_>>().join(" ")
    }
}

/// Why no command takes `flag` with a program.
pub fn not_of_programs(flag: &str, path: &str) -> Error {
    Error::Usage(format!(
        "{flag} is for a job of one file, and {path} is a program; remove the flag, or give a job \
         of one file"
    ))
}

/// What ended the program of the job file at `path`. What its author has to change there names the
/// file.
pub fn in_file(path: &str, error: Error) -> Error {
    use filemap_kernel::Error as OfKernel;
    use filemap_model::Error as OfModel;
    let is_of_file = match &error {
        Error::Model(error) => matches!(
            error,
            OfModel::Bus { .. }
                | OfModel::OutOfMemory { .. }
                | OfModel::ProgramOutOfMemory { .. }
                | OfModel::SettledThreads { .. }
        ),
        Error::Kernel(error) => {
            matches!(error.cause(), OfKernel::BeyondFile { .. } | OfKernel::OutOfMemory { .. })
        }
        _ => false,
    };
    match is_of_file {
        true => Error::InFile { path: path.to_string(), error: Box::new(error) },
        false => error,
    }
}

/// Why a program does not take `flag`, whose key is one of its tables, or of no program.
pub fn foreign(flag: &str, path: &str) -> Error {
    Error::Usage(match workload_of(flag) {
        Some(name) => {
            format!("{flag} is for --workload {name}, and {path} is a program; remove the flag")
        }
        None => format!(
            "{flag} is for a job of one file, and {path} is a program; remove the flag, or put its \
             value into {path}"
        ),
    })
}

/// The workload that alone has `flag`, with its dashes, beside programs.
pub fn workload_of(flag: &str) -> Option<&'static str> {
    let found = Flag::all().find(|known| known.name == flag.trim_start_matches("--"))?;
    match found.of {
        Of::Thrash => Some(THRASH),
        Of::All | Of::OneFile => None,
    }
}

/// The machine profile that the model of `spec` goes by, which `spec` then names.
pub fn profile(spec: &mut ProgramSpec) -> Result<Profile, Error> {
    let mut shared = spec.shared();
    let profile = machine_profile::of(&mut shared)?;
    *spec = spec.clone().overlay(&shared);
    Ok(profile)
}
