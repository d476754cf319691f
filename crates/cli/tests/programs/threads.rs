//! Programs of several threads: counts of several runs on the running kernel, and of the model.
//!
//! The kernel does not count the same twice where threads meet, so the model has to lie between the
//! least and the most of several runs, or not far outside. How far is judged, of all programs
//! together. How often is only shown, beside how often a run of the kernel lies outside its other
//! runs: on a machine that has nothing else to do these hardly differ, and the model's times are
//! those of another machine.

use std::fmt::Write;

use filemap_job::program::{Job, JobSpec};
use filemap_job::{ReadyJob, Run};
use filemap_kernel::Error;
use filemap_kernel::engine::HostKernel;
use filemap_kernel::probe::cpus;
use filemap_model::{Profile, trace};

use crate::skip::skip;
use crate::support::threads_that_fit;

/// Runs of each program on the kernel.
const RUNS: usize = 10;

/// A figure of a run.
type Figure = fn(&Run) -> Option<u64>;

/// The compared figures of a run, and how far outside the kernel's runs the model may be, over all
/// programs, as a fraction of the kernel's count. In 100 programs it was 0.001 of the pages and
/// 0.01 of the major faults on 2026-11-27. In ten programs with 1,200
/// major faults together, a single one can be 40 outside.
const FIGURES: [(&str, Figure, f64); 3] = [
    ("pages read", |run| run.counters.data_pages_read, 0.01),
    ("major faults", |run| run.counters.major_faults, 0.1),
    ("cached", |run| run.files.iter().map(|file| file.cached).sum(), 0.01),
];

/// Position of a figure of all programs.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Programs in which the model is within the runs of the kernel.
    inside: u64,
    /// Runs of the kernel that are within its other runs.
    own_runs: u64,
    /// How far outside the model is.
    outside: u64,
    /// The median count of the kernel.
    counted: f64,
}

/// Compares this many programs, the first of which has the seed `first`. Prints both results, of
/// each program if `shows_all`, else of those outside.
///
/// # Panics
///
/// If the model is too far outside.
pub fn compare(kernel: &HostKernel, first: u64, programs: u64, shows_all: bool) {
    let profile = profile();
    let mut places = [Place::default(); FIGURES.len()];
    for seed in first..first + programs {
        let spec = threads_that_fit(seed, cpus::allowed_cpus());
        let program = spec.validate(None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (runs, io_bytes) = match measured(kernel, &program) {
            Ok(measured) => measured,
            Err(error) if error.cannot_run_here() => return skip(error),
            Err(error) => panic!("FILEMAP_SEED={seed}: {error}"),
        };
        let mut profile = profile;
        profile.device.io_bytes = io_bytes.unwrap_or(profile.device.io_bytes);
        let model = trace(&program, &profile, &mut ()).expect("memory is enough");
        let mut text = format!("seed {seed}, {} threads:", program.threads.len());
        let mut is_outside = false;
        for ((name, figure, _), place) in FIGURES.iter().zip(&mut places) {
            let (own, live) = (figure(&model).expect("the model sees it"), figures(&runs, *figure));
            let (least, most) = spread(live.iter().copied());
            let mark = if (least..=most).contains(&own) { "" } else { "*" };
            place.inside += u64::from(mark.is_empty());
            place.own_runs += runs_inside(&live);
            place.outside += least.saturating_sub(own).max(own.saturating_sub(most));
            place.counted += (least + most) as f64 / 2.0;
            is_outside |= !mark.is_empty();
            write!(text, " {name} {own}{mark} of {least} to {most};").expect("it is memory");
        }
        if is_outside || shows_all {
            println!("{}", text.trim_end_matches(';'));
        }
        if is_outside {
            print!("{}", by_step(&spec, &program, &model, &runs));
        }
    }
    judge(programs, &places);
}

fn judge(programs: u64, places: &[Place]) {
    let mut too_far = Vec::new();
    for ((name, _, most), place) in FIGURES.iter().zip(places) {
        let own = place.own_runs as f64 / RUNS as f64;
        let text = format!(
            "{name}: the model lies within {RUNS} runs of the kernel in {} of {programs} programs, a \
             run of the kernel within its others in {own:.1}; in all it lies {} of {:.0} outside",
            place.inside, place.outside, place.counted
        );
        println!("{text}");
        if place.outside as f64 > most * place.counted {
            too_far.push(text);
        }
    }
    assert!(too_far.is_empty(), "the model lies too far outside:\n{}", too_far.join("\n"));
}

/// The counts of each step that are outside: they distinguish the threads of one program.
fn by_step(spec: &JobSpec, program: &Job, model: &Run, runs: &[Run]) -> String {
    let mut text = String::new();
    // Of all threads in turn.
    let mut phase = 0;
    for (thread, steps) in program.threads.iter().enumerate() {
        for (number, step) in steps.steps.iter().enumerate() {
            let counters = |run: &Run| run.phases[phase].counters;
            let own = counters(model).major_faults.expect("the model sees it");
            let (least, most) = spread(runs.iter().filter_map(|run| counters(run).major_faults));
            phase += 1;
            if !(least..=most).contains(&own) {
                let name = program.step_name(thread, number);
                let shown = program.describe_step(step);
                writeln!(text, "    {name}: {shown}: major faults {own}, kernel {least} to {most}")
                    .expect("it is memory");
            }
        }
    }
    if std::env::var_os("FILEMAP_TEST_SHOWS_JOBS").is_some() {
        text += &toml::to_string(spec).expect("a program is TOML");
    }
    text
}

fn figures(runs: &[Run], figure: Figure) -> Vec<u64> {
    let figures: Vec<u64> = runs.iter().filter_map(figure).collect();
    assert_eq!(figures.len(), runs.len(), "the kernel tells it in every run");
    figures
}

fn spread(figures: impl Iterator<Item = u64>) -> (u64, u64) {
    figures.fold((u64::MAX, 0), |(least, most), one| (least.min(one), most.max(one)))
}

/// How many of these are within the others.
fn runs_inside(figures: &[u64]) -> u64 {
    let is_inside = |at: &usize| {
        let others = figures.iter().enumerate().filter(|(other, _)| other != at);
        let (least, most) = spread(others.map(|(_, figure)| *figure));
        (least..=most).contains(&figures[*at])
    };
    (0..figures.len()).filter(is_inside).count() as u64
}

fn measured(kernel: &HostKernel, program: &Job) -> Result<(Vec<Run>, Option<u64>), Error> {
    let mut prepared = kernel.prepare(program)?;
    let (seed, io_bytes) = (prepared.seed(), prepared.io_bytes());
    let runs = (0..RUNS).map(|_| Ok(prepared.take_turn(seed)?.remove(0)));
    Ok((runs.collect::<Result<_, Error>>()?, io_bytes))
}

fn profile() -> Profile {
    let Ok(path) = std::env::var("FILEMAP_TEST_PROFILE") else { return Profile::DEFAULT };
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Profile::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}
