//! Random jobs of everything that a job can contain: their cost is measured, not their decisions.

use filemap_job::program::JobSpec;
use filemap_job::random::{self, Rng};
use filemap_job::{JobFlags, PhaseSpec, SizeText};

use super::program::random_threads_with;
use super::{Accesses, one_mapping};

/// A job of either form.
#[derive(Clone, Debug)]
pub enum Wide {
    /// Of one file.
    OneFile(Box<JobFlags>),
    /// A program with threads.
    Tables(Box<JobSpec>),
}

/// The job of `seed`: a program with threads in one case of eight. It need not be valid.
pub fn wide(seed: u64) -> Wide {
    let mut rng = Rng(Rng(seed).next());
    match rng.below(8) {
        0 => Wide::Tables(Box::new(program(&mut rng))),
        _ => Wide::OneFile(Box::new(one_file(&mut rng))),
    }
}

const SIZES: [&str; 13] =
    ["40k", "300k", "1m", "3m", "9m", "33m", "64m", "100m", "1g", "3g", "20g", "2t", "100t"];

const LIMITS: [&str; 7] = ["1m", "2m", "5m", "16m", "64m", "300m", "1g"];

const READ_AHEAD_KB: [u64; 13] =
    [0, 4, 16, 128, 128, 128, 128, 512, 1000, 8192, 65536, 1 << 20, 4 << 20];

const AROUND: [&str; 7] = ["4k", "16k", "256k", "2m", "16m", "64m", "512m"];

const ADVICE: [&str; 6] =
    ["random", "sequential", "hugepage", "random,hugepage", "sequential,hugepage", "normal"];

fn text(text: &str) -> Option<SizeText> {
    Some(SizeText(text.to_string()))
}

fn bytes(size: &Option<SizeText>) -> u64 {
    size.as_ref().map_or(0, |size| size.bytes().unwrap())
}

/// Kernel, series, architecture and filesystem as in other random jobs; the rest is drawn anew, as
/// their files are small.
fn one_file(rng: &mut Rng) -> JobFlags {
    let known = one_mapping(rng, Accesses::Any);
    let page_size = bytes(&known.page_size);
    let size = SizeText(rng.pick(&SIZES).to_string()).bytes().unwrap();
    let pages = size.div_ceil(page_size);
    let limit = rng.chance(70).then(|| SizeText(rng.pick(&LIMITS).to_string()));
    let by_cgroup = rng.chance(30);
    let part = rng.chance(20).then(|| {
        let offset = rng.below(pages);
        (offset, 1 + rng.below(pages - offset))
    });
    let in_pages = |pages: u64| SizeText::from_bytes(pages * page_size);
    let calls = rng.chance(12);
    let is_private = !calls && rng.chance(15);
    let split = rng.chance(15).then(|| rng.pick(&[1, 7, 17, 64, 100, 1000]));
    let protections: &[&str] = match (is_private, calls) {
        (true, _) => &["exec"],
        (_, true) => &["write"],
        _ => &["exec", "write"],
    };
    let phases = if rng.chance(30) { 1 + rng.below(3) } else { 1 };
    let mut phase: Vec<PhaseSpec> = (0..phases).map(|_| phase_of(rng, pages, !calls)).collect();
    if calls {
        phase[0].workload = Some(rng.pick(&["exec:random", "exec:random", "exec:cold"]).into());
        phase[0].bs = None;
    }
    JobFlags {
        file_size: Some(SizeText::from_bytes(size)),
        map_offset: part.map(|part| in_pages(part.0)),
        map_len: part.map(|part| in_pages(part.1)),
        map_shift: rng.chance(20).then(|| rng.below(512)),
        split,
        split_prot: split.map(|_| rng.pick(protections).to_string()),
        advice: rng.chance(20).then(|| rng.pick(&ADVICE).to_string()),
        exec: (!calls && rng.chance(15)).then_some(true),
        private: is_private.then_some(true),
        sparse: rng.chance(5).then_some(true),
        governor: rng.chance(5).then_some(true),
        cache_limit: limit.clone().filter(|_| !by_cgroup),
        memory_max: limit.filter(|_| by_cgroup),
        read_ahead_kb: Some(rng.pick(&READ_AHEAD_KB).next_multiple_of(page_size / 1024)),
        fault_around: rng.chance(30).then(|| SizeText(rng.pick(&AROUND).to_string())),
        phase,
        ..known
    }
}

fn phase_of(rng: &mut Rng, pages: u64, reads: bool) -> PhaseSpec {
    let workload = random::workload(rng, pages, reads);
    let bs = rng.pick(&["512", "4k", "5000", "64k", "1m", "16m"]);
    PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(rng.pick(&[300, 1000, 3000, 10_000])),
        bs: text(bs).filter(|_| workload.is_read()),
        ..PhaseSpec::default()
    }
}

/// A random program whose files are as large as they are, or longer by a factor, and whose phases
/// are longer.
fn program(rng: &mut Rng) -> JobSpec {
    let mut spec = random_threads_with(rng.next(), 30);
    let longer = rng.pick(&[1, 16, 256]);
    let scale = |size: &mut Option<SizeText>| {
        if let Some(size) = size {
            *size = SizeText::from_bytes(size.bytes().unwrap() * longer);
        }
    };
    spec.file.iter_mut().for_each(|file| scale(&mut file.size));
    for mapping in &mut spec.mapping {
        scale(&mut mapping.offset);
        scale(&mut mapping.len);
    }
    for phase in spec.thread.iter_mut().flat_map(|thread| &mut thread.phase) {
        scale(&mut phase.offset);
        scale(&mut phase.len);
        phase.accesses = phase.accesses.map(|accesses| accesses * 3);
    }
    if rng.chance(50) {
        scale(&mut spec.cache_limit);
        scale(&mut spec.memory_max);
        scale(&mut spec.anonymous);
    }
    spec.read_ahead_kb = Some(rng.pick(&READ_AHEAD_KB));
    spec.fault_around =
        rng.chance(30).then(|| SizeText(rng.pick(&["4k", "16k", "2m"]).to_string()));
    spec
}
