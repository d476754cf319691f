//! `filemap conform`.

mod bench;
mod fuzz;
mod patterns;
mod program;

use filemap_job::{EngineKind, Job, JobSpec};
use filemap_kernel::engine::host_environment;
use filemap_report::Footer;
use filemap_report::conform::{self, Finding, Pattern};
use filemap_report::setup;

use bench::Bench;

use super::GivenJob;
use super::program::in_file;
use crate::Outcome;
use crate::args::ConformArgs;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::interrupt;
use crate::judged;
use crate::output::Output;
use crate::progress::Progress;
use crate::provenance;

/// One pattern in so many may go without comparison before the whole tells nothing.
const NOT_COMPARED_ONE_IN: usize = 10;

/// Compares what the running kernel decides with what the model decides.
pub fn run(args: ConformArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    if let Some(path) = &args.job_file
        && let Some(spec) = input::program(path)?
    {
        let path = path.clone();
        return program::run(spec, &path, args).map_err(|error| in_file(&path, error));
    }
    let (asked, mut spec) = GivenJob::new(args.job_file, args.job)?;
    let output = Output::open(&args.output, &asked.inputs, &[])?;
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
            let smallest = fuzz::shrink(spec, job, found.clone(), |spec| {
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

/// Refuses what a comparison of the model with the running kernel, once, leaves no choice of.
fn check_asked(flags: &JobSpec, spec: &JobSpec) -> Result<(), Error> {
    if spec.image.is_some() {
        let message = "--image: a booted kernel gives no decision log; leave it out";
        return Err(Error::CannotRun(message.to_string()));
    }
    // A job file says which engine it was written for.
    if flags.on.is_some() {
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

/// Refuses a seed of nothing: the built-in patterns have their own.
fn check_seed(asked: &GivenJob, fuzz: &Option<u64>, spec: &JobSpec) -> Result<(), Error> {
    let only_seed = JobSpec { seed: spec.seed, ..JobSpec::default() };
    if spec.seed.is_none() || fuzz.is_some() || asked.file.is_some() || *spec != only_seed {
        return Ok(());
    }
    let message = "--seed goes with --fuzz N, or with a --workload; give one of them";
    Err(Error::Usage(message.to_string()))
}

/// A difference fails the check, and so does what does not show that both agree; too few
/// comparisons are none.
fn outcome(patterns: &[Pattern]) -> Result<Outcome, Error> {
    if patterns.iter().any(Pattern::differs) || conform::doubt(patterns).is_some() {
        return Ok(Outcome::CheckFailed);
    }
    let all = patterns.len() - conform::left_out(patterns);
    if let (0, Some(Finding::LeftOut { reason })) = (all, patterns.first().map(|p| &p.finding)) {
        return Err(Error::CannotRun(format!("no pattern can run here: {reason}")));
    }
    let missing = conform::not_compared(patterns);
    if missing * NOT_COMPARED_ONE_IN > all {
        return Err(Error::CannotRun(format!(
            "{missing} of {all} patterns were not compared: end what takes pages out of the page \
             cache (such as DAMON)"
        )));
    }
    Ok(Outcome::Done)
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

fn footer(rules: &str, bench: &Bench, command: String) -> Footer {
    let mut environment = host_environment();
    provenance::stamp(&mut environment, "model,kernel");
    environment.insert("runs_repeated_after_foreign_eviction".into(), bench.disturbed.into());
    environment.insert("runs_repeated_without_large_folio".into(), bench.without_folio.into());
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
        let same = Finding::Compared(Comparison { decisions: 1, ..Comparison::default() });
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

    #[test]
    fn patterns_that_exclude_too_much_together_fail() {
        let found = Comparison { decisions: 100, excluded: 3, ..Comparison::default() };
        let mut patterns = patterns(3, 0, 0);
        patterns.iter_mut().for_each(|one| one.finding = Finding::Compared(found.clone()));
        assert!(matches!(outcome(&patterns), Ok(Outcome::CheckFailed)));
        assert!(matches!(outcome(&patterns[..2]), Ok(Outcome::Done)));
        patterns[0].finding = Finding::Compared(Comparison::default());
        assert!(matches!(outcome(&patterns[..2]), Ok(Outcome::CheckFailed)));
    }

    #[test]
    fn what_the_machine_lacks_is_no_failure_unless_nothing_is_left() {
        let left_out = || {
            let mut pattern = patterns(1, 0, 0).remove(0);
            pattern.finding = Finding::LeftOut { reason: "no tool".to_string() };
            pattern
        };
        let mut some = patterns(1, 0, 0);
        some.extend([left_out(), left_out()]);
        assert!(matches!(outcome(&some), Ok(Outcome::Done)));
        let error = outcome(&[left_out()]).unwrap_err();
        assert_eq!(error.exit_code(), 4);
        assert!(error.to_string().contains("no tool"), "{error}");
    }
}
