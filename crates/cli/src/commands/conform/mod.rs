//! `filemap conform`.

mod asked;
mod bench;
mod fuzz;
mod patterns;
mod program;
mod verdict;

use filemap_job::{EngineKind, Job, JobSpec, Written};
use filemap_study::conform::{self, Comparison, Finding};

use asked::{Asked, without_image};
use bench::Bench;
use verdict::{check_left_out, footer, outcome};

use crate::Outcome;
use crate::args::ConformArgs;
use crate::error::Error;
use crate::given::Given;
use crate::interrupt;
use crate::progress::Bar;
use crate::random_jobs::shrink;
use filemap_study::engine::Progress;
use filemap_study::host;

/// Most jobs that are tried to shrink one.
const MAX_ATTEMPTS: usize = 150;

/// Of these, so many are sent to a booted kernel together.
const SENT_AT_ONCE: usize = 4;

/// So many machines may end over a job before a comparison is given up.
const MOST_ENDED: u32 = 3;

/// Compares what a kernel decides with what the model decides.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let asked = Given::new(args.job_file.clone(), args.job.clone())?;
    let mut spec = match &asked.written {
        Written::Flags(spec) => JobSpec::clone(spec),
        Written::Tables(tables) => {
            return program::run(&asked, tables, args).map_err(|error| asked.in_file(error));
        }
    };
    let output = args.output.open(&asked.inputs, &[])?;
    let on = Asked::take(&asked.flags, &mut spec)?;
    let is_job = asked.path.is_some() || spec != JobSpec::default();
    let seed = fuzz::seed(&spec);
    check_seed(&asked, &args.fuzz, &spec)?;
    if args.fuzz.is_none() && is_job && on.image.is_none() {
        spec.kernel = on.rules.clone();
        of_place(&mut spec)?;
    }
    let named = match args.fuzz {
        Some(jobs) => fuzz::named(jobs, spec)?,
        None if is_job => vec![(conform::JOB.to_string(), spec)],
        None => patterns::built_in(),
    };
    let validate = |spec: &JobSpec| on.on_kernel(spec).validate(Some(&on.release));
    let jobs = named.iter().map(|(_, spec)| validate(spec)).collect::<Result<Vec<_>, _>>()?;
    let (journal, _guard) = interrupt::journal()?;
    let mut bench = on.bench(&journal)?;
    let findings = findings(&mut bench, &jobs)?;
    let mut patterns = Vec::new();
    let mut shrunk = 0;
    for (((name, spec), job), mut finding) in named.iter().zip(&jobs).zip(findings) {
        let mut job = job.clone();
        if let (Finding::Compared(found), true) = (&finding, args.fuzz.is_some())
            && found.mismatches > 0
            && shrunk < on.most_shrunk()
        {
            let last = |(_, found): &Differing| found.first.as_ref()?.access;
            let begun = (job, found.clone());
            let (_, smallest) = shrink(spec, begun, MAX_ATTEMPTS, last, |specs| {
                differing(&mut bench, specs, validate)
            })?;
            (job, finding) = (smallest.0, Finding::Compared(smallest.1));
            shrunk += 1;
        }
        let job = without_image(&job).to_toml();
        patterns.push(bench.compared().pattern(name.clone(), finding, job));
    }
    let flags = on.flags();
    let command = match args.fuzz {
        Some(number) => format!("filemap conform --fuzz {number} --seed {seed}{flags}"),
        None if is_job => on.command(&asked, &jobs[0]),
        None => format!("filemap conform{flags}"),
    };
    let footer = footer(jobs.first().map(|job| &job.rules), &on, &bench, command);
    let found = bench.compared().conformance(patterns, footer);
    check_left_out(&found)?;
    output.write(&found.report())?;
    outcome(&found)
}

/// A job in which kernel and model differ, and how.
type Differing = (Job, Comparison);

/// What is found of each of `jobs`. Where they are several, what one needs and is not there keeps
/// the others from nothing.
fn findings(bench: &mut Bench, jobs: &[Job]) -> Result<Vec<Finding>, Error> {
    let progress = Bar::new(jobs.len());
    let mut findings: Vec<Option<Finding>> = vec![None; jobs.len()];
    let mut ended = 0;
    bench.compare_all(&jobs.iter().collect::<Vec<_>>(), |number, found| {
        findings[number] = Some(match found {
            Ok(mut of_files) => of_files.remove(0),
            // A kernel that shows nothing shows nothing of any job.
            Err(error) if jobs.len() > 1 && error.cannot_run_here() && !error.is_of_tracing() => {
                Finding::LeftOut { reason: error.cause().to_string() }
            }
            // The machine that ran it is over, and another one runs the rest.
            Err(error) if error.is_in_list() && !error.is_of_tracing() && ended < MOST_ENDED => {
                ended += 1;
                Finding::NotCompared { reason: error.without_image().to_string() }
            }
            Err(error) => return Err(error.into()),
        });
        progress.advance();
        Ok(true)
    })?;
    Ok(findings.into_iter().map(|found| found.expect("each job is told of")).collect())
}

/// The first of `specs` of which kernel and model differ, and how. Those that are no jobs, or that
/// cannot be run, do not differ.
fn differing(
    bench: &mut Bench,
    specs: &[JobSpec],
    validate: impl Fn(&JobSpec) -> Result<Job, filemap_job::Error>,
) -> Result<Option<(usize, Differing)>, Error> {
    let valid = specs.iter().enumerate().filter_map(|(at, spec)| Some((at, validate(spec).ok()?)));
    let valid: Vec<(usize, Job)> = valid.collect();
    // Few at once: what is sent to a booted kernel runs there, also behind the one that differs.
    for few in valid.chunks(SENT_AT_ONCE) {
        let mut differing = None;
        let jobs: Vec<&Job> = few.iter().map(|(_, job)| job).collect();
        bench.compare_all(&jobs, |number, found| {
            if let Ok(Some(Finding::Compared(found))) = found.map(|found| found.into_iter().next())
                && found.mismatches > 0
            {
                let (at, job) = few[number].clone();
                differing = Some((at, (job, found)));
            }
            Ok(differing.is_none())
        })?;
        if differing.is_some() {
            return Ok(differing);
        }
    }
    Ok(None)
}

/// Refuses a seed of nothing: the built-in patterns have their own.
fn check_seed(asked: &Given, fuzz: &Option<u64>, spec: &JobSpec) -> Result<(), Error> {
    let only_seed = JobSpec { seed: spec.seed, ..JobSpec::default() };
    if spec.seed.is_none() || fuzz.is_some() || asked.path.is_some() || *spec != only_seed {
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
