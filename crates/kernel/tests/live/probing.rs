//! Probes: what a child's accesses cost.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use filemap_core::units::{PageCount, PageIndex};
use filemap_job::program::Madvise;
use filemap_kernel::cold::drop_file;
use filemap_kernel::probe::{
    Access, Advice, Area, Mapping, Outcome, PhaseCost, Plan, Probe, Process, RETURN, Segment,
    Split, SplitProt, Step, ThreadPlan,
};
use filemap_kernel::residency::{CacheStat, resident_pages};
use filemap_kernel::{Error, page_size};

use crate::Bench;
use crate::skip::skip;

pub(crate) fn plan(path: &Path, pages: u64, accesses: Vec<Access>) -> Plan {
    Plan {
        path: path.to_owned(),
        mapping: Mapping {
            offset: PageIndex(0),
            pages: PageCount(pages),
            shift: PageCount(0),
            advice: Advice::NORMAL,
            executable: false,
            private: false,
            split: None,
        },
        segments: Vec::new(),
        phases: vec![accesses],
        settle: true,
        report_mapped: true,
        is_governed: false,
    }
}

pub(crate) fn touch(pages: impl IntoIterator<Item = u64>) -> Vec<Access> {
    pages.into_iter().map(|page| Access::Touch(PageIndex(page))).collect()
}

pub(crate) fn run_cold(plan: &Plan) -> Outcome {
    let probe = Probe::start(plan).unwrap();
    drop_file(&plan.path).unwrap();
    probe.run().unwrap()
}

pub(crate) fn mapped(outcome: &Outcome) -> Vec<u64> {
    outcome.mapped.iter().map(|page| page.0).collect()
}

pub(crate) fn quiet(bench: &Bench) {
    let (path, _guard) = bench.file("quiet", 64);
    let mut plan = plan(&path, 64, touch([5]));
    plan.phases.push(touch([5; 10_000]));
    plan.phases.push(vec![Access::Read { offset: 0, bytes: 100_000 }; 10]);
    plan.settle = false;
    let outcome = run_cold(&plan);
    let faults: Vec<(u64, u64)> = outcome.phases.iter().map(|p| (p.minor, p.major)).collect();
    assert_eq!(faults, [(0, 1), (0, 0), (0, 0)], "locked: {}", outcome.locked);
}

pub(crate) fn shifted(bench: &Bench) {
    let (path, _guard) = bench.file("shifted", 256);
    let around = 65536 / page_size();
    let mut plan = plan(&path, 256, touch([101]));
    for shift in [0, 3, 5] {
        plan.mapping.shift = PageCount(shift);
        let outcome = run_cold(&plan);
        assert_eq!(outcome.address / page_size() % (page_size() / 8), shift);
        let first = (101 + shift) / around * around - shift;
        assert_eq!(mapped(&outcome), (first..first + around).collect::<Vec<_>>(), "{shift}");
    }
}

pub(crate) fn cold_and_warm(bench: &Bench) {
    let (path, _guard) = bench.file("cold", 4096);
    let mut plan = plan(&path, 1024, touch(0..1024));
    plan.mapping.offset = PageIndex(512);
    plan.mapping.advice = Advice::RANDOM;
    let outcome = run_cold(&plan);
    assert_eq!(outcome.phases[0].major, 1024);
    if let Some(bytes) = outcome.phases[0].read_bytes {
        assert_eq!(bytes, 1024 * page_size());
    }
    let file = File::open(&path).unwrap();
    match CacheStat::of(&file, 512..1536) {
        Ok(stat) => assert_eq!(stat.cached, 1024),
        Err(error) => skip(format!("residency: {error}")),
    }
    assert_eq!(resident_pages(&file, 4096).unwrap().len(), 1024);
    let warm = Probe::start(&plan).unwrap().run().unwrap();
    assert_eq!((warm.phases[0].major, warm.phases[0].read_bytes), (0, Some(0)));
    drop_file(&path).unwrap();
    assert!(resident_pages(&file, 4096).unwrap().is_empty());
}

