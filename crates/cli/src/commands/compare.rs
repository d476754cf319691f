//! `filemap compare`.

use filemap_job::{Job, JobSpec};
use filemap_report::compare::{self, Cell};

use super::job_spec;
use crate::Outcome;
use crate::args::CompareArgs;
use crate::engine;
use crate::error::Error;
use crate::input;
use crate::output::Output;

/// Runs one job in several variants and prints what changes.
pub fn run(args: CompareArgs) -> Result<Outcome, Error> {
    let spec = job_spec(args.job_file.as_deref(), args.job)?;
    let variants = variants(&spec, args.variants)?;
    let profile = input::profile(spec.machine.as_deref())?;
    let engines = spec.on.clone().unwrap_or("model".to_string());
    let engines: Vec<&str> = engines.split(',').collect();
    let release = input::host_release();
    let mut names = Vec::new();
    let mut jobs = Vec::new();
    for engine in &engines {
        for variant in &variants {
            let mut spec = spec.clone();
            spec.on = Some((*engine).to_string());
            spec.with = Some(variant.clone());
            jobs.push(spec.validate(release.as_deref())?);
            names.push(variant.clone());
        }
    }
    if jobs.len() < 2 {
        let message = "there is one variant only; give --variants baseline,mmap-miss";
        return Err(Error::Usage(message.to_string()));
    }
    jobs.iter().try_for_each(engine::check)?;
    let output = Output::open(&args.output, None)?;
    let command = command(&jobs[0], &engines, &variants, args.job_file.as_deref());
    let records = engine::run_all(&jobs, &profile)?;
    let cells = names.into_iter().zip(records);
    let cells: Vec<_> = cells.map(|(variant, record)| Cell { variant, record }).collect();
    output.write(&compare::report(&cells, command))?;
    Ok(Outcome::Done)
}

/// The variants that are asked for; the job's own series where none are.
fn variants(spec: &JobSpec, given: Vec<String>) -> Result<Vec<String>, Error> {
    match (&spec.with, given.is_empty()) {
        (Some(_), false) => Err(Error::Usage(
            "--with does not go with --variants; join the series to each variant with +"
                .to_string(),
        )),
        (Some(series), true) => Ok(vec![series.clone()]),
        (None, true) => Ok(vec!["baseline".to_string()]),
        (None, false) => Ok(given),
    }
}

/// The command that compares the same again.
fn command(job: &Job, engines: &[&str], variants: &[String], file: Option<&str>) -> String {
    let mut job = job.clone();
    job.rules.series = filemap_core::series::Series::BASELINE;
    let flags = match file {
        Some(path) if job.phases.len() > 1 => path.to_string(),
        _ => job.command().replacen("filemap run ", "", 1),
    };
    let on = match engines {
        ["model"] => String::new(),
        several => format!(" --on {}", several.join(",")),
    };
    format!("filemap compare {flags}{on} --variants {}", variants.join(","))
}
