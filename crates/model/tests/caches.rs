//! The extent cache against the page-by-page one, on random jobs.

use filemap_core::plain::PlainCache;
use filemap_job::{Job, JobSpec, PhaseSpec, SizeText};
use filemap_model::extents::ExtentCache;
use filemap_model::{Digest, Profile, Timing, trace_on};

/// Jobs within `cargo test`; ten times as many behind `--ignored`.
const JOBS: u64 = 1_000;

#[test]
fn caches_agree_on_random_jobs() {
    check(1, JOBS);
}

#[test]
#[ignore = "ten thousand jobs: minutes"]
fn caches_agree_on_many_random_jobs() {
    check(JOBS + 1, 10 * JOBS);
}

fn check(first_seed: u64, jobs: u64) {
    for seed in first_seed..first_seed + jobs {
        let spec = random_spec(seed);
        let Some(difference) = difference(&spec) else { continue };
        let (spec, difference) = shrink(spec, difference);
        panic!(
            "seed {seed}: {difference}\nreplay with `filemap run` on this job file:\n{}",
            toml::to_string(&spec).unwrap()
        );
    }
}

/// What the two caches disagree in; `None` where they agree or the job is not valid.
fn difference(spec: &JobSpec) -> Option<String> {
    let job = spec.clone().validate(None).ok()?;
    let fast = run(&job, ExtentCache::new(job.machine.cache_limit));
    let plain = run(&job, PlainCache::new(job.machine.cache_limit));
    (fast != plain).then(|| format!("extents {fast}\nplain   {plain}"))
}

fn run(job: &Job, cache: impl filemap_core::cache::PageCache) -> String {
    let mut digest = Digest::default();
    match trace_on(job, &Profile::DEFAULT, Timing::Device, cache, &mut digest) {
        Ok(traced) => {
            let run = serde_json::to_string(&traced.run).unwrap();
            format!("{run} log {:016x} of {}", digest.value(), digest.decisions())
        }
        Err(error) => format!("{error} log {:016x} of {}", digest.value(), digest.decisions()),
    }
}

/// Drops phases and accesses as long as the difference stays.
fn shrink(mut spec: JobSpec, mut found: String) -> (JobSpec, String) {
    loop {
        let without = (0..spec.phase.len()).filter(|_| spec.phase.len() > 1).map(|phase| {
            let mut smaller = spec.clone();
            smaller.phase.remove(phase);
            smaller
        });
        let fewer = (0..spec.phase.len()).flat_map(|phase| {
            let accesses = spec.phase[phase].accesses.unwrap_or(1);
            [accesses / 2, accesses - accesses / 8, accesses - 1].map(|accesses| {
                let mut smaller = spec.clone();
                smaller.phase[phase].accesses = Some(accesses);
                smaller
            })
        });
        let smaller = without.chain(fewer).filter(|smaller| *smaller != spec);
        let Some((smaller, difference)) =
            smaller.into_iter().find_map(|spec| difference(&spec).map(|found| (spec, found)))
        else {
            return (spec, found);
        };
        (spec, found) = (smaller, difference);
    }
}

/// A small generator of its own, so that a seed means the same job everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

fn random_spec(seed: u64) -> JobSpec {
    let mut rng = Rng(seed);
    let most = rng.pick(&[40, 700, 6000]);
    let pages = 1 + rng.below(most);
    let bytes = pages * 4096 - rng.pick(&[0, 0, 1, 4095]);
    let offset = if rng.chance(50) { rng.below(pages) } else { 0 };
    let length = 1 + rng.below(pages - offset);
    let private = rng.chance(15);
    let split = rng.chance(25).then(|| 1 + rng.below(length.min(700)));
    let limit = rng.chance(70).then(|| 64 + rng.below(pages * 3 / 2 + 1));
    let size = |pages: u64| Some(SizeText((pages * 4096).to_string()));
    let phases = 1 + rng.below(3);
    JobSpec {
        kernel: Some(rng.pick(&["6.12", "6.18"]).to_string()),
        with: rng.chance(60).then(|| rng.pick(&["p1", "p2", "mmap-miss"]).to_string()),
        seed: Some(1 + rng.below(1 << 40)),
        file_size: Some(SizeText(bytes.to_string())),
        map_offset: size(offset),
        map_len: size(length),
        map_shift: rng.chance(30).then(|| rng.below(512)),
        split,
        split_prot: split.map(|_| rng.pick(&["write", "exec"]).to_string()),
        advice: rng
            .chance(40)
            .then(|| rng.pick(&["random", "sequential", "hugepage", "normal"]).to_string()),
        exec: rng.chance(15).then_some(true),
        private: private.then_some(true),
        cache_limit: limit.and_then(size),
        read_ahead_kb: Some(rng.pick(&[0, 4, 16, 64, 128, 128, 200, 512, 1024, 8192])),
        fault_around: rng.chance(20).then(|| SizeText(rng.pick(&["4k", "16k", "2m"]).into())),
        fs: Some(rng.pick(&["ext4", "xfs", "base-pages"]).to_string()),
        phase: (0..phases).map(|_| random_phase(&mut rng, length)).collect(),
        ..JobSpec::default()
    }
}

fn random_phase(rng: &mut Rng, pages: u64) -> PhaseSpec {
    let stride = format!("stride:{}", 1 + rng.below(200));
    let streams = format!("interleave:{}", 1 + rng.below(pages.min(5)));
    let workload = match rng.below(9) {
        0 | 1 => "random",
        2 => &stride,
        3 | 4 => "sequential",
        5 => "reverse",
        6 => &streams,
        7 => "read-random",
        _ => "read-sequential",
    };
    let read = workload.starts_with("read");
    PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(1 + rng.below(1500)),
        bs: read.then(|| SizeText(rng.pick(&["512", "4k", "5000", "16k", "64k", "300k"]).into())),
        ..PhaseSpec::default()
    }
}
