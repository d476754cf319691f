//! `filemap compare`.

use std::path::Path;

use filemap_core::rules::Kernel;
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
use crate::judged;
use crate::output::Output;

/// Runs one job in several variants and prints what changes.
pub fn run(args: CompareArgs) -> Result<Outcome, Error> {
    let (images, modules) = (args.job.image.clone(), args.job.modules.clone());
    let (mut asked, mut spec) = Asked::new(args.job_file, args.job)?;
    let output = Output::open(&args.output, &asked.inputs, &[])?;
    // Said for all cells at once.
    asked.flags = JobSpec { on: None, with: None, image: None, modules: None, ..asked.flags };
    let images = if images.is_empty() { spec.image.take().into_iter().collect() } else { images };
    let modules =
        if modules.is_empty() { spec.modules.clone().into_iter().collect() } else { modules };
    let images = Booted::pair(images, &modules)?;
    spec.image = images.first().map(|image| image.path.clone());
    let variants = variants(&spec, args.variants)?;
    spec.on = spec.on.as_deref().map(engines).transpose()?;
    let found = host::resolve(&mut spec)?;
    let profile = found.on_device(input::profile(&mut spec)?);
    let engines = spec.on.clone().unwrap_or("model".to_string());
    let cells = cells(&spec, &engines, &variants, &images)?;
    if cells.len() < 2 {
        let message = "there is one variant only; give --variants baseline,mmap-miss";
        return Err(Error::Usage(message.to_string()));
    }
    let mut shown = cells[0].1.clone();
    shown.image = None;
    let mut command = command(&asked, &shown, &engines, &variants);
    let images = images.iter().map(|image| format!(" --image {}", image.path));
    let modules = modules.iter().map(|modules| format!(" --modules {modules}"));
    command.extend(images.chain(modules));
    let (names, jobs): (Vec<String>, Vec<Job>) = cells.into_iter().unzip();
    let records = engine::run_all(&jobs, &profile, args.apply)?;
    let cells = names.into_iter().zip(records);
    let cells: Vec<_> = cells.map(|(variant, record)| Cell { variant, record }).collect();
    let mut warnings = found.warnings;
    warnings.extend(jobs[0].without_effect());
    warnings.extend(judged::warnings(asked.kernel.as_deref(), &jobs)?);
    warnings.extend(unseen(&cells, &jobs, &profile)?);
    output.write(&compare::report(&cells, &warnings, command))?;
    Ok(Outcome::Done)
}

/// The engines of a list, each named once, without the blanks around them.
fn engines(text: &str) -> Result<String, Error> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
    match twice {
        Some(at) => Err(Error::Usage(format!(
            "--on {text}: {} is named twice; give each engine once",
            names[at]
        ))),
        None => Ok(names.join(",")),
    }
}

/// The jobs, and what each is called: every variant on every engine. A kernel that is booted is
/// what it was built to be: beside the model, whose variants are then meant, an image is one cell.
fn cells(
    spec: &JobSpec,
    engines: &str,
    variants: &[String],
    images: &[Booted],
) -> Result<Vec<(String, Job)>, Error> {
    let release = input::host_release();
    let names = image_names(images)?;
    let beside_model = engines.split(',').any(|engine| engine == EngineKind::Model.name());
    let as_built = ["baseline".to_string()];
    let mut cells = Vec::new();
    for engine in engines.split(',') {
        let booted = engine == EngineKind::Kernel.name() && !images.is_empty();
        let kernels = match booted {
            true => images.iter().zip(&names).map(Some).collect(),
            false => vec![None],
        };
        let variants = if booted && beside_model { &as_built } else { variants };
        for image in kernels {
            for variant in variants {
                let mut spec = spec.clone();
                spec.on = Some(engine.to_string());
                if engine == EngineKind::Kernel.name() && !booted {
                    spec.kernel = Some("host".to_string());
                }
                spec.with = Some(variant.clone());
                spec.image = image.map(|(image, _)| image.path.clone());
                spec.modules = image.and_then(|(image, _)| image.modules.clone());
                if let Some((image, _)) = image
                    && let Some(nearest) = Kernel::nearest(&host::image_release(&image.path)?)
                {
                    spec.kernel = Some(nearest.kernel.name().to_string());
                }
                let name = image.map_or(variant, |(_, name)| name).clone();
                cells.push((name, spec.validate(release.as_deref())?));
            }
        }
    }
    Ok(cells)
}

