//! Several jobs, each in the same variants.

use filemap_job::{JobSpec, Record, shell_word};
use filemap_report::Report;
use filemap_study::compare::{self, OfFile};

use super::comparison::{Compared, Comparison, with_variants};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::commands::with_seeds;
use crate::error::Error;
use crate::given::Given;
use crate::output::{Inputs, Output};
use filemap_study::engine::{self, Engines};
use filemap_study::seeds;

/// Runs the jobs of all job files of `args` in their variants and prints what changes in each.
pub fn run(args: CompareArgs, on: &impl Engines) -> Result<Outcome, Error> {
    let paths = &args.job_files;
    if let Some(at) = (1..paths.len()).find(|&at| paths[..at].contains(&paths[at])) {
        let message = format!("{} is given twice; give each job file once", paths[at]);
        return Err(Error::Usage(message));
    }
    let of_one =
        [("--html", args.output.html().is_some()), ("--format kernel", args.output.is_letter())];
    if let Some((flag, _)) = of_one.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("{flag} shows one job; give one job file, or leave it out");
        return Err(Error::Usage(message));
    }
    let jobs = paths.iter().map(|path| Given::new(Some(path.clone()), args.job.clone()));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    let (output, report) = reported(jobs, &args, on)?;
    output.write(&report)?;
    Ok(Outcome::Done)
}

fn reported(
    jobs: Vec<Given>,
    args: &CompareArgs,
    on: &impl Engines,
) -> Result<(Output, Report), Error> {
    let of_file =
        |path: &str, error: Error| Error::InFile { path: path.to_string(), error: Box::new(error) };
    let command = command(&jobs[0].flags, args);
    let mut inputs = Inputs::default();
    let mut asked = Vec::new();
    for (path, mut job) in args.job_files.iter().zip(jobs) {
        let variants = with_variants(&mut job, args).map_err(|error| of_file(path, error))?;
        inputs.extend(std::mem::take(&mut job.inputs));
        asked.push((path, job, variants));
    }
    let output = args.output.open(&inputs, &[])?;
    let comparison = |(path, job, variants): (&String, _, _)| {
        Comparison::of(job, variants, args).map_err(|error| of_file(path, error))
    };
    let mut comparisons = asked.into_iter().map(comparison).collect::<Result<Vec<_>, _>>()?;
    let lists = comparisons.iter_mut();
    let lists = lists.map(|of| (of.jobs.as_slice(), of.profiles.as_mut_slice()));
    let count = args.seeds.unwrap_or(1);
    let begun = seeds::spent();
    let ran = engine::run_lists(on, lists.collect(), count, args.apply)?;
    let took = (seeds::spent() - begun) / args.job_files.len() as u32;
    let mut compared = Vec::new();
    for ((path, of), ran) in args.job_files.iter().zip(&comparisons).zip(ran) {
        let records = of.jobs.iter().zip(ran).map(|(job, ran)| Record::of(job, ran));
        let Compared { cells, warnings } = of.compared(records.collect(), args, took)?;
        let (job_file, command) = (path.clone(), of.command.clone());
        compared.push(OfFile { job_file, cells, warnings, command });
    }
    Ok((output, compare::of_several(&compared, args.verbose, command)))
}

/// The command that compares the same again, where flags say `flags` of all jobs.
fn command(flags: &JobSpec, args: &CompareArgs) -> String {
    let flags = JobSpec { image: None, modules: None, ..flags.clone() };
    let named = |flag: &'static str, values: &[String]| -> Vec<String> {
        values.iter().map(|value| format!("{flag} {}", shell_word(value))).collect()
    };
    let mut words = vec!["filemap compare".to_string()];
    words.extend(args.job_files.iter().map(|path| shell_word(path)));
    words.extend(flags.flags());
    words.extend(named("--variants", &args.variants));
    words.extend(named("--image", &args.job.image));
    words.extend(named("--modules", &args.job.modules));
    with_seeds(words.join(" "), args.seeds)
}
