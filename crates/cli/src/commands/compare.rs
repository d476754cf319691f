//! `filemap compare`.

mod asked;
mod booted;
mod program;
mod unseen;

use filemap_core::rules::Kernel;
use filemap_job::program::Program;
use filemap_job::{EngineKind, Job, JobSpec, Run, Thrash, shell_word};
use filemap_model::{Digest, Profile};
use filemap_report::compare::{self, Cell, JobFile};
use filemap_report::{Letter, Report, thrash};

use asked::{engines, variants};
use booted::Booted;
use unseen::{OfModel, named, unseen};

use super::flag_job::FlagJob;
use super::program::in_file;
use super::{GivenJob, folio_ops, needs_said, svg_of_thrash, with_seeds};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::host::{self, Found};
use crate::input;
use crate::judged::{self, Judged};
use crate::machine_profile;
use crate::output::Output;
use crate::seeds;
use crate::variants::Variant;

/// Runs one job in several variants on `on` and prints what changes.
pub fn run(
    args: CompareArgs,
    on: &(impl Engines<Job> + Engines<Thrash> + Engines<Program>),
) -> Result<Outcome, Error> {
    if let Some(path) = &args.job_file
        && let Some(given) = input::program(path)?
    {
        let path = path.clone();
        return program::run(given, &path, args, on).map_err(|error| in_file(&path, error));
    }
    let given = GivenJob::new(args.job_file.clone(), args.job.clone())?;
    folio_ops::refuse(
        &given.1,
        "compare",
        "give filemap run, where all ways to count run side by side",
    )?;
    let (output, report, letter) = match given.1.is_thrash() {
        true => reported::<Thrash>(given, args, on)?,
        false => reported::<Job>(given, args, on)?,
    };
    output.write_compared(&report, &letter)?;
    Ok(Outcome::Done)
}

/// What comes out of the variants, and where it goes.
fn reported<J: FlagJob>(
    (mut asked, mut spec): (GivenJob, JobSpec),
    args: CompareArgs,
    on: &impl Engines<J>,
) -> Result<(Output, Report, Letter), Error> {
    let (images, modules) = (args.job.image.clone(), args.job.modules.clone());
    let variants = variants(&spec, &args.variants)?;
    let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
    profiles.for_each(|name| asked.inputs.add_profile("machine of a variant", name));
    let svg = ("--svg", svg_of_thrash(args.svg.as_deref(), &spec)?);
    let mut output = args.output.open_compared(&asked.inputs, &[svg])?;
    let images = if images.is_empty() { spec.image.take().into_iter().collect() } else { images };
    let modules =
        if modules.is_empty() { spec.modules.take().into_iter().collect() } else { modules };
    let images = Booted::pair(images, &modules)?;
    spec.image = images.first().map(|image| image.path.clone());
    spec.on = spec.on.as_deref().map(engines).transpose()?;
    let found = host::resolve(&mut spec)?;
    let profile = machine_profile::of(&mut spec)?;
    let engines = spec.on.clone().unwrap_or("model".to_string());
    let cells = cells::<J>(&spec, &engines, &variants, &images, &found)?;
    if cells.len() < 2 {
        let message = "there is one variant only; give --variants baseline,mmap-miss";
        return Err(Error::Usage(message.to_string()));
    }
    check(&cells, args.apply)?;
    let command = command::<J>(&asked, &spec, &variants, &images, &modules);
    let has_phases = !spec.phase.is_empty();
    let of_cell = |cell: &Planned<J>| match cell.job.machine().profile.as_deref() {
        name if name == spec.machine.as_deref() => Ok(cell.found.on_device(profile)),
        name => Ok(cell.found.on_device(machine_profile::named(name)?)),
    };
    let mut profiles = cells.iter().map(of_cell).collect::<Result<Vec<Profile>, Error>>()?;
    let planned = cells.into_iter().map(|cell| (cell.variant, cell.job));
    let (names, jobs): (Vec<String>, Vec<J>) = planned.unzip();
    let seeds = args.seeds.unwrap_or(1);
    let records = engine::run_seeds(on, &jobs, &mut profiles, seeds, args.apply)?;
    let mut warnings = found.warnings;
    let runs: Vec<&Run> = records.iter().flat_map(|record| &record.runs).collect();
    let told =
        names.iter().zip(&jobs).map(|(name, job)| (name.as_str(), job.without_effect(&runs)));
    warnings.extend(named(&told.collect::<Vec<_>>()));
    let judged: Vec<Judged> = jobs.iter().map(Judged::from).collect();
    warnings.extend(judged::warnings(asked.kernel.as_deref(), &judged)?);
    let cells = names.into_iter().zip(&jobs).zip(records);
    let cells = cells.map(|((variant, job), record)| {
        let job = job.of_one_file().cloned();
        Cell { variant, job, record }
    });
    let cells: Vec<Cell> = cells.collect();
    let ran: Vec<Ran<J>> = cells.iter().zip(&jobs).zip(&profiles).collect();
    let of_model = ran.iter().filter(|((_, job), _)| job.engine() == EngineKind::Model);
    warnings.extend(unseen(of_model.map(|((cell, job), profile)| OfModel {
        variant: &cell.variant,
        series: job.rules().series,
        ran: &cell.record.runs,
        digest: Box::new(|| {
            let mut digest = Digest::default();
            job.decide(profile, &mut digest)?;
            Ok(digest)
        }),
    }))?);
    if args.seeds.is_none() {
        warnings.extend(one_seed(&ran)?);
    }
    if let Some(target) = output.take("--svg") {
        target.write(thrash::svg_of_variants(&cells).as_bytes())?;
    }
    let command = with_seeds(command, args.seeds);
    let letter = compare::letter(
        &cells,
        &warnings,
        letter_command(&command, args.apply),
        asked.file.as_deref().filter(|_| has_phases).map(job_file).as_ref(),
    );
    Ok((output, compare::report(&cells, &warnings, args.verbose, command), letter))
}

