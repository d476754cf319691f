//! `filemap search`.

use std::io::{IsTerminal, stderr};

use filemap_job::JobFlags;
use filemap_job::program::THRASH;
use filemap_study::search::{Goal, JobSpace, SearchOptions, TimeLimit, variants_flag};
use filemap_study::seeds;
use filemap_study::variants::{self, Variant};

use crate::Outcome;
use crate::args::SearchArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::interrupt::InterruptCounter;
use crate::job_input;
use crate::progress;
use crate::search::{JobFiles, SearchKeeper};

/// Default seed of the search.
const DEFAULT_SEED: u64 = 1;

/// Default number of jobs.
const DEFAULT_JOBS: u64 = 20_000;

/// Searches for jobs in which two variants differ, or the second is worse.
pub fn run(args: SearchArgs) -> Result<Outcome, Error> {
    if args.job.spec.is_thrash() {
        return Err(Error::Usage(format!(
            "--workload {THRASH} has flags of its own: give filemap search a job file of it, as \
             filemap run --workload {THRASH} --show-job writes it"
        )));
    }
    let (input, inputs) = job_input::read(args.job_file.as_deref(), &args.job)?;
    let state = ("--state", args.state.as_deref());
    let mut output = args.report.open(&inputs, &[state])?;
    if output.take("--state").is_some_and(|state| state.is_stdout()) {
        let message = "--state -: the state has to be read again; give it a file";
        return Err(Error::Usage(message.to_string()));
    }
    let files = args.output.map(JobFiles::new).transpose()?;
    let variants = variants::parse(&args.variants)?;
    if !input.has_tables() {
        variants::check_one_file(&variants)?;
    }
    let [first, second] = variants.as_slice() else {
        return Err(Error::Usage(format!(
            "--variants {}: a search compares two variants; give two, as in --variants \
             baseline,vma-bound",
            args.variants
        )));
    };
    if let Some(profile) = variants.iter().find_map(|variant| variant.value("machine")) {
        return Err(Error::Usage(format!(
            "--variants {}: a search is on one machine; give --machine {profile}, or compare a job \
             on two machines with filemap compare",
            args.variants
        )));
    }
    let goal = match (args.worse, args.over, args.differ) {
        (Some(metric), ..) => Goal::Worse(metric),
        (_, Some(metric), _) => Goal::Over(metric),
        _ => Goal::Differ,
    };
    seeds::check(input.flags.seed)?;
    let seed = input.flags.seed.unwrap_or(DEFAULT_SEED);
    let (space, profile, warnings) = JobSpace::from_input(&input)?;
    let variants = [first, second];
    let named = variants_flag(&variants.map(Variant::name));
    let command = |jobs: Option<u64>| {
        let flags = JobFlags { seed: None, ..input.flags.clone() };
        let words = [named.clone(), String::from(goal), format!("--seed {seed}")];
        let jobs = jobs.map(|jobs| format!("--jobs {jobs}"));
        let words: Vec<String> = words.into_iter().chain(jobs).collect();
        input.command_with("search", &flags, &words)
    };
    let keeper = SearchKeeper { interrupts: InterruptCounter::begin(), state: args.state };
    let search = SearchOptions {
        variants,
        goal,
        input: &input,
        space,
        seed,
        jobs: args.jobs.or(if args.duration.is_some() { None } else { Some(DEFAULT_JOBS) }),
        time: args.duration.map(TimeLimit::from_now),
        profile,
        engines: &RealEngines,
        keeper: &keeper,
        name: format!("{}, filemap {}", command(None), env!("CARGO_PKG_VERSION")),
        warnings,
    };
    let footer = search.footer()?;
    let found = search.run(keeper.read(&search)?)?;
    let is_interrupted = keeper.interrupts.times() > 0;
    if is_interrupted && found.drawn == 0 {
        progress::print_line("interrupted before a job was tried: nothing was found");
        return Ok(Outcome::Interrupted);
    }
    if is_interrupted {
        tell_terminal();
    }
    let mut record = search.record(found, footer)?;
    record.footer.command = command(Some(record.drawn_jobs()));
    // An interrupted search with a state file writes them once it has been resumed and completed.
    let goes_on = keeper.interrupts.times() > 0 && keeper.state.is_some();
    if let Some(files) = files.filter(|_| !goes_on) {
        files.write(&mut record)?;
    }
    output.write(&record.report())?;
    Ok(if keeper.interrupts.times() > 0 { Outcome::Interrupted } else { Outcome::Done })
}

/// Tells a user who interrupted the search in a terminal what still takes time.
fn tell_terminal() {
    if stderr().is_terminal() {
        crate::print_message("the jobs found are being shrunk; interrupt again to skip that");
    }
}
