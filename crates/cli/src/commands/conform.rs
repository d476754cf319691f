//! `filemap conform`.

use filemap_job::{EngineKind, Job, JobSpec, ProgramSpec, Written, shell_word};
use filemap_study::conform::{self, Asked, Conformance, tables_file, without_image};
use filemap_study::host;

use crate::Outcome;
use crate::args::ConformArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::given::{self, Given, not_of_tables};
use crate::output::{Inputs, Output};

/// Compares what a kernel decides with what the model decides.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    let (given, inputs) = given::job(args.job_file.as_deref(), &args.job)?;
    let mut spec = match &given.written {
        Written::Flags(spec) => JobSpec::clone(spec),
        Written::Tables(tables) => {
            return of_program((&given, &inputs), tables, args)
                .map_err(|error| given.in_file(error));
        }
    };
    let output = args.output.open(&inputs, &[])?;
    let on = Asked::take(&mut spec)?;
    let is_job = given.path.is_some() || spec != JobSpec::default();
    let seed = conform::seed(&spec);
    check_seed(&given, &args.fuzz, &spec)?;
    if is_job && !args.pattern.is_empty() {
        let message = "--pattern is a job of its own; remove it, or the flags of the job";
        return Err(Error::Usage(message.to_string()));
    }
    if args.fuzz.is_none() && is_job && on.image.is_none() {
        spec.kernel = on.rules.clone();
        of_place(&mut spec)?;
    }
    let named = match args.fuzz {
        Some(jobs) => conform::random(jobs, spec)?,
        None if is_job => vec![(conform::JOB.to_string(), Written::Flags(Box::new(spec)))],
        None if args.pattern.is_empty() => conform::built_in().to_vec(),
        None => conform::chosen(&args.pattern)?,
    };
    let words = args.pattern.iter().map(|name| format!(" --pattern {}", shell_word(name)));
    let words = words.chain(args.first.then(|| " --first".to_string())).collect::<String>();
    let flags = format!("{words}{}", on.flags());
    let command = |first: &Job| match args.fuzz {
        Some(number) => format!("filemap conform --fuzz {number} --seed {seed}{flags}"),
        None if is_job => command(&on, &given, first),
        None => format!("filemap conform{flags}"),
    };
    told(output, &conform::of_jobs(&named, &on, args.first, &RealEngines, command)?)
}

/// The same of the job that was `given`, which has these `tables`.
fn of_program(
    (given, inputs): (&Given, &Inputs),
    tables: &ProgramSpec,
    args: ConformArgs,
) -> Result<Outcome, Error> {
    let path = given.name();
    if args.fuzz.is_some() {
        return Err(not_of_tables("--fuzz", &path));
    }
    let output = args.output.open(inputs, &[])?;
    let on = Asked::take(&mut tables.shared())?;
    let mut spec = on.tables_on_kernel(tables);
    spec.on = Some(EngineKind::Kernel.to_string());
    let mut written = Written::Tables(Box::new(spec));
    given.resolve(&mut written)?;
    let program = given.validate_for(&written, Some(&on.release))?;
    let command = given.command("conform", &program);
    let text = match given.of_recording {
        Some(_) => given.text(),
        None => tables_file(tables),
    };
    let mut found = conform::of_program(&program, &path, &text, &on, &RealEngines, command)?;
    let said: Vec<String> = given.of_recording.iter().flatten().cloned().collect();
    if !said.is_empty() {
        found.footer.scope = format!("{}; {}", said.join("; "), found.footer.scope);
    }
    told(output, &found)
}

/// Writes what was found, and says what it comes to.
fn told(output: Output, found: &Conformance) -> Result<Outcome, Error> {
    output.write(&found.report())?;
    Ok(if found.agrees()? { Outcome::Done } else { Outcome::CheckFailed })
}

/// The command that compares `job`, which came of `given`, again on the kernel `on`.
fn command(on: &Asked, given: &Given, job: &Job) -> String {
    let Some((path, modules)) = &on.image else { return given.command("conform", job) };
    if given.path.is_some() && job.accesses().nth(1).is_some() {
        return given.command("conform", job);
    }
    let command = given.command("conform", &without_image(job));
    let flag = |name: &str, value: &str| format!(" --{name} {}", shell_word(value));
    let modules = modules.as_deref().map(|path| flag("modules", path));
    format!("{command}{}{}", flag("image", path), modules.unwrap_or_default())
}

/// Refuses a seed of nothing: the built-in patterns have their own.
fn check_seed(given: &Given, fuzz: &Option<u64>, spec: &JobSpec) -> Result<(), Error> {
    let only_seed = JobSpec { seed: spec.seed, ..JobSpec::default() };
    if spec.seed.is_none() || fuzz.is_some() || given.path.is_some() || *spec != only_seed {
        return Ok(());
    }
    let message = "--seed goes with --fuzz N, or with a --workload; give one of them";
    Err(Error::Usage(message.to_string()))
}

/// Fills in what `spec` does not say of the file that it names, or of this machine where it asks
/// for that.
fn of_place(spec: &mut JobSpec) -> Result<(), Error> {
    let has_file = spec.file.is_some() && !spec.maps_elf();
    if !has_file && spec.kernel.as_deref() != Some("host") {
        return Ok(());
    }
    let engine = spec.on.replace(EngineKind::Kernel.to_string());
    host::resolve(spec)?;
    spec.on = engine;
    Ok(())
}
