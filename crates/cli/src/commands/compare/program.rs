//! `filemap compare` of a program.

use filemap_core::rules::Kernel;
use filemap_job::program::{Program, ProgramRecord};
use filemap_job::{EngineKind, JobSpec, ProgramSpec, shell_word};
use filemap_model::{Digest, Profile, trace_program};
use filemap_report::compare::{self, JobFile, ProgramCell};

use super::asked::{engines, variants};
use super::booted::{self, Booted};
use super::unseen::{OfModel, unseen};
use super::{job_file, letter_command};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::commands::program::{GivenProgram, not_of_programs, profile, workload_of};
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::host;
use crate::judged::{self, Judged};
use crate::variants::Variant;

/// A cell that is yet to be run.
struct Planned {
    variant: String,
    program: Program,
    profile: Profile,
}

/// Runs the program that was `asked` for in several variants and prints what changes.
pub fn run(
    mut asked: GivenProgram,
    args: CompareArgs,
    on: &impl Engines,
) -> Result<Outcome, Error> {
    let path = asked.path.clone();
    if args.seeds.is_some() {
        return Err(not_of_programs("--seeds", &path));
    }
    let (images, modules) = (args.job.image.clone(), args.job.modules.clone());
    let variants = variants(&asked.spec.shared(), &args.variants)?;
    let foreign_to = |variant: &Variant| {
        let flag = ProgramSpec::foreign_flag(&variant.applied(&JobSpec::default()))?;
        let key = flag.trim_start_matches("--").replace('-', "_");
        Some(variant.error(Error::Usage(match workload_of(&flag) {
            Some(name) => {
                format!("{key} is for the flags of --workload {name}; change the job file instead")
            }
            None => format!(
                "{key} belongs to a file, a mapping or a phase of a program; compare two job files"
            ),
        })))
    };
    // What flags say, variants can say otherwise.
    let foreign = variants.iter().filter(|_| !asked.is_of_flags).find_map(foreign_to);
    if let Some(error) = foreign {
        return Err(error);
    }
    let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
    profiles.for_each(|name| asked.inputs.add_profile("machine of a variant", name));
    let output = args.output.open_compared(&asked.inputs)?;
    let mut spec = asked.spec.clone();
    spec.on = spec.on.as_deref().map(engines).transpose()?;
    let images = booted(&mut spec, images, modules)?;
    let found = asked.resolve(&mut spec)?;
    let kernel = asked.spec.kernel.as_deref();
    let cells = cells(&asked, &spec, &variants, &images)?;
    if cells.len() < 2 {
        let message = "there is one variant only; give --variants baseline,mmap-miss";
        return Err(Error::Usage(message.to_string()));
    }
    for cell in &cells {
        judged::check(&Judged::from(&cell.program))?;
    }
    let mut profiles: Vec<Profile> =
        cells.iter().map(|cell| found.on_device(cell.profile)).collect();
    let planned = cells.into_iter().map(|cell| (cell.variant, cell.program));
    let (names, programs): (Vec<String>, Vec<Program>) = planned.unzip();
    let ran = engine::run_seeds(on, &programs, &mut profiles, 1, args.apply)?;
    let records = programs.iter().zip(ran).map(|(program, ran)| ProgramRecord::of(program, ran));
    let mut records: Vec<ProgramRecord> = records.collect();
    records.iter_mut().for_each(|record| asked.leave_lists(record));
    let mut warnings = found.warnings;
    warnings.extend(booted::emulated(records.iter().map(|record| &record.environment)));
    let judged: Vec<Judged> = programs.iter().map(Judged::from).collect();
    warnings.extend(judged::warnings(kernel, &judged)?);
    let named = names.into_iter().zip(records);
    let compared = named.map(|(variant, record)| ProgramCell { variant, record });
    let compared: Vec<ProgramCell> = compared.collect();
    let ran = compared.iter().zip(&programs).zip(&profiles);
    let of_model = ran.filter(|((_, program), _)| program.engine == EngineKind::Model);
    warnings.extend(unseen(of_model.map(|((cell, program), profile)| OfModel {
        variant: &cell.variant,
        series: program.rules.series,
        ran: &cell.record.run,
        digest: Box::new(|| {
            let mut digest = Digest::default();
            trace_program(program, profile, &mut digest)?;
            Ok(digest)
        }),
    }))?);
    let job_file = match (&asked.of_recording, asked.is_of_flags) {
        (Some(_), _) => JobFile { path, text: Err("it is a recording".to_string()) },
        (_, true) => JobFile { path, text: Ok(asked.text()) },
        _ => job_file(&path),
    };
    let command = command(asked, &variants, &images);
    let of_letter = letter_command(&command, args.apply);
    let letter = compare::letter_of_program(&compared, &warnings, of_letter, &job_file);
    let report = compare::of_program(&compared, &warnings, args.verbose, command);
    output.write_compared(&report, &letter)?;
    Ok(Outcome::Done)
}

