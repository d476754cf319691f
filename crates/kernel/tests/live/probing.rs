//! Probes: the cost of a child's accesses.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filemap_core::address::mapping::{Split, SplitProt};
use filemap_core::address::vma::Advice;
use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::{Access, Madvise, NamedMapping, ProgramStep, Thread};
use filemap_job::{Pattern, Phase, Segment, Workload};
use filemap_kernel::cold_cache::drop_file;
use filemap_kernel::interference::damon_pageout;
use filemap_kernel::probe::{PhaseCost, Probe, ProbeProcess, ProbeResult, RETURN_OPCODE};
use filemap_kernel::residency::{CacheStat, resident_pages};
use filemap_kernel::{Error, page_size};

use crate::Bench;
use crate::skip::skip;

/// A process that waits after each access, and reports the mapped pages at the end.
pub(crate) fn process(path: &Path, pages: u64, steps: Vec<ProgramStep>) -> ProbeProcess {
    let process = ProbeProcess::single_threaded(path.to_owned(), PageCount(pages), steps);
    ProbeProcess { settle: true, report_mapped: true, ..process }
}

pub(crate) fn touch(pages: impl IntoIterator<Item = u64>) -> ProgramStep {
    ProgramStep::touch(0, pages.into_iter().collect())
}

/// Repeated `read(2)` calls of this many bytes at an offset.
pub(crate) fn read(offset_bytes: u64, bytes: u64, times: u64) -> ProgramStep {
    let pattern = Pattern::Generated(Workload::ReadSequential);
    let accesses =
        Phase { pattern, accesses: times, seed: 1, has_own_seed: false, bs_bytes: bytes };
    ProgramStep::Read { open: 0, offset_bytes, len_bytes: bytes, accesses, think_ns: 0 }
}

pub(crate) fn run_cold(process: &ProbeProcess) -> ProbeResult {
    let probe = Probe::start(process).unwrap();
    drop_file(&process.files[0]).unwrap();
    probe.run().unwrap()
}

fn steps(ended: &ProbeResult) -> &[PhaseCost] {
    &ended.threads[0].steps
}

pub(crate) fn mapped(ended: &ProbeResult) -> Vec<u64> {
    ended.mapped.iter().map(|page| page.0).collect()
}

pub(crate) fn touching_mapped_pages_costs_nothing(bench: &Bench) {
    let (path, _guard) = bench.file("quiet", 64);
    let all = vec![touch([5]), touch([5; 10_000]), read(0, 100_000, 10)];
    let ended = run_cold(&ProbeProcess { settle: false, ..process(&path, 64, all) });
    let faults: Vec<(u64, u64)> = steps(&ended).iter().map(|p| (p.minor, p.major)).collect();
    assert_eq!(faults, [(0, 1), (0, 0), (0, 0)], "locked: {}", ended.locked);
}

pub(crate) fn fault_around_follows_virtual_addresses(bench: &Bench) {
    let (path, _guard) = bench.file("shifted", 256);
    let around = 65536 / page_size();
    let mut process = process(&path, 256, vec![touch([101])]);
    for shift in [0, 3, 5] {
        process.mappings[0].mapping.shift = PageCount(shift);
        let probe = Probe::start(&process).unwrap();
        drop_file(&path).unwrap();
        assert_eq!(probe.addresses()[0] / page_size() % (page_size() / 8), shift);
        let first = (101 + shift) / around * around - shift;
        let mapped = mapped(&probe.run().unwrap());
        assert_eq!(mapped, (first..first + around).collect::<Vec<_>>(), "{shift}");
    }
}

pub(crate) fn reads_cold_file_only(bench: &Bench) {
    let (path, _guard) = bench.file("cold", 4096);
    let mut process = process(&path, 1024, vec![touch(0..1024)]);
    process.mappings[0].mapping.offset = PageIndex(512);
    process.mappings[0].mapping.advice = Advice::RANDOM;
    let cold = steps(&run_cold(&process))[0];
    assert_eq!(cold.major, 1024);
    if let Some(bytes) = cold.read_bytes {
        assert_eq!(bytes, 1024 * page_size());
    }
    let file = File::open(&path).unwrap();
    match CacheStat::query(&file, 512..1536) {
        Ok(stat) => assert_eq!(stat.cached, 1024),
        Err(error) => skip(format!("residency: {error}")),
    }
    assert_eq!(resident_pages(&file, 4096).unwrap().len(), 1024);
    // DAMON may have paged some out meanwhile: they are cached again after a run.
    let tries = if damon_pageout().is_some() { 5 } else { 1 };
    let warm = |_| steps(&Probe::start(&process).unwrap().run().unwrap())[0];
    let warm = (0..tries).map(warm).find(|warm| warm.major == 0);
    assert_eq!(warm.map(|warm| warm.read_bytes), Some(Some(0)));
    drop_file(&path).unwrap();
    assert!(resident_pages(&file, 4096).unwrap().is_empty());
}

