//! Plans and runs the variants of jobs.

use std::time::Duration;

use filemap_core::rules::Kernel;
use filemap_job::{EngineKind, Job, JobFlags, JobRuns as JobRan, JobSpec, Record, shell_word};
use filemap_model::Profile;

use super::boot_images::{self, BootImage};
use super::emulated::{has_emulated_times, is_emulated};
use super::no_effect::{merge_warnings, variants_without_effect};
use super::options::{self, CompareOptions};
use super::trees::Trees;
use super::{Comparison, JobFile, JobVariants, RanVariant};
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::host::{self, HostFacts};
use crate::input;
use crate::job_input::{JobInput, unseen_text};
use crate::kernel_match;
use crate::machine_profile;
use crate::seeds;
use crate::variants::Variant;

/// The planned variants of one job.
pub struct Plan {
    /// Names of the variants.
    names: Vec<String>,
    /// The job of each variant.
    jobs: Vec<Job>,
    /// The model's profile for each variant.
    profiles: Vec<Profile>,
    /// The command that repeats the comparison.
    pub command: String,
    input: JobInput,
    warnings: Vec<String>,
}

impl Plan {
    /// Plans `variants` of the job `input`.
    ///
    /// # Errors
    /// When a variant is invalid, or there is only one to compare.
    pub fn new(
        input: JobInput,
        variants: &[Variant],
        asked: &CompareOptions,
    ) -> Result<Self, Error> {
        let mut spec = input.spec.clone();
        let images = images(&mut spec, &asked.images, &asked.modules)?;
        spec.on = spec.on.as_deref().map(options::parse_engines).transpose()?;
        let on = spec.on.clone();
        let found = input.resolve(&mut spec)?;
        let profile = machine_profile::resolve(&mut spec)?;
        let planned = planned_variants(&input, &spec, variants, &images, &found)?;
        if planned.len() < 2 {
            let remedy = match planned.first().map(|variant| variant.job.engine) {
                Some(EngineKind::Kernel) => "another --image, or --on model,kernel",
                _ => "--variants baseline,mmap-miss",
            };
            return Err(Error::Usage(format!("there is one variant only; give {remedy}")));
        }
        check(&planned, asked.apply)?;
        let command = command(&input, on, &planned[0].job, variants, &images, asked.seeds);
        let machine = spec.machine.clone();
        let of_planned = |planned: &PlannedVariant| match planned.job.machine.profile.as_deref() {
            name if name == machine.as_deref() => Ok(planned.found.on_device(profile)),
            name => Ok(planned.found.on_device(machine_profile::load_profile(name)?)),
        };
        let profiles = planned.iter().map(of_planned).collect::<Result<Vec<Profile>, Error>>()?;
        let mut warnings = found.warnings;
        warnings.extend(unseen_warning(&input, variants, &profile)?);
        let (names, jobs) =
            planned.into_iter().map(|planned| (planned.variant, planned.job)).unzip();
        Ok(Plan { names, jobs, profiles, command, input, warnings })
    }

    /// The job file that a letter quotes; `None` for a job that flags express completely.
    pub fn job_file(&self) -> Option<JobFile> {
        let input = &self.input;
        if input.approximations().is_some() {
            let text = Err("it is a recording".to_string());
            return Some(JobFile { path: input.name(), text });
        }
        match &input.path {
            Some(path) => Some(JobFile::read(path)),
            None if input.spec.is_single_mapping() => None,
            None => Some(JobFile { path: input.name(), text: Ok(input.text()) }),
        }
    }

    /// Builds the records of the variants, with warnings. `took` is the processor time that this
    /// process spent on them.
    fn conclude(
        self,
        ran: Vec<JobRan>,
        asked: &CompareOptions,
        took: Duration,
        trees: &mut Trees,
    ) -> Result<(Vec<RanVariant>, Vec<String>), Error> {
        let Plan { names, jobs, profiles, input, mut warnings, .. } = self;
        let ran = names.into_iter().zip(jobs).zip(ran).map(|((variant, job), ran)| {
            let mut record = Record::from_job_runs(&job, ran);
            input.leave_lists(&mut record);
            RanVariant { variant, job, record }
        });
        let mut ran: Vec<RanVariant> = ran.collect();
        warnings.extend(trees.add_to_environment(&mut ran));
        if ran.iter().any(|ran| is_emulated(&ran.record)) {
            let times = if ran.iter().any(|ran| has_emulated_times(&ran.record)) {
                "their times are those of counted instructions, 4 ns each"
            } else {
                "their times, which would say nothing, are left out"
            };
            let text = "images were emulated, without KVM: their counters are those of the kernel";
            warnings.push(format!("{text}, and {times}"));
        }
        let seeds = asked.seeds.unwrap_or(1);
        let of_job = |job: &Job| [job.idle_settings(), job.seed_warnings(seeds)].concat();
        let named = ran.iter().map(|ran| (ran.variant.as_str(), of_job(&ran.job)));
        warnings.extend(merge_warnings(&named.collect::<Vec<_>>()));
        let judged: Vec<&Job> = ran.iter().map(|ran| &ran.job).collect();
        warnings.extend(same_job_warnings(&ran));
        warnings.extend(kernel_match::warnings(input.spec.kernel.as_deref(), &judged)?);
        warnings.extend(variants_without_effect(&ran, &profiles)?);
        if asked.seeds.is_none() {
            let cells = ran.iter().zip(&profiles).map(|(ran, profile)| seeds::RanJob {
                name: &ran.variant,
                job: &ran.job,
                profile,
                record: &ran.record,
            });
            warnings.extend(seeds::warnings(&cells.collect::<Vec<_>>(), took)?);
        }
        Ok((ran, warnings))
    }
}

