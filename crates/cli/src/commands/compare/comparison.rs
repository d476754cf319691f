//! One job in all its variants.

use filemap_core::rules::Kernel;
use filemap_job::{EngineKind, Job, JobSpec, Record, shell_word};
use filemap_model::{Digest, Profile, trace};
use filemap_report::compare::Cell;

use super::asked::{engines, variants};
use super::booted::{self, Booted};
use super::unseen::{OfModel, named, unseen};
use crate::args::CompareArgs;
use crate::commands::{GivenJob, needs_said, with_seeds};
use crate::error::Error;
use crate::host::{self, Found};
use crate::input;
use crate::judged::{self, Judged};
use crate::machine_profile;
use crate::seeds;
use crate::variants::{self, Variant};

/// One job in all its variants, yet to be run.
pub struct Comparison {
    /// What the variants are called.
    pub names: Vec<String>,
    /// The job of each.
    pub jobs: Vec<Job>,
    /// What the model has for each.
    pub profiles: Vec<Profile>,
    /// The command that compares the same again.
    pub command: String,
    /// The job file, where it has phases.
    pub of_phases: Option<String>,
    /// What was said with --kernel, or in the job file.
    kernel: Option<String>,
    warnings: Vec<String>,
}

/// What came of it.
pub struct Compared {
    pub cells: Vec<Cell>,
    pub warnings: Vec<String>,
}

/// A job that was asked for, and its variants, whose machine profiles are inputs of the command.
pub fn with_variants(
    (mut asked, spec): (GivenJob, JobSpec),
    args: &CompareArgs,
) -> Result<((GivenJob, JobSpec), Vec<Variant>), Error> {
    let variants = variants(&spec, &args.variants)?;
    variants::check_one_file(&variants)?;
    let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
    profiles.for_each(|name| asked.inputs.add_profile("machine of a variant", name));
    Ok(((asked, spec), variants))
}

impl Comparison {
    /// The job that was `asked` for in `variants`.
    pub fn of(
        (asked, mut spec): (GivenJob, JobSpec),
        variants: Vec<Variant>,
        args: &CompareArgs,
    ) -> Result<Self, Error> {
        let (images, modules) = (args.job.image.clone(), args.job.modules.clone());
        let images =
            if images.is_empty() { spec.image.take().into_iter().collect() } else { images };
        let modules =
            if modules.is_empty() { spec.modules.take().into_iter().collect() } else { modules };
        let images = Booted::pair(images, &modules)?;
        spec.image = images.first().map(|image| image.path.clone());
        spec.on = spec.on.as_deref().map(engines).transpose()?;
        let found = host::resolve(&mut spec)?;
        let profile = machine_profile::of(&mut spec)?;
        let engines = spec.on.clone().unwrap_or("model".to_string());
        let cells = cells(&spec, &engines, &variants, &images, &found)?;
        if cells.len() < 2 {
            let message = "there is one variant only; give --variants baseline,mmap-miss";
            return Err(Error::Usage(message.to_string()));
        }
        check(&cells, args.apply)?;
        let command = command(&asked, &spec, &variants, &images, &modules);
        let of_cell = |cell: &Planned| match cell.job.machine.profile.as_deref() {
            name if name == spec.machine.as_deref() => Ok(cell.found.on_device(profile)),
            name => Ok(cell.found.on_device(machine_profile::named(name)?)),
        };
        let profiles = cells.iter().map(of_cell).collect::<Result<Vec<Profile>, Error>>()?;
        let (names, jobs) = cells.into_iter().map(|cell| (cell.variant, cell.job)).unzip();
        Ok(Comparison {
            names,
            jobs,
            profiles,
            command: with_seeds(command, args.seeds),
            of_phases: asked.file.filter(|_| !spec.phase.is_empty()),
            kernel: asked.kernel,
            warnings: found.warnings,
        })
    }