pub(crate) fn read_and_map_share_readahead(bench: &Bench) {
    let (path, _guard) = bench.file("reads", 2048);
    let four = read(1000 * page_size(), 4 * page_size(), 1);
    let ended = run_cold(&process(&path, 2048, vec![four]));
    assert!(ended.mapped.is_empty());
    let file = File::open(&path).unwrap();
    let cached: Vec<u64> = resident_pages(&file, 2048).unwrap().iter().map(|p| p.0).collect();
    assert_eq!(cached, [1000, 1001, 1002, 1003], "a single read reads what was asked for");
}

pub(crate) fn each_piece_has_its_protection(bench: &Bench) {
    let (path, _guard) = bench.file("pieces", 100);
    for prot in SplitProt::ALL {
        let mut process = process(&path, 100, vec![touch(0..100)]);
        process.mappings[0].mapping.split = Some(Split { pages: PageCount(30), prot });
        assert_eq!(mapped(&run_cold(&process)).len(), 100);
    }
}

pub(crate) fn maps_each_segment_at_its_place(bench: &Bench) {
    let (path, _guard) = bench.file("segments", 64);
    let around = 65536 / page_size();
    let segment = |offset, start, executable| Segment {
        offset: PageIndex(offset),
        pages: PageCount(10),
        start: PageCount(start),
        executable,
        writable: !executable,
    };
    // Pages are numbered through both segments: the first page of each is touched.
    let mut process = process(&path, 20, vec![touch([0, 10])]);
    process.mappings[0].segments = vec![segment(8, around + 1, true), segment(0, 0, false)];
    let mapping = &process.mappings[0];
    assert_eq!(mapping.file_page(PageIndex(around + 3)), Some(PageIndex(10)));
    assert_eq!(mapping.file_page(PageIndex(around)), None);
    assert_eq!(mapping.file_page(PageIndex(3)), Some(PageIndex(3)));
    let mapped_pages = mapped(&run_cold(&process));
    assert_eq!(mapped_pages.first(), Some(&0));
    assert!(mapped_pages.contains(&(around + 1)));
    let is_inside = |page: &u64| *page < 10 || (around + 1..around + 11).contains(page);
    assert!(mapped_pages.iter().all(is_inside), "{mapped_pages:?}");
}

pub(crate) fn calls_code(bench: &Bench) {
    let (path, _guard) = bench.file("calls", 64);
    std::fs::write(&path, vec![RETURN_OPCODE; (64 * page_size()) as usize]).unwrap();
    let accesses = Phase::from_list(Arc::new((0..64).collect()), 1, 1);
    let step = ProgramStep::Touch { mapping: 0, accesses, access: Access::Call, think_ns: 0 };
    let mut process = process(&path, 64, vec![step]);
    process.mappings[0].mapping.exec = true;
    match Probe::start(&process) {
        Err(error) => assert!(error.cannot_run_here(), "{error}"),
        Ok(_) => assert_eq!(mapped(&run_cold(&process)).len(), 64),
    }
}

pub(crate) fn refuses_impossible_steps(bench: &Bench) {
    let (path, _guard) = bench.file("refused", 10);
    let good = process(&path, 10, vec![touch([0])]);
    let with = |change: fn(&mut ProbeProcess)| {
        let mut process = good.clone();
        change(&mut process);
        match Probe::start(&process) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{process:?} was accepted"),
        }
    };
    for (message, part) in [
        (with(|p| p.files[0] = "/var/tmp".into()), "not a regular file"),
        (with(|p| p.files[0] = "/no/such/file".into()), "No such file"),
        (with(|p| p.threads[0].steps.push(read(0, 1 << 40, 1))), "at most"),
    ] {
        assert!(message.contains(part) && !message.contains('\n'), "{message:?} lacks {part:?}");
    }
}

