//! The workload `thrash`: threads that map, read and unmap under a memory limit.

use serde_json::Value;

use crate::bad_input::fails;
use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, has_disk, json, stderr, stdout};

/// Many threads in little memory: their windows do not fit below the limit.
const SMALL: &str = "--workload thrash --threads 16 --file-size 2m --sparse --cpus 4 \
    --kernel 6.12 --read-ahead-kb 512 --memory-max 8m --memory-high 7m --duration 2s";

fn counter(run: &Value, name: &str) -> u64 {
    run["counters"][name].as_u64().unwrap_or_else(|| panic!("{name}: {run}"))
}

#[test]
fn a_record_has_counters_rates_and_waits() {
    let record = json(&format!("run {SMALL} --json -"));
    assert_eq!(record["job"]["workload"], "thrash");
    let run = &record["runs"][0];
    assert_eq!(run["elapsed_ns"], 2_000_000_000u64);
    let (rounds, drops) = (counter(run, "rounds"), counter(run, "retry_mmap_drop"));
    assert!(rounds > 0 && drops > 0, "{run}");
    assert!(counter(run, "retry_arrival") >= drops, "{run}");
    assert!(counter(run, "retry_io_miss") >= counter(run, "retry_io_miss_tried"), "{run}");
    let thrash = &run["thrash"];
    assert_eq!(thrash["ended"], "complete");
    assert_eq!(thrash["rounds_per_second"].as_f64(), Some(rounds as f64 / 2.0));
    assert_eq!(thrash["drops_per_round"].as_f64(), Some(drops as f64 / rounds as f64));
    let misses = counter(run, "retry_io_miss") as f64;
    assert_eq!(thrash["misses_per_drop"].as_f64(), Some(misses / drops as f64));
    assert!(thrash["tries_per_fault"].as_f64() > Some(1.0), "{thrash}");
    let waits = thrash["waits"].as_array().unwrap();
    let sum: u64 = waits.iter().map(|wait| wait["sum_ns"].as_u64().unwrap()).sum();
    // 16 threads for 2 s, but for what is under way at the end.
    assert!((30_000_000_000..=32_000_000_000).contains(&sum), "{sum}");
    for wait in waits {
        let classes = wait["classes"].as_array().unwrap().iter();
        let spans: u64 = classes.map(|class| class[1].as_u64().unwrap()).sum();
        assert_eq!(Some(spans), wait["count"].as_u64(), "{wait}");
        let [p50, p99, max] = ["p50_ns", "p99_ns", "max_ns"].map(|key| wait[key].as_u64());
        assert!(p50 <= p99 && p99 <= max, "{wait}");
    }
    let again = json(&format!("run {SMALL} --json -"));
    assert_eq!(again["runs"], record["runs"], "one seed, one result");
}

#[test]
fn the_command_of_a_report_repeats_it() {
    let flags = "--warm-up 500ms --stagger 20ms --writers 1 --noise-threads 2 --with vma-retry";
    let record = json(&format!("run {SMALL} {flags} --json -"));
    let command = record["command"].as_str().unwrap();
    let again = json(&format!("{} --json -", command.strip_prefix("filemap ").unwrap()));
    assert_eq!(again["runs"], record["runs"], "{command}");
    let scratch = Scratch::new("thrash_repeated");
    let job: toml::Table = serde_json::from_value(record["job"].clone()).unwrap();
    let path = scratch.file("job.toml", toml::to_string(&job).unwrap());
    assert_eq!(json(&format!("run {path} --json -"))["runs"], record["runs"]);
}

#[test]
fn variants_stand_beside_each_other() {
    let report = json(&format!("compare {SMALL} --variants baseline,vma-retry --json -"));
    let cells = report["cells"].as_array().unwrap();
    let misses = |cell: &Value| cell["runs"][0]["counters"]["retry_io_miss"].as_u64().unwrap();
    assert_eq!(cells.len(), 2);
    assert!(misses(&cells[0]) > 0, "{}", cells[0]);
    assert!(misses(&cells[1]) * 20 < misses(&cells[0]), "{}", cells[1]);
    let text = stdout(&format!("compare {SMALL} --variants baseline,vma-retry"));
    for words in ["rounds", "faults that dropped their lock", "retries whose page was gone"] {
        assert!(text.contains(words), "{text}");
    }
    let settings = "--variants threads=4,16,writers=2,duration=1s";
    let report = json(&format!("compare {SMALL} {settings} --json -"));
    assert_eq!(report["cells"].as_array().unwrap().len(), 4);
}

#[test]
fn a_job_that_cannot_show_the_change_says_so() {
    let run = |limit: &str| stdout(&format!("run {SMALL} {limit}"));
    assert!(!run("").contains("Warning: x ="));
    let large = run("--memory-high 40m --memory-max 48m");
    assert!(large.contains("Warning: x = threads x readahead / memory limit is 0.20"), "{large}");
    let flags = SMALL.replace("--memory-max 8m --memory-high 7m", "");
    let without = stdout(&format!("run {flags}"));
    assert!(without.contains("Warning: there is no memory limit"), "{without}");
}

