//! Jobs that share a boot come out as with a boot of their own, where `FILEMAP_TEST_IMAGE` names an
//! image (and `FILEMAP_TEST_MODULES` its modules): this test program is then also the guest's init.
//!
//! `cargo test -p filemap-kernel --test boots -- --ignored` runs six random jobs. With
//! `FILEMAP_FULL=1` it runs 500, 50 of them also by themselves, and prints how many ran in a
//! minute. `FILEMAP_SEED` sets the seed, which a failure prints.

use std::process::ExitCode;
use std::time::Instant;

use filemap_job::random::{self, Rng};
use filemap_job::size::SizeText;
use filemap_job::{Cached, Counters, Engine, Job, JobFlags, PhaseSpec, ReadyJob, Run};
use filemap_kernel::Error;
use filemap_kernel::engine::{BootedJob, BootedKernels, run_in_guest};
use filemap_kernel::image::guest;
use filemap_kernel::probe::main_if_child;

#[path = "support/harness.rs"]
mod harness;
#[path = "support/session.rs"]
mod session;
#[path = "support/skip.rs"]
mod skip;

/// Number of jobs in a boot, number of them that also get a boot of their own, and minimum jobs per
/// minute.
const FEW: (u64, usize, f64) = (6, 2, 0.0);
const MANY: (u64, usize, f64) = (500, 50, 20.0);

/// How often a job with a different result is repeated alone.
const REPEATS: u64 = 10;

const PAGE: u64 = 4096;

const TESTS: &[harness::Test<String>] = harness::tests![
    #[ignore = "boots guests: a minute; 500 jobs with FILEMAP_FULL=1"]
    jobs_that_share_a_boot_equal_jobs_alone,
    #[ignore = "boots a guest"]
    failing_job_leaves_the_others,
];

fn main() -> ExitCode {
    main_if_child();
    if guest::is_guest() {
        guest::main(run_in_guest);
    }
    harness::run(TESTS, || {
        std::env::var("FILEMAP_TEST_IMAGE")
            .map_err(|_| "FILEMAP_TEST_IMAGE names no kernel image".into())
    })
}

#[allow(clippy::ptr_arg, reason = "the harness passes each test a `&String`")]
fn jobs_that_share_a_boot_equal_jobs_alone(path: &String) {
    let seed = std::env::var("FILEMAP_SEED").map_or(1, |text| text.parse().expect("a number"));
    let is_full = std::env::var_os("FILEMAP_FULL").is_some();
    let (jobs, alone, least) = if is_full { MANY } else { FEW };
    let jobs: Vec<Job> = (0..jobs).map(|number| random_job(path, seed, number)).collect();
    shared_and_alone(&jobs, alone, least, seed);
}

/// Job `number` of `seed`. All jobs run on one machine.
fn random_job(path: &str, seed: u64, number: u64) -> Job {
    let mut rng = Rng(Rng(seed).next() ^ number);
    let (least, most) = rng.pick(&[(1, 40), (40, 700), (700, 6000)]);
    let pages = least + rng.below(most - least);
    let phase = |rng: &mut Rng| {
        let workload = random::workload(rng, pages, true);
        let most = rng.pick(&[10, 100, 1000]);
        PhaseSpec {
            workload: Some(workload.to_string()),
            accesses: Some(1 + rng.below(most)),
            bs: workload
                .is_read()
                .then(|| SizeText(rng.pick(&["512b", "4k", "5000", "1m"]).into())),
            ..PhaseSpec::default()
        }
    };
    let advice = ["random", "sequential", "hugepage", "normal"];
    let spec = JobFlags {
        on: Some("kernel".into()),
        image: Some(path.into()),
        modules: std::env::var("FILEMAP_TEST_MODULES").ok(),
        seed: Some(1 + rng.below(1 << 40)),
        file_size: Some(SizeText::from_bytes(pages * PAGE - rng.pick(&[0, 1, 4095]))),
        advice: rng.chance(40).then(|| rng.pick(&advice).to_string()),
        exec: rng.chance(15).then_some(true),
        read_ahead_kb: Some(rng.pick(&[0, 4, 64, 128, 128, 200, 512, 8192])),
        fault_around: rng.chance(25).then(|| SizeText(rng.pick(&["4k", "16k", "1m"]).into())),
        // All of the file fits: nothing is evicted, as evictions vary from run to run.
        memory_max: rng.chance(15).then(|| SizeText("512m".into())),
        fs: Some("ext4".into()),
        phase: (0..1 + rng.below(4)).map(|_| phase(&mut rng)).collect(),
        ..JobFlags::default()
    };
    spec.validate(None).unwrap_or_else(|error| panic!("seed {seed}, job {number}: {error}"))
}

/// The figures of a run that have to be equal.
fn counted(runs: &[Run]) -> Vec<(Counters, Cached, Vec<Counters>)> {
    let figures = |run: &Run| {
        let phases = run.phases.iter().map(|phase| phase.counters);
        (run.counters, run.cached, phases.collect())
    };
    runs.iter().map(figures).collect()
}

