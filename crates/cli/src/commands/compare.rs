//! `filemap compare`.

use filemap_job::{JobFlags, shell_word};
use filemap_study::compare::{self, CompareOptions, JobFile, Plan};
use filemap_study::device_profile;
use filemap_study::job_input::repeat_command;
use filemap_study::seeds;

use crate::Outcome;
use crate::args::CompareArgs;
use crate::engines::RealEngines;
use crate::error::Error;
use crate::job_input;
use crate::output::Inputs;

/// Runs one or more jobs in several variants and prints the differences.
pub fn run(args: CompareArgs) -> Result<Outcome, Error> {
    let is_one = args.job_files.len() < 2;
    if !is_one {
        check_several(&args)?;
    }
    let asked = asked(&args);
    let in_file = |path: Option<&str>, error| match path {
        Some(path) if !is_one => Error::InFile { path: path.into(), error: Box::new(error) },
        _ => error,
    };
    let paths = args.job_files.iter().map(|path| Some(path.as_str()));
    let none = args.job_files.is_empty().then_some(None);
    let mut inputs = Inputs::default();
    let mut jobs = Vec::new();
    for path in paths.chain(none) {
        let (input, own) = job_input::read(path, &args.job)?;
        inputs.extend(own);
        let variants = compare::variants(&input, &asked).map_err(|error| in_file(path, error))?;
        let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
        profiles.for_each(|name| inputs.add_profile("machine of a variant", name));
        jobs.push((path, input, variants));
    }
    let output = args.output.open(&inputs)?;
    let mut plans = Vec::new();
    for (path, input, variants) in jobs {
        if asked.images.is_empty() {
            device_profile::keep_measured(&input.spec, &RealEngines);
        }
        let plan = Plan::new(input, &variants, &asked).map_err(|error| in_file(path, error))?;
        plans.push((path.filter(|_| !is_one).map(String::from), plan));
    }
    let (again, job_files) = match plans.as_slice() {
        [(None, plan)] => (plan.command.clone(), plan.job_file().into_iter().collect()),
        _ => (command(&args), args.job_files.iter().map(|path| JobFile::read(path)).collect()),
    };
    let job_files: Vec<JobFile> = job_files;
    let is_letter = args.output.is_letter();
    if is_letter {
        compare::check_one_table(&plans)?;
    }
    let comparison = compare::run(plans, &RealEngines, &asked, again.clone())?;
    let report = comparison.report(args.asked.verbose);
    if is_letter {
        let apply = if asked.apply { " --change-settings" } else { "" };
        let command = format!("{again}{apply} --format kernel");
        output.write_letter(&report, &comparison.letter(command, &job_files))?;
    } else {
        output.write_with_page(&report, &comparison.report(false))?;
    }
    Ok(Outcome::Done)
}

/// Rejects flags that need a single job, and duplicate jobs.
fn check_several(args: &CompareArgs) -> Result<(), Error> {
    let paths = &args.job_files;
    if let Some(at) = (1..paths.len()).find(|&at| paths[..at].contains(&paths[at])) {
        let message = format!("{} is given twice; give each job file once", paths[at]);
        return Err(Error::Usage(message));
    }
    if args.output.html().is_some() {
        let message = "--html shows one job; give one job file, or leave it out";
        return Err(Error::Usage(message.to_string()));
    }
    Ok(())
}

fn asked(args: &CompareArgs) -> CompareOptions {
    CompareOptions {
        variants: args.variants.clone(),
        images: args.job.image.clone(),
        modules: args.job.modules.clone(),
        seeds: args.asked.repeated.seeds,
        apply: args.asked.change_settings,
    }
}

/// The command that repeats the comparison of several jobs.
fn command(args: &CompareArgs) -> String {
    let flags = JobFlags { image: None, modules: None, ..args.job.spec.clone() };
    let named = |flag: &'static str, values: &[String]| -> Vec<String> {
        values.iter().map(|value| format!("{flag} {}", shell_word(value))).collect()
    };
    let words = [
        named("--variants", &args.variants),
        named("--image", &args.job.image),
        named("--modules", &args.job.modules),
        seeds::words(args.asked.repeated.seeds),
    ];
    repeat_command("compare", &args.job_files, &flags, &words.concat())
}