/// The kernels that are booted: those of the flags, or the one that the job file names. `spec` then
/// has the first, which says what runs where no engine is named.
fn booted(
    spec: &mut ProgramSpec,
    images: Vec<String>,
    modules: Vec<String>,
) -> Result<Vec<Booted>, Error> {
    let or_own = |given: Vec<String>, own: &mut Option<String>| match given.is_empty() {
        true => own.take().into_iter().collect(),
        false => given,
    };
    let images = or_own(images, &mut spec.image);
    let images = Booted::pair(images, &or_own(modules, &mut spec.modules))?;
    spec.image = images.first().map(|image| image.path.clone());
    Ok(images)
}

/// The command that compares the same again.
fn command(mut asked: GivenProgram, variants: &[Variant], images: &[Booted]) -> String {
    (asked.flags.image, asked.flags.modules) = (None, None);
    let names: Vec<String> = variants.iter().map(Variant::name).collect();
    let mut words =
        vec![format!("{} --variants {}", asked.command("compare"), shell_word(&names.join(",")))];
    let has_modules = images.iter().any(|image| image.modules.is_some());
    for image in images {
        words.push(format!("--image {}", shell_word(&image.path)));
        let modules = image.modules.as_deref().or(has_modules.then_some(booted::NONE));
        words.extend(modules.map(|path| format!("--modules {}", shell_word(path))));
    }
    words.join(" ")
}

/// Every variant on every engine and image. Beside the model, whose series are then meant, a kernel
/// that is booted has the settings of the variants only.
fn cells(
    asked: &GivenProgram,
    spec: &ProgramSpec,
    variants: &[Variant],
    images: &[Booted],
) -> Result<Vec<Planned>, Error> {
    let image_names = booted::names(images)?;
    let engines = spec.on.clone().unwrap_or(EngineKind::Model.name().to_string());
    let beside_model = engines.split(',').any(|engine| engine == EngineKind::Model.name());
    let mut cells: Vec<Planned> = Vec::new();
    for engine in engines.split(',') {
        let spec = ProgramSpec { on: Some(engine.to_string()), ..spec.clone() };
        let add = |name: String, variant: &Variant, image| {
            cell(asked, &spec, name, variant, image).map_err(|error| variant.error(error))
        };
        let is_booted = engine == EngineKind::Kernel.name() && !images.is_empty();
        let variants = match is_booted {
            true => booted::on_kernel(variants, beside_model),
            false => booted::distinct_variants(variants.iter().cloned()),
        };
        if is_booted {
            for (image, name) in images.iter().zip(&image_names) {
                for variant in &variants {
                    cells.push(add(booted::name(name, variant), variant, Some(image))?);
                }
            }
            continue;
        }
        for variant in &variants {
            cells.push(add(variant.name(), variant, None)?);
        }
    }
    let booted = cells.iter_mut().map(|cell| &mut cell.program);
    booted::set_switches(booted.filter_map(|of| Some((of.image.as_mut()?, of.rules.series))));
    Ok(cells)
}

/// The program of one cell, which is called `name`, on the kernel of `image` or none.
fn cell(
    asked: &GivenProgram,
    spec: &ProgramSpec,
    name: String,
    variant: &Variant,
    image: Option<&Booted>,
) -> Result<Planned, Error> {
    let mut spec = match asked.is_of_flags {
        true => {
            // What was found for them holds where no variant says otherwise.
            let resolved = spec.shared().overlay(asked.flags.clone());
            let of_variant = variant.applied(&resolved).thrash()?;
            ProgramSpec { on: spec.on.clone(), ..of_variant }
        }
        false => spec.clone().overlay_advised(&variant.applied(&JobSpec::default()))?,
    };
    for (name, advice) in variant.advice_at() {
        spec.advise(Some(name), &advice)?;
    }
    spec.image = image.map(|image| image.path.clone());
    spec.modules = image.and_then(|image| image.modules.clone());
    if let Some(image) = image
        && !variant.sets("kernel")
    {
        let nearest = Kernel::nearest(&host::image_release(&image.path)?);
        spec.kernel = nearest.map(|nearest| nearest.kernel.name().to_string()).or(spec.kernel);
    } else if spec.on.as_deref() == Some(EngineKind::Kernel.name()) && !variant.sets("kernel") {
        spec.kernel = Some("host".to_string());
    }
    let profile = profile(&mut spec)?;
    let program = asked.validate(&spec)?;
    Ok(Planned { variant: name, program, profile })
}
