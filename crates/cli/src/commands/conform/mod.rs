//! `filemap conform`.

mod fuzz;
mod patterns;

use std::io::{IsTerminal, Write, stderr};

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

/// Compares what the running kernel decides with what the model decides.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    let command = command(&args);
    let file = args.job_file.is_some();
    let spec = job_spec(args.job_file.as_deref(), args.job)?;
    let named = match args.fuzz {
        Some(jobs) => fuzz::named(jobs, spec)?,
        None if !file && spec == JobSpec::default() => patterns::built_in(),
        None => vec![("job".to_string(), spec)],
    };
    let release = input::host_release();
    let jobs = named
        .iter()
        .map(|(_, spec)| of_host(spec.clone()).validate(release.as_deref()))
        .collect::<Result<Vec<_>, _>>()?;
    let output = Output::open(&args.output, None)?;
    let (journal, _guard) = interrupt::journal()?;
    let mut bench = Bench { observer: Observer::open(&journal)?, disturbed: 0 };
    let mut patterns = Vec::new();
    for ((name, spec), job) in named.iter().zip(&jobs) {
        progress(patterns.len(), jobs.len(), name);
        let mut found = bench.compare(job)?;
        let mut job = job.clone();
        if found.mismatches > 0 && args.fuzz.is_some() {
            (job, found) = fuzz::shrink(spec, job, found, |spec| {
                let Ok(job) = of_host(spec.clone()).validate(release.as_deref()) else {
                    return Ok(None);
                };
                let found = bench.compare(&job)?;
                Ok((found.mismatches > 0).then_some((job, found)))
            })?;
        }
        patterns.push(Pattern { name: name.clone(), found, job: job.to_toml() });
    }
    progress(jobs.len(), jobs.len(), "");
    let failed = patterns.iter().any(|pattern| pattern.found.mismatches > 0);
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

/// A line on a terminal that says how far it is.
fn progress(done: usize, total: usize, name: &str) {
    if stderr().is_terminal() && total > 1 {
        let text =
            if done < total { format!("{}/{total} {name}", done + 1) } else { String::new() };
        let _ = write!(stderr(), "\r\x1b[2K{text}");
    }
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

/// The command that repeats this.
fn command(args: &ConformArgs) -> String {
    let words = std::env::args().skip(2);
    let _ = args;
    ["filemap conform".to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
