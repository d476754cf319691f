//! Random programs on the running kernel and in the model: pages read, major faults and pages
//! cached of each file have to be the same number.
//!
//! `cargo test -p filemap-cli --test programs -- --ignored` tries 30, and 10 programs of several
//! threads, each of which runs 10 times. With `FILEMAP_FULL=1` there are ten times as many, and
//! what both engines count of threads is printed side by side. `FILEMAP_TEST_PROFILE` names a
//! machine profile for the model. `FILEMAP_TEST_SHOWS_JOBS` prints the jobs that lie outside.
//! `FILEMAP_SEED` sets the seed of the first, which a failure prints. Governed programs are not
//! among them: the governor decides beside the program, and not at the same moment each time.

#[path = "../../../kernel/tests/support/harness.rs"]
mod harness;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;
#[path = "../../../model/tests/support/program.rs"]
mod support;
mod threads;

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;

use filemap_job::program::{Job, JobSpec};
use filemap_job::{ReadyJob, Run};
use filemap_kernel::Error;
use filemap_kernel::engine::{HostKernel, temporary_directory};
use filemap_kernel::journal::Journal;
use filemap_kernel::probe::main_if_child;
use filemap_model::{Profile, Timing, trace_timed};

use skip::skip;
use support::program_that_fits;

/// Number of programs in every test run, and on demand.
const USUAL: u64 = 30;
const ALL: u64 = 300;

/// The same with several threads.
const USUAL_OF_THREADS: u64 = 10;
const ALL_OF_THREADS: u64 = 100;

/// One program in this many may remain undecided because other processes disturb it.
const UNDECIDED_ONE_IN: u64 = 30;

/// Maximum number of runs of a program whose result differs from the model's: what the rules decide
/// is decided the same way again.
const ATTEMPTS: u32 = 4;

const TESTS: &[harness::Test<Bench>] = harness::tests![
    #[ignore = "30 programs on the running kernel, 300 with FILEMAP_FULL=1: half a minute or more"]
    random_programs_match,
    #[ignore = "10 programs 10 times each, 100 with FILEMAP_FULL=1: a minute or more"]
    programs_of_several_threads_match,
];

fn main() -> ExitCode {
    main_if_child();
    harness::run(TESTS, Bench::new)
}

fn random_programs_match(bench: &Bench) {
    let programs = if is_full() { ALL } else { USUAL };
    all_are_same(&bench.kernel, first_seed()..first_seed() + programs);
}

fn programs_of_several_threads_match(bench: &Bench) {
    let programs = if is_full() { ALL_OF_THREADS } else { USUAL_OF_THREADS };
    threads::compare(&bench.kernel, first_seed(), programs, is_full());
}

fn is_full() -> bool {
    std::env::var_os("FILEMAP_FULL").is_some()
}

fn first_seed() -> u64 {
    std::env::var("FILEMAP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

#[derive(Default)]
struct Found {
    same: u64,
    different: Vec<String>,
    undecided: Vec<String>,
}

enum Compared {
    Same,
    Different(String),
    /// Other processes disturbed every run.
    Undecided(String),
}

/// The running kernel with a directory for the test, removed at the end.
struct Bench {
    directory: PathBuf,
    kernel: HostKernel,
}

impl Bench {
    fn new() -> Result<Bench, String> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if !release.starts_with("6.18.") {
            return Err(format!("the rules of 6.18 are not those of {release}"));
        }
        let directory = temporary_directory().map_err(|error| error.to_string())?;
        let directory = directory.join(format!("filemap-programs-{}", std::process::id()));
        let journal = Journal::open_in(&directory).expect("a journal");
        Ok(Bench { kernel: HostKernel::in_directory(journal, directory.clone()), directory })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Counts of a run by either engine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Counts {
    pages_read: Option<u64>,
    major_faults: Option<u64>,
    /// Pages read, major faults and cached pages of each file.
    files: Vec<[Option<u64>; 3]>,
}

impl Counts {
    fn of(run: &Run) -> Counts {
        let files = run.files.iter();
        let files = files.map(|file| [file.data_pages_read, file.major_faults, file.cached]);
        Counts {
            pages_read: run.counters.data_pages_read,
            major_faults: run.counters.major_faults,
            files: files.collect(),
        }
    }
}

/// Compares random programs.
fn all_are_same(kernel: &HostKernel, seeds: Range<u64>) {
    let programs = seeds.end - seeds.start;
    let mut found = Found::default();
    for seed in seeds {
        match compare(kernel, seed, &program_that_fits(seed)) {
            Ok(Compared::Same) => found.same += 1,
            Ok(Compared::Different(text)) => found.different.push(text),
            Ok(Compared::Undecided(text)) => found.undecided.push(text),
            Err(error) if error.cannot_run_here() => {
                return skip(error);
            }
            Err(error) => panic!("FILEMAP_SEED={seed}: {error}"),
        }
    }
    let Found { same, different, undecided } = found;
    undecided.iter().for_each(|text| println!("{text}"));
    println!("{same} of {programs} programs are the same, {} undecided", undecided.len());
    assert!(different.is_empty(), "{} programs differ:\n{}", different.len(), different.join("\n"));
    let few = undecided.len() as u64 * UNDECIDED_ONE_IN <= programs.max(UNDECIDED_ONE_IN);
    assert!(few, "too few programs were compared");
}

fn compare(kernel: &HostKernel, seed: u64, spec: &JobSpec) -> Result<Compared, Error> {
    let program = spec.validate(None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let mut prepared = kernel.prepare(&program)?.with_settling();
    let mut profile = Profile::DEFAULT;
    profile.device.io_bytes = prepared.io_bytes().unwrap_or(profile.device.io_bytes);
    let model = Counts::of(&predicted(&program, &profile));
    let mut seen: Vec<Counts> = Vec::new();
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let before = disturbed_runs(&prepared.environment());
        let live = Counts::of(&prepared.run()?);
        if live == model {
            return Ok(Compared::Same);
        }
        if disturbed_runs(&prepared.environment()) == before {
            if seen.contains(&live) {
                return Ok(Compared::Different(differing(seed, spec, &model, &live)));
            }
            seen.push(live.clone());
        }
        last = Some(live);
    }
    let last = last.expect("it ran");
    Ok(Compared::Undecided(differing(seed, spec, &model, &last)))
}

/// Number of runs so far that were kept although other processes evicted pages of the files.
fn disturbed_runs(environment: &serde_json::Map<String, serde_json::Value>) -> u64 {
    let kept = environment.get("runs_kept_with_foreign_eviction");
    kept.and_then(serde_json::Value::as_u64).unwrap_or(0)
}

fn predicted(program: &Job, profile: &Profile) -> Run {
    trace_timed(program, profile, Timing::Settled, &mut ()).expect("memory is enough").run
}

fn differing(seed: u64, spec: &JobSpec, model: &Counts, live: &Counts) -> String {
    let job = toml::to_string(spec).expect("a program is TOML");
    format!("FILEMAP_SEED={seed}\nmodel  {model:?}\nkernel {live:?}\n{job}")
}
