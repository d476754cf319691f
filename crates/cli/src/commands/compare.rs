//! `filemap compare`.

use filemap_core::series::{Series, Switch};
use filemap_job::{EngineKind, Job, JobSpec};
use filemap_model::{Digest, Profile};
use filemap_report::compare::{self, Cell};

use super::Asked;
use crate::Outcome;
use crate::args::CompareArgs;
use crate::engine;
use crate::error::Error;
use crate::host;
use crate::input;
use crate::output::Output;

/// Runs one job in several variants and prints what changes.
pub fn run(args: CompareArgs) -> Result<Outcome, Error> {
    let images = args.job.image.clone();
    let (mut asked, mut spec) = Asked::new(args.job_file, args.job)?;
    // Said for all cells at once.
    asked.flags = JobSpec { on: None, with: None, image: None, modules: None, ..asked.flags };
    let images = if images.is_empty() { spec.image.take().into_iter().collect() } else { images };
    spec.image = images.first().cloned();
    let variants = variants(&spec, args.variants)?;
    let profile = input::profile(spec.machine.as_deref())?;
    host::resolve(&mut spec)?;
    let engines = spec.on.clone().unwrap_or("model".to_string());
    let cells = cells(&spec, &engines, &variants, &images)?;
    if cells.len() < 2 {
        let message = "there is one variant only; give --variants baseline,mmap-miss";
        return Err(Error::Usage(message.to_string()));
    }
    let output = Output::open(&args.output, None)?;
    let mut shown = cells[0].1.clone();
    shown.image = None;
    let mut command = command(&asked, &shown, &engines, &variants);
    let images = images.iter().map(|image| format!(" --image {image}"));
    let modules = spec.modules.map(|modules| format!(" --modules {modules}"));
    command.extend(images.chain(modules));
    let (names, jobs): (Vec<String>, Vec<Job>) = cells.into_iter().unzip();
    let records = engine::run_all(&jobs, &profile, args.apply)?;
    let cells = names.into_iter().zip(records);
    let cells: Vec<_> = cells.map(|(variant, record)| Cell { variant, record }).collect();
    let warnings = unseen(&cells, &jobs, &profile)?;
    output.write(&compare::report(&cells, &warnings, command))?;
    Ok(Outcome::Done)
}

/// The jobs, and what each is called: every variant on every engine, on a kernel that is booted
/// for every image.
fn cells(
    spec: &JobSpec,
    engines: &str,
    variants: &[String],
    images: &[String],
) -> Result<Vec<(String, Job)>, Error> {
    let release = input::host_release();
    let mut cells = Vec::new();
    for engine in engines.split(',') {
        let booted = engine == EngineKind::Kernel.name() && !images.is_empty();
        let kernels = if booted { images.iter().map(Some).collect() } else { vec![None] };
        for image in kernels {
            for variant in variants {
                let mut spec = spec.clone();
                spec.on = Some(engine.to_string());
                if engine == EngineKind::Kernel.name() && !booted {
                    spec.kernel = Some("host".to_string());
                }
                spec.with = Some(variant.clone());
                spec.image = image.cloned();
                let name = match image {
                    None => variant.clone(),
                    Some(image) => host::image_release(image)?,
                };
                spec.modules = spec.modules.filter(|_| booted);
                cells.push((name, spec.validate(release.as_deref())?));
            }
        }
    }
    Ok(cells)
}

/// What to warn of: variants whose rules the job never told from the first one's. Every decision
/// of the model was the same, not only what was counted.
fn unseen(cells: &[Cell], jobs: &[Job], profile: &Profile) -> Result<Vec<String>, Error> {
    let digest = |job: &Job| {
        let mut digest = Digest::default();
        filemap_model::trace(job, profile, &mut digest)?;
        Ok::<_, Error>(digest)
    };
    let mut of_model = cells.iter().zip(jobs).filter(|(_, job)| job.engine == EngineKind::Model);
    let Some((first, first_job)) = of_model.next() else { return Ok(Vec::new()) };
    let mut first_digest = None;
    let mut warnings = Vec::new();
    for (cell, job) in of_model {
        let switches = differing(first_job, job);
        if switches.is_empty() || cell.record.runs != first.record.runs {
            continue;
        }
        let before = match first_digest {
            Some(before) => before,
            None => *first_digest.insert(digest(first_job)?),
        };
        if digest(job)? == before {
            warnings.push(format!(
                "this job cannot see this change: in {} no rule of {} ever decided otherwise than \
                 in {}; all {} decisions are the same",
                cell.variant,
                switches.join(", "),
                first.variant,
                before.decisions(),
            ));
        }
    }
    Ok(warnings)
}

/// The switches that one of both has and the other has not.
fn differing(one: &Job, other: &Job) -> Vec<&'static str> {
    let (one, other) = (one.rules.series, other.rules.series);
    let switches = one.union(other).switches();
    switches.filter(|&switch| one.has(switch) != other.has(switch)).map(Switch::name).collect()
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
        (None, false) => {
            for variant in &given {
                let series = variant.parse::<Series>();
                series.map_err(|error| Error::Usage(format!("--variants {variant}: {error}")))?;
            }
            Ok(given)
        }
    }
}

/// The command that compares the same again.
fn command(asked: &Asked, job: &Job, engines: &str, variants: &[String]) -> String {
    let mut job = job.clone();
    job.rules.series = Series::BASELINE;
    job.engine = EngineKind::Model;
    let command = asked.command("compare", &job);
    let on = match engines {
        "model" => String::new(),
        several => format!(" --on {several}"),
    };
    format!("{command}{on} --variants {}", variants.join(","))
}