/// What kernel images are called: by their releases, or where these are the same by their files.
fn image_names(images: &[Booted]) -> Result<Vec<String>, Error> {
    let paths: Vec<String> = images.iter().map(|image| image.path.clone()).collect();
    let releases = paths.iter().map(|path| host::image_release(path));
    let releases = releases.collect::<Result<_, _>>()?;
    Ok(distinct(&paths, releases))
}

/// A kernel image, and where its modules are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Booted {
    path: String,
    modules: Option<String>,
}

impl Booted {
    /// The images at `paths`, each with the directory of `modules` in its place, or all with the
    /// only one.
    fn pair(paths: Vec<String>, modules: &[String]) -> Result<Vec<Booted>, Error> {
        if paths.is_empty() && !modules.is_empty() {
            let message = "--modules is of a kernel to boot; give that with --image, or remove it";
            return Err(Error::Usage(message.to_string()));
        }
        if modules.len() > 1 && modules.len() != paths.len() {
            return Err(Error::Usage(format!(
                "--modules is given {} times for {} images; give it once for all, or once for each",
                modules.len(),
                paths.len()
            )));
        }
        let of = |number: usize| modules.get(number).or(modules.first()).cloned();
        let pairs = paths.into_iter().enumerate();
        Ok(pairs.map(|(number, path)| Booted { path, modules: of(number) }).collect())
    }
}

/// `releases`, unless two are the same: then the names of the files at `paths`, or the paths.
fn distinct(paths: &[String], releases: Vec<String>) -> Vec<String> {
    let repeats = |names: &[String]| (1..names.len()).any(|at| names[..at].contains(&names[at]));
    let file = |path: &String| Path::new(path).file_name().map(|name| name.display().to_string());
    let files: Vec<String> = paths.iter().filter_map(file).collect();
    match (repeats(&releases), repeats(&files) || files.len() < paths.len()) {
        (false, _) => releases,
        (true, false) => files,
        (true, true) => paths.to_vec(),
    }
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
            let given: Vec<String> = given.iter().map(|name| name.trim().to_string()).collect();
            if given.iter().any(String::is_empty) {
                let message = "--variants has an empty name; give names such as baseline,mmap-miss";
                return Err(Error::Usage(message.to_string()));
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_of_all_images_or_of_each() {
        let pair = |modules: &[&str]| {
            let modules: Vec<String> = modules.iter().map(|path| path.to_string()).collect();
            let pairs = Booted::pair(vec!["a".into(), "b".into()], &modules)?;
            Ok::<_, Error>(pairs.into_iter().map(|image| image.modules).collect::<Vec<_>>())
        };
        let some = |path: &str| Some(path.to_string());
        assert_eq!(pair(&[]).unwrap(), [None, None]);
        assert_eq!(pair(&["m"]).unwrap(), [some("m"), some("m")]);
        assert_eq!(pair(&["m", "n"]).unwrap(), [some("m"), some("n")]);
        assert!(Booted::pair(Vec::new(), &["m".to_string()]).is_err());
        let error = pair(&["m", "n", "o"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("3 times for 2 images"), "{error}");
    }

    #[test]
    fn images_are_called_by_what_tells_them_apart() {
        let names = |paths: [&str; 2], releases: [&str; 2]| {
            distinct(&paths.map(String::from), releases.map(String::from).to_vec())
        };
        assert_eq!(names(["a/b", "c/b"], ["6.12.1", "6.12.2"]), ["6.12.1", "6.12.2"]);
        assert_eq!(names(["a/base", "a/p1"], ["6.12.1", "6.12.1"]), ["base", "p1"]);
        assert_eq!(names(["a/b", "c/b"], ["6.12.1", "6.12.1"]), ["a/b", "c/b"]);
    }
}
