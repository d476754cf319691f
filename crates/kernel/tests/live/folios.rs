//! Operations over anonymous memory in folios of each size.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_job::DEFAULT_SEED;
use filemap_job::EngineKind;
use filemap_job::folio_ops::{FolioOps, FolioOpsSample, Operation};
use filemap_kernel::Error;
use filemap_kernel::folio_ops::{FolioOpsResult, measure, sample_count};
use filemap_kernel::journal::{Journal, recover};
use filemap_kernel::probe::{FolioProbe, cpus};

use crate::skip::skip;
use crate::{Bench, FOLIOS};

/// How long another run on this machine may keep the settings.
const PATIENCE: Duration = Duration::from_secs(300);

/// The longest that processes may take to end, on a machine with other work.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

fn job(bytes: u64, folio_bytes: &[u64]) -> FolioOps {
    let folio_bytes = folio_bytes.to_vec();
    FolioOps {
        engine: EngineKind::Kernel,
        runs: 1,
        seed: DEFAULT_SEED,
        bytes,
        folio_bytes,
        owners: false,
    }
}

/// What the settings of folio sizes hold, each by its file.
fn settings() -> BTreeMap<String, String> {
    let directories = fs::read_dir(SETTINGS).into_iter().flatten().flatten();
    let files = directories.map(|entry| entry.path().join("enabled"));
    let held = files
        .filter_map(|file| Some((file.display().to_string(), fs::read_to_string(&file).ok()?)));
    held.collect()
}

/// [`measure`], once no other run has changed the settings; how often it got on.
fn measured(
    job: &FolioOps,
    journal: &Journal,
    apply: bool,
) -> Result<(FolioOpsResult, u64), Error> {
    let start = Instant::now();
    loop {
        let mut calls = 0;
        match measure(job, journal, apply, || calls += 1) {
            Err(error) if is_taken(&error) && start.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(200));
            }
            result => return result.map(|measured| (measured, calls)),
        }
    }
}

fn is_taken(error: &Error) -> bool {
    error.to_string().contains("another run")
}

/// Whether the running kernel tracks the owners of large folios; nothing where it does not say.
fn tracks_owners(measured: &FolioOpsResult) -> Option<bool> {
    Some(measured.environment["config"].as_object()?["CONFIG_MM_ID"] == "y")
}

