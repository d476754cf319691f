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
    // A number that is read from JSON may differ in its last digit.
    let per_drop = thrash["misses_per_drop"].as_f64().unwrap();
    assert!((per_drop - misses / drops as f64).abs() < 1e-12, "{per_drop}");
    assert!(thrash["tries_per_fault"].as_f64() > Some(1.0), "{thrash}");
    let waits = thrash["waits"].as_array().unwrap();
    let sum: u64 = waits.iter().map(|wait| wait["sum_ns"].as_u64().unwrap()).sum();
    assert_eq!(sum, 32_000_000_000, "16 threads for 2 s");
    check_course(&thrash["course"], waits);
    assert_eq!(thrash["pressure"].as_f64(), Some(8.0 / 7.0));
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

/// The course of a run of 16 threads for 2 s says the same as its `waits`.
fn check_course(course: &Value, waits: &[Value]) {
    let causes = course["causes"].as_array().unwrap();
    let spent = |cause: &Value| -> Vec<u64> {
        let spent = cause["spent_ns"].as_array().unwrap().iter();
        spent.map(|ns| ns.as_u64().unwrap()).collect()
    };
    assert_eq!(causes.len(), waits.len());
    for (cause, wait) in causes.iter().zip(waits) {
        assert_eq!(cause["cause"], wait["cause"]);
        assert_eq!(Some(spent(cause).iter().sum()), wait["sum_ns"].as_u64(), "{cause}");
    }
    let interval_ns = course["interval_ns"].as_u64().unwrap();
    assert_eq!(2_000_000_000u64.div_ceil(interval_ns), 60);
    for at in 0..59 {
        let all: u64 = causes.iter().map(|cause| spent(cause)[at]).sum();
        assert_eq!(all, 16 * interval_ns, "interval {at}");
    }
}

#[test]
fn the_course_of_a_run_is_drawn() {
    let scratch = Scratch::new("thrash_svg");
    let path = scratch.path("picture.svg");
    let text = stdout(&format!("run {SMALL} --svg {path}"));
    assert!(text.contains("Where the time of the threads went"), "{text}");
    let picture = std::fs::read_to_string(&path).unwrap();
    for words in ["<svg", "s since the beginning", "threads", "run queue", "throttled"] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    assert!(stdout(&format!("run {SMALL} --svg -")).starts_with("<svg"));
    let variants = "--variants baseline,vma-retry,writers=2";
    let picture = stdout(&format!("compare {SMALL} {variants} --svg -"));
    for heading in [">baseline<", ">vma-retry<", ">writers=2<"] {
        assert!(picture.contains(heading), "{heading}: {picture}");
    }
    let plain = "--workload first --file-size 1m --accesses 1 --svg -";
    for command in ["run", "compare --variants baseline,p1"] {
        fails(&format!("{command} {plain}"), 2, &["--svg", "filemap explain", "leave it out"]);
    }
    fails(&format!("run {SMALL} --svg {path} --json {path}"), 2, &["--svg"]);
}

#[test]
fn what_ends_in_its_warm_up_says_that_nothing_was_measured() {
    let flags = SMALL.replace("--duration 2s", "--rounds 1 --warm-up 100s");
    let run = &json(&format!("run {flags} --json -"))["runs"][0];
    assert!(run["elapsed_ns"].is_null() && run["counters"]["rounds"].is_null(), "{run}");
    assert_eq!(
        (&run["thrash"]["in_warm_up"], run["thrash"]["waits"].as_array().unwrap().len()),
        (&Value::Bool(true), 0)
    );
    let text = stdout(&format!("run {flags}"));
    let text = text.replace('\n', " ");
    assert!(
        text.contains("ended in its warm-up, so that nothing was measured: all rounds"),
        "{text}"
    );
    assert!(text.contains("give more --rounds, or a shorter --warm-up"), "{text}");
    let stuck = "--workload thrash --threads 64 --file-size 2m --sparse --cpus 4 --kernel 6.12 \
        --memory-max 1m --read-ahead-kb 1024 --duration 2s --warm-up 9s";
    let text = stdout(&format!("compare {stuck} --variants baseline,vma-retry")).replace('\n', " ");
    assert!(text.contains("Warning: vma-retry: the job ended in its warm-up"), "{text}");
    let picture = stdout(&format!("run {stuck} --svg -"));
    assert!(picture.contains("is not known"), "{picture}");
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
    let run = |limits: &str| {
        let flags = SMALL.replace("--memory-max 8m --memory-high 7m", limits);
        stdout(&format!("run {flags}"))
    };
    let shows = run("--memory-max 8m --memory-high 7m");
    assert!(!shows.contains("Warning: x ="), "{shows}");
    let large = run("--memory-high 40m --memory-max 48m");
    assert!(large.contains("Warning: all that was read stayed in memory"), "{large}");
    let without = run("");
    assert!(without.contains("Warning: there is no memory limit"), "{without}");
    assert!(shows.contains("x = threads x readahead / memory limit."), "{shows}");
    let row = |text: &str| text.lines().find(|line| line.starts_with("x  ")).map(str::to_string);
    assert!(row(&shows).unwrap().ends_with(" 1.14"), "{shows}");
    assert!(row(&without).is_none(), "{without}");
    let variants = "--variants baseline,read_ahead_kb=64,32,8+vma-retry";
    let sweep = stdout(&format!("compare {SMALL} {variants}")).replace('\n', " ");
    let warning =
        "Warning: in read_ahead_kb=8+vma-retry: x = threads x readahead / memory limit is";
    assert!(sweep.contains(&format!("{warning} 0.02")), "{sweep}");
    // With x as low as 0.07 pages were gone all the same.
    for shows in ["in baseline", "in read_ahead_kb=64", "in read_ahead_kb=32"] {
        assert!(!sweep.contains(shows), "{sweep}");
    }
}

#[test]
fn a_job_that_is_stuck_is_no_percentage() {
    let flags = "--workload thrash --threads 64 --file-size 2m --sparse --cpus 4 --kernel 6.12 \
        --memory-max 1m --read-ahead-kb 1024 --duration 2s";
    let record = json(&format!("run {flags} --json -"));
    let thrash = &record["runs"][0]["thrash"];
    assert_ne!(thrash["ended"], "complete", "{thrash}");
    assert!(thrash["reason"].as_str().unwrap().contains("raise memory.max"), "{thrash}");
    assert!(thrash["ended"] != "no-progress" || thrash["misses_per_drop"].is_null(), "{thrash}");
    let text = stdout(&format!("run {flags}"));
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
        (
            "--memory-high 2g --memory-max 1g",
            &["--memory-high: 2g is above memory.max of 1g", "lower"],
        ),
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
