//! Files larger than their memory, in the model and on real kernels: the pages read, and the pages
//! that stay. This program is also the guest of the kernel image that it boots.
//!
//! It takes minutes: `cargo test --test memory -- --ignored`. `FILEMAP_TEST_IMAGE` names an image
//! to be tried beside the running kernel, and `FILEMAP_TEST_MODULES` its modules.

#[path = "../../../kernel/tests/support/harness.rs"]
mod harness;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use filemap_core::cache::FileCache;
use filemap_core::page_cache::PageCache;
use filemap_core::units::{FileId, PageIndex};
use filemap_job::{Job, JobFlags};
use filemap_kernel::engine::HostKernel;
use filemap_kernel::image::{self, KernelImage, guest};
use filemap_kernel::interference::damon_pageout;
use filemap_kernel::journal::Journal;
use filemap_kernel::probe::main_if_child;
use filemap_kernel::residency::PageSet;
use filemap_model::{Timing, trace_timed};
use serde_json::{Value, json};

use skip::skip;

const MEMORY: &str = "file_size = '4g'\nmemory_max = '1600m'\nread_ahead_kb = 8192\n";

/// Allowed difference of model and kernel, as a fraction of the pages read.
const PAGES_ERROR: f64 = 0.01;

/// Minimum fraction of the pages kept by either that both keep.
const OVERLAP: f64 = 0.98;

const TESTS: &[harness::Test<()>] = harness::tests![
    #[ignore = "files of 4 GiB: minutes"]
    random_reads_match,
    #[ignore = "files of 4 GiB: minutes"]
    strides_match,
];

fn main() -> ExitCode {
    main_if_child();
    if guest::is_guest() {
        guest::main(|text, _| in_guest(text));
    }
    harness::run(TESTS, || Ok(()))
}

fn random_reads_match(_: &()) {
    compare_both("random", 10485);
}

fn strides_match(_: &()) {
    compare_both("stride:4099", 2600);
}

fn compare_both(workload: &str, accesses: u64) {
    let text = format!("{MEMORY}workload = '{workload}'\naccesses = {accesses}\n");
    let failures = on_host(workload, &text) + in_image(workload, &text);
    assert_eq!(failures, 0, "model and kernel differ");
}

/// The pages that stayed, and the number of pages read.
struct Left {
    pages_read: u64,
    major_faults: u64,
    resident: PageSet,
}

fn on_host(workload: &str, text: &str) -> usize {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let job = job(text, &release);
    let journal = Journal::open().expect("a journal");
    let kernel = HostKernel::new(journal).expect("a directory for files");
    let live = match measure(&kernel, &job) {
        Ok(live) => live,
        Err(error) => {
            skip(format!("{workload} on the running kernel: {error}"));
            return 0;
        }
    };
    // Its evictions start a working set of their own, which the rules do not model.
    let disturbed = damon_pageout().is_some();
    compare(&format!("{workload}, {}", release.trim()), &model(&job), &live, disturbed)
}

fn in_image(workload: &str, text: &str) -> usize {
    let Some(path) = std::env::var_os("FILEMAP_TEST_IMAGE") else {
        skip(format!("{workload} in an image: FILEMAP_TEST_IMAGE names none"));
        return 0;
    };
    let release = image::release(Path::new(&path)).expect("a kernel");
    let mut image = KernelImage::new(&path).expect("this program");
    image.modules = std::env::var_os("FILEMAP_TEST_MODULES").map(Into::into);
    image.ram_bytes = 3 << 30;
    image.disk_bytes = 5 << 30;
    image.read_ahead_kb = Some(8192);
    image.scratch_dir = "/var/tmp".into();
    image.job_timeout = Duration::from_secs(7200);
    let outcome = image.run(text).expect("a guest that answers");
    let value: Value = serde_json::from_str(&outcome.record).expect("an object");
    let words = value["resident"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    let words: Vec<u64> = words.collect();
    let bit = |page: u64| words[page as usize / 64] >> (page % 64) & 1 == 1;
    let left = Left {
        pages_read: value["pages_read"].as_u64().expect("a number"),
        major_faults: value["major_faults"].as_u64().expect("a number"),
        resident: PageSet::collect((0..words.len() as u64 * 64).map(bit)),
    };
    compare(&format!("{workload}, {release}"), &model(&job(text, &release)), &left, false)
}

fn in_guest(text: &str) -> Result<String, String> {
    let cgroups = Path::new("/sys/fs/cgroup");
    filemap_kernel::engine::mount_memory_cgroups(cgroups).map_err(|error| error.to_string())?;
    let journal = Journal::open_in(Path::new("/tmp/journal")).map_err(|error| error.to_string())?;
    let kernel = HostKernel::in_directory(journal, guest::DATA_DIR.into());
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let left = measure(&kernel, &job(text, &release))?;
    let mut words =
        vec![0u64; left.resident.iter().last().map_or(0, |page| page.0 / 64 + 1) as usize];
    left.resident.iter().for_each(|page| words[page.0 as usize / 64] |= 1 << (page.0 % 64));
    let answer = json!({
        "pages_read": left.pages_read,
        "major_faults": left.major_faults,
        "resident": words,
    });
    Ok(answer.to_string())
}

fn job(text: &str, release: &str) -> Job {
    let mut spec = JobFlags::from_toml(text).expect("a job");
    spec.on = Some("kernel".into());
    spec.kernel = Some("host".into());
    spec.validate(Some(release.trim())).expect("a job that can be run")
}

fn measure(kernel: &HostKernel, job: &Job) -> Result<Left, String> {
    let mut prepared = kernel.prepare(job).map_err(|error| error.to_string())?;
    let run = prepared.run().map_err(|error| error.to_string())?;
    let resident = prepared.resident().map_err(|error| error.to_string())?;
    Ok(Left {
        pages_read: run.counters.data_pages_read.ok_or("pages read are not known")?,
        major_faults: run.counters.major_faults.unwrap_or_default(),
        resident,
    })
}

fn model(job: &Job) -> Left {
    let profile = filemap_model::Profile::DEFAULT;
    let traced = trace_timed(job, &profile, Timing::Device, &mut ());
    let mut traced = traced.expect("a run of the model");
    let file = traced.cache.file(FileId::FIRST);
    let cached = |page| file.folio(PageIndex(page)).is_some();
    Left {
        pages_read: traced.run.counters.data_pages_read.expect("the model counts it"),
        major_faults: traced.run.counters.major_faults.expect("the model counts it"),
        resident: PageSet::collect((0..job.file_pages(0).0).map(cached)),
    }
}

/// Prints the differences, and returns whether they are too large.
fn compare(what: &str, model: &Left, kernel: &Left, disturbed: bool) -> usize {
    let error = kernel.pages_read as f64 / model.pages_read as f64 - 1.0;
    let overlap = model.resident.overlap(&kernel.resident);
    println!(
        "{what}: pages read {} / {} ({:+.2} %), major faults {} / {}, resident {} / {}, \
         overlap {overlap:.4}",
        model.pages_read,
        kernel.pages_read,
        error * 100.0,
        model.major_faults,
        kernel.major_faults,
        model.resident.len(),
        kernel.resident.len(),
    );
    if disturbed {
        skip(format!("{what}: not judged, DAMON takes pages of it every few seconds"));
        return 0;
    }
    usize::from(error.abs() > PAGES_ERROR || overlap < OVERLAP)
}