/// Checks that all jobs have the same variants, so that they fit the columns of one table.
///
/// # Errors
/// Names the first job file whose variants differ from those of the first.
pub fn check_one_table(plans: &[(Option<String>, Plan)]) -> Result<(), Error> {
    let columns = |plan: &Plan| {
        let engines = plan.jobs.iter().map(|job| job.engine);
        plan.names.iter().cloned().zip(engines).collect::<Vec<_>>()
    };
    let Some(((first, of_first), others)) = plans.split_first() else { return Ok(()) };
    match others.iter().find(|(_, plan)| columns(plan) != columns(of_first)) {
        Some((other, _)) => Err(Error::Usage(format!(
            "--format kernel: {} has other variants than {}; give --variants and --on, which are \
             for all",
            other.as_deref().unwrap_or_default(),
            first.as_deref().unwrap_or_default(),
        ))),
        None => Ok(()),
    }
}

/// Warnings about variants that resolve to the same job as an earlier one.
fn same_job_warnings(ran: &[RanVariant]) -> impl Iterator<Item = String> {
    // Compares resolved jobs: the spec may spell the same settings differently.
    let resolved = |ran: &RanVariant| Job { spec: JobSpec::default(), ..ran.job.clone() };
    let jobs: Vec<Job> = ran.iter().map(resolved).collect();
    ran.iter().enumerate().filter_map(move |(at, own)| {
        let same = &ran[jobs[..at].iter().position(|before| *before == jobs[at])?];
        Some(format!("{} is the same job as {}: differences are noise", own.variant, same.variant))
    })
}

/// Runs `plans` on `engines`; if there are several, each comes with the path of its job file. Each
/// kernel image is booted once for all jobs. `command` repeats the comparison.
///
/// # Errors
/// Errors of the engines, and of reading kernel images.
pub fn run(
    mut plans: Vec<(Option<String>, Plan)>,
    engines: &impl Engines,
    asked: &CompareOptions,
    command: String,
) -> Result<Comparison, Error> {
    let lists = plans.iter_mut();
    let lists =
        lists.map(|(_, list)| (list.jobs.as_slice(), list.profiles.as_mut_slice())).collect();
    let begun = seeds::process_cpu_time();
    let ran = engine::run_lists(engines, lists, asked.seeds.unwrap_or(1), asked.apply);
    let ran = ran.map_err(|error| match plans.as_slice() {
        [(None, plan)] => plan.input.in_file(error),
        _ => error,
    })?;
    let took = (seeds::process_cpu_time() - begun) / plans.len() as u32;
    let mut trees = Trees::default();
    let jobs = plans.into_iter().zip(ran).map(|((job_file, plan), ran)| {
        let (ran, warnings) = plan.conclude(ran, asked, took, &mut trees)?;
        Ok(JobVariants { job_file, ran, warnings })
    });
    Ok(Comparison::from_jobs(jobs.collect::<Result<_, Error>>()?, command))
}

/// The kernels to boot: from the flags, or else the one that `spec` names. Stores the first in
/// `spec`, which decides where the job runs if no engine is named.
fn images(
    spec: &mut JobSpec,
    images: &[String],
    modules: &[String],
) -> Result<Vec<BootImage>, Error> {
    let or_own = |named: &[String], own: &mut Option<String>| match named {
        [] => own.take().into_iter().collect(),
        named => named.to_vec(),
    };
    let (image, own_modules) = (&mut spec.image, &mut spec.modules);
    let images =
        BootImage::pair_with_modules(or_own(images, image), &or_own(modules, own_modules))?;
    spec.image = images.first().map(|image| image.path.clone());
    Ok(images)
}