pub(crate) fn shrinking_file_ends_probe(bench: &Bench) {
    let (path, _guard) = bench.file("shrinking", 64);
    let probe = Probe::start(&process(&path, 64, vec![touch([60])])).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
    let error = probe.run().unwrap_err();
    assert!(matches!(error, Error::Bus { mapping: 0, page: 60 }), "{error}");
}

pub(crate) fn killed_child_is_an_error(bench: &Bench) {
    let (path, _guard) = bench.file("killed", 4);
    let probe = Probe::start(&process(&path, 4, vec![touch([0])])).unwrap();
    let pid = rustix::process::Pid::from_raw(probe.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let error = probe.run().unwrap_err();
    assert!(matches!(error, Error::ChildKilled { signal: libc::SIGKILL, .. }), "{error}");
}

/// This many pages of the first open file, which a step maps.
fn unmapped(pages: u64) -> NamedMapping {
    NamedMapping { at_start: false, ..NamedMapping::from_first_pages(PageCount(pages)) }
}

/// A failing thread ends the process although another one is busy.
pub(crate) fn failing_thread_ends_the_others(bench: &Bench) {
    let (path, _guard) = bench.file("failing", 4);
    let (accesses, access) = (Phase::from_list(Arc::new(vec![0, 1]), 1, 1), Access::Read);
    let busy = ProgramStep::Touch { mapping: 0, accesses, access, think_ns: 300_000_000_000 };
    // Nothing is mapped there that could be populated.
    let fails = ProgramStep::Madvise {
        mapping: 1,
        advice: Madvise::PopulateRead,
        first: PageCount(0),
        pages: PageCount(4),
    };
    for threads in [vec![vec![busy.clone()], vec![fails.clone()]], vec![vec![fails], vec![busy]]] {
        let process = ProbeProcess {
            files: vec![path.clone()],
            opens: vec![0],
            mappings: vec![NamedMapping::from_first_pages(PageCount(4)), unmapped(4)],
            threads: threads.into_iter().map(Thread::from_steps).collect(),
            ..ProbeProcess::default()
        };
        let start = Instant::now();
        let error = Probe::start(&process).unwrap().run().unwrap_err();
        assert!(matches!(error, Error::Child { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    }
}

/// A thread maps and unmaps while others do: the addresses stay those of the mapping.
pub(crate) fn maps_again_at_the_same_address(bench: &Bench) {
    let (path, _guard) = bench.file("room", 64);
    let both = |mapping: usize| -> Vec<ProgramStep> {
        let round = [
            ProgramStep::Map { mapping },
            ProgramStep::touch(mapping, vec![0, 63]),
            ProgramStep::Unmap { mapping, first: PageCount(0), pages: PageCount(64) },
        ];
        (0..300).flat_map(|_| round.clone()).collect()
    };
    let process = ProbeProcess {
        files: vec![path],
        opens: vec![0],
        mappings: vec![unmapped(64); 4],
        threads: (0..4).map(both).map(Thread::from_steps).collect(),
        ..ProbeProcess::default()
    };
    let ended = Probe::start(&process).unwrap().run().unwrap();
    let faults = |step: &PhaseCost| step.minor + step.major;
    for thread in &ended.threads {
        let touched = thread.steps.iter().skip(1).step_by(3);
        assert!(touched.clone().all(|step| faults(step) >= 1), "entries go with the mapping");
        let steps_ns: u64 = thread.steps.iter().map(|step| step.elapsed_ns).sum();
        assert!(thread.elapsed_ns >= steps_ns, "{} of {steps_ns} ns", thread.elapsed_ns);
    }
}

pub(crate) fn keeps_pages_that_others_map(bench: &Bench) {
    let (path, _guard) = bench.file("mapped", 32);
    // A child between its accesses and its exit would do, but cannot be caught there: lock here.
    let file = File::open(&path).unwrap();
    let bytes = 32 * page_size() as usize;
    // SAFETY: a new mapping at an address that the kernel chooses, unmapped below and never read.
    let address = unsafe {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, flags, &file, 0).unwrap()
    };
    let error = drop_file(&path).unwrap_err();
    assert!(matches!(error, Error::StillCached { pages: 32, .. }), "{error}");
    // SAFETY: exactly the range mapped above.
    unsafe { rustix::mm::munmap(address, bytes).unwrap() };
    drop_file(&path).unwrap();
}
