//! Random programs: several files, opens and mappings.
#![allow(dead_code, reason = "each test uses a part")]

use filemap_core::rules::Kernel;
use filemap_job::SizeText;
use filemap_job::program::{
    Fadvise, FileSpec, JobSpec, Madvise, MappingSpec, OpenSpec, Protection, ThreadPhaseSpec,
    ThreadSpec,
};
use filemap_job::random::{self, Rng};

const PAGE: u64 = 4096;

fn size(pages: u64) -> Option<SizeText> {
    Some(SizeText((pages * PAGE).to_string()))
}

/// The program of `seed`: files, opens of them, overlapping mappings, and phases through all of
/// them.
pub fn random_program(seed: u64) -> JobSpec {
    random_program_with(seed, 0)
}

/// The same with this percentage of phases that give advice.
pub fn random_program_with(seed: u64, with_advice: u64) -> JobSpec {
    let mut rng = Rng(seed);
    let files: Vec<u64> = (0..2 + rng.below(7)).map(|_| 1 + rng.below(1500)).collect();
    let opens: Vec<usize> = (0..files.len() as u64 + rng.below(5))
        .map(|_| rng.below(files.len() as u64) as usize)
        .collect();
    let mappings: Vec<MappingSpec> =
        (0..2 + rng.below(9)).map(|number| mapping(&mut rng, number, &files, &opens)).collect();
    let all: u64 = files.iter().sum();
    let limit = rng.chance(80).then(|| 64 + rng.below(all / 2));
    let by_cgroup = rng.chance(40);
    let kernel = rng.pick(&Kernel::ALL);
    let mut spec = JobSpec {
        kernel: Some(kernel.name().to_string()),
        with: rng.chance(40).then(|| random::series(&mut rng, kernel)),
        seed: Some(1 + rng.below(1 << 40)),
        cache_limit: limit.filter(|_| !by_cgroup).and_then(size),
        memory_max: limit.filter(|_| by_cgroup).and_then(size),
        read_ahead_kb: Some(rng.pick(&[0, 16, 64, 128, 512, 2048])),
        fs: Some(rng.pick(&["ext4", "xfs", "base-pages"]).to_string()),
        anonymous: limit
            .filter(|_| rng.chance(20))
            .and_then(|limit| size(rng.below(limit / 2 + 1))),
        file: named(&files, 'f', |name, &pages| FileSpec {
            name,
            size: size(pages),
            sparse: pages % 7 == 0,
            ..FileSpec::default()
        }),
        open: named(&opens, 'o', |name, file| OpenSpec {
            name,
            file: format!("f{file}"),
            ..OpenSpec::default()
        }),
        mapping: mappings,
        ..JobSpec::default()
    };
    let phases = phases(&mut rng, &spec, &files, &opens, with_advice);
    spec.thread = vec![ThreadSpec { phase: phases, ..ThreadSpec::default() }];
    spec
}

/// The program of `seed`, as the running kernel can run it and without a limit that it does not fit
/// in. Every second one gives advice.
pub fn program_that_fits(seed: u64) -> JobSpec {
    that_fits(random_program_with(seed, if seed.is_multiple_of(2) { 25 } else { 0 }))
}

/// [`random_threads`] without a limit, on at most `cpus` CPUs.
pub fn threads_that_fit(seed: u64, cpus: u64) -> JobSpec {
    let spec = that_fits(random_threads(seed));
    let own = spec.cpus.unwrap_or(cpus).min(cpus);
    JobSpec { cpus: Some(own), ..spec }
}

fn that_fits(spec: JobSpec) -> JobSpec {
    let fs = spec.fs.filter(|fs| fs != "base-pages").unwrap_or("ext4".to_string());
    JobSpec {
        kernel: Some(Kernel::V6_18.name().to_string()),
        with: None,
        cache_limit: None,
        memory_max: None,
        fs: Some(fs),
        ..spec
    }
}

/// The program of `seed` with 2 to 8 threads, on fewer CPUs in every third case. No other thread
/// touches what its first thread maps or unmaps.
pub fn random_threads(seed: u64) -> JobSpec {
    random_threads_with(seed, 0)
}