pub(crate) fn copies_and_reuses_folios_of_each_size(bench: &Bench) {
    if !bench.needs_root() {
        return;
    }
    let before = settings();
    let job = job(16 << 20, &[4 << 10, 64 << 10, 2 << 20]);
    let measured = match measured(&job, &bench.journal, true) {
        Ok((measured, _)) => measured,
        Err(error) if error.cannot_run_here() => return skip(error),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(settings(), before);
    measured.warnings.iter().for_each(skip);
    let cells = &measured.runs[0].cells;
    let sizes = job.folio_bytes.len() - measured.warnings.len();
    assert_eq!(cells.len(), sizes * Operation::ALL.len());
    let reuses_large = tracks_owners(&measured);
    for cell in cells {
        assert!(cell.ns_per_page > 0.0, "{cell:?}");
        check_copies(cell, job.pages(), reuses_large);
    }
    let shares = measured.environment["folio_share"].as_object().unwrap();
    assert!(shares.values().all(|share| share.as_f64() >= Some(0.99)), "{shares:?}");
}

/// Base pages that a CPU adds to the LRU at once. A page that another CPU has not added yet has one
/// reference more, and is copied.
const LRU_BATCH: u64 = 31;

/// Checks how many of `pages` pages were copied, and how many reused: all, where it is known of
/// folios of several pages that one process has them.
fn check_copies(cell: &FolioOpsSample, pages: u64, reuses_large: Option<bool>) {
    if !cell.operation.writes() {
        assert_eq!((cell.copied, cell.reused), (None, None), "{cell:?}");
        return;
    }
    let (copied, reused) = (cell.copied.unwrap(), cell.reused.unwrap());
    let expected = match cell.operation {
        Operation::Munmap | Operation::Fork => unreachable!("they write nothing"),
        Operation::CowByte => (pages, 0),
        Operation::AnonCowSeq | Operation::AnonCowRand => (pages * cpus::allowed_cpus(), 0),
        Operation::ReuseByte | Operation::ChildReuseByte if cell.folio_bytes == 4 << 10 => {
            assert_eq!(copied + reused, pages, "{cell:?}");
            assert!(copied <= LRU_BATCH * cpus::allowed_cpus(), "{cell:?}");
            return;
        }
        Operation::ReuseByte | Operation::ChildReuseByte => match reuses_large {
            Some(true) => (0, pages),
            Some(false) => (pages, 0),
            None => return,
        },
    };
    assert_eq!((copied, reused), expected, "{cell:?}");
}

pub(crate) fn names_sizes_that_are_not_allowed(bench: &Bench) {
    let small = Path::new(SETTINGS).join("hugepages-16kB/enabled");
    let Ok(held) = fs::read_to_string(&small) else {
        return skip(format!("there is no {}", small.display()));
    };
    if !held.contains("[never]") {
        return skip(format!("{} is not set to never", small.display()));
    }
    let both = job(4 << 20, &[4 << 10, 16 << 10]);
    let (some, calls) = measured(&both, &bench.journal, false).unwrap();
    assert_eq!(calls, sample_count(&both), "what is left out is passed over too");
    let cells = &some.runs[0].cells;
    assert!(cells.len() == Operation::ALL.len(), "{cells:?}");
    assert!(cells.iter().all(|cell| cell.folio_bytes == 4 << 10));
    let why = &some.warnings[0];
    assert!(
        why.starts_with("folios of 16k are not measured") && why.contains("--change-settings"),
        "{why}"
    );
    let error = measured(&job(4 << 20, &[16 << 10]), &bench.journal, false).unwrap_err();
    assert!(error.cannot_run_here() && error.to_string().contains("--change-settings"), "{error}");
    let error = measured(&job(1 << 40, &[4 << 10]), &bench.journal, false).unwrap_err();
    assert!(error.cannot_run_here() && error.to_string().contains("--size"), "{error}");
}

/// A probe that asks for folios which the settings do not give measures nothing.
pub(crate) fn does_not_time_missing_folios(_: &Bench) {
    let allowed = |size: &str| {
        let held = fs::read_to_string(Path::new(SETTINGS).join(size).join("enabled"));
        held.is_ok_and(|held| !held.contains("[never]"))
    };
    if allowed("hugepages-16kB") {
        return skip("folios of 16k are allowed here");
    }
    let operation = Operation::CowByte;
    let probe =
        FolioProbe { bytes: 4 << 20, folio_bytes: 16 << 10, operation, seed: 1, children: 1 };
    let sample = probe.run().unwrap();
    assert_eq!((sample.folios, sample.given, sample.timing), (256, 0, None));
}

/// Measures for long with changed settings, and says when that begins.
pub(crate) fn hold(directory: &Path) -> ! {
    let journal = Journal::open_in(directory).unwrap();
    let mut long = job(64 << 20, &[64 << 10]);
    long.runs = 1000;
    let mut told = false;
    let result = measure(&long, &journal, true, || {
        if !told {
            println!("it runs");
        }
        told = true;
    });
    if let Err(error) = result {
        println!("{error}");
    }
    std::process::exit(0);
}

pub(crate) fn killed_run_restores_folio_sizes(bench: &Bench) {
    if !bench.needs_root() {
        return;
    }
    if !Path::new(SETTINGS).join("hugepages-64kB/enabled").exists() {
        return skip("this kernel has no setting of folios of 64k");
    }
    let directory = bench.directory.join("folios");
    let before = settings();
    let start = Instant::now();
    let mut child = loop {
        let mut child = Command::new("/proc/self/exe")
            .args([FOLIOS, directory.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line == "it runs\n" {
            break child;
        }
        child.wait().unwrap();
        assert!(line.contains("another run") && start.elapsed() < PATIENCE, "{line}");
        sleep(Duration::from_millis(500));
    };
    // Settings are changed for most of the time only, and who is killed has descendants.
    let mut family = Vec::new();
    while settings() == before || family.len() < 2 {
        family = descendants(child.id());
        assert!(start.elapsed() < PATIENCE);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ending = Instant::now();
    while family.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
        assert!(ending.elapsed() < ENDS_WITHIN, "{family:?}");
        sleep(Duration::from_millis(10));
    }
    let recovery = recover(&directory).unwrap();
    assert!(recovery.failed.is_empty(), "{:?}", recovery.failed);
    assert_eq!(settings(), before);
}

/// Processes that `pid` started, and those that these started.
fn descendants(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    let children = text.split_whitespace().filter_map(|pid| pid.parse().ok());
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}
