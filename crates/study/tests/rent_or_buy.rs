//! Compares rent-or-buy with the baseline and mmap-miss: tables of docs/results/rent-or-buy.md.
//!
//! `cargo test --release -p filemap-study --test rent_or_buy -- --ignored --nocapture` prints them.

use filemap_job::{JobFlags, JobSpec};
use filemap_model::{Profile, trace};
use filemap_study::parallel;
use filemap_study::search::JobSpace;

const SERIES: [&str; 3] = ["baseline", "mmap-miss", "rent-or-buy"];

/// Seed and number of the random jobs. The rule's constants were fitted to jobs with even numbers,
/// so only jobs with odd numbers are reported.
const SEED: u64 = 33;
const JOBS: u64 = 10_000;

/// Costs: microseconds, and KiB read.
const TIME: usize = 0;
const READ: usize = 1;

/// Costs of a job with each series, indexed by [`TIME`] and [`READ`].
type Costs = [[f64; 2]; 3];

/// `None` if the model cannot run the job.
fn costs(job: &JobSpec) -> Option<Costs> {
    let mut costs = Costs::default();
    for (cost, series) in costs.iter_mut().zip(SERIES) {
        let job = JobSpec { with: Some(series.to_string()), ..job.clone() };
        let job = job.validate(None).ok()?;
        let run = trace(&job, &Profile::DEFAULT, &mut ()).ok()?;
        let (time, read) = (run.elapsed_ns?, run.counters.bytes_read?);
        *cost = [time as f64 / 1e3, read as f64 / 1024.0];
    }
    Some(costs)
}

fn drawn(number: u64) -> JobSpec {
    let fixed = JobFlags { kernel: Some("6.12".to_string()), ..JobFlags::default() };
    JobSpace::new(None, fixed).job(SEED, number).expect("the kernel goes with every job")
}

/// The policies that the series is compared with, each with its costs of a job.
fn others([baseline, mmap_miss, _]: &Costs, what: usize) -> [(&'static str, f64); 4] {
    let (baseline, mmap_miss) = (baseline[what], mmap_miss[what]);
    [
        ("baseline", baseline),
        ("mmap-miss", mmap_miss),
        ("the better of both", baseline.min(mmap_miss)),
        ("the worse of both", baseline.max(mmap_miss)),
    ]
}

/// Cost of a job with rent-or-buy divided by its cost with one of [`others`].
fn ratio(costs: &Costs, other: usize, what: usize) -> f64 {
    costs[2][what].max(1.0) / others(costs, what)[other].1.max(1.0)
}

fn print_ratios(jobs: &[(u64, Costs)]) {
    println!("of      to                      1 %  median    99 %   worst  in sum  the worst job");
    for (what, kind) in [(TIME, "time"), (READ, "bytes")] {
        for other in 0..4 {
            let ratios = jobs.iter().map(|(job, costs)| (ratio(costs, other, what), *job));
            let mut ratios: Vec<_> = ratios.collect();
            ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
            let last = ratios.len() - 1;
            let [low, median, high] = [1, 50, 99].map(|percent| ratios[last * percent / 100].0);
            let sum = |cost: &dyn Fn(&Costs) -> f64| jobs.iter().map(|job| cost(&job.1)).sum();
            let (ours, theirs): (f64, f64) =
                (sum(&|costs| costs[2][what]), sum(&|costs| others(costs, what)[other].1));
            let name = others(&jobs[0].1, what)[other].0;
            let (worst, job) = ratios[last];
            println!(
                "{kind:7} {name:20} {low:7.3} {median:7.3} {high:7.3} {worst:7.3} {:7.3}  {job}",
                ours / theirs
            );
        }
    }
}

#[test]
#[ignore = "10,000 jobs with each series: minutes in a release build"]
fn random_jobs() {
    let numbers = (0..JOBS).collect();
    let priced = |number| Ok::<_, ()>(costs(&drawn(number)).map(|costs| (number, costs)));
    let all: Vec<_> =
        parallel::map(numbers, priced).expect("none fails").into_iter().flatten().collect();
    let differ = |costs: &Costs| costs[2] != costs[0] || costs[2] != costs[1];
    for (name, rest) in
        [("even numbers, by which the constants were chosen", 0), ("odd numbers", 1)]
    {
        let half: Vec<_> = all.iter().filter(|(number, _)| number % 2 == rest).copied().collect();
        let differing: Vec<_> = half.iter().filter(|(_, costs)| differ(costs)).copied().collect();
        println!("{name}: {} jobs, of which {} differ", half.len(), differing.len());
        print_ratios(&differing);
        for what in [TIME, READ] {
            let worst = |a: &&(u64, Costs), b: &&(u64, Costs)| {
                ratio(&a.1, 3, what).total_cmp(&ratio(&b.1, 3, what))
            };
            let (number, costs) = differing.iter().max_by(worst).expect("jobs differ");
            println!(
                "the worst of all, job {number}: {costs:.0?}\n{}",
                drawn(*number).to_short_toml()
            );
        }
    }
}

#[test]
#[ignore = "files of 20 GiB: a minute in a release build"]
fn published_jobs() {
    println!("GiB of the file, workload: GiB read and seconds with {SERIES:?}");
    for gib in [20, 4] {
        for workload in ["random", "stride:1021", "stride:2053", "stride:4099", "sequential"] {
            let text = format!("file_size = '{gib}g'\nram = '8g'\nread_ahead_kb = 8192");
            let job = JobFlags::from_toml(&text).expect("keys of a job");
            let job = JobFlags { workload: Some(workload.to_string()), ..job };
            let job = JobSpec::from_flags(&job).expect("published cells are jobs");
            let costs = costs(&job).expect("published cells are jobs");
            let [base, miss, ours] =
                costs.map(|[us, kib]| format!("{:8.3} {:8.3}", kib / f64::from(1 << 20), us / 1e6));
            println!("{gib:2}  {workload:12} {base}  {miss}  {ours}");
        }
    }
}
