//! The workload `thrash`: threads that map, read and unmap under a memory limit.

use serde_json::Value;

use crate::bad_input::fails;
use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, has_disk, json, stderr, stdout};

/// Many threads with little memory: their windows exceed the limit.
const SMALL: &str = "--workload thrash --threads 16 --file-size 2m --sparse --cpus 4 \
    --kernel 6.12 --read-ahead-kb 512 --memory-max 8m --memory-high 7m --duration 2s";

fn counter(run: &Value, name: &str) -> u64 {
    run["counters"][name].as_u64().unwrap_or_else(|| panic!("{name}: {run}"))
}

#[test]
fn record_has_counters_and_time_shares() {
    let record = json(&format!("run {SMALL} --json -"));
    let run = &record["runs"][0];
    let elapsed_ns = run["elapsed_ns"].as_u64().unwrap();
    // A task above memory.high may sleep for up to 2 s more.
    assert!((2_000_000_000..4_200_000_000).contains(&elapsed_ns), "{elapsed_ns}");
    let (rounds, drops) = (counter(run, "rounds"), counter(run, "retry_mmap_drop"));
    assert!(rounds > 0 && drops > 0, "{run}");
    assert!(counter(run, "retry_io_miss") > 0, "{run}");
    // 16 files and 16 threads, from one table each.
    for table in ["files", "mappings", "threads"] {
        assert_eq!(run[table].as_array().unwrap().len(), 1, "{table}");
    }
    assert_eq!(run["threads"][0]["name"], "reader");
    assert_eq!(run["threads"][0]["counters"]["rounds"], rounds);
    let waits = run["waits"].as_array().unwrap();
    let sum: u64 = waits.iter().map(|wait| wait["sum_ns"].as_u64().unwrap()).sum();
    assert!((32_000_000_000..=16 * elapsed_ns).contains(&sum), "16 threads for 2 s: {sum}");
    for wait in waits {
        let classes = wait["classes"].as_array().unwrap().iter();
        let spans: u64 = classes.map(|class| class[1].as_u64().unwrap()).sum();
        assert_eq!(Some(spans), wait["count"].as_u64(), "{wait}");
        let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(|key| wait[key].as_u64());
        assert!(p50 <= p99 && p99 <= max, "{wait}");
    }
    let calls = run["calls"].as_array().unwrap();
    let called = |name: &str| calls.iter().find(|call| call["cause"] == name).unwrap();
    // Every munmap follows an mmap.
    assert!(called("munmap")["count"].as_u64() >= Some(rounds), "{calls:?}");
    assert!(called("mmap")["count"].as_u64() >= called("munmap")["count"].as_u64(), "{calls:?}");
    let again = json(&format!("run {SMALL} --json -"));
    assert_eq!(again["runs"][0], record["runs"][0], "one seed, one result");
    let text = stdout(&format!("run {SMALL}"));
    for words in
        ["program of 16 files", "Where the time of the threads went", "run queue", "munmap"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// The job file of `--show-job` and the command in a report repeat the run.
#[test]
fn thrash_equals_its_job_file() {
    let flags = format!("{SMALL} --stagger 20ms --writers 1 --with vma-retry --seed 9");
    let record = json(&format!("run {flags} --json -"));
    let command = record["command"].as_str().unwrap();
    let again = json(&format!("{} --json -", command.strip_prefix("filemap ").unwrap()));
    assert_eq!(again["runs"][0], record["runs"][0], "{command}");
    let scratch = Scratch::new("thrash_repeated");
    let path = scratch.file("job.toml", stdout(&format!("run {flags} --show-job")));
    assert_eq!(json(&format!("run {path} --json -"))["runs"][0], record["runs"][0]);
    let other = json(&format!("run {path} --seed 10 --json -"));
    assert_ne!(other["runs"][0], record["runs"][0], "the threads begin at other times");
    let flat = "workload = 'thrash'\nthreads = 3\nfile_size = '1m'\nduration = '20ms'\n";
    let path = scratch.file("flat.toml", flat);
    let of_file = json(&format!("run {path} --writers 1 --json -"));
    assert_eq!(of_file["runs"][0]["threads"].as_array().unwrap().len(), 2);
}

#[test]
fn compares_thrash_variants() {
    let report = json(&format!("compare {SMALL} --variants baseline,vma-retry --json -"));
    let cells = report["cells"].as_array().unwrap();
    let misses = |cell: &Value| cell["runs"][0]["counters"]["retry_io_miss"].as_u64().unwrap();
    assert_eq!(cells.len(), 2);
    assert!(misses(&cells[0]) > 0, "{}", cells[0]);
    assert!(misses(&cells[1]) * 10 < misses(&cells[0]), "{}", cells[1]);
    let text = stdout(&format!("compare {SMALL} --variants baseline,vma-retry"));
    for words in ["rounds a second", "  drops a round", "  misses a drop"] {
        assert!(text.contains(words), "{text}");
    }
    // Each flag by itself; one variant has another file.
    let settings = "--variants threads=4,16,writers=2,duration=1s";
    let report = json(&format!("compare {SMALL} {settings} --json -"));
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    let files = cells.iter().map(|cell| cell["runs"][0]["files"].as_array().unwrap().len());
    assert_eq!(files.collect::<Vec<_>>(), [1, 1, 2, 1]);
    let text = stdout(&format!("compare {SMALL} {settings}"));
    assert!(text.contains("written"), "{text}");
}

#[test]
fn invalid_input_is_a_one_line_error() {
    let thrash = "run --workload thrash";
    for (flags, words) in [
        ("--threads 0", &["--threads: 0 is out of range", "1 to 1024"] as &[&str]),
        ("--cpus 0", &["--cpus: 0 is out of range"]),
        ("--duration 0s", &["--duration: 0s is out of range", "1ns"]),
        ("--duration 10", &["--duration: '10' has no unit", "ns, us, ms, s"]),
        ("--duration 2d", &["--duration", "unknown unit 'd'"]),
        ("--file-size 0", &["--file-size: 0 is out of range", "4k"]),
        ("--file-size 5000", &["--file-size: 5000 is not a multiple", "4k or 8k"]),
        ("--memory-max 64k", &["out of memory", "raise 'memory_max'"]),
        (
            "--memory-high 2g --memory-max 1g",
            &["--memory-high: 2g is above memory.max of 1g", "lower"],
        ),
        ("--accesses 7", &["--accesses does not go with --workload thrash", "leave it out"]),
        ("--private", &["--private does not go with --workload thrash"]),
        ("--file /etc/passwd", &["--file does not go with --workload thrash"]),
        ("--writers 961", &["--writers: 961 is out of range", "0 to 960"]),
        ("--stagger 25000000s", &["--stagger", "is out of range"]),
    ] {
        fails(&format!("{thrash} {flags}"), 2, words);
    }
    fails("run --threads 4 --workload random --file-size 1m", 2, &["--threads is for --workload"]);
    fails("run --duration 9s --file-size 1m", 2, &["--duration is for --workload thrash"]);
    fails("conform --workload thrash", 4, &["has 64 threads", "compare counters"]);
    let search = "search --workload thrash --variants baseline,vma-retry --differ";
    fails(search, 2, &["flags of its own", "--show-job"]);
    let scratch = Scratch::new("thrash_phases");
    let phase = "file_size = '1m'\n[[phase]]\nworkload = 'thrash'\n";
    let path = scratch.file("job.toml", phase);
    fails(&format!("run {path}"), 2, &["--workload thrash is a program"]);
}

/// Counters of a job on the running kernel; `None`, with a printed note, if it cannot run here.
fn on_kernel(scratch: &Scratch, flags: &str) -> Option<Value> {
    let mut command = filemap(&format!("run --workload thrash --on kernel {flags} --json -"));
    command.env("FILEMAP_STATE", scratch.path("state"));
    let output = Running::start(&mut command).output();
    if output.status.code() == Some(4) {
        skip(stderr(&output));
        return None;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Invariants of a run on either engine.
fn check(run: &Value, pages: u64) {
    let (rounds, major) = (counter(run, "rounds"), counter(run, "major_faults"));
    let accesses = counter(run, "accesses");
    assert!(rounds > 0, "{run}");
    assert!(major > 0 && counter(run, "minor_faults") > 0, "{run}");
    // A round accesses all pages, and each thread may be inside one more round.
    let readers = &run["threads"][0]["counters"]["rounds"].as_u64().unwrap();
    assert!((readers * pages..=(readers + 8) * pages).contains(&accesses), "{run}");
    assert!(major <= accesses, "{run}");
    let elapsed_ns = run["elapsed_ns"].as_u64().unwrap();
    assert!((995_000_000..30_000_000_000).contains(&elapsed_ns), "{elapsed_ns}");
}

#[test]
fn both_variants_report_the_same_figures() {
    let flags = "--threads 8 --file-size 1m --sparse --memory-max 6m --read-ahead-kb 128 \
        --duration 1s --writers 1 --stagger 20ms";
    let model = json(&format!("run --workload thrash {flags} --cpus 2 --json -"));
    check(&model["runs"][0], 256);
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("thrash_kernel");
    let Some(kernel) = on_kernel(&scratch, flags) else { return };
    check(&kernel["runs"][0], 256);
    let left = std::fs::read_dir(scratch.path("state")).map_or(0, |entries| {
        entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    });
    assert_eq!(left, 0, "nothing is left beside the journal");
}

#[test]
fn reports_missing_kernel_features_before_setup() {
    if !has_disk() {
        return;
    }
    let on = "run --workload thrash --on kernel --memory-max 64m";
    fails(&format!("{on} --with vma-retry"), 4, &["vma-retry", "--image"]);
    fails(&format!("{on} --cpus 8000"), 4, &["8000 CPUs", "cpus = "]);
}
