//! Programs of several threads: what the running kernel counts in several runs, beside the model.
//!
//! The kernel does not count the same twice where threads meet, so one more run of its own need
//! not lie within the others either. How often it does is counted with each run in turn, and shown
//! beside how often the model does.

use std::fmt::Write;

use filemap_job::program::{Job, ProgramSpec};
use filemap_job::{Ready, Run};
use filemap_kernel::Error;
use filemap_kernel::engine::Kernel;
use filemap_kernel::probe::cpus;
use filemap_model::{Profile, trace};

use crate::skip::skip;
use crate::support::threads_that_fit;

/// Runs of each program on the kernel.
const RUNS: usize = 10;

/// A figure of a run.
type Figure = fn(&Run) -> Option<u64>;

/// What is compared of a run.
const FIGURES: [(&str, Figure); 3] = [
    ("pages read", |run| run.counters.data_pages_read),
    ("major faults", |run| run.counters.major_faults),
    ("cached", |run| run.files.iter().map(|file| file.cached).sum()),
];

/// In how many programs a figure lies within runs of the kernel.
#[derive(Clone, Copy, Default)]
struct Inside {
    model: u64,
    /// Runs of the kernel that lie within its other runs, of all programs.
    own_runs: u64,
}

/// Compares so many programs, the first of which has the seed `first`. Prints both sides, of each
/// program where `shows_all`, else of those that lie outside.
///
/// # Panics
/// Where the model is outside more often than the kernel's own runs are, by more than chance.
pub fn compare(kernel: &Kernel, first: u64, programs: u64, shows_all: bool) {
    let profile = profile();
    let mut inside = [Inside::default(); FIGURES.len()];
    for seed in first..first + programs {
        let spec = threads_that_fit(seed, cpus::allowed());
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
        for ((name, figure), inside) in FIGURES.iter().zip(&mut inside) {
            let (own, live) = (figure(&model).expect("the model sees it"), figures(&runs, *figure));
            let (least, most) = spread(live.iter().copied());
            let mark = if (least..=most).contains(&own) { "" } else { "*" };
            inside.model += u64::from(mark.is_empty());
            inside.own_runs += runs_inside(&live);
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
    judge(programs, &inside);
}

fn judge(programs: u64, inside: &[Inside]) {
    let mut too_few = Vec::new();
    for ((name, _), inside) in FIGURES.iter().zip(inside) {
        let own = inside.own_runs as f64 / RUNS as f64;
        let text = format!(
            "{name}: the model lies within {RUNS} runs of the kernel in {} of {programs} programs, a \
             run of the kernel within its others in {own:.1}",
            inside.model
        );
        println!("{text}");
        if (inside.model as f64) < least_inside(programs as f64, own) {
            too_few.push(text);
        }
    }
    assert!(too_few.is_empty(), "the model is outside too often:\n{}", too_few.join("\n"));
}

/// How many programs have to be inside if the model is another machine of the kind whose runs are
/// within each other in `own` programs: so many less two and a half standard deviations, which
/// chance exceeds once in 160 tries.
fn least_inside(programs: f64, own: f64) -> f64 {
    let own = own.min(programs - 1.0);
    own - 2.5 * (own * (programs - own) / programs).sqrt()
}

/// What each step counts that lies outside: threads of one program are told apart by it.
fn by_step(spec: &ProgramSpec, program: &Job, model: &Run, runs: &[Run]) -> String {
    let mut text = String::new();
    // Of all threads, one after the other.
    let mut phase = 0;
    for (thread, steps) in program.threads.iter().enumerate() {
        for (number, step) in steps.steps.iter().enumerate() {
            let of = |run: &Run| run.phases[phase].counters;
            let own = of(model).major_faults.expect("the model sees it");
            let (least, most) = spread(runs.iter().filter_map(|run| of(run).major_faults));
            phase += 1;
            if !(least..=most).contains(&own) {
                let name = program.step_name(thread, number);
                let shown = program.shown(step);
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

/// How many of these lie within the others.
fn runs_inside(figures: &[u64]) -> u64 {
    let is_inside = |at: &usize| {
        let others = figures.iter().enumerate().filter(|(other, _)| other != at);
        let (least, most) = spread(others.map(|(_, figure)| *figure));
        (least..=most).contains(&figures[*at])
    };
    (0..figures.len()).filter(is_inside).count() as u64
}

fn measured(kernel: &Kernel, program: &Job) -> Result<(Vec<Run>, Option<u64>), Error> {
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