pub(crate) fn reads(bench: &Bench) {
    let (path, _guard) = bench.file("reads", 2048);
    let read = |page: u64, pages: u64| Access::Read {
        offset: page * page_size(),
        bytes: pages * page_size(),
    };
    let outcome = run_cold(&plan(&path, 2048, vec![read(1000, 4)]));
    assert!(outcome.mapped.is_empty());
    let file = File::open(&path).unwrap();
    let cached: Vec<u64> = resident_pages(&file, 2048).unwrap().iter().map(|p| p.0).collect();
    assert_eq!(cached, [1000, 1001, 1002, 1003], "a single read reads what was asked for");
}

pub(crate) fn pieces(bench: &Bench) {
    let (path, _guard) = bench.file("pieces", 100);
    for prot in SplitProt::ALL {
        let mut plan = plan(&path, 100, touch(0..100));
        plan.mapping.split = Some(Split { pages: PageCount(30), prot });
        let outcome = run_cold(&plan);
        assert_eq!(mapped(&outcome).len(), 100);
    }
}

pub(crate) fn segments(bench: &Bench) {
    let (path, _guard) = bench.file("segments", 64);
    let around = 65536 / page_size();
    let segment = |offset, start, executable| Segment {
        offset: PageIndex(offset),
        pages: PageCount(10),
        start: PageCount(start),
        executable,
        writable: !executable,
    };
    let mut plan = plan(&path, 2 * around, touch([around + 1, 0]));
    plan.segments = vec![segment(8, around + 1, true), segment(0, 0, false)];
    let outcome = run_cold(&plan);
    let mapped_pages = mapped(&outcome);
    assert_eq!(mapped_pages.first(), Some(&0));
    assert!(
        mapped_pages.contains(&(around + 1))
            && mapped_pages
                .iter()
                .all(|&page| { page < 10 || (around + 1..around + 11).contains(&page) })
    );
    assert_eq!(plan.file_page(PageIndex(around + 3)), Some(PageIndex(10)));
    assert_eq!(plan.file_page(PageIndex(around)), None);
    assert_eq!(plan.file_page(PageIndex(3)), Some(PageIndex(3)));
}

pub(crate) fn calls(bench: &Bench) {
    let (path, _guard) = bench.file("calls", 64);
    std::fs::write(&path, vec![RETURN; (64 * page_size()) as usize]).unwrap();
    let mut plan = plan(&path, 64, (0..64).map(|page| Access::Call(PageIndex(page))).collect());
    plan.mapping.executable = true;
    match Probe::start(&plan) {
        Err(error) => assert!(error.cannot_run_here(), "{error}"),
        Ok(_) => assert_eq!(mapped(&run_cold(&plan)).len(), 64),
    }
}

pub(crate) fn refusals(bench: &Bench) {
    let (path, _guard) = bench.file("refused", 10);
    let refused = |plan: &Plan| match Probe::start(plan) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{plan:?} was accepted"),
    };
    fn segment(start: u64, pages: u64) -> Segment {
        let (offset, pages, start) = (PageIndex(0), PageCount(pages), PageCount(start));
        Segment { offset, pages, start, executable: false, writable: false }
    }
    let good = plan(&path, 10, touch([0]));
    let with = |change: fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        refused(&plan)
    };
    for (message, part) in [
        (with(|p| p.mapping.pages = PageCount(0)), "at least 1"),
        (with(|p| p.mapping.pages = PageCount(11)), "map less"),
        (with(|p| p.mapping.offset = PageIndex(1)), "map less"),
        (with(|p| p.phases[0].push(Access::Touch(PageIndex(10)))), "page 10 is not below"),
        (with(|p| p.phases[0].push(Access::Store(PageIndex(1)))), "private"),
        (with(|p| p.phases[0].push(Access::Call(PageIndex(1)))), "executable"),
        (with(|p| p.segments = vec![segment(1, 9)]), "page 0 of the mapping lies in no segment"),
        (with(|p| p.segments = vec![segment(0, 11)]), "outside the mapping's 10 pages"),
        (with(|p| p.path = "/var/tmp".into()), "not a regular file"),
        (with(|p| p.path = "/no/such/file".into()), "No such file"),
        (with(|p| p.phases[0].push(Access::Read { offset: 0, bytes: 1 << 40 })), "at most"),
    ] {
        assert!(message.contains(part) && !message.contains('\n'), "{message:?} lacks {part:?}");
    }
}