    /// What came out, of which `records` are the variants', and what is to be said of it.
    pub fn compared(&self, records: Vec<Record>, args: &CompareArgs) -> Result<Compared, Error> {
        let Comparison { names, jobs, profiles, .. } = self;
        let mut warnings = self.warnings.clone();
        warnings.extend(booted::emulated(records.iter().map(|record| &record.environment)));
        let told = names.iter().zip(jobs).map(|(name, job)| (name.as_str(), job.without_effect()));
        warnings.extend(named(&told.collect::<Vec<_>>()));
        let judged: Vec<Judged> = jobs.iter().map(Judged::from).collect();
        warnings.extend(judged::warnings(self.kernel.as_deref(), &judged)?);
        let cells = names.iter().zip(jobs).zip(records);
        let cells = cells.map(|((variant, job), record)| {
            let job = Some(job.clone());
            Cell { variant: variant.clone(), job, record }
        });
        let cells: Vec<Cell> = cells.collect();
        let ran: Vec<Ran> = cells.iter().zip(jobs).zip(profiles).collect();
        let of_model = ran.iter().filter(|((_, job), _)| job.engine == EngineKind::Model);
        warnings.extend(unseen(of_model.map(|((cell, job), profile)| OfModel {
            variant: &cell.variant,
            series: job.rules.series,
            ran: &cell.record.runs,
            digest: Box::new(|| {
                let mut digest = Digest::default();
                trace(job, profile, &mut digest)?;
                Ok(digest)
            }),
        }))?);
        if args.seeds.is_none() {
            warnings.extend(one_seed(&ran)?);
        }
        Ok(Compared { cells, warnings })
    }
}

/// A cell with its job and the profile that the model had for it.
type Ran<'a> = ((&'a Cell, &'a Job), &'a Profile);

/// What one seed does not show of `cells`.
fn one_seed(cells: &[Ran]) -> Result<Vec<String>, Error> {
    let cells = cells.iter().map(|((cell, job), profile)| seeds::Cell {
        name: &cell.variant,
        job,
        profile,
        record: &cell.record,
    });
    seeds::warnings(&cells.collect::<Vec<_>>())
}

/// Refuses what the running kernel, which has one setting of each kind, cannot be in turn.
fn check(cells: &[Planned], apply: bool) -> Result<(), Error> {
    let is_here = |job: &Job| job.engine == EngineKind::Kernel && job.image.is_none();
    let cells = cells.iter().map(|cell| (&cell.variant, &cell.job));
    let mut here = cells.filter(|(_, job)| is_here(job));
    let release = input::host_release();
    let nearest = release.as_deref().and_then(Kernel::nearest);
    let other = |job: &Job| nearest.is_some_and(|nearest| nearest.kernel != job.rules.kernel);
    if let Some((name, _)) = here.clone().find(|(_, job)| other(job)) {
        return Err(Error::CannotRun(format!(
            "--variants {name}: the running kernel has rules of its own; leave kernel out, or give \
             --on model"
        )));
    }
    let fault_around = here.next().map(|(_, job)| job.machine.fault_around);
    if let Some((name, _)) = here.find(|(_, job)| Some(job.machine.fault_around) != fault_around)
        && apply
    {
        return Err(Error::CannotRun(format!(
            "--variants {name}: the running kernel has one fault-around size for all variants; \
             give it with --fault-around, one comparison each, or give --on model"
        )));
    }
    Ok(())
}

/// A cell that is yet to be run.
struct Planned {
    variant: String,
    job: Job,
    found: Found,
}

