//! `filemap conform`.

use filemap_job::{EngineKind, Job, JobFlags, JobSpec, shell_word};
use filemap_study::conform::{self, ComparedKernel, ConformRecord, job_file};
use filemap_study::job_input::repeat_command;

use crate::Outcome;
use crate::args::ConformArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::job_input::{self, JobInput, not_of_tables, without_place};
use crate::output::{Inputs, Output};

/// Compares a kernel's decisions with the model's.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    let (input, inputs) = job_input::read(args.job_file.as_deref(), &args.job)?;
    let own = without_place(&input.flags);
    let is_job = input.path.is_some() || own != JobFlags::default();
    let is_program = input.has_tables() || own.is_thrash();
    if is_program {
        return conform_program((&input, &inputs), args).map_err(|error| input.in_file(error));
    }
    let output = args.output.open(&inputs, &[])?;
    let mut spec = input.spec.clone();
    let on = ComparedKernel::take(&mut spec)?;
    let seed = conform::seed(&own);
    check_seed(&input, &args.fuzz, &own)?;
    if is_job && !args.pattern.is_empty() {
        let message = "--pattern is a job of its own; remove it, or the flags of the job";
        return Err(Error::Usage(message.to_string()));
    }
    if args.fuzz.is_none() && is_job && on.image.is_none() {
        spec.kernel = on.rules.clone();
        resolve(&input, &mut spec)?;
    }
    let named = match args.fuzz {
        Some(jobs) => conform::random(jobs, &own)?,
        None if is_job => vec![(conform::JOB.to_string(), spec)],
        None if args.pattern.is_empty() => conform::built_in().to_vec(),
        None => conform::select_patterns(&args.pattern)?,
    };
    let fuzz = args.fuzz.map(|jobs| format!("--fuzz {jobs} --seed {seed}"));
    let names = args.pattern.iter().map(|name| format!("--pattern {}", shell_word(name)));
    let words = fuzz.into_iter().chain(names).chain(args.first.then(|| "--first".to_string()));
    let words: Vec<String> = words.collect();
    let command = |_: &Job| match args.fuzz {
        None if is_job => input.command_with("conform", &input.flags, &words),
        _ => repeat_command("conform", &[], &on.flags(), &words),
    };
    let found = conform::conform_jobs(&named, &on, args.first, &RealEngines, command);
    write_report(output, &found.map_err(|error| input.in_file(error))?)
}

/// Likewise for a job with tables.
fn conform_program(
    (input, inputs): (&JobInput, &Inputs),
    args: ConformArgs,
) -> Result<Outcome, Error> {
    let path = input.name();
    if args.fuzz.is_some() {
        return Err(not_of_tables("--fuzz", &path));
    }
    let output = args.output.open(inputs, &[])?;
    let on = ComparedKernel::take(&mut input.spec.clone())?;
    let mut spec = on.on_kernel(&input.spec);
    spec.on = Some(EngineKind::Kernel.to_string());
    input.resolve(&mut spec)?;
    let program = input.validate_for(&spec, Some(&on.release))?;
    let command = input.command_with("conform", &input.flags, &[]);
    let text = match input.approximations() {
        Some(_) => input.text(),
        None => job_file(&input.spec),
    };
    let mut found = conform::conform_program(&program, &path, &text, &on, &RealEngines, command)?;
    let approximations = input.approximations().unwrap_or_default();
    if !approximations.is_empty() {
        found.footer.scope = format!("{}; {}", approximations.join("; "), found.footer.scope);
    }
    write_report(output, &found)
}

/// Writes the report and determines the outcome.
fn write_report(output: Output, found: &ConformRecord) -> Result<Outcome, Error> {
    output.write(&found.report())?;
    Ok(if found.agrees()? { Outcome::Done } else { Outcome::CheckFailed })
}

/// Rejects a seed that has no effect: the built-in patterns have fixed seeds.
fn check_seed(input: &JobInput, fuzz: &Option<u64>, flags: &JobFlags) -> Result<(), Error> {
    let only_seed = JobFlags { seed: flags.seed, ..JobFlags::default() };
    if flags.seed.is_none() || fuzz.is_some() || input.path.is_some() || *flags != only_seed {
        return Ok(());
    }
    let message = "--seed goes with --fuzz N, or with a --workload; give one of them";
    Err(Error::Usage(message.to_string()))
}

/// Resolves the keys of `spec` that depend on the file it names, or with `kernel = "host"` on this
/// machine.
fn resolve(input: &JobInput, spec: &mut JobSpec) -> Result<(), Error> {
    let has_file = spec.existing_files().any(|file| !file.is_elf);
    let has_program = spec.existing_files().any(|file| file.is_elf);
    if !has_file && !has_program && spec.kernel.as_deref() != Some("host") {
        return Ok(());
    }
    let own = spec.clone();
    spec.on = Some(EngineKind::Kernel.to_string());
    input.resolve(spec)?;
    if !has_file && own.kernel.as_deref() != Some("host") {
        // A program is copied, so only its ELF headers matter.
        *spec = JobSpec { file: spec.file.clone(), ..own };
        return Ok(());
    }
    spec.on = own.on;
    Ok(())
}
