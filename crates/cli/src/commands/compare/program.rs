//! `filemap compare` of a program.

use filemap_job::program::Program;
use filemap_job::{EngineKind, JobSpec, ProgramSpec, shell_word};
use filemap_model::{Digest, Profile, trace_program};
use filemap_report::compare::{self, ProgramCell};

use super::unseen::{OfModel, unseen};
use super::{engines, variants};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::commands::program::{Asked, foreign, profile};
use crate::engine::{self, Engines};
use crate::error::Error;
use crate::judged::{self, Judged};
use crate::output::Output;
use crate::variants::Variant;

/// A cell that is yet to be run.
struct Planned {
    variant: String,
    program: Program,
    profile: Profile,
}

/// Runs the program of the job file at `path` in several variants and prints what changes.
pub fn run(
    spec: ProgramSpec,
    path: &str,
    args: CompareArgs,
    on: &impl Engines<Program>,
) -> Result<Outcome, Error> {
    if args.seeds.is_some() {
        return Err(foreign("--seeds", path));
    }
    let mut asked = Asked::new(spec, path, args.job)?;
    let variants = variants(&asked.spec.shared(), &args.variants)?;
    let foreign_to = |variant: &Variant| {
        let flag = ProgramSpec::foreign_flag(&variant.applied(&JobSpec::default()))?;
        let key = flag.trim_start_matches("--").replace('-', "_");
        Some(variant.error(Error::Usage(format!(
            "{key} belongs to a file, a mapping or a phase of a program; compare two job files"
        ))))
    };
    if let Some(error) = variants.iter().find_map(foreign_to) {
        return Err(error);
    }
    let profiles = variants.iter().filter_map(|variant| variant.value("machine"));
    profiles.for_each(|name| asked.inputs.add_profile("machine of a variant", name));
    let output = Output::open(&args.output, &asked.inputs, &[])?;
    let mut spec = asked.spec.clone();
    spec.on = spec.on.as_deref().map(engines).transpose()?;
    let found = asked.resolve(&mut spec)?;
    let kernel = asked.spec.kernel.as_deref();
    let cells = cells(&asked, &spec, &variants)?;
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
    let records = engine::run_seeds(on, &programs, &mut profiles, 1, args.apply)?;
    let mut warnings = found.warnings;
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
    let names: Vec<String> = variants.iter().map(Variant::name).collect();
    let command =
        format!("{} --variants {}", asked.command("compare"), shell_word(&names.join(",")));
    output.write(&compare::of_program(&compared, &warnings, args.verbose, command))?;
    Ok(Outcome::Done)
}

/// Every variant on every engine. Beside the model, whose series are then meant, the running kernel
/// has the settings of the variants only.
fn cells(asked: &Asked, spec: &ProgramSpec, variants: &[Variant]) -> Result<Vec<Planned>, Error> {
    let engines = spec.on.clone().unwrap_or(EngineKind::Model.name().to_string());
    let beside_model = engines.split(',').any(|engine| engine == EngineKind::Model.name());
    let mut cells: Vec<Planned> = Vec::new();
    for engine in engines.split(',') {
        let mut names: Vec<String> = Vec::new();
        for variant in variants {
            let has_own_series = engine == EngineKind::Kernel.name() && beside_model;
            let variant = if has_own_series { variant.without_series() } else { variant.clone() };
            if names.contains(&variant.name()) {
                continue;
            }
            names.push(variant.name());
            let spec = ProgramSpec { on: Some(engine.to_string()), ..spec.clone() };
            let planned = cell(asked, spec, &variant).map_err(|error| variant.error(error))?;
            cells.push(planned);
        }
    }
    Ok(cells)
}

fn cell(asked: &Asked, spec: ProgramSpec, variant: &Variant) -> Result<Planned, Error> {
    let mut spec = spec.overlay(&variant.applied(&JobSpec::default()));
    if spec.on.as_deref() == Some(EngineKind::Kernel.name()) && !variant.sets("kernel") {
        spec.kernel = Some("host".to_string());
    }
    let profile = profile(&mut spec)?;
    let program = asked.validate(&spec)?;
    Ok(Planned { variant: variant.name(), program, profile })
}