/// The jobs, and what each is called: every variant on every engine. `found` is what was found for
/// `spec` itself. A kernel that is booted contains the series that it was built with. Beside the
/// model, whose series are then meant, an image has the settings of the variants only.
fn cells(
    spec: &JobSpec,
    engines: &str,
    variants: &[Variant],
    images: &[Booted],
    found: &Found,
) -> Result<Vec<Planned>, Error> {
    let names = booted::names(images)?;
    let beside_model = engines.split(',').any(|engine| engine == EngineKind::Model.name());
    let of_images = booted::on_kernel(variants, beside_model);
    let mut cells = Vec::new();
    let mut add = |variant: String, (job, own): (Job, Found)| {
        cells.push(Planned { variant, job, found: own.or(found) });
    };
    for engine in engines.split(',') {
        let spec = JobSpec { on: Some(engine.to_string()), ..spec.clone() };
        if engine != EngineKind::Kernel.name() || images.is_empty() {
            for variant in variants {
                add(variant.name(), cell(&spec, variant, None)?);
            }
            continue;
        }
        for (image, name) in images.iter().zip(&names) {
            for variant in &of_images {
                add(booted::name(name, variant), cell(&spec, variant, Some(image))?);
            }
        }
    }
    let booted = cells.iter_mut().map(|cell| &mut cell.job);
    booted::set_switches(booted.filter_map(|job| Some((job.image.as_mut()?, job.rules.series))));
    Ok(cells)
}

/// The job of one cell, on the kernel of `image` or none, and what was found for its settings.
fn cell(spec: &JobSpec, variant: &Variant, image: Option<&Booted>) -> Result<(Job, Found), Error> {
    let mut spec = variant.applied(spec);
    spec.image = image.map(|image| image.path.clone());
    spec.modules = image.and_then(|image| image.modules.clone());
    if let Some(image) = image
        && let Some(nearest) = Kernel::nearest(&host::image_release(&image.path)?)
        && !variant.sets("kernel")
    {
        spec.kernel = Some(nearest.kernel.name().to_string());
    }
    let on_kernel = spec.on.as_deref() == Some(EngineKind::Kernel.name());
    if on_kernel && image.is_none() && !variant.sets("kernel") {
        spec.kernel = Some("host".to_string());
    }
    let job = |mut spec: JobSpec| {
        let found = match variant.has_settings() {
            // A file has its size, whatever a variant says.
            true => host::resolve(&mut spec)?,
            false => Found::default(),
        };
        Ok((spec.validate(input::host_release().as_deref())?, found))
    };
    job(spec).map_err(|error| variant.error(error))
}

/// The command that compares the same again. What variants may change is said as it was asked for:
/// a number of accesses that follows from the size of the file follows from that of each variant.
fn command(
    asked: &GivenJob,
    spec: &JobSpec,
    variants: &[Variant],
    images: &[Booted],
    modules: &[String],
) -> String {
    let mut shown = match (&asked.file, spec.phase.is_empty()) {
        (Some(_), false) => asked.flags.clone(),
        _ => spec.clone(),
    };
    let of_model = JobSpec { on: None, image: None, modules: None, ..spec.clone() };
    let kernel = of_model.validate(input::host_release().as_deref());
    if let (Ok(job), true) = (kernel, spec.phase.is_empty()) {
        shown.kernel = Some(match asked.kernel.as_deref() {
            // More than the rules is this machine's.
            Some("host") => "host".to_string(),
            _ => job.rules.kernel.name().to_string(),
        });
    }
    // Where no flag says otherwise, the machine is the same again.
    shown.machine = shown.machine.filter(|name| needs_said(name));
    shown = JobSpec { on: None, with: None, image: None, modules: None, ..shown };
    let mut words = vec!["filemap compare".to_string()];
    let file = asked.file.as_deref().filter(|_| !spec.phase.is_empty());
    words.extend(file.map(shell_word));
    words.extend(shown.flags());
    words.extend(spec.on.iter().filter(|on| *on != "model").map(|on| format!("--on {on}")));
    let names: Vec<String> = variants.iter().map(Variant::name).collect();
    words.push(format!("--variants {}", shell_word(&names.join(","))));
    words.extend(images.iter().map(|image| format!("--image {}", shell_word(&image.path))));
    words.extend(modules.iter().map(|path| format!("--modules {}", shell_word(path))));
    words.join(" ")
}
