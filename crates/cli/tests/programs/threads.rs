//! Programs of several threads: what the running kernel counts in several runs, beside the model.

use filemap_job::Ready;
use filemap_job::program::{ProgramRun, ProgramSpec};
use filemap_kernel::Error;
use filemap_kernel::engine::Kernel;
use filemap_kernel::probe::cpus;
use filemap_model::{Profile, trace_program};

use crate::skip::skip;
use crate::support::threads_that_fit;

/// Programs, and runs of each on the kernel.
const PROGRAMS: u64 = 100;
const RUNS: u64 = 10;

/// A figure of a run.
type Figure = fn(&ProgramRun) -> Option<u64>;

/// What is shown of a run: its name, and the figure.
const FIGURES: [(&str, Figure); 3] = [
    ("pages read", |run| run.counters.data_pages_read),
    ("major faults", |run| run.counters.major_faults),
    ("cached", |run| run.files.iter().map(|file| file.cached).sum()),
];

/// Prints both side by side, and how many figures of the model lie within the kernel's spread.
pub fn show(kernel: &Kernel, first: u64) {
    let profile = profile();
    println!(
        "{:>6} {:>7}  {}",
        "seed",
        "threads",
        FIGURES.map(|(name, _)| heading(name)).join("  ")
    );
    let mut inside = [0; FIGURES.len()];
    for seed in first..first + PROGRAMS {
        let spec = threads_that_fit(seed, cpus::allowed());
        let runs = match measured(kernel, &spec) {
            Ok(runs) => runs,
            Err(error) if error.cannot_run_here() => return skip(error),
            Err(error) => panic!("FILEMAP_SEED={seed}: {error}"),
        };
        let program = spec.validate(None).expect("it ran");
        let model = trace_program(&program, &profile, &mut ()).expect("memory is enough");
        let texts = FIGURES.iter().zip(&mut inside).map(|((_, figure), inside)| {
            let live: Vec<u64> = runs.iter().filter_map(figure).collect();
            let (least, most) = (live.iter().min().copied(), live.iter().max().copied());
            let own = figure(&model).expect("the model sees it");
            let (least, most) = (least.expect("it is told"), most.expect("it is told"));
            let is_inside = (least..=most).contains(&own);
            *inside += u32::from(is_inside);
            let mark = if is_inside { " " } else { "*" };
            format!("{own:>7}{mark} {:>15}", format!("{least} to {most}"))
        });
        let texts: Vec<String> = texts.collect();
        println!("{seed:>6} {:>7}  {}", program.threads.len(), texts.join("  "));
    }
    let within = FIGURES.iter().zip(inside);
    let within = within.map(|((name, _), inside)| format!("{name} {inside}"));
    let within: Vec<String> = within.collect();
    println!("of {PROGRAMS} programs, within the kernel's {RUNS} runs: {}", within.join(", "));
}

fn heading(name: &str) -> String {
    format!("{:>24}", format!("{name}: model, kernel"))
}

fn measured(kernel: &Kernel, spec: &ProgramSpec) -> Result<Vec<ProgramRun>, Error> {
    let program = spec.validate(None).unwrap_or_else(|error| panic!("{error}"));
    let mut prepared = kernel.prepare(&program)?;
    let seed = prepared.seed();
    let runs = (0..RUNS).map(|_| Ok(prepared.take_turn(seed)?.remove(0)));
    runs.collect()
}

fn profile() -> Profile {
    let Ok(path) = std::env::var("FILEMAP_TEST_PROFILE") else { return Profile::DEFAULT };
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Profile::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}