pub(crate) fn shrinking(bench: &Bench) {
    let (path, _guard) = bench.file("shrinking", 64);
    let probe = Probe::start(&plan(&path, 64, touch([60]))).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
    let error = probe.run().unwrap_err();
    assert!(matches!(error, Error::ChildKilled { signal: libc::SIGBUS, .. }), "{error}");
}

pub(crate) fn killed(bench: &Bench) {
    let (path, _guard) = bench.file("killed", 4);
    let probe = Probe::start(&plan(&path, 4, touch([0]))).unwrap();
    let pid = rustix::process::Pid::from_raw(probe.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let error = probe.run().unwrap_err();
    assert!(matches!(error, Error::ChildKilled { signal: libc::SIGKILL, .. }), "{error}");
}

/// So many pages of the first open file, which a step maps.
fn area(pages: u64) -> Area {
    Area {
        open: 0,
        offset: PageIndex(0),
        pages: PageCount(pages),
        shift: PageCount(0),
        advice: Advice::NORMAL,
        executable: false,
        writable: false,
        private: false,
        split: None,
        segments: Vec::new(),
        at_start: false,
    }
}

/// A thread that fails ends the process although another one is busy.
pub(crate) fn failing_thread(bench: &Bench) {
    let (path, _guard) = bench.file("failing", 4);
    let area = Area { at_start: true, ..area(4) };
    let busy = Step::Accesses {
        open: 0,
        mapping: Some(0),
        accesses: touch([0, 1]),
        think_ns: 300_000_000_000,
    };
    // Nothing is mapped there that could be populated.
    let fails = Step::Madvise {
        mapping: 1,
        advice: Madvise::PopulateRead,
        first: PageCount(0),
        pages: PageCount(4),
    };
    for threads in [vec![vec![busy.clone()], vec![fails.clone()]], vec![vec![fails], vec![busy]]] {
        let process = Process {
            files: vec![path.clone()],
            opens: vec![0],
            mappings: vec![area.clone(), Area { at_start: false, ..area.clone() }],
            threads: threads.into_iter().map(ThreadPlan::once).collect(),
            ..Process::default()
        };
        let start = Instant::now();
        let error = Probe::start_process(&process).unwrap().run_process().unwrap_err();
        assert!(matches!(error, Error::Child { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    }
}

/// A thread maps and unmaps while others do: the addresses stay those of the mapping.
pub(crate) fn unmapped_room(bench: &Bench) {
    let (path, _guard) = bench.file("room", 64);
    let both = |mapping: usize| -> Vec<Step> {
        let accesses = || Step::Accesses {
            open: 0,
            mapping: Some(mapping),
            accesses: touch([0, 63]),
            think_ns: 0,
        };
        (0..300).flat_map(|_| [Step::Map(mapping), accesses(), Step::Unmap(mapping)]).collect()
    };
    let process = Process {
        files: vec![path],
        opens: vec![0],
        mappings: vec![area(64); 4],
        threads: (0..4).map(both).map(ThreadPlan::once).collect(),
        ..Process::default()
    };
    let ended = Probe::start_process(&process).unwrap().run_process().unwrap();
    let faults = |step: &PhaseCost| step.minor + step.major;
    for thread in &ended.threads {
        let touched = thread.steps.iter().skip(1).step_by(3);
        assert!(touched.clone().all(|step| faults(step) >= 1), "entries go with the mapping");
        let steps_ns: u64 = thread.steps.iter().map(|step| step.elapsed_ns).sum();
        assert!(thread.elapsed_ns >= steps_ns, "{} of {steps_ns} ns", thread.elapsed_ns);
    }
}

pub(crate) fn still_cached(bench: &Bench) {
    let (path, _guard) = bench.file("mapped", 32);
    // A child between its accesses and its end would do, but cannot be caught there: lock here.
    let file = File::open(&path).unwrap();
    let bytes = 32 * page_size() as usize;
    // SAFETY: a new mapping at an address of the kernel's choice, unmapped below and never read.
    let address = unsafe {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, flags, &file, 0).unwrap()
    };
    let error = drop_file(&path).unwrap_err();
    assert!(matches!(error, Error::StillCached { pages: 32, .. }), "{error}");
    // SAFETY: exactly what was mapped above.
    unsafe { rustix::mm::munmap(address, bytes).unwrap() };
    drop_file(&path).unwrap();
}
