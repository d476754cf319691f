//! Direct reads.

use crate::support::both_caches::{agreed, valid};
use filemap_core::decision::Decision;
use filemap_job::Run;
use filemap_job::program::Job;
use filemap_job::random::Rng;
use filemap_model::{Profile, trace};

/// A program with a file of `size`, opened directly as `d`, normally as `o`, and mapped through
/// `o`.
fn of_threads(size: &str, keys: &str, threads: &str) -> Job {
    valid(&format!(
        "{keys}\n[[file]]\nname = 'f'\nsize = '{size}'\n[[open]]\nname = 'd'\nfile = 'f'\n\
         direct = true\n[[open]]\nname = 'o'\nfile = 'f'\n[[mapping]]\nname = 'm'\nopen = 'd'\n\
         {threads}"
    ))
}

fn run(program: &Job) -> (Run, Vec<Decision>) {
    let mut log = Vec::new();
    let run = trace(program, &Profile::DEFAULT, &mut log).unwrap();
    (run, log)
}

/// The same with one thread of these phases.
fn of_one(size: &str, keys: &str, phases: &str) -> Job {
    of_threads(size, keys, &format!("[[thread]]\nphase = [{phases}]\n"))
}

const DIRECT: &str = "{ open = 'd', workload = 'read-sequential', accesses = 4, bs = '64k' }";

#[test]
fn direct_reads_add_nothing_and_decide_nothing() {
    let (of_one, log) = run(&of_one("1m", "", DIRECT));
    let counters = &of_one.counters;
    assert_eq!((counters.data_pages_read, counters.bytes_read), (Some(0), Some(256 << 10)));
    assert_eq!((of_one.files[0].cached, counters.accesses), (Some(0), Some(4)));
    assert!(log.is_empty(), "{log:?}");
}

#[test]
fn the_last_block_is_read_whole() {
    let last = "{ open = 'd', offsets = [8192], bs = '8k' }";
    let (run, _) = run(&of_one("8193", "", last));
    assert_eq!(run.counters.bytes_read, Some(4096));
}

#[test]
fn what_is_cached_stays_and_a_mapping_uses_the_cache() {
    let touch = "{ mapping = 'm', pages = [0] }";
    let (alone, _) = run(&of_one("1m", "", touch));
    let (both, _) = run(&of_one("1m", "", &format!("{touch}, {DIRECT}, {touch}")));
    assert_eq!(both.files[0].cached, alone.files[0].cached);
    let added = alone.counters.data_pages_read.unwrap();
    assert_eq!(both.counters.data_pages_read, Some(added));
    assert_eq!(both.counters.bytes_read, Some(added * 4096 + (256 << 10)));
}

#[test]
fn each_read_waits_for_the_device() {
    let device = Profile::DEFAULT.device;
    let elapsed = |sparse: bool| {
        let file = of_one("1m", "", DIRECT);
        let mut spec = file.spec.clone();
        spec.file[0].sparse = sparse;
        run(&spec.validate(None).unwrap()).0.elapsed_ns.unwrap()
    };
    let transfer_ns = (64 << 10) * 1_000_000_000 / device.bandwidth_bytes;
    let least_ns = 4 * (device.latency_ns + transfer_ns);
    assert!((least_ns..least_ns + 20_000).contains(&elapsed(false)), "{}", elapsed(false));
    assert!(elapsed(true) < 20_000, "holes take no time");
}

/// Both kinds of reads by two threads, and touches.
fn random(seed: u64) -> String {
    let mut rng = Rng(seed * 2 + 1);
    let mut thread = || {
        let phases: Vec<String> = (0..2 + rng.below(5)).map(|_| phase(&mut rng)).collect();
        format!("[[thread]]\nphase = [{}]\n", phases.join(", "))
    };
    [thread(), thread()].concat()
}

fn phase(rng: &mut Rng) -> String {
    let kind = rng.pick(&["read-random", "read-sequential"]);
    let (accesses, blocks) = (1 + rng.below(20), 1 + rng.below(20));
    match rng.below(4) {
        0 => format!("{{ mapping = 'm', workload = 'random', accesses = {accesses} }}"),
        1 => format!(
            "{{ open = 'o', workload = '{kind}', accesses = {accesses}, bs = '{}b' }}",
            1 + rng.below(100_000)
        ),
        _ => format!(
            "{{ open = 'd', workload = '{kind}', accesses = {accesses}, bs = '{}k' }}",
            4 * blocks
        ),
    }
}

#[test]
fn caches_agree_beside_direct_reads() {
    for seed in 0..100 {
        let text = random(seed);
        let limit = if seed % 2 == 0 { "memory_max = '600k'" } else { "" };
        let program = of_threads("1m", limit, &text);
        let _ = agreed(&program, &Profile::DEFAULT, &format!("seed {seed}\n{text}"));
    }
}
