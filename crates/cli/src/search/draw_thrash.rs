//! The jobs of threads that wait for each other, among which a search looks.

use filemap_job::random::Rng;
use filemap_job::thrash::THRASH;
use filemap_job::{JobSpec, SizeText};

use crate::random_jobs::PAGE;

/// Readahead sizes in KiB.
const READ_AHEAD_KB: [u64; 5] = [64, 128, 256, 512, 1024];

/// Threads that read.
const THREADS: [u64; 5] = [2, 4, 8, 16, 32];

/// What the windows of all threads take of the memory, in percent.
const PRESSURE: [u64; 7] = [10, 25, 50, 100, 200, 400, 800];

/// Job `number` of those that `seed` stands for. All do a fixed number of rounds, so that two runs
/// of one do the same work.
pub fn drawn(seed: u64, number: u64) -> JobSpec {
    let mut rng = Rng(Rng(seed).next() ^ number);
    let threads = rng.pick(&THREADS);
    let read_ahead_kb = rng.pick(&READ_AHEAD_KB);
    let mut job = JobSpec {
        workload: Some(THRASH.to_string()),
        seed: Some(1 + rng.below(1 << 40)),
        threads: Some(threads),
        read_ahead_kb: Some(read_ahead_kb),
        ..JobSpec::default()
    };
    for thing in 0..THINGS {
        draw(&mut job, thing, &mut rng);
    }
    job
}

/// `job` with one or a few things drawn anew.
pub fn changed(job: &JobSpec, rng: &mut Rng) -> JobSpec {
    let mut changed = job.clone();
    for _ in 0..1 + rng.below(3) {
        match rng.below(THINGS + 3) {
            0 => changed.threads = Some(rng.pick(&THREADS)),
            1 => changed.read_ahead_kb = Some(rng.pick(&READ_AHEAD_KB)),
            2 => changed.seed = Some(1 + rng.below(1 << 40)),
            thing => draw(&mut changed, thing - 3, rng),
        }
    }
    changed
}

/// What [`draw`] draws.
const THINGS: u64 = 6;

fn draw(job: &mut JobSpec, thing: u64, rng: &mut Rng) {
    let threads = job.threads.unwrap_or(1);
    let size = |bytes: u64| Some(SizeText((bytes.div_ceil(PAGE) * PAGE).to_string()));
    let window = job.read_ahead_kb.unwrap_or(128) * 1024;
    match thing {
        0 => job.file_size = size(rng.pick(&[1 << 16, 1 << 18, 1 << 20])),
        1 => job.rounds = Some(threads * (1 + rng.below(2))),
        2 => job.cpus = Some(rng.pick(&[1, 2, 4, 8])),
        3 => job.sparse = rng.chance(50).then_some(true),
        4 => {
            let limit = (threads * window * 100 / rng.pick(&PRESSURE)).max(window * 2);
            let is_high = rng.chance(30);
            job.memory_max = size(if is_high { limit + limit / 4 } else { limit });
            job.memory_high = is_high.then(|| size(limit)).flatten();
        }
        _ => {
            job.writers = rng.chance(40).then(|| 1 + rng.below(4));
            job.noise_threads = rng.chance(20).then(|| 1 + rng.below(8));
        }
    }
}
