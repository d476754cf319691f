//! Random jobs: small files that reach every rule.
#![allow(dead_code, reason = "each test uses a part")]

pub mod both_caches;
pub mod emulated;
pub mod measurements;
pub mod program;
pub mod recorded;
pub mod recorded_programs;
pub mod wide;
pub mod work;

use filemap_core::rules::Kernel;
use filemap_job::random::{self, Rng};
use filemap_job::{JobFlags, PhaseSpec, SizeText};

/// How a random job accesses its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Accesses {
    /// By faults and by `read(2)`.
    Any,
    /// By faults.
    Faults,
}

/// The job of `seed`: with any kernel, series, architecture, advice and filesystem.
pub fn random_spec(seed: u64, accesses: Accesses) -> JobFlags {
    let mut rng = Rng(seed);
    let spec = one_mapping(&mut rng, accesses);
    if rng.chance(15) { with_segments(&mut rng, spec) } else { spec }
}

/// The same without the segments of a program.
fn one_mapping(rng: &mut Rng, accesses: Accesses) -> JobFlags {
    let (arch, page_size) = match rng.below(8) {
        0 => ("arm64", 4096),
        1 => ("arm64", 16384),
        2 => ("arm64", 65536),
        _ => ("x86-64", 4096),
    };
    let most = rng.pick(&[40, 700, 6000]);
    let pages = 1 + rng.below(most);
    let bytes = pages * page_size - rng.pick(&[0, 0, 1, 4095]);
    let offset = if rng.chance(50) { rng.below(pages) } else { 0 };
    let length = 1 + rng.below(pages - offset);
    let private = rng.chance(15);
    let split = rng.chance(25).then(|| 1 + rng.below(length.min(700)));
    let limit = rng.chance(70).then(|| 64 + rng.below(pages * 3 / 2 + 1));
    let by_cgroup = rng.chance(40);
    let size = |pages: u64| Some(SizeText((pages * page_size).to_string()));
    let read_ahead_kb = rng.pick(&[0, 4, 16, 64, 128, 128, 200, 512, 1024, 8192]);
    let phases = 1 + rng.below(3);
    let kernel = rng.pick(&Kernel::ALL);
    JobFlags {
        kernel: Some(kernel.name().to_string()),
        with: rng.chance(60).then(|| random::series(rng, kernel)),
        arch: Some(arch.to_string()),
        page_size: size(1),
        seed: Some(1 + rng.below(1 << 40)),
        file_size: Some(SizeText::from_bytes(bytes)),
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
        cache_limit: limit.filter(|_| !by_cgroup).and_then(size),
        memory_max: limit.filter(|_| by_cgroup).and_then(size),
        read_ahead_kb: Some(u64::next_multiple_of(read_ahead_kb, page_size / 1024)),
        fault_around: rng.chance(20).then(|| SizeText(rng.pick(&["4k", "16k", "2m"]).into())),
        fs: Some(rng.pick(&["ext4", "xfs", "base-pages"]).to_string()),
        phase: (0..phases).map(|_| random_phase(rng, length, accesses)).collect(),
        ..JobFlags::default()
    }
}

/// The job with the segments of a program mapped; they share pages at random.
fn with_segments(rng: &mut Rng, spec: JobFlags) -> JobFlags {
    let bytes = |size: &Option<SizeText>| size.as_ref().unwrap().bytes().unwrap();
    let page_size = bytes(&spec.page_size);
    let elf = random::elf(rng, bytes(&spec.file_size).div_ceil(page_size), page_size);
    let mut phase = spec.phase;
    phase[0].workload = Some("elf".to_string());
    phase[0].bs = None;
    JobFlags {
        file: Some("program".to_string()),
        elf: Some(elf),
        phase,
        file_size: None,
        map_offset: None,
        map_len: None,
        split: None,
        split_prot: None,
        exec: None,
        private: None,
        ..spec
    }
}

/// Describes a job: its job file, and the segments, which are not in it.
pub fn described(spec: &JobFlags) -> String {
    let segments = spec.elf.as_ref().map_or(String::new(), |elf| format!("# {elf:?}\n"));
    format!(
        "replay with `filemap run` on this job file:\n{}{segments}",
        toml::to_string(spec).unwrap()
    )
}

fn random_phase(rng: &mut Rng, pages: u64, accesses: Accesses) -> PhaseSpec {
    let workload = random::workload(rng, pages, accesses == Accesses::Any);
    PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(1 + rng.below(if accesses == Accesses::Any { 1500 } else { 300 })),
        bs: workload
            .is_read()
            .then(|| SizeText(rng.pick(&["512b", "4k", "5000", "16k", "64k", "300k"]).into())),
        ..PhaseSpec::default()
    }
}
