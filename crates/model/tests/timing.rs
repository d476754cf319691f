//! Timings: what decisions depend on.

use filemap_core::decision::{Cause, Decision};
use filemap_job::{Job, JobFlags, PhaseSpec, SizeText};
use filemap_model::{Profile, Timing, trace, trace_timed};

fn job(advice: &str, private: bool) -> Job {
    let phase = |workload: &str, accesses| PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(accesses),
        ..PhaseSpec::default()
    };
    let spec = JobFlags {
        file_size: Some(SizeText("16m".to_string())),
        advice: Some(advice.to_string()),
        private: Some(private),
        phase: vec![
            phase("sequential", 500),
            phase("read-sequential", 900),
            phase("random", 300),
            phase("sequential", 4000),
        ],
        ..JobFlags::default()
    };
    spec.validate(None).unwrap()
}

fn profile(latency_ns: u64) -> Profile {
    let mut profile = Profile::DEFAULT;
    profile.device.latency_ns = latency_ns;
    profile
}

#[test]
fn a_settled_run_depends_on_no_device() {
    for advice in ["normal", "sequential", "hugepage"] {
        for private in [false, true] {
            let job = job(advice, private);
            let log = |latency_ns| {
                let mut log: Vec<Decision> = Vec::new();
                trace_timed(&job, &profile(latency_ns), Timing::Settled, &mut log).unwrap();
                log
            };
            assert_eq!(log(0), log(1_000_000_000), "{advice}");
        }
    }
}

#[test]
fn holes_are_read_from_no_device() {
    let spec = JobFlags {
        file_size: Some(SizeText("16m".to_string())),
        sparse: Some(true),
        workload: Some("sequential".to_string()),
        accesses: Some(4096),
        read_ahead_kb: Some(1024),
        ..JobFlags::default()
    };
    let elapsed_ns = |sparse: bool, profile: &Profile| {
        let spec = JobFlags { sparse: Some(sparse), ..spec.clone() };
        trace(&spec.validate(None).unwrap(), profile, &mut ()).unwrap().elapsed_ns
    };
    let mut slow = profile(1_000_000);
    (slow.device.segment_ns, slow.device.ring_entries) = (100_000, Some(8));
    assert_eq!(elapsed_ns(true, &slow), elapsed_ns(true, &Profile::DEFAULT));
    assert_ne!(elapsed_ns(false, &slow), elapsed_ns(false, &Profile::DEFAULT));
}

#[test]
fn reads_take_the_time_of_their_calls_and_copies() {
    // 8 reads of 10,000 bytes, all of them cached by the first phase.
    let job = filemap_job::JobSpec::from_toml(
        "[[file]]\nname = 'f'\nsize = 80000\n[[open]]\nname = 'o'\nfile = 'f'\n[[thread]]\n\
         phase = [{ open = 'o', workload = 'read-sequential', accesses = 1, bs = '80000b' }, \
         { open = 'o', workload = 'read-sequential', accesses = 8, bs = '10000b' }]",
    );
    let job = job.unwrap().validate(None).unwrap();
    let phase_ns = |change: fn(&mut Profile)| {
        let mut profile = Profile::DEFAULT;
        change(&mut profile);
        let run = trace(&job, &profile, &mut ()).unwrap();
        run.phases[1].elapsed_ns.unwrap()
    };
    let usual_ns = phase_ns(|_| ());
    assert_eq!(phase_ns(|own| own.cost.read_ns = 300), usual_ns + 8 * 300);
    // Bytes are copied, not pages: 80,000 of them, rounded down in each copy.
    let copies_ns = phase_ns(|own| own.cost.copy_page_ns = 4096) - usual_ns;
    assert_eq!(copies_ns, 80_000);
}

