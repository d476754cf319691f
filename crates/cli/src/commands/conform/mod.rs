//! `filemap conform`.

mod fuzz;
mod patterns;

use filemap_job::{EngineKind, Job, JobSpec, Shown, ShownLog};
use filemap_kernel::engine::host_environment;
use filemap_kernel::observe::Observer;
use filemap_model::{Profile, trace_settled};
use filemap_report::Footer;
use filemap_report::conform::{self, Finding, Pattern};
use filemap_report::setup;

use super::Asked;
use crate::Outcome;
use crate::args::ConformArgs;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::interrupt;
use crate::output::Output;
use crate::progress::Progress;

/// One pattern in so many may go without comparison before the whole tells nothing.
const NOT_COMPARED_ONE_IN: usize = 10;

/// Compares what the running kernel decides with what the model decides.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    let (asked, mut spec) = Asked::new(args.job_file, args.job)?;
    check(&asked, &spec)?;
    of_place(&mut spec)?;
    let is_job = asked.file.is_some() || spec != JobSpec::default();
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
        let mut finding = bench.compare(job)?;
        let mut job = job.clone();
        if let (Finding::Compared(found), true) = (&finding, args.fuzz.is_some())
            && found.mismatches > 0
        {
            let smallest = fuzz::shrink(spec, job, found.clone(), |spec| {
                let Ok(job) = validate(spec) else { return Ok(None) };
                Ok(match bench.compare(&job)? {
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
    let command = match args.fuzz {
        Some(number) => format!("filemap conform --fuzz {number} --seed {seed}"),
        None if is_job => asked.command("conform", &jobs[0]),
        None => "filemap conform".to_string(),
    };
    let mut report = conform::report(&patterns, footer(&jobs, bench.disturbed, command));
    if let ([job], true, None) = (jobs.as_slice(), is_job, args.fuzz) {
        report = report.of(setup::of_job(&job.to_spec()));
    }
    output.write(&report)?;
    outcome(&patterns)
}

/// Refuses what a comparison of the model with the running kernel, once, leaves no choice of.
fn check(asked: &Asked, spec: &JobSpec) -> Result<(), Error> {
    if spec.image.is_some() {
        let message = "--image: a booted kernel gives no decision log; leave it out";
        return Err(Error::CannotRun(message.to_string()));
    }
    // A job file says which engine it was written for.
    if asked.flags.on.is_some() {
        let message = "--on does not go with conform, which is of both engines; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    if spec.runs.is_some_and(|runs| runs != 1) {
        let message = "--runs does not go with conform, which reads one log; remove it";
        return Err(Error::Usage(message.to_string()));
    }
    if spec.seed == Some(0) {
        let message = format!("--seed: 0 is out of range; give 1 to {}", u64::MAX);
        return Err(Error::Usage(message));
    }
    match spec.with.as_deref() {
        None | Some("baseline") => Ok(()),
        Some(series) => Err(Error::CannotRun(format!(
            "--with {series}: no series is in the running kernel; leave it out"
        ))),
    }
}

/// A difference fails the check; too few comparisons are none.
fn outcome(patterns: &[Pattern]) -> Result<Outcome, Error> {
    if patterns.iter().any(Pattern::differs) {
        return Ok(Outcome::CheckFailed);
    }
    let (missing, all) = (conform::not_compared(patterns), patterns.len());
    if missing * NOT_COMPARED_ONE_IN > all {
        return Err(Error::CannotRun(format!(
            "{missing} of {all} patterns were not compared: end what takes pages out of the page \
             cache (such as DAMON)"
        )));
    }
    Ok(Outcome::Done)
}

/// What observes, and how often it was disturbed.
struct Bench {
    observer: Observer,
    disturbed: u64,
}

impl Bench {
    /// Runs `job` in the model and on the kernel, if that leaves it alone.
    fn compare(&mut self, job: &Job) -> Result<Finding, Error> {
        let subject = self.observer.subject(job)?;
        let mut profile = Profile::DEFAULT;
        profile.device.io_bytes = subject.io_bytes();
        let mut log = ShownLog::default();
        trace_settled(job, &profile, &mut log)?;
        let model = log.into_lines();
        let expected = model.iter().map(Shown::events).sum();
        let observed = match self.observer.observe(job, &subject, expected) {
            Ok(observed) => observed,
            Err(filemap_kernel::Error::Disturbed { runs, .. }) => {
                self.disturbed += u64::from(runs);
                let reason =
                    format!("somebody else added or took pages of its file in {runs} runs");
                return Ok(Finding::NotCompared { reason });
            }
            Err(error) => return Err(error.into()),
        };
        self.disturbed += u64::from(observed.disturbed);
        Ok(Finding::Compared(conform::compare(&model, &observed.log)))
    }
}

/// Fills in what `spec` does not say of the file that it names.
fn of_place(spec: &mut JobSpec) -> Result<(), Error> {
    if spec.file.is_none() || spec.maps_elf() {
        return Ok(());
    }
    let engine = spec.on.replace(EngineKind::Kernel.to_string());
    host::resolve(spec)?;
    spec.on = engine;
    Ok(())
}

/// `spec` by the rules of the running kernel, unless it names others.
fn of_host(mut spec: JobSpec) -> JobSpec {
    spec.kernel.get_or_insert_with(|| "host".to_string());
    spec
}

fn footer(jobs: &[Job], disturbed: u64, command: String) -> Footer {
    let rules = jobs.first().map_or("", |job| job.rules.kernel.name());
    let mut environment = host_environment();
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

#[cfg(test)]
mod tests {
    use filemap_report::conform::Comparison;

    use super::*;

    fn patterns(compared: usize, missing: usize, differing: usize) -> Vec<Pattern> {
        let pattern = |finding: &Finding| Pattern {
            name: String::new(),
            finding: finding.clone(),
            job: String::new(),
        };
        let same = Finding::Compared(Comparison::default());
        let none = Finding::NotCompared { reason: String::new() };
        let other = Finding::Compared(Comparison { mismatches: 1, ..Comparison::default() });
        let kinds = [(compared, same), (missing, none), (differing, other)];
        kinds.iter().flat_map(|(number, kind)| vec![pattern(kind); *number]).collect()
    }

    #[test]
    fn a_small_share_may_go_without_comparison() {
        assert!(matches!(outcome(&patterns(10, 0, 0)), Ok(Outcome::Done)));
        assert!(matches!(outcome(&patterns(9, 1, 0)), Ok(Outcome::Done)));
        for (compared, missing) in [(8, 1), (0, 1)] {
            let error = outcome(&patterns(compared, missing, 0)).unwrap_err();
            assert_eq!(error.exit_code(), 4, "{error}");
        }
        assert!(matches!(outcome(&patterns(0, 5, 1)), Ok(Outcome::CheckFailed)));
    }
}
