//! Jobs on the running kernel, through the engine.

use std::fs;

use filemap_job::{Engine, Job, JobFlags, Record};
use filemap_kernel::Error;
use filemap_kernel::engine::HostKernel;
use filemap_kernel::storage::Storage;

use crate::Bench;
use crate::skip::skip;

/// A job with these keys, and the readahead and filesystem of the tests' directory.
fn job(bench: &Bench, keys: &str) -> Job {
    let place = Storage::find(&bench.directory).unwrap();
    let mut spec = JobFlags::from_toml(keys).unwrap();
    spec.on = Some("kernel".into());
    spec.read_ahead_kb = spec.read_ahead_kb.or(place.read_ahead_kb);
    if place.filesystem.parse::<filemap_job::Filesystem>().is_ok() {
        spec.fs.get_or_insert(place.filesystem);
    } else {
        spec.fs.get_or_insert("base-pages".into());
    }
    spec.validate(None).unwrap()
}

fn kernel(bench: &Bench) -> HostKernel {
    HostKernel::in_directory(bench.journal.clone(), bench.directory.clone())
}

fn run(bench: &Bench, keys: &str) -> Option<Record> {
    let job = job(bench, keys);
    match kernel(bench).run(&job) {
        Ok(ran) => Some(Record::from_job_runs(&job, ran)),
        Err(error) if error.cannot_run_here() => {
            skip(error);
            None
        }
        Err(error) => panic!("{keys}: {error}"),
    }
}

pub(crate) fn runs_jobs(bench: &Bench) {
    let keys = "workload = 'sequential'\nfile_size = '8m'\naccesses = 2048\nruns = 2";
    let Some(record) = run(bench, keys) else { return };
    assert_eq!((record.engine.as_str(), record.runs.len()), ("kernel", 2));
    for run in &record.runs {
        let counters = run.counters;
        assert_eq!(counters.accesses, Some(2048));
        assert_eq!(counters.data_pages_read, Some(2048), "{run:?}");
        assert_eq!(counters.major_faults, Some(1), "{run:?}");
        assert_eq!((counters.readahead_calls, counters.mmap_miss), (None, None));
        assert_eq!((run.cached.before, run.cached.after), (Some(0), Some(0)));
        assert!(run.elapsed_ns > Some(0));
    }
    for key in ["kernel", "cpu", "filesystem", "lru_gen", "read_ahead_kb", "seed", "command_line"] {
        assert!(record.environment.contains_key(key), "{key}");
    }
}

pub(crate) fn reads_sparse_file_without_storage(bench: &Bench) {
    let keys = "workload = 'sequential'\nfile_size = '4m'\naccesses = 1024\nsparse = true";
    let Some(record) = run(bench, keys) else { return };
    let counters = record.runs[0].counters;
    assert_eq!((counters.data_pages_read, counters.bytes_read), (Some(1024), Some(0)));
}

pub(crate) fn other_readahead_size_gets_own_filesystem(bench: &Bench) {
    let keys =
        "workload = 'random'\nfile_size = '16m'\naccesses = 1\nread_ahead_kb = 64\nfs = 'ext4'";
    let Some(record) = run(bench, keys) else { return };
    assert_eq!(record.runs[0].counters.data_pages_read, Some(16));
    assert_eq!(record.environment["read_ahead_kb"], 64);
    let left = fs::read_dir(&bench.directory).unwrap().flatten();
    let left = left.map(|entry| entry.path());
    let left: Vec<_> = left.filter(|path| path.to_string_lossy().contains("scratch")).collect();
    assert!(left.is_empty(), "{left:?}");
}

pub(crate) fn memory_cgroup_evicts(bench: &Bench) {
    let keys = "workload = 'sequential'\nadvice = 'random'\nfile_size = '32m'\naccesses = 8192\n\
                memory_max = '16m'";
    let Some(record) = run(bench, keys) else { return };
    let run = &record.runs[0];
    let cached = run.cached.inside.unwrap();
    assert!((1024..4096).contains(&cached), "{run:?}");
    assert_eq!(run.counters.data_pages_read, Some(8192));
    assert_eq!(run.counters.evicted_pages, Some(8192 - cached));
    assert_eq!(run.counters.major_faults, Some(8192));
}

pub(crate) fn refuses_what_this_kernel_lacks(bench: &Bench) {
    let base = "workload = 'random'\nfile_size = '1m'\naccesses = 3\n";
    for (keys, words) in [
        ("with = 'p1'", "a patched kernel to --image"),
        ("ram = '1g'", "--memory-max"),
        ("cache_limit = '512k'", "--memory-max instead of --cache-limit"),
        ("fault_around = '32k'", "give --change-settings"),
        ("arch = 'arm64'\npage_size = '16k'", "leave out --arch and --page-size"),
    ] {
        let error = kernel(bench).prepare(&job(bench, &format!("{base}{keys}"))).unwrap_err();
        assert!(error.cannot_run_here(), "{keys}: {error}");
        assert!(error.to_string().contains(words), "{keys}: {error}");
    }
    let many = "workload = 'random'\nfile_size = '1m'\naccesses = 10000000";
    assert!(kernel(bench).prepare(&job(bench, many)).unwrap_err().cannot_run_here());
    let large = "workload = 'first'\nfile_size = '512p'\naccesses = 1";
    let error = kernel(bench).prepare(&job(bench, large)).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
}

pub(crate) fn changing_file_size_ends_job(bench: &Bench) {
    let (path, _guard) = bench.file("changing", 64);
    let keys = format!(
        "workload = 'first'\nfile_size = '256k'\naccesses = 1\ncold = true\nfile = '{}'",
        path.display()
    );
    let mut prepared = match kernel(bench).prepare(&job(bench, &keys)) {
        Err(error) if error.cannot_run_here() => return skip(error),
        prepared => prepared.unwrap(),
    };
    prepared.run().unwrap();
    fs::write(&path, [1; 5]).unwrap();
    let error = prepared.run().unwrap_err();
    assert!(matches!(error, Error::SizeChanged { bytes: 5, .. }), "{error}");
}
