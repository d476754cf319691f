//! `filemap conform`.

mod fuzz;
mod patterns;

use filemap_job::{Job, JobSpec, Shown, ShownLog};
use filemap_kernel::observe::Observer;
use filemap_model::{Profile, trace_settled};
use filemap_report::Footer;
use filemap_report::conform::{self, Comparison, Pattern};
use serde_json::{Map, json};

use super::job_spec;
use crate::Outcome;
use crate::args::ConformArgs;
use crate::error::Error;
use crate::input;
use crate::interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// Compares what the running kernel decides with what the model decides.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    let spec = job_spec(args.job_file.as_deref(), args.job)?;
    let is_job = args.job_file.is_some() || spec != JobSpec::default();
    let seed = fuzz::seed(&spec);
    let named = match args.fuzz {
        Some(jobs) => fuzz::named(jobs, spec)?,
        None if is_job => vec![("job".to_string(), spec)],
        None => patterns::built_in(),
    };
    let release = input::host_release();
    let validate = |spec: &JobSpec| of_host(spec.clone()).validate(release.as_deref());
    let jobs = named.iter().map(|(_, spec)| validate(spec)).collect::<Result<Vec<_>, _>>()?;
    let output = Output::open(&args.output, None)?;
    let (journal, _guard) = interrupt::journal()?;
    let mut bench = Bench { observer: Observer::open(&journal)?, disturbed: 0 };
    let progress = Progress::new(jobs.len());
    let mut patterns = Vec::new();
    for ((name, spec), job) in named.iter().zip(&jobs) {
        let mut found = bench.compare(job)?;
        let mut job = job.clone();
        if found.mismatches > 0 && args.fuzz.is_some() {
            (job, found) = fuzz::shrink(spec, job, found, |spec| {
                let Ok(job) = validate(spec) else { return Ok(None) };
                let found = bench.compare(&job)?;
                Ok((found.mismatches > 0).then_some((job, found)))
            })?;
        }
        patterns.push(Pattern { name: name.clone(), found, job: job.to_toml() });
        progress.advance();
    }
    drop(progress);
    let failed = patterns.iter().any(|pattern| pattern.found.mismatches > 0);
    let command = match (args.fuzz, is_job, args.job_file) {
        (Some(number), ..) => format!("filemap conform --fuzz {number} --seed {seed}"),
        (None, false, _) => "filemap conform".to_string(),
        (None, true, Some(path)) if jobs[0].phases.len() > 1 => format!("filemap conform {path}"),
        (None, true, _) => jobs[0].command().replacen("filemap run", "filemap conform", 1),
    };
    output.write(&conform::report(&patterns, footer(&jobs, bench.disturbed, command)))?;
    Ok(if failed { Outcome::CheckFailed } else { Outcome::Done })
}

/// What observes, and how often it was disturbed.
struct Bench {
    observer: Observer,
    disturbed: u64,
}

impl Bench {
    /// Runs `job` in the model and on the kernel.
    fn compare(&mut self, job: &Job) -> Result<Comparison, Error> {
        let subject = self.observer.subject(job)?;
        let mut profile = Profile::DEFAULT;
        profile.device.io_bytes = subject.io_bytes();
        let mut log = ShownLog::default();
        trace_settled(job, &profile, &mut log)?;
        let model = log.into_lines();
        let expected = model.iter().map(Shown::events).sum();
        let observed = self.observer.observe(job, &subject, expected)?;
        self.disturbed += u64::from(observed.disturbed);
        Ok(conform::compare(&model, &observed.log))
    }
}

/// `spec` by the rules of the running kernel, unless it names others.
fn of_host(mut spec: JobSpec) -> JobSpec {
    spec.kernel.get_or_insert_with(|| "host".to_string());
    spec
}

fn footer(jobs: &[Job], disturbed: u64, command: String) -> Footer {
    let rules = jobs.first().map_or("", |job| job.rules.kernel.name());
    let mut environment = Map::new();
    environment.insert("filemap".into(), env!("CARGO_PKG_VERSION").into());
    environment.insert("kernel".into(), json!(input::host_release()));
    environment.insert("runs_repeated_after_foreign_eviction".into(), disturbed.into());
    Footer {
        scope: format!(
            "rules of Linux {rules} and the running kernel; files that fit in memory; after each \
             access what it reads is waited for"
        ),
        command,
        environment,
    }
}