/// The command that repeats the comparison on the engines `on`; `first` is the job of the first
/// variant.
fn command(
    input: &JobInput,
    on: Option<String>,
    first: &Job,
    variants: &[Variant],
    images: &[BootImage],
    seeds: Option<u64>,
) -> String {
    let mut flags =
        JobFlags { on: None, with: None, image: None, modules: None, ..input.flags.clone() };
    let has_kernel = variants.iter().any(|variant| variant.sets("kernel"));
    if input.path.is_none() && first.engine == EngineKind::Model && !has_kernel {
        flags.kernel.get_or_insert(first.rules.kernel.name().to_string());
    }
    let on = on.iter().filter(|on| *on != "model").map(|on| format!("--on {on}"));
    let mut words: Vec<String> = on.collect();
    let names: Vec<String> = variants.iter().map(Variant::name).collect();
    words.push(format!("--variants {}", shell_word(&names.join(","))));
    let has_modules = images.iter().any(|image| image.modules.is_some());
    for image in images {
        words.push(format!("--image {}", shell_word(&image.path)));
        let modules = image.modules.as_deref().or(has_modules.then_some(boot_images::NONE));
        words.extend(modules.map(|path| format!("--modules {}", shell_word(path))));
    }
    words.extend(seeds::words(seeds));
    input.command_with("compare", &flags, &words)
}

/// Refuses variants that differ in something the running kernel cannot switch between runs: its
/// rules, and its fault-around size.
fn check(cells: &[PlannedVariant], apply: bool) -> Result<(), Error> {
    let is_here = |job: &Job| job.engine == EngineKind::Kernel && job.image.is_none();
    cells.iter().try_for_each(|cell| match cell.job.image {
        Some(_) => kernel_match::check(&cell.job),
        None => Ok(()),
    })?;
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

/// A cell before it is run.
struct PlannedVariant {
    variant: String,
    job: Job,
    found: HostFacts,
}

/// One cell for every variant on every engine, in order. `found` has the host's facts for `spec`,
/// the job without variants. For variants on booted kernels see [`booted::on_kernel`].
fn planned_variants(
    input: &JobInput,
    spec: &JobSpec,
    variants: &[Variant],
    images: &[BootImage],
    found: &HostFacts,
) -> Result<Vec<PlannedVariant>, Error> {
    let names = boot_images::image_names(images)?;
    let engines = spec.on.clone().unwrap_or(EngineKind::Model.name().to_string());
    let beside_model = engines.split(',').any(|engine| engine == EngineKind::Model.name());
    let of_images = boot_images::kernel_variants(variants, beside_model);
    // The only variant comes from --with.
    let is_of_with = spec.with.is_some();
    let mut cells = Vec::new();
    let mut add = |name: String, engine: &str, variant: &Variant, image| {
        let cell = cell(input, spec, engine, variant, image);
        let (job, own) =
            cell.map_err(|error| if is_of_with { error } else { variant.error(error) })?;
        cells.push(PlannedVariant { variant: name, job, found: own.or(found) });
        Ok::<_, Error>(())
    };
    for engine in engines.split(',') {
        if engine != EngineKind::Kernel.name() || images.is_empty() {
            for variant in variants {
                add(variant.name(), engine, variant, None)?;
            }
            continue;
        }
        for (image, name) in images.iter().zip(&names) {
            for variant in &of_images {
                add(boot_images::image_variant_name(name, variant), engine, variant, Some(image))?;
            }
        }
    }
    let booted = cells.iter_mut().map(|cell| &mut cell.job);
    boot_images::set_switches(
        booted.filter_map(|job| Some((job.image.as_mut()?, job.rules.series))),
    );
    Ok(cells)
}

/// A warning with the figures of each variant in the model if the program touched all pages that
/// its recorder may have missed.
fn unseen_warning(
    input: &JobInput,
    variants: &[Variant],
    profile: &Profile,
) -> Result<Option<String>, Error> {
    let Some((most, pages)) = input.with_unseen_touches()? else { return Ok(None) };
    let mut spec = most.spec.clone();
    (spec.on, spec.image, spec.modules) = (None, None, None);
    let found = most.resolve(&mut spec)?;
    let planned = planned_variants(&most, &spec, variants, &[], &found)?;
    let jobs = planned.iter().map(|cell| (cell.variant.as_str(), &cell.job, profile));
    unseen_text(pages, &jobs.collect::<Vec<_>>()).map(Some)
}

/// The job of one cell, on `image` if given, and the host's facts for it.
fn cell(
    input: &JobInput,
    spec: &JobSpec,
    engine: &str,
    variant: &Variant,
    image: Option<&BootImage>,
) -> Result<(Job, HostFacts), Error> {
    let mut own = input.in_variant(variant)?.or_shared(spec);
    (own.on, own.image, own.modules) = (spec.on.clone(), spec.image.clone(), None);
    let found = input.resolve(&mut own)?;
    // The model is the default: a job that names no engine stays as it was written.
    let is_default = spec.on.is_none() && engine == EngineKind::Model.name();
    own.on = (!is_default).then(|| engine.to_string());
    own.image = image.map(|image| image.path.clone());
    own.modules = image.and_then(|image| image.modules.clone());
    let of_kernel = match image {
        Some(image) => {
            let nearest = Kernel::nearest(&host::image_release(&image.path)?);
            nearest.map(|nearest| nearest.kernel.name().to_string())
        }
        None => (engine == EngineKind::Kernel.name()).then(|| "host".to_string()),
    };
    if !variant.sets("kernel") {
        own.kernel = of_kernel.or(own.kernel.take());
    }
    Ok((input.validate(&own)?, found))
}