/// The command that prints the same letter as `command` prints a report.
fn letter_command(command: &str, apply: bool) -> String {
    let apply = if apply { " --apply" } else { "" };
    format!("{command}{apply} --format kernel")
}

/// The job file at `path`, for a letter.
fn job_file(path: &str) -> JobFile {
    let text = match std::fs::metadata(path) {
        // Anything else has been read already, and would be waited for.
        Ok(data) if data.is_file() => input::read("job file", path, input::MAX_JOB_BYTES),
        _ => return JobFile { path: path.to_string(), text: Err("it is no file".to_string()) },
    };
    JobFile { path: path.to_string(), text: text.map_err(|error| error.to_string()) }
}

/// A cell with its job and the profile that the model had for it.
type Ran<'a, J> = ((&'a Cell, &'a J), &'a Profile);

/// What one seed does not show of `cells`.
fn one_seed<J: FlagJob>(cells: &[Ran<J>]) -> Result<Vec<String>, Error> {
    fn cell<'a, J: FlagJob>(&((cell, job), profile): &Ran<'a, J>) -> Option<seeds::Cell<'a>> {
        let job = job.of_one_file()?;
        Some(seeds::Cell { name: &cell.variant, job, profile, record: &cell.record })
    }
    let cells: Vec<seeds::Cell> = cells.iter().filter_map(cell).collect();
    seeds::warnings(&cells)
}

