//! Generates random jobs with a single mapping, and shrinks jobs that reproduce something.

mod shrink;

use std::collections::BTreeSet;
use std::ops::Range;

use filemap_job::program::ThreadPhaseSpec;
use filemap_job::random::{self, Rng};
use filemap_job::{Job, JobFlags, JobSpec, PhaseSpec, SizeText};

pub use shrink::shrink;

/// Page size of generated jobs, in bytes.
pub const PAGE: u64 = 4096;

/// `pages` pages as a size.
pub fn size(pages: u64) -> Option<SizeText> {
    Some(SizeText((pages * PAGE).to_string()))
}

/// Pages of a size, rounded up; 0 without one.
pub fn pages(size: Option<&SizeText>) -> u64 {
    size.and_then(|size| size.bytes().ok()).unwrap_or(0).div_ceil(PAGE)
}

/// Number of accesses of a phase; `None` if the phase does not state it.
pub(crate) fn accesses(phase: &ThreadPhaseSpec) -> Option<u64> {
    let listed = phase.pages.as_ref().or(phase.offsets.as_ref());
    phase.accesses.or(listed.map(|list| list.len() as u64))
}

/// `spec` (from which `job` was made) with the number of accesses of each phase instead of a
/// fraction.
pub(crate) fn with_accesses(spec: &JobSpec, job: &Job) -> JobSpec {
    let mut spec = spec.clone();
    for (thread, resolved) in spec.thread.iter_mut().zip(&job.spec.thread) {
        for (phase, resolved) in thread.phase.iter_mut().zip(&resolved.phase) {
            (phase.accesses, phase.fraction) = (resolved.accesses, resolved.fraction);
        }
    }
    spec
}

/// Removes `phases` of thread `number` of `job`. Phases that waited for one of them wait for the
/// phase before it.
pub(crate) fn remove_phases(job: &mut JobSpec, number: usize, phases: Range<usize>) {
    let name = job.thread[number].name.clone().unwrap_or_else(|| (number + 1).to_string());
    job.thread[number].phase.drain(phases.clone());
    let (start, end) = (phases.start as u64, phases.end as u64);
    for phase in job.thread.iter_mut().flat_map(|thread| &mut thread.phase) {
        for after in phase.after.iter_mut().filter(|after| after.thread == name) {
            after.phase = if after.phase > end {
                after.phase - (end - start)
            } else {
                after.phase.min(start)
            };
        }
        phase.after.retain(|after| after.phase > 0);
    }
}

/// Removes mappings, opens and files that no phase uses. A job that flags describe keeps its own.
pub(crate) fn remove_unused_tables(job: &mut JobSpec) {
    if job.is_single_mapping() {
        return;
    }
    let JobSpec { file, open, mapping, thread, .. } = job;
    let phases = || thread.iter().flat_map(|thread| &thread.phase);
    let mapped: BTreeSet<&String> =
        phases().flat_map(|phase| [&phase.mapping, &phase.map, &phase.unmap]).flatten().collect();
    mapping.retain(|mapping| mapped.contains(&mapping.name));
    let opened: BTreeSet<&String> = phases().filter_map(|phase| phase.open.as_ref()).collect();
    open.retain(|open| {
        opened.contains(&open.name) || mapping.iter().any(|mapping| mapping.open == open.name)
    });
    file.retain(|file| open.iter().any(|open| open.file == file.name));
}

/// Random job `number` of the sequence for `seed`. A running kernel can execute every such job.
pub fn draw_job(seed: u64, number: u64) -> JobFlags {
    let mut rng = Rng(Rng(seed).next() ^ number);
    let (least, most) = rng.pick(&[(1, 40), (40, 700), (700, 6000), (700, 6000), (6000, 30_000)]);
    let pages = least + rng.below(most - least);
    let bytes = pages * PAGE - rng.pick(&[0, 0, 1, 4095]);
    let offset = if rng.chance(50) { rng.below(pages) } else { 0 };
    let length = if rng.chance(50) { pages - offset } else { 1 + rng.below(pages - offset) };
    let split = rng.chance(25).then(|| 1 + rng.below(length.min(700)));
    let phases = 1 + rng.below(6);
    let mut spec = JobFlags {
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
        private: rng.chance(15).then_some(true),
        read_ahead_kb: Some(rng.pick(&READ_AHEAD_KB)),
        fs: Some(rng.pick(&["ext4", "xfs"]).to_string()),
        phase: (0..phases).map(|_| phase(&mut rng, length)).collect(),
        ..JobFlags::default()
    };
    // A piece with the protection that the mapping already has would not split the VMA.
    spec.split_prot = match (spec.private, spec.exec) {
        (Some(true), Some(true)) => None,
        (Some(true), _) => split.map(|_| "exec".to_string()),
        (_, Some(true)) => split.map(|_| "write".to_string()),
        _ => spec.split_prot,
    };
    spec.split = split.filter(|_| spec.split_prot.is_some());
    // The huge-page flag combines with either readahead advice.
    if number % 4 == 1
        && let Some(advice @ ("random" | "sequential")) = spec.advice.as_deref()
    {
        spec.advice = Some(format!("{advice},hugepage"));
    }
    spec
}

/// Readahead sizes in KiB. Common sizes are repeated, so that they are drawn more often.
pub const READ_AHEAD_KB: [u64; 16] =
    [0, 4, 16, 60, 64, 128, 128, 128, 200, 256, 512, 1000, 1024, 2048, 8192, 8192];

/// Block sizes of `read(2)`.
const READS: [&str; 9] = ["512b", "4k", "4k", "5000", "16k", "64k", "300k", "1m", "5m"];

/// A random phase over a mapping of `pages` pages.
pub fn phase(rng: &mut Rng, pages: u64) -> PhaseSpec {
    let workload = random::workload(rng, pages, true);
    let most = rng.pick(&[10, 100, 1500]);
    PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(1 + rng.below(most)),
        bs: workload.is_read().then(|| SizeText(rng.pick(&READS).into())),
        ..PhaseSpec::default()
    }
}