fn run(boot: &BootedKernels, job: &Job) -> Result<Vec<Run>, Error> {
    take_turn(&mut prepare(boot, std::slice::from_ref(job))?[0], job)
}

fn prepare(boot: &BootedKernels, jobs: &[Job]) -> Result<Vec<BootedJob>, Error> {
    boot.prepare_all(&jobs.iter().collect::<Vec<_>>())
}

fn take_turn(ready: &mut BootedJob, job: &Job) -> Result<Vec<Run>, Error> {
    let runs = ready.take_turn(job.seed)?;
    Ok(runs.into_iter().map(|run| run.into_recorded(job)).collect())
}

fn shared_and_alone(jobs: &[Job], alone: usize, least: f64, seed: u64) {
    let began = Instant::now();
    let mut ready = prepare(&BootedKernels::default(), jobs).expect("a boot");
    let mut shared = Vec::new();
    for (number, ready) in ready.iter_mut().enumerate() {
        let runs = take_turn(ready, &jobs[number]);
        shared.push(runs.unwrap_or_else(|error| panic!("seed {seed}, job {number}: {error}")));
    }
    assert!(ready.iter().all(|ready| ready.batch() == 0), "one boot");
    drop(ready);
    let seconds = began.elapsed().as_secs_f64();
    let rate = jobs.len() as f64 / seconds * 60.0;
    println!("{} jobs in one boot: {seconds:.1} s, {rate:.0} a minute", jobs.len());
    // Those at the end ran after the most others.
    let step = jobs.len() / alone;
    let began = Instant::now();
    let (mut varying, mut differ) = (0, 0);
    for number in (0..jobs.len()).rev().step_by(step) {
        let job = &jobs[number];
        let own = run(&BootedKernels::default(), job).expect("a boot of its own");
        if counted(&own) == counted(&shared[number]) {
            continue;
        }
        println!("seed {seed}, job {number}:\n{}", job.spec.to_toml());
        // Fault-around does not map a page that is still being read: does the kernel itself vary?
        let often = Job { runs: REPEATS, ..job.clone() };
        let again = run(&BootedKernels::default(), &often).expect("a boot of its own");
        let own: Vec<Run> = own.into_iter().chain(again).collect();
        let lies = shared[number].iter().all(|run| lies_among(run, &own));
        if lies {
            varying += 1
        } else {
            differ += 1
        }
        println!("shared {:?}", counted(&shared[number]));
        println!("alone  {:?}", counted(&own));
    }
    println!(
        "{alone} of them in boots of their own: {} equal, {varying} of which the kernel's own runs \
         differ as much, {differ} different; {:.1} s",
        alone - varying - differ,
        began.elapsed().as_secs_f64()
    );
    assert_eq!(differ, 0, "seed {seed}: jobs come out otherwise in a boot that they share");
    assert!(rate >= least, "{rate:.1} jobs a minute");
}

/// Whether every figure of `run` is between the minimum and the maximum of `others`.
fn lies_among(run: &Run, others: &[Run]) -> bool {
    let figures = |run: &Run| {
        let phases = run.phases.iter().map(|phase| &phase.counters);
        let counters = phases.chain([&run.counters]).flat_map(|counters| {
            [
                counters.data_pages_read,
                counters.major_faults,
                counters.minor_faults,
                counters.evicted_pages,
            ]
        });
        counters.chain([run.cached.inside, run.cached.before, run.cached.after]).collect::<Vec<_>>()
    };
    let others: Vec<_> = others.iter().map(figures).collect();
    figures(run).into_iter().enumerate().all(|(at, figure)| {
        let all = others.iter().map(|other| other[at]);
        Some(figure) >= all.clone().min() && Some(figure) <= all.max()
    })
}

/// A job that the guest cannot run, between two that it can.
#[allow(clippy::ptr_arg, reason = "the harness passes each test a `&String`")]
fn failing_job_leaves_the_others(path: &String) {
    let mut jobs: Vec<Job> = (0..3).map(|number| random_job(path, 7, number)).collect();
    // No kernel has this switch.
    jobs[1].image.as_mut().expect("an image").switches =
        filemap_core::series::Series::BASELINE.with(filemap_core::series::Switch::ExecUnify);
    let boot = BootedKernels::default();
    let mut ready = prepare(&boot, &jobs).expect("a boot");
    let mut turns = ready.iter_mut().zip(&jobs).map(|(ready, job)| take_turn(ready, job));
    turns.next().expect("a turn").expect("runs");
    let error = turns.next().expect("a turn").expect_err("no such switch");
    let text = error.to_string();
    assert!(error.cannot_run_here() && text.contains("job 2 of 3"), "{text}");
    turns.next().expect("a turn").expect("runs");
    println!("{text}");
}