/// Refuses what the running kernel, which has one setting of each kind, cannot be in turn.
fn check<J: FlagJob>(cells: &[Planned<J>], apply: bool) -> Result<(), Error> {
    let is_here = |job: &J| job.engine() == EngineKind::Kernel && job.image().is_none();
    let cells = cells.iter().map(|cell| (&cell.variant, &cell.job));
    let mut here = cells.filter(|(_, job)| is_here(job));
    let release = input::host_release();
    let nearest = release.as_deref().and_then(Kernel::nearest);
    let other = |job: &J| nearest.is_some_and(|nearest| nearest.kernel != job.rules().kernel);
    if let Some((name, _)) = here.clone().find(|(_, job)| other(job)) {
        return Err(Error::CannotRun(format!(
            "--variants {name}: the running kernel has rules of its own; leave kernel out, or give \
             --on model"
        )));
    }
    let fault_around = here.next().map(|(_, job)| job.machine().fault_around);
    if let Some((name, _)) = here.find(|(_, job)| Some(job.machine().fault_around) != fault_around)
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
struct Planned<J> {
    variant: String,
    job: J,
    found: Found,
}

/// The jobs, and what each is called: every variant on every engine. `found` is what was found for
/// `spec` itself. A kernel that is booted contains the series that it was built with. Beside the
/// model, whose series are then meant, an image has the settings of the variants only.
fn cells<J: FlagJob>(
    spec: &JobSpec,
    engines: &str,
    variants: &[Variant],
    images: &[Booted],
    found: &Found,
) -> Result<Vec<Planned<J>>, Error> {
    let names = booted::names(images)?;
    let beside_model = engines.split(',').any(|engine| engine == EngineKind::Model.name());
    let of_images = booted::on_kernel(variants, beside_model);
    let mut cells = Vec::new();
    let mut add = |variant: String, (job, own): (J, Found)| {
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
    booted::set_switches(cells.iter_mut().map(|cell| &mut cell.job));
    Ok(cells)
}

/// The job of one cell, on the kernel of `image` or none, and what was found for its settings.
fn cell<J: FlagJob>(
    spec: &JobSpec,
    variant: &Variant,
    image: Option<&Booted>,
) -> Result<(J, Found), Error> {
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
        Ok((J::of_spec(spec)?, found))
    };
    job(spec).map_err(|error| variant.error(error))
}

/// The command that compares the same again. What variants may change is said as it was asked for:
/// a number of accesses that follows from the size of the file follows from that of each variant.
fn command<J: FlagJob>(
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
    let kernel = J::of_spec(of_model);
    if let (Ok(job), true) = (kernel, spec.phase.is_empty()) {
        shown.kernel = Some(match asked.kernel.as_deref() {
            // More than the rules is this machine's.
            Some("host") => "host".to_string(),
            _ => job.rules().kernel.name().to_string(),
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::engine::mock::Mock;

    fn json(mock: &Mock, flags: &str) -> Result<Value, Error> {
        let words = "filemap compare --workload random --file-size 1m --accesses 4 --seed 7";
        let cli = Cli::try_parse_from(words.split(' ').chain(flags.split(' '))).unwrap();
        let Command::Compare(args) = cli.command else { unreachable!("the words name it") };
        let given = GivenJob::new(args.job_file.clone(), args.job.clone())?;
        let (_, report, _) = reported::<Job>(given, args, mock)?;
        Ok(serde_json::from_str(&report.json).unwrap())
    }

    #[test]
    fn every_variant_runs_on_every_engine_in_turn() {
        let mock = Mock::with_io_bytes(12_345_000);
        let flags = "--variants baseline,advice=random --on model,kernel --runs 2";
        let report = json(&mock, flags).unwrap();
        let mut turns = mock.turns();
        // Those of the model run beside each other.
        turns[..2].sort();
        let turn = |engine: &str, advice: &str| format!("{engine}: run {advice} 7");
        let model = ["normal", "random"].map(|advice| turn("model beside the host", advice));
        let host = ["normal", "random", "normal", "random"].map(|advice| turn("host", advice));
        assert_eq!(turns, [model.as_slice(), &host].concat());
        let cells = report["cells"].as_array().unwrap().iter();
        let cells = cells.map(|cell| [cell["engine"].as_str(), cell["variant"].as_str()]);
        let expected = [
            ["model", "baseline"],
            ["model", "advice=random"],
            ["kernel", "baseline"],
            ["kernel", "advice=random"],
        ];
        assert_eq!(cells.collect::<Vec<_>>(), expected.map(|cell| cell.map(Some)));
    }

    #[test]
    fn a_variant_that_fails_ends_the_comparison() {
        let mock = Mock::failing("host: run random 7");
        let flags = "--variants baseline,advice=random --on kernel --runs 2";
        let error = json(&mock, flags).unwrap_err();
        assert_eq!((error.exit_code(), mock.turns().len()), (4, 2));
    }
}