#[test]
fn a_job_that_is_stuck_is_no_percentage() {
    let flags = "--threads 64 --memory-high 1m --memory-max 1m --read-ahead-kb 1024";
    let record = json(&format!("run {SMALL} {flags} --json -"));
    let thrash = &record["runs"][0]["thrash"];
    assert_ne!(thrash["ended"], "complete", "{thrash}");
    assert!(thrash["reason"].as_str().unwrap().contains("raise memory.max"), "{thrash}");
    assert!(thrash["ended"] != "no-progress" || thrash["misses_per_drop"].is_null(), "{thrash}");
    assert!(record["runs"][0]["counters"]["pages_read"].is_null());
    let text = stdout(&format!("run {SMALL} {flags}"));
    assert!(text.contains("Warning: the job ended before its time"), "{text}");
}

#[test]
fn bad_input_is_told_in_one_line() {
    let thrash = "run --workload thrash";
    for (flags, words) in [
        ("--threads 0", &["--threads: 0 is out of range", "1 to 32768"] as &[&str]),
        ("--cpus 0", &["--cpus: 0 is out of range"]),
        ("--duration 0s", &["--duration: 0s is out of range", "1ns"]),
        ("--duration 10", &["--duration: unknown unit ''", "ns, us, ms, s"]),
        ("--duration 2d", &["--duration", "unknown unit 'd'"]),
        ("--duration 9s --rounds 7", &["--rounds does not go with --duration"]),
        ("--rounds 0", &["--rounds: 0 is out of range"]),
        ("--file-size 0", &["--file-size: 0 is out of range", "4k"]),
        ("--file-size 5000", &["--file-size: 5000 is not a multiple", "4k or 8k"]),
        ("--memory-max 64k", &["--memory-max: 64k is less than one readahead window of 128k"]),
        ("--memory-high 64k --memory-max 1g", &["--memory-high: 64k", "lower --read-ahead-kb"]),
        ("--memory-high 2g --memory-max 1g", &["--memory-high 2g is above --memory-max 1g"]),
        ("--ram 1g", &["--ram does not go with --workload thrash", "--memory-max"]),
        ("--accesses 7", &["--accesses does not go with --workload thrash", "leave it out"]),
        ("--private", &["--private does not go with --workload thrash"]),
        ("--file /etc/passwd", &["--file does not go with --workload thrash"]),
        ("--writers 40000", &["--writers: 40000 is out of range"]),
        ("--stagger 25000000s", &["--stagger", "is out of range"]),
    ] {
        fails(&format!("{thrash} {flags}"), 2, words);
    }
    fails("run --threads 4 --workload random --file-size 1m", 2, &["--threads is for --workload"]);
    fails("run --duration 9s --file-size 1m", 2, &["--duration is for --workload thrash"]);
    fails("explain --workload thrash", 2, &["filemap run and filemap compare"]);
    fails("conform --workload thrash", 2, &["filemap run and filemap compare"]);
    fails(&format!("{thrash} --file-size 1t"), 4, &["GiB of memory", "fewer --threads"]);
    let scratch = Scratch::new("thrash_phases");
    let phase = "file_size = '1m'\n[[phase]]\nworkload = 'thrash'\n";
    let path = scratch.file("job.toml", phase);
    fails(&format!("run {path}"), 2, &["--workload thrash is a job by itself"]);
}

/// What the running kernel counts of a job; `None`, with a line that says so, where it cannot.
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

/// What holds of a run whoever makes it.
fn check(run: &Value, pages: u64) {
    let (rounds, major) = (counter(run, "rounds"), counter(run, "major_faults"));
    assert!(rounds > 0, "{run}");
    assert!(major > 0 && counter(run, "minor_faults") > 0, "{run}");
    // The first page of each round is not there when memory holds a part of the files.
    assert!(major <= rounds * pages * 4, "{run}");
    assert_eq!(run["thrash"]["ended"], "complete");
    let tries = run["thrash"]["tries_per_fault"].as_f64();
    assert!(tries.is_none_or(|tries| (1.0..4.0).contains(&tries)), "{run}");
}

#[test]
fn both_arms_say_the_same_kind_of_thing() {
    let flags = "--threads 8 --file-size 1m --sparse --memory-max 4m --read-ahead-kb 128 \
        --duration 1s --writers 1";
    let model = json(&format!("run --workload thrash {flags} --cpus 2 --json -"));
    check(&model["runs"][0], 256);
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("thrash_kernel");
    let Some(kernel) = on_kernel(&scratch, flags) else { return };
    check(&kernel["runs"][0], 256);
    let elapsed_ns = kernel["runs"][0]["elapsed_ns"].as_u64().unwrap();
    assert!((1_000_000_000..30_000_000_000).contains(&elapsed_ns), "{elapsed_ns}");
    let left = std::fs::read_dir(scratch.path("state")).map_or(0, |entries| {
        entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    });
    assert_eq!(left, 0, "nothing is left beside the journal");
}

#[test]
fn what_the_running_kernel_cannot_do_is_told_before_anything_is_made() {
    if !has_disk() {
        return;
    }
    let on = "run --workload thrash --on kernel --memory-max 64m";
    fails(&format!("{on} --with vma-retry"), 4, &["vma-retry", "--image"]);
    fails(&format!("{on} --cpus 8000"), 4, &["8000 CPUs", "give --cpus"]);
    fails(&format!("{on} --counters /proc/loadavg"), 4, &["/proc/loadavg", "retry_mmap_drop"]);
    fails(&format!("{on} --counters /nowhere"), 4, &["/nowhere", "leave out --counters"]);
}
