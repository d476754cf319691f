//! `filemap compare` of a program.

use filemap_job::program::{Program, ProgramRecord};
use filemap_job::{EngineKind, JobSpec, ProgramSpec, shell_word};
use filemap_model::{Digest, Profile, run_program, trace_program};
use filemap_report::compare::{self, ProgramCell};
use rayon::prelude::*;

use super::{differing, engines, unseen_warning, variants};
use crate::Outcome;
use crate::args::CompareArgs;
use crate::commands::program::{Asked, foreign, profile, resolve, stamped};
use crate::engine::{HostJobs, threads};
use crate::error::Error;
use crate::judged::{self, Judged};
use crate::output::Output;
use crate::progress::Progress;
use crate::variants::Variant;

/// A cell that is yet to be run.
struct Planned {
    variant: String,
    spec: ProgramSpec,
    program: Program,
    profile: Profile,
}

/// Runs the program of the job file at `path` in several variants and prints what changes.
pub fn run(spec: ProgramSpec, path: &str, args: CompareArgs) -> Result<Outcome, Error> {
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
    let found = resolve(&mut spec)?;
    let kernel = asked.spec.kernel.as_deref();
    let cells = cells(&asked, &spec, &variants)?;
    if cells.len() < 2 {
        let message = "there is one variant only; give --variants baseline,mmap-miss";
        return Err(Error::Usage(message.to_string()));
    }
    let on_kernel = |cell: &Planned| cell.program.engine == EngineKind::Kernel;
    if args.apply && !cells.iter().any(on_kernel) {
        let message = "--apply is for the running kernel; give --on kernel, or remove it";
        return Err(Error::Usage(message.to_string()));
    }
    for cell in cells.iter().filter(|cell| on_kernel(cell)) {
        judged::check(&Judged::from(&cell.program))?;
    }
    let cells: Vec<Planned> = cells
        .into_iter()
        .map(|cell| Planned { profile: found.on_device(cell.profile), ..cell })
        .collect();
    let (profiles, records) = run_all(&cells, args.apply)?;
    let mut warnings = found.warnings;
    let judged: Vec<Judged> = cells.iter().map(|cell| Judged::from(&cell.program)).collect();
    warnings.extend(judged::warnings(kernel, &judged)?);
    warnings.extend(unseen(&cells, &profiles, &records)?);
    let named = cells.iter().zip(records);
    let compared: Vec<ProgramCell> =
        named.map(|(cell, record)| ProgramCell { variant: cell.variant.clone(), record }).collect();
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
    spec.kernel = Some(program.rules.kernel.name().to_string());
    Ok(Planned { variant: variant.name(), spec, program, profile })
}

/// The record of each cell. Those of the model run in parallel; after them those of the kernel, one
/// run of each in turn. The profiles have what the device takes at once that the kernel read from.
fn run_all(cells: &[Planned], apply: bool) -> Result<(Vec<Profile>, Vec<ProgramRecord>), Error> {
    let of_model = |cell: &&Planned| cell.program.engine == EngineKind::Model;
    let on_kernel = cells.iter().filter(|cell| !of_model(cell)).map(|cell| &cell.program);
    let runs: u64 = on_kernel.clone().map(|program| program.runs).sum();
    let progress = Progress::new(runs as usize + cells.iter().filter(of_model).count());
    let here = HostJobs::prepare(on_kernel, 1, apply)?;
    let on_device = |cell: &Planned| {
        let mut profile = cell.profile;
        let io_bytes = here.io_bytes(&cell.program.machine);
        profile.device.io_bytes = io_bytes.unwrap_or(profile.device.io_bytes);
        profile
    };
    let profiles: Vec<Profile> = cells.iter().map(on_device).collect();
    let models: Vec<(&Planned, Profile)> =
        cells.iter().zip(profiles.iter().copied()).filter(|(cell, _)| of_model(cell)).collect();
    let models = threads()?.install(|| {
        let ran = models.par_iter().with_max_len(1).map(|(cell, profile)| {
            let record = run_program(&cell.spec, &cell.program, profile)?;
            progress.advance();
            Ok::<_, Error>(record)
        });
        ran.collect::<Result<Vec<ProgramRecord>, _>>()
    });
    let mut models = models?.into_iter();
    let mut measured = here.run(&progress)?.into_iter();
    let record = |cell: &Planned| match cell.program.engine {
        EngineKind::Model => models.next().expect("each of them has run"),
        EngineKind::Kernel => {
            let (prepared, runs) = measured.next().expect("each of them has run");
            let engine = EngineKind::Kernel.name();
            ProgramRecord::new(cell.spec.clone(), engine, prepared.environment(), runs)
        }
    };
    let records = cells.iter().map(record).map(|record| stamped(record, Vec::new()));
    let records = records.collect();
    Ok((profiles, records))
}

/// What to warn of: variants whose rules the program never told from the first one's.
fn unseen(
    cells: &[Planned],
    profiles: &[Profile],
    records: &[ProgramRecord],
) -> Result<Vec<String>, Error> {
    let digest = |number: usize| {
        let mut digest = Digest::default();
        trace_program(&cells[number].program, &profiles[number], &mut digest)?;
        Ok::<_, Error>(digest)
    };
    let of_model = |number: &usize| cells[*number].program.engine == EngineKind::Model;
    let mut of_model = (0..cells.len()).filter(of_model);
    let Some(first) = of_model.next() else { return Ok(Vec::new()) };
    let mut warnings = Vec::new();
    let mut first_digest = None;
    for number in of_model {
        let [one, other] = [first, number].map(|at| cells[at].program.rules.series);
        let switches = differing(one, other);
        if switches.is_empty() || records[number].run != records[first].run {
            continue;
        }
        let before = match first_digest {
            Some(before) => before,
            None => *first_digest.insert(digest(first)?),
        };
        if digest(number)? == before {
            let names = [&cells[first].variant, &cells[number].variant];
            warnings.push(unseen_warning(names, &switches, before.decisions()));
        }
    }
    Ok(warnings)
}
