//! Several jobs, each in the same variants.

use filemap_job::{JobSpec, shell_word};
use filemap_study::compare::{self, Plan};
use filemap_study::seeds::with_seeds;

use super::{asked, with_variants};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::error::Error;
use crate::given::{self, Given};
use crate::machine::Machine;
use crate::output::Inputs;

/// Runs the jobs of all job files of `args` in their variants and prints what changes in each.
pub fn run(args: CompareArgs) -> Result<Outcome, Error> {
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
    let jobs = paths.iter().map(|path| given::job(Some(path), &args.job));
    let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
    let command = command(&args);
    let of_file = |path: &str, error| Error::InFile { path: path.into(), error: Box::new(error) };
    let asked = asked(&args);
    let mut inputs = Inputs::default();
    let mut jobs_in_variants = Vec::new();
    for (path, (job, own)) in paths.iter().zip(jobs) {
        inputs.extend(own);
        let variants = with_variants(&job, &mut inputs, &asked);
        let variants = variants.map_err(|error| of_file(path, error))?;
        jobs_in_variants.push((path, job, variants));
    }
    let output = args.output.open(&inputs, &[])?;
    let plan = |(path, job, variants): (&String, Given, Vec<_>)| {
        let plan = Plan::of(job, &variants, &asked);
        Ok((Some(path.clone()), plan.map_err(|error| of_file(path, error))?))
    };
    let plans = jobs_in_variants.into_iter().map(plan).collect::<Result<Vec<_>, Error>>()?;
    output.write(&compare::run(plans, &Machine, &asked, command)?.report(args.asked.verbose))?;
    Ok(Outcome::Done)
}

/// The command that compares the same again.
fn command(args: &CompareArgs) -> String {
    let flags = JobSpec { image: None, modules: None, ..args.job.spec.clone() };
    let named = |flag: &'static str, values: &[String]| -> Vec<String> {
        values.iter().map(|value| format!("{flag} {}", shell_word(value))).collect()
    };
    let mut words = vec!["filemap compare".to_string()];
    words.extend(args.job_files.iter().map(|path| shell_word(path)));
    words.extend(flags.flags());
    words.extend(named("--variants", &args.variants));
    words.extend(named("--image", &args.job.image));
    words.extend(named("--modules", &args.job.modules));
    with_seeds(words.join(" "), args.asked.repeated.seeds)
}
