//! Counters by phase, in records and reports.

use serde_json::Value;

use crate::{Scratch, filemap, has_disk, json, stderr, stdout};

const JOB: &str = "file_size = '16m'\n[[phase]]\nworkload = 'read-sequential'\nbs = '1m'\n\
    fraction = 0.25\n[[phase]]\nworkload = 'random'\naccesses = 300\n[[phase]]\n\
    workload = 'first'\naccesses = 5\n";

fn counter(part: &Value, name: &str) -> u64 {
    part["counters"][name].as_u64().unwrap_or_else(|| panic!("{name}: {part}"))
}

#[test]
fn the_models_phases_add_up() {
    let scratch = Scratch::new("phases_model");
    let job = scratch.file("job.toml", JOB);
    let record = json(&format!("run {job} --json -"));
    let run = &record["runs"][0];
    let phases = run["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| phase["does"].as_str().unwrap()).collect();
    assert_eq!(names, ["read-sequential", "random", "first"]);
    let accesses: Vec<_> = phases.iter().map(|phase| counter(phase, "accesses")).collect();
    assert_eq!(accesses, [4, 300, 5], "a quarter of 16 MiB in reads of 1 MiB");
    for name in ["data_pages_read", "bytes_read", "major_faults", "minor_faults", "accesses"] {
        let sum: u64 = phases.iter().map(|phase| counter(phase, name)).sum();
        assert_eq!(sum, counter(run, name), "{name}");
    }
    let elapsed: u64 = phases.iter().map(|phase| phase["elapsed_ns"].as_u64().unwrap()).sum();
    assert_eq!(Some(elapsed), run["elapsed_ns"].as_u64());
    assert_eq!(counter(&phases[2], "mmap_miss"), counter(run, "mmap_miss"));
    let highest = phases.iter().map(|phase| counter(phase, "mmap_miss_max")).max();
    assert_eq!(highest, Some(counter(run, "mmap_miss_max")));
    assert_eq!(counter(&phases[0], "mmap_miss_max"), 0, "reads miss nothing");
    let text = stdout(&format!("run {job}"));
    let is_row = |line: &&str| line.trim_start().starts_with("1  read-sequential");
    assert!(text.lines().any(|line| is_row(&line)), "{text}");
    // The phase of a single-phase job has the counters of the run.
    let one = json("run --workload random --file-size 1m --accesses 5 --json -");
    assert_eq!(one["runs"][0]["phases"], Value::Null);
}

#[test]
fn the_kernel_counts_its_phases() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("phases_kernel");
    let job = scratch.file("job.toml", JOB);
    let mut command = filemap(&format!("run {job} --on kernel --json -"));
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    let output = command.output().unwrap();
    if output.status.code() == Some(4) {
        println!("the_kernel_counts_its_phases: skipped: {}", stderr(&output).trim());
        return;
    }
    let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let run = &record["runs"][0];
    let phases = run["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 3);
    for name in ["accesses", "bytes_read", "minor_faults"] {
        let sum: u64 = phases.iter().map(|phase| counter(phase, name)).sum();
        assert_eq!(sum, counter(run, name), "{name}");
    }
    assert_eq!(phases[1]["counters"]["mmap_miss"], Value::Null, "no kernel tells");
    if record["environment"]["runs_kept_with_foreign_eviction"].as_u64() > Some(0) {
        println!("the_kernel_counts_its_phases: skipped: others took pages of the file");
        return;
    }
    let pages: u64 = phases.iter().map(|phase| counter(phase, "data_pages_read")).sum();
    assert_eq!(pages, counter(run, "data_pages_read"));
    assert!(counter(&phases[0], "data_pages_read") >= 1024, "4 MiB are read at least");
}

#[test]
fn sleeps_split_queries() {
    let scratch = Scratch::new("phases_queries");
    let job = "[[file]]\nname = 'a'\nsize = '64m'\n[[open]]\nname = 'a'\nfile = 'a'\n\
        [[mapping]]\nname = 'a'\nopen = 'a'\n[[thread]]\nrepeat = 5\n\
        [[thread.phase]]\nmapping = 'a'\nmadvise = 'random'\n\
        [[thread.phase]]\nmapping = 'a'\nworkload = 'random'\naccesses = 3\n\
        [[thread.phase]]\nsleep_ns = 1000000\n\
        [[thread.phase]]\nmapping = 'a'\nworkload = 'stride:40'\naccesses = 9\n";
    let path = scratch.file("job.toml", job);
    let record = json(&format!("run {path} --json -"));
    let run = &record["runs"][0];
    let queries = &run["queries"];
    // Five sleeps; the first and the last query end with the thread.
    assert_eq!(queries["count"], 6);
    let slept = 5 * 1_000_000;
    let took = run["elapsed_ns"].as_u64().unwrap() - slept;
    assert_eq!(queries["sum_ns"].as_u64(), Some(took));
    assert!(queries["max_ns"].as_u64() >= queries["p50_ns"].as_u64());
    let text = stdout(&format!("run {path}"));
    assert!(text.contains("\nquery "), "{text}");
    for other in ["compare --variants baseline,p1", "explain"] {
        let text = stdout(&format!("{other} {path}"));
        assert!(text.contains("a read(2) and a query took"), "{text}");
    }
}