#[test]
fn a_prompt_device_brings_all_requests_of_a_window_within_the_fault() {
    // A stride whose windows contain cached pages: each is read in several requests.
    let spec = JobFlags {
        file_size: Some(SizeText("4004k".to_string())),
        read_ahead_kb: Some(60),
        workload: Some("stride:19".to_string()),
        accesses: Some(1001),
        ..JobFlags::default()
    };
    let job = spec.validate(None).unwrap();
    let faults = |timing| {
        let mut log: Vec<Decision> = Vec::new();
        trace_timed(&job, &profile(1_000_000), timing, &mut log).unwrap();
        log.iter().filter(|line| matches!(line, Decision::MapPages { .. })).count()
    };
    assert!(faults(Timing::Prompt) < faults(Timing::Settled));
}

#[test]
fn a_hit_more_or_less_decides_about_a_window_of_rent_or_buy() {
    let phase = |workload: &str, accesses| PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(accesses),
        ..PhaseSpec::default()
    };
    let reads = PhaseSpec { bs: Some(SizeText("64k".to_string())), ..phase("read-sequential", 90) };
    let spec = JobFlags {
        file_size: Some(SizeText("48m".to_string())),
        kernel: Some("6.12".to_string()),
        with: Some("rent-or-buy".to_string()),
        read_ahead_kb: Some(2048),
        phase: vec![reads, phase("stride:113", 800), phase("stride:5", 2000)],
        ..JobFlags::default()
    };
    let job = spec.validate(None).unwrap();
    // Each miss that is decided, and whether it reads a window.
    let misses = |timing| {
        let mut log: Vec<Decision> = Vec::new();
        let profile = Profile::DEFAULT;
        trace_timed(&job, &profile, timing, &mut log).unwrap();
        let miss = |line: &Decision| match *line {
            Decision::NoReadahead { index, .. } => Some((index.0, false)),
            Decision::Readahead { cause: Cause::ReadAround, index, .. } => Some((index.0, true)),
            _ => None,
        };
        log.iter().filter_map(miss).collect::<Vec<_>>()
    };
    let (settled, prompt) = (misses(Timing::Settled), misses(Timing::Prompt));
    // Page 9695 was in flight, which is a fault and a hit. Without it a credit of 15 meets a price
    // of 16, and the next miss buys.
    let place = settled.iter().zip(&prompt).position(|(ours, theirs)| ours != theirs).unwrap();
    assert_eq!(settled[place], (9940, true));
    assert_eq!(prompt[place..place + 2], [(9940, false), (9945, true)]);
    assert_eq!(settled[place + 1..], prompt[place + 2..]);
}

/// The pages that a scan of `kernel` waits for, with windows of 2048 pages: worked out by hand from
/// requests of 256 folios, on a device slower than the processor.
fn waited(kernel: &str) -> Vec<u64> {
    let spec = JobFlags {
        file_size: Some(SizeText("16m".to_string())),
        workload: Some("sequential".to_string()),
        accesses: Some(4096),
        kernel: Some(kernel.to_string()),
        read_ahead_kb: Some(8192),
        ..JobFlags::default()
    };
    let job = spec.validate(None).unwrap();
    let mut profile = profile(1_000_000);
    profile.device.bandwidth_bytes = 100_000_000;
    let mut log: Vec<Decision> = Vec::new();
    trace(&job, &profile, &mut log).unwrap();
    let waits = log.iter().filter_map(|decision| match decision {
        Decision::Waited { index } => Some(index.0),
        _ => None,
    });
    waits.collect()
}

#[test]
fn a_window_arrives_request_by_request() {
    // Base pages: 16 requests for both windows.
    let of_base_pages: Vec<u64> = (0..16).map(|request| request * 256).collect();
    assert_eq!(waited("6.12"), of_base_pages);
    // The first window in base pages, the second in folios of 4: 1024 pages a request. (Linux
    // 6.18.44 waits at 0, 257, 514, 770, ... and then at 2048 and 3072: some of its base pages lie
    // side by side in memory, and share a segment.)
    let mut of_folios = of_base_pages;
    of_folios.retain(|page| *page < 2048 || page % 1024 == 0);
    assert_eq!(waited("6.18"), of_folios);
}
