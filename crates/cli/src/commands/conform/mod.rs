//! `filemap conform`.

mod asked;
mod bench;
mod fuzz;
mod patterns;
mod program;
mod verdict;

use filemap_job::{EngineKind, Job, JobSpec};
use filemap_report::conform::{self, Finding, Pattern};
use filemap_report::setup;

use asked::check_asked;
use bench::Bench;
use verdict::{footer, outcome};

use super::GivenJob;
use super::folio_ops;
use super::program::in_file;
use crate::Outcome;
use crate::args::ConformArgs;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::interrupt;
use crate::judged;
use crate::progress::Progress;
use crate::random_jobs::shrink;

/// Most jobs that are tried to shrink one.
const MAX_ATTEMPTS: u32 = 150;

/// Compares what the running kernel decides with what the model decides.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    if let Some(path) = &args.job_file
        && let Some(given) = input::program(path)?
    {
        let path = path.clone();
        return program::run(given, &path, args).map_err(|error| in_file(&path, error));
    }
    let (asked, mut spec) = GivenJob::new(args.job_file, args.job)?;
    let instead = "it makes no decisions that could be compared; give filemap run, and --on kernel \
                   for the running kernel";
    folio_ops::refuse(&spec, "conform", instead)?;
    let output = args.output.open(&asked.inputs, &[])?;
    check_asked(&asked.flags, &spec)?;
    let release = input::host_release();
    judged::check_running(spec.kernel.as_deref(), release.as_deref().unwrap_or_default())?;
    // Rules are for patterns of ours as well.
    let kernel = spec.kernel.take();
    let is_job = asked.file.is_some() || spec != JobSpec::default();
    let seed = fuzz::seed(&spec);
    check_seed(&asked, &args.fuzz, &spec)?;
    if args.fuzz.is_none() && is_job {
        spec.kernel = kernel.clone();
        of_place(&mut spec)?;
    }
    let named = match args.fuzz {
        Some(jobs) => fuzz::named(jobs, spec)?,
        None if is_job => vec![("job".to_string(), spec)],
        None => patterns::built_in(),
    };
    let rules = kernel.clone().unwrap_or("host".to_string());
    let validate = |spec: &JobSpec| {
        let spec = JobSpec { kernel: Some(rules.clone()), ..spec.clone() };
        spec.validate(release.as_deref())
    };
    let jobs = named.iter().map(|(_, spec)| validate(spec)).collect::<Result<Vec<_>, _>>()?;
    let (journal, _guard) = interrupt::journal()?;
    let mut bench = Bench::open(&journal)?;
    let progress = Progress::new(jobs.len());
    let mut patterns = Vec::new();
    for ((name, spec), job) in named.iter().zip(&jobs) {
        let mut finding = match of_one_file(&mut bench, job) {
            // The others may need less.
            Err(Error::Kernel(error)) if jobs.len() > 1 && error.cannot_run_here() => {
                Finding::LeftOut { reason: error.to_string() }
            }
            finding => finding?,
        };
        let mut job = job.clone();
        if let (Finding::Compared(found), true) = (&finding, args.fuzz.is_some())
            && found.mismatches > 0
        {
            let (_, smallest) = shrink(spec, (job, found.clone()), MAX_ATTEMPTS, |spec| {
                let Ok(job) = validate(spec) else { return Ok(None) };
                Ok(match of_one_file(&mut bench, &job)? {
                    Finding::Compared(found) if found.mismatches > 0 => Some((job, found)),
                    _ => None,
                })
            })?;
            (job, finding) = (smallest.0, Finding::Compared(smallest.1));
        }
        patterns.push(Pattern { name: name.clone(), finding, job: job.to_toml() });
        progress.advance();
    }
    drop(progress);
    let with_rules = kernel.map_or(String::new(), |kernel| format!(" --kernel {kernel}"));
    let command = match args.fuzz {
        Some(number) => format!("filemap conform --fuzz {number} --seed {seed}{with_rules}"),
        None if is_job => asked.command("conform", &jobs[0]),
        None => format!("filemap conform{with_rules}"),
    };
    let rules = jobs.first().map_or("", |job| job.rules.kernel.name());
    let mut report = conform::report(&patterns, footer(rules, &bench, command));
    if let ([job], true, None) = (jobs.as_slice(), is_job, args.fuzz) {
        report = report.of(setup::of_job(&job.to_spec()));
    }
    output.write(&report)?;
    outcome(&patterns)
}

/// Refuses a seed of nothing: the built-in patterns have their own.
fn check_seed(asked: &GivenJob, fuzz: &Option<u64>, spec: &JobSpec) -> Result<(), Error> {
    let only_seed = JobSpec { seed: spec.seed, ..JobSpec::default() };
    if spec.seed.is_none() || fuzz.is_some() || asked.file.is_some() || *spec != only_seed {
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

/// What is found of a job of one file.
fn of_one_file(bench: &mut Bench, job: &Job) -> Result<Finding, Error> {
    Ok(bench.compare(job)?.remove(0))
}
