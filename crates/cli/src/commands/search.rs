//! `filemap search`.

use filemap_job::{Engine, EngineKind, Job, JobSpec, Ready, Record, shell_word};
use filemap_model::{Model, Profile};
use filemap_report::Footer;
use filemap_report::search::{self, Goal};

use super::{GivenJob, folio_ops};
use crate::Outcome;
use crate::args::SearchArgs;
use crate::error::Error;
use crate::input;
use crate::machine_profile;
use crate::output::Output;
use crate::provenance;
use crate::search::{Search, Space};
use crate::variants;

/// Seed of the jobs where none is given.
const DEFAULT_SEED: u64 = 1;

/// Jobs that are tried where nothing says how many.
const DEFAULT_JOBS: u64 = 20_000;

/// Looks for jobs that tell two variants apart, or that the second makes worse.
pub fn run(args: SearchArgs) -> Result<Outcome, Error> {
    args.job.check_one_kernel()?;
    let (asked, mut spec) = GivenJob::new(None, args.job)?;
    check(&spec)?;
    let output = Output::open(&args.output, &asked.inputs, &[])?;
    let variants = variants::parse(&args.variants)?;
    let [first, second] = variants.as_slice() else {
        return Err(Error::Usage(format!(
            "--variants {}: a search is between two variants; give two, as in --variants \
             baseline,vma-bound",
            args.variants
        )));
    };
    let goal = match (args.worse, args.over, args.differ) {
        (Some(metric), ..) => Goal::Worse(metric),
        (_, Some(metric), _) => Goal::Over(metric),
        _ => Goal::Differ,
    };
    let profile = machine_profile::of(&mut spec)?;
    let seed = spec.seed.take().unwrap_or(DEFAULT_SEED);
    let flags = JobSpec { seed: None, ..asked.flags.clone() };
    let search = Search {
        variants: [first, second],
        goal,
        space: Space::of(spec),
        seed,
        jobs: args.jobs.unwrap_or(if args.time.is_some() { u64::MAX } else { DEFAULT_JOBS }),
        limit: args.time,
        profile,
    };
    let study = search.run()?;
    let mut words = vec!["filemap search".to_string()];
    words.extend(flags.flags());
    words.push(format!("--variants {}", shell_word(&study.variants.join(","))));
    words.push(format!("{goal} --jobs {} --seed {seed}", study.tried + study.left_out));
    let record = record_of(study.groups.first().map(|group| &group.smallest.job), profile)?;
    output.write(&search::report(&study, Footer::new(&[record], words.join(" "))))?;
    Ok(Outcome::Done)
}

/// Refuses jobs that the search has none of.
fn check(spec: &JobSpec) -> Result<(), Error> {
    let instead = "a search draws jobs of one file; leave it out";
    folio_ops::refuse(spec, "search", instead)?;
    let is_model = |on: &String| on == EngineKind::Model.name();
    if spec.image.is_some() || !spec.on.as_ref().is_none_or(is_model) {
        return Err(Error::CannotRun(
            "search tries jobs in the model; leave out --on and --image, and repeat what it finds \
             with the commands that it prints"
                .to_string(),
        ));
    }
    for (flag, is_given) in [
        ("--workload thrash", spec.is_thrash()),
        ("--file", spec.file.is_some()),
        ("--accesses-file", spec.accesses_file.is_some()),
        ("--runs", spec.runs.is_some()),
        ("--with", spec.with.is_some()),
    ] {
        if is_given {
            return Err(Error::Usage(format!(
                "{flag} does not go with search, which draws its own jobs of one file and runs \
                 them in two variants; leave it out"
            )));
        }
    }
    Ok(())
}

/// A record without runs, of where the jobs ran: that of `job`, or of any.
fn record_of(job: Option<&Job>, profile: Profile) -> Result<Record, Error> {
    let job = match job {
        Some(job) => job.clone(),
        None => JobSpec::default().validate(input::host_release().as_deref())?,
    };
    let ready = Model { profile }.prepare_all(&[&job])?.pop();
    let mut record = ready.expect("one job is made ready").record(Vec::new());
    provenance::stamp_record(&mut record);
    Ok(record)
}
