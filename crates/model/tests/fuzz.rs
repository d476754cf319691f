//! Job files of random text and values: no panic, no hang, no memory beyond a stated bound.
//!
//! `FILEMAP_FUZZ_SECONDS` sets the duration (2 s by default), `FILEMAP_FUZZ_SEED` the seed before
//! the first; a failure prints its seed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use filemap_job::random::Rng;
use filemap_job::{Job, JobFlags};
use filemap_model::{Profile, trace};

/// Memory of a run besides that of its accesses.
const START_BYTES: u64 = 1 << 20;

/// Memory that one access may add: bitmaps of a window, at most 4 bytes per page, twice if a mark
/// is hit as well; for a read, the notes on each of its requests, 64 bytes per page; and the chunks
/// at its ends.
fn bytes_of_access(job: &Job) -> u64 {
    let window = job.machine.read_ahead.0.max(1 << 14);
    let read = job.accesses().map(|phase| phase.bs_bytes / job.page_size()).max();
    2 * 4 * window + 64 * read.unwrap_or(0) + (64 << 10)
}

/// Accesses of a small job.
const SMALL_ACCESSES: u64 = 64;

/// Maximum time of a small job on a busy machine: seconds, and some microseconds for each page that
/// its `read(2)`s request, as each is a window of its own in a memory of a few pages.
fn patience(job: &Job) -> Duration {
    let pages = job.accesses().map(|phase| phase.accesses * phase.bs_bytes / job.page_size());
    Duration::from_secs(5) + Duration::from_micros(4 * pages.sum::<u64>())
}

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// A window larger than the memory that meets a cached page every few pages: each piece is locked
/// separately, 8192 of them at a time.
const MANY_LOCKED_RUNS: u64 = 4_480_849;

#[test]
fn random_job_files_do_no_harm() {
    let number_from_env = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let end =
        Instant::now() + Duration::from_secs(number_from_env("FILEMAP_FUZZ_SECONDS").unwrap_or(2));
    let first = number_from_env("FILEMAP_FUZZ_SEED").unwrap_or(0);
    let known = run(MANY_LOCKED_RUNS).expect("the generator makes the same job of that seed");
    let mut longest = (known, MANY_LOCKED_RUNS);
    let (mut tried, mut ran) = (0, 0);
    while Instant::now() < end {
        tried += 1;
        let seed = first + tried;
        if let Some(taken) = run(seed) {
            ran += 1;
            longest = longest.max((taken, seed));
        }
    }
    assert!(ran > 20, "only {ran} of {tried} job files were small valid jobs");
    let (taken, seed) = longest;
    println!("{tried} job files, {ran} of them run, the longest {taken:?} (seed {seed})");
}

/// Runs the job of `seed`, if it is a small valid one. Returns how long that took.
fn run(seed: u64) -> Option<Duration> {
    let text = job_file(&mut Rng(seed));
    let job = JobFlags::from_toml(&text).and_then(|spec| spec.validate(None)).ok()?;
    let small = job.accesses().map(|phase| phase.accesses).sum::<u64>() <= SMALL_ACCESSES;
    small.then(|| check(&job, seed, &text))
}

fn check(job: &Job, seed: u64, text: &str) -> Duration {
    let held = HELD.load(Relaxed);
    PEAK.store(held, Relaxed);
    let start = Instant::now();
    let _ = trace(job, &Profile::DEFAULT, &mut ());
    let taken = start.elapsed();
    let used = (PEAK.load(Relaxed) - held) as u64;
    let accesses: u64 = job.accesses().map(|phase| phase.accesses).sum();
    let bound = START_BYTES + accesses * bytes_of_access(job);
    assert!(used <= bound, "seed {seed}: {used} bytes, more than {bound}, for\n{text}");
    assert!(taken <= patience(job), "seed {seed}: {taken:?} for\n{text}");
    taken
}

const SIZES: &[&str] = &[
    "'1'",
    "'4k'",
    "'5000'",
    "'64k'",
    "'1m'",
    "'3m'",
    "'64m'",
    "'1g'",
    "'1t'",
    "'1024p'",
    "'0'",
    "'-1'",
    "'9e9g'",
    "'18446744073709551615'",
    "4096",
    "''",
    "'k'",
];

const COUNTS: &[&str] = &["0", "1", "2", "7", "64", "512", "1021", "9223372036854775807", "-1"];

/// The lines of a job file: a key, and the values it is picked from.
const KEYS: &[(&str, &[&str])] = &[
    ("kernel", &["'6.1'", "'6.6'", "'6.12'", "'6.18'", "'mm-2026-05'", "'host'", "'5.4'"]),
    ("with", &["'p1'", "'mmap-miss'", "'vma-bound+exec-order'", "'exec-unify'", "'nothing'"]),
    ("seed", &["1", "0", "9223372036854775807"]),
    ("map_offset", SIZES),
    ("map_len", SIZES),
    ("map_shift", COUNTS),
    ("split", COUNTS),
    ("split_prot", &["'exec'", "'write'", "'none'"]),
    ("advice", &["'normal'", "'random'", "'sequential'", "'hugepage'"]),
    ("exec", &["true", "false"]),
    ("private", &["true", "false"]),
    ("ram", SIZES),
    ("cache_limit", SIZES),
    ("memory_max", SIZES),
    ("read_ahead_kb", &["0", "4", "128", "200", "8192", "4194304", "3", "99999999999"]),
    ("fault_around", &["'4k'", "'64k'", "'2m'", "'3k'", "'1t'"]),
    ("arch", &["'arm64'", "'x86-64'", "'vax'"]),
    ("page_size", &["'4k'", "'16k'", "'64k'", "'8k'"]),
    ("fs", &["'ext4'", "'xfs'", "'base-pages'", "'fat'"]),
    ("bs", &["'512'", "'4k'", "'1g'", "'0'"]),
    ("runs", COUNTS),
];

const WORKLOADS: &[&str] = &[
    "random",
    "sequential",
    "reverse",
    "first",
    "stride:1021",
    "stride:0",
    "interleave:3",
    "interleave:99999999",
    "read-random",
    "read-sequential",
    "stride:18446744073709551615",
    "x",
];

fn job_file(rng: &mut Rng) -> String {
    let mut text = format!(
        "workload = '{}'\nfile_size = {}\naccesses = {}\n",
        rng.pick(WORKLOADS),
        rng.pick(SIZES),
        rng.pick(COUNTS)
    );
    for (key, values) in KEYS {
        if rng.chance(12) {
            text.push_str(&format!("{key} = {}\n", rng.pick(values)));
        }
    }
    if rng.chance(5) {
        let at = (rng.next() % text.len() as u64) as usize;
        text.replace_range(at..=at, rng.pick(&["", "=", "\"", "[", "\n", "9", "\u{fe0f}"]));
    }
    text
}
