//! Records counts of a real kernel: fills in `data/measured-6.12-limits.json` and
//! `data/measured-6.12-programs.json`.
//!
//! It takes an hour or so: `FILEMAP_TEST_IMAGE=... FILEMAP_TEST_MODULES=... cargo test -p
//! filemap-cli --test record -- --ignored` runs every job and every program of the files that has
//! no repeats yet, in guests of that kernel, and writes the file after each guest. Remove the
//! repeats of what is to be measured again. This program is also the guest's.

#[path = "../../../kernel/tests/support/harness.rs"]
mod harness;
#[path = "../../../model/tests/support/recorded.rs"]
mod recorded;
#[path = "../../../model/tests/support/recorded_programs.rs"]
mod recorded_programs;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;

mod programs;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use filemap_job::{Job, JobFlags};
use filemap_kernel::engine::HostKernel;
use filemap_kernel::image::{KernelImage, guest};
use filemap_kernel::journal::Journal;
use filemap_kernel::probe::main_if_child;
use recorded::{Counts, Recorded, Recording};
use serde::{Deserialize, Serialize};

/// Number of runs of each job.
const REPEATS: usize = 2;

/// Jobs of one guest.
const JOBS: usize = 3;

/// Readahead of the guest's disk.
const READ_AHEAD_FILE: &str = "/sys/block/vda/queue/read_ahead_kb";

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/measured-6.12-limits.json");

/// A job as sent to the guest.
#[derive(Serialize, Deserialize)]
struct Asked {
    job: JobFlags,
    pages: Option<String>,
}

const TESTS: &[harness::Test<()>] = harness::tests![
    #[ignore = "measures jobs without repeats, in guests, and writes data/: an hour for all"]
    fill_in_jobs,
    #[ignore = "measures programs without repeats, in guests, and writes data/: minutes for each"]
    programs::fill_in,
];

fn main() -> ExitCode {
    main_if_child();
    if guest::is_guest() {
        guest::main(|text, _| in_guest(text));
    }
    harness::run(TESTS, || Ok(()))
}

fn fill_in_jobs(_: &()) {
    let mut recorded = Recorded::load();
    loop {
        let missing = recorded.runs.iter_mut().filter(|run| run.repeats.is_empty());
        let mut missing: Vec<&mut Recording> = missing.take(JOBS).collect();
        if missing.is_empty() {
            break;
        }
        fill_in(&mut missing);
        let text = serde_json::to_string_pretty(&recorded).expect("it is an object");
        fs::write(DATA, text + "\n").expect("a place for the record");
    }
}

/// The machine of every guest, except for its memory.
fn booted() -> KernelImage {
    let path = std::env::var_os("FILEMAP_TEST_IMAGE").expect("FILEMAP_TEST_IMAGE names a kernel");
    let mut image = KernelImage::new(path).expect("this program");
    image.modules = std::env::var_os("FILEMAP_TEST_MODULES").map(Into::into);
    image.scratch_dir = "/var/tmp".into();
    image.job_timeout = Duration::from_secs(7200);
    image
}

/// Runs the jobs of `missing` in one guest.
fn fill_in(missing: &mut [&mut Recording]) {
    let asked = missing.iter().map(|run| {
        let spec = run.spec();
        Asked { pages: spec.accesses_text.clone(), job: spec }
    });
    let asked: Vec<Asked> = asked.collect();
    let largest = missing.iter().map(|run| ram(&run.job("6.12", None).expect("a job"))).max();
    let image = KernelImage { ram_bytes: largest.expect("jobs"), ..booted() };
    let payload = serde_json::to_string(&asked).expect("an object");
    let outcome = image.run(&payload).expect("a guest that answers");
    let answers: Vec<Vec<Counts>> = serde_json::from_str(&outcome.record).expect("counts");
    for (run, counts) in missing.iter_mut().zip(answers) {
        println!("{}: {counts:?}", run.name);
        run.repeats = counts;
    }
}

/// RAM for a guest with this job and its limit.
fn ram(job: &Job) -> u64 {
    let limit = job.machine.cache_limit.map_or(u64::MAX, |pages| pages.bytes(4096));
    (512 << 20) + limit.min(job.files[0].file.size_bytes) * 9 / 8
}

fn in_guest(text: &str) -> Result<String, String> {
    let cgroups = Path::new("/sys/fs/cgroup");
    filemap_kernel::engine::mount_memory_cgroups(cgroups).map_err(|error| error.to_string())?;
    if let Some(answer) = programs::in_guest(text) {
        return answer;
    }
    let asked: Vec<Asked> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let counts = asked.into_iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    serde_json::to_string(&counts).map_err(|error| error.to_string())
}

/// The guest's kernel as an engine.
fn kernel_of_guest() -> Result<HostKernel, String> {
    let journal = Journal::open_in(Path::new("/tmp/journal")).map_err(|error| error.to_string())?;
    Ok(HostKernel::in_directory(journal, guest::DATA_DIR.into()))
}

fn release() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_string()
}

fn set_read_ahead(kib: u64) -> Result<(), String> {
    fs::write(READ_AHEAD_FILE, kib.to_string()).map_err(|error| error.to_string())
}

fn measure(asked: Asked) -> Result<Vec<Counts>, String> {
    let kernel = kernel_of_guest()?;
    let mut spec = asked.job;
    spec.accesses_text = asked.pages;
    (spec.on, spec.kernel) = (Some("kernel".into()), Some("host".into()));
    let job = spec.validate(Some(&release())).map_err(|error| error.to_string())?;
    set_read_ahead(job.machine.read_ahead.bytes(4096) >> 10)?;
    let mut prepared = kernel.prepare(&job).map_err(|error| error.to_string())?;
    let mut counts = Vec::new();
    for _ in 0..REPEATS {
        let run = prepared.run().map_err(|error| error.to_string())?;
        let run = run.into_recorded(&job);
        let cached_inside = run.cached.inside.ok_or("cached pages are not known")?;
        // Holes are filled without reading from storage: an added page was evicted, or is cached.
        let evicted = run.vmstat.as_ref().and_then(|vmstat| vmstat.get("pgsteal_file").copied());
        let added = evicted.map(|pages| pages.unsigned_abs() + cached_inside);
        let read = if job.files[0].file.sparse { added } else { run.counters.data_pages_read };
        counts.push(Counts {
            data_pages_read: read.ok_or("pages read are not known")?,
            major_faults: run.counters.major_faults.ok_or("major faults are not known")?,
            cached_inside,
            elapsed_ns: run.elapsed_ns.ok_or("time is not known")?,
        });
    }
    Ok(counts)
}