/// The same with this percentage of phases that give advice.
pub fn random_threads_with(seed: u64, with_advice: u64) -> JobSpec {
    let mut spec = random_program_with(seed, with_advice);
    let mut rng = Rng(seed ^ 0x7468_7265_6164);
    let changed = |phase: &ThreadPhaseSpec| phase.map.clone().or(phase.unmap.clone());
    let changed: Vec<String> = spec.thread[0].phase.iter().filter_map(changed).collect();
    let bytes = |file: &FileSpec| file.size.as_ref().unwrap().bytes().unwrap();
    let files: Vec<u64> = spec.file.iter().map(|file| bytes(file) / PAGE).collect();
    let opens = spec.open.iter().map(|open| open.file[1..].parse().unwrap());
    let opens: Vec<usize> = opens.collect();
    for _ in 0..1 + rng.below(7) {
        let mut phases = phases(&mut rng, &spec, &files, &opens, with_advice);
        phases.retain(|phase| {
            let touched = phase.mapping.as_ref();
            phase.map.is_none()
                && phase.unmap.is_none()
                && !touched.is_some_and(|mapping| changed.contains(mapping))
        });
        if !phases.is_empty() {
            spec.thread.push(ThreadSpec { phase: phases, ..ThreadSpec::default() });
        }
    }
    spec.cpus = rng.chance(35).then(|| 1 + rng.below(4));
    spec
}

/// The program of `seed` with threads that wait for each other's locks: they change protections and
/// fork between their accesses, repeat, meet, and sleep. In every second case some of them are
/// processes.
pub fn random_writers(seed: u64) -> JobSpec {
    let mut spec = random_threads_with(seed, 10);
    let mut rng = Rng(seed ^ 0x7772_6974_6572);
    let unsplit = spec.mapping.iter().filter(|mapping| mapping.split.is_none());
    let unsplit: Vec<MappingSpec> = unsplit.cloned().collect();
    let changes = |phase: &ThreadPhaseSpec| phase.map.is_some() || phase.unmap.is_some();
    let changed: Vec<String> = spec.thread[0]
        .phase
        .iter()
        .filter(|phase| changes(phase))
        .filter_map(|phase| phase.map.clone().or(phase.unmap.clone()))
        .collect();
    let unsplit: Vec<_> =
        unsplit.into_iter().filter(|mapping| !changed.contains(&mapping.name)).collect();
    let meets = rng.chance(50);
    for (number, thread) in spec.thread.iter_mut().enumerate() {
        if seed.is_multiple_of(2) && number > 0 {
            thread.process = rng.chance(40).then(|| format!("p{}", rng.below(3)));
        }
        for at in (0..=thread.phase.len()).rev() {
            if rng.chance(40) {
                thread.phase.insert(at, writing(&mut rng, &unsplit));
            }
        }
        if meets {
            let at = rng.below(thread.phase.len() as u64 + 1) as usize;
            let barrier = Some("all".to_string());
            thread.phase.insert(at, ThreadPhaseSpec { barrier, ..ThreadPhaseSpec::default() });
        } else if number > 0 {
            thread.repeat = rng.chance(40).then(|| 1 + rng.below(5));
        }
    }
    spec
}

/// A phase that takes `mmap_lock` to write, or sleeps.
fn writing(rng: &mut Rng, mappings: &[MappingSpec]) -> ThreadPhaseSpec {
    let nothing = ThreadPhaseSpec::default();
    if rng.chance(25) || mappings.is_empty() {
        return if rng.chance(60) {
            ThreadPhaseSpec { fork: true, ..nothing }
        } else {
            ThreadPhaseSpec { sleep_ns: Some(1 + rng.below(1_000_000)), ..nothing }
        };
    }
    let mapping = &mappings[rng.below(mappings.len() as u64) as usize];
    let pages = mapping.len.as_ref().unwrap().bytes().unwrap() / PAGE;
    let offset = rng.below(pages);
    let range = rng.chance(60).then(|| (offset, 1 + rng.below(pages - offset)));
    ThreadPhaseSpec {
        mapping: Some(mapping.name.clone()),
        mprotect: Some(rng.pick(&Protection::ALL).name().to_string()),
        offset: range.and_then(|range| size(range.0)),
        len: range.and_then(|range| size(range.1)),
        ..nothing
    }
}

fn named<T, S>(items: &[T], letter: char, make: impl Fn(String, &T) -> S) -> Vec<S> {
    items.iter().enumerate().map(|(number, item)| make(format!("{letter}{number}"), item)).collect()
}

fn mapping(rng: &mut Rng, number: u64, files: &[u64], opens: &[usize]) -> MappingSpec {
    let open = rng.below(opens.len() as u64) as usize;
    let pages = files[opens[open]];
    let offset = if rng.chance(50) { rng.below(pages) } else { 0 };
    let length = 1 + rng.below(pages - offset);
    let split = rng.chance(15).then(|| 1 + rng.below(length));
    MappingSpec {
        name: format!("m{number}"),
        open: format!("o{open}"),
        offset: size(offset),
        len: size(length),
        shift: rng.chance(30).then(|| rng.below(512)),
        advice: rng
            .chance(40)
            .then(|| rng.pick(&["random", "sequential", "hugepage", "normal"]).to_string()),
        elf: false,
        exec: rng.chance(15),
        private: rng.chance(25),
        split,
        split_prot: split.map(|_| rng.pick(&["write", "exec"]).to_string()),
    }
}

/// Advice for a mapping, or for an open file.
fn advice(
    rng: &mut Rng,
    mapping_spec: &MappingSpec,
    files: &[u64],
    opens: &[usize],
) -> ThreadPhaseSpec {
    if rng.chance(40) {
        let open = rng.below(opens.len() as u64) as usize;
        let bytes = files[opens[open]] * PAGE;
        let advice = rng.pick(&Fadvise::ALL);
        let range = (advice.has_range() && rng.chance(70)).then(|| {
            let offset = rng.below(bytes);
            (offset, 1 + rng.below(bytes - offset))
        });
        let text = |bytes: u64| SizeText::from_bytes(bytes);
        return ThreadPhaseSpec {
            open: Some(format!("o{open}")),
            fadvise: Some(advice.name().to_string()),
            offset: range.map(|range| text(range.0)),
            len: range.map(|range| text(range.1)),
            ..ThreadPhaseSpec::default()
        };
    }
    let pages = mapping_spec.len.as_ref().unwrap().bytes().unwrap() / PAGE;
    let advice = rng.pick(&Madvise::ALL).name();
    let range = rng.chance(80).then(|| {
        let offset = rng.below(pages);
        (offset, 1 + rng.below(pages - offset))
    });
    ThreadPhaseSpec {
        mapping: Some(mapping_spec.name.clone()),
        madvise: Some(advice.to_string()),
        offset: range.and_then(|range| size(range.0)),
        len: range.and_then(|range| size(range.1)),
        ..ThreadPhaseSpec::default()
    }
}

fn phases(
    rng: &mut Rng,
    spec: &JobSpec,
    files: &[u64],
    opens: &[usize],
    with_advice: u64,
) -> Vec<ThreadPhaseSpec> {
    let mut there = vec![true; spec.mapping.len()];
    let mut phases = Vec::new();
    for _ in 0..4 + rng.below(12) {
        let number = rng.below(spec.mapping.len() as u64) as usize;
        let mapping_table = &spec.mapping[number];
        let name = Some(mapping_table.name.clone());
        let accesses = Some(1 + rng.below(300));
        let think_ns = rng.chance(20).then(|| rng.below(100_000));
        let with = ThreadPhaseSpec { accesses, think_ns, ..ThreadPhaseSpec::default() };
        phases.push(if rng.chance(with_advice) && there[number] {
            advice(rng, mapping_table, files, opens)
        } else if rng.chance(20) {
            let open = rng.below(opens.len() as u64) as usize;
            let offset = rng.below(files[opens[open]]) * PAGE;
            ThreadPhaseSpec {
                open: Some(format!("o{open}")),
                offset: Some(SizeText::from_bytes(offset)),
                workload: Some(rng.pick(&["read-random", "read-sequential"]).to_string()),
                bs: Some(SizeText(rng.pick(&["512b", "4k", "16k", "300k"]).to_string())),
                ..with
            }
        } else if !there[number] {
            there[number] = true;
            ThreadPhaseSpec { map: name, ..ThreadPhaseSpec::default() }
        } else if rng.chance(15) {
            there[number] = false;
            ThreadPhaseSpec { unmap: name, ..ThreadPhaseSpec::default() }
        } else {
            let pages = mapping_table.len.as_ref().unwrap().bytes().unwrap() / PAGE;
            let workload = random::workload(rng, pages, false).to_string();
            let write = mapping_table.private && rng.chance(50);
            ThreadPhaseSpec { mapping: name, workload: Some(workload), write, ..with }
        });
    }
    // A mapping that a phase creates does not exist before the first phase: unmap it only if it
    // exists.
    let made: Vec<_> = phases.iter().filter_map(|phase| phase.map.clone()).collect();
    let mut is_there: Vec<String> = Vec::new();
    phases.retain(|phase| {
        let of_phase = phase.mapping.clone().or(phase.unmap.clone()).or(phase.map.clone());
        let Some(name) = of_phase.filter(|name| made.contains(name)) else { return true };
        let is_mapped = is_there.contains(&name);
        match (&phase.map, &phase.unmap) {
            (Some(_), _) if !is_mapped => is_there.push(name),
            (_, Some(_)) if is_mapped => is_there.retain(|other| *other != name),
            (None, None) if is_mapped => {}
            _ => return false,
        }
        true
    });
    phases
}
