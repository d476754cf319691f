//! Programs on the running kernel: counters, failures, and cleanup.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::programs::PROGRAM;
use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, has_disk, stderr};

/// The program of the other tests, without its memory limit.
fn that_fits() -> String {
    PROGRAM.replace("memory_max = '24m'\n", "")
}

/// Output of the command with `args`; `None`, with a printed note, if it cannot run here.
#[track_caller]
fn output(scratch: &Scratch, args: &str) -> Option<std::process::Output> {
    if !has_disk() {
        return None;
    }
    let mut command = filemap(args);
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    let output = Running::start(&mut command).output();
    if output.status.code() == Some(4) {
        skip(stderr(&output));
        return None;
    }
    Some(output)
}

#[track_caller]
fn json(scratch: &Scratch, args: &str) -> Option<Value> {
    let output = output(scratch, args)?;
    assert!(output.status.success(), "{args}: {}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

#[test]
fn both_engines_count_the_same_by_file() {
    let scratch = Scratch::new("live_program");
    let path = scratch.file("program.toml", that_fits());
    let args = format!("compare {path} --on model,kernel --kernel host --runs 2 --json -");
    let Some(report) = json(&scratch, &args) else { return };
    let [model, kernel] = [0, 1].map(|cell| &report["cells"][cell]);
    assert_eq!((&model["engine"], &kernel["engine"]), (&"model".into(), &"kernel".into()));
    assert_eq!(kernel["runs"].as_array().unwrap().len(), 2);
    for figure in ["data_pages_read", "major_faults", "cached"] {
        for file in [0, 1] {
            let median = |cell: &Value| cell["figures"]["files"][file][figure]["median"].clone();
            assert_eq!(median(model), median(kernel), "{figure} of file {file}");
        }
    }
    let phases = kernel["runs"][0]["phases"].as_array().unwrap();
    assert_eq!(phases[0]["counters"]["accesses"], 500);
    assert_eq!(phases[2]["counters"]["data_pages_read"], 0, "the scan had read it");
}

#[test]
fn decisions_are_compared_file_by_file() {
    let scratch = Scratch::new("live_program_conform");
    let will_need = "[[thread.phase]]\nmapping = 'tree'\nmadvise = 'willneed'\n";
    let path = scratch.file("program.toml", that_fits() + will_need);
    let Some(report) = json(&scratch, &format!("conform {path} --json -")) else { return };
    let patterns = report["patterns"].as_array().unwrap();
    let names: Vec<&str> = patterns.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["file data", "file index"]);
    for pattern in patterns {
        assert_eq!(pattern["mismatches"], 0, "{pattern}");
        assert!(pattern["decisions"].as_u64() > Some(100), "{pattern}");
    }
}

/// Four threads that read one file through two opens, with think time, on one CPU.
const THREADS: &str = "cpus = 1\nanonymous = '1m'\n
[[file]]\nname = 'data'\nsize = '8m'\n
[[open]]\nname = 'a'\nfile = 'data'\n[[open]]\nname = 'b'\nfile = 'data'\n
[[mapping]]\nname = 'm'\nopen = 'a'\n
[[thread]]\nname = 'scan'\n[[thread.phase]]\nopen = 'b'\nworkload = 'read-sequential'\n
bs = '64k'\naccesses = 128\nthink_ns = 10000\n
[[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'sequential'\naccesses = 2048\n
[[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'reverse'\naccesses = 2048\n
[[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'random'\naccesses = 700\n";

#[test]
fn counts_threads_each_and_total() {
    let scratch = Scratch::new("live_program_threads");
    let path = scratch.file("threads.toml", THREADS);
    let args = format!("run {path} --on kernel --json -");
    let Some(record) = json(&scratch, &args) else { return };
    let run = &record["runs"][0];
    assert_eq!(run["files"][0]["data_pages_read"], 2048);
    assert_eq!(run["files"][0]["cached"], 2048);
    let threads = run["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 4);
    assert_eq!(threads[0]["name"], "scan");
    let thought_ns = 128 * 10_000;
    assert!(threads[0]["elapsed_ns"].as_u64() > Some(thought_ns), "{threads:?}");
    let pages = threads.iter().map(|thread| thread["counters"]["data_pages_read"].as_u64());
    assert_eq!(pages.sum::<Option<u64>>(), Some(2048));
    let error = stderr(&filemap(&format!("conform {path}")).output().unwrap());
    assert!(error.contains("4 threads") && error.contains("filemap compare"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn failed_program_is_a_one_line_error() {
    let scratch = Scratch::new("live_program_ends");
    let behind = that_fits().replace("advice = 'random'", "len = '1g'");
    let behind = scratch.file("behind.toml", behind);
    let tight = PROGRAM.replace("memory_max = '24m'\nanonymous = '1m'", "memory_max = '4m'");
    let held = scratch.file("held.toml", format!("anonymous = '3900k'\n{tight}"));
    for (path, words) in [(behind, "got SIGBUS"), (held, "out of memory in 4194304 bytes")] {
        let Some(output) = output(&scratch, &format!("run {path} --on kernel")) else { return };
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(words), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let many = scratch.file("many.toml", THREADS.replace("cpus = 1", "cpus = 4096"));
    let output = filemap(&format!("run {many} --on kernel")).output().unwrap();
    let error = stderr(&output);
    assert_eq!((output.status.code(), error.lines().count()), (Some(4), 1), "{error}");
}

#[test]
fn signal_cleans_up() {
    let scratch = Scratch::new("live_program_signal");
    let slow = that_fits().replace("think_ns = 1000", "think_ns = 1000000000");
    let path = scratch.file("slow.toml", format!("read_ahead_kb = 64\n{slow}"));
    if output(&scratch, &format!("run {} --on kernel", scratch.file("quick.toml", that_fits())))
        .is_none()
    {
        return;
    }
    let mut command = filemap(&format!("run {path} --on kernel"));
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    let running = Running::start(&mut command);
    sleep(Duration::from_secs(2));
    running.signal("INT");
    let ended = running.output();
    if ended.status.code() == Some(4) {
        return skip(stderr(&ended));
    }
    // After two seconds there is a line of progress.
    let error = stderr(&ended);
    let is_progress = |line: &str| line.starts_with("filemap: ") && line.contains(" of 1 jobs");
    assert!(error.lines().all(is_progress), "{error}");
    assert_eq!(ended.status.code(), Some(130));
    let state = fs::read_dir(scratch.path("state")).unwrap().flatten();
    let left: Vec<_> = state.map(|entry| entry.file_name()).collect();
    let is_left = |name: &std::ffi::OsString| name.to_string_lossy().contains("scratch");
    assert!(!left.iter().any(is_left), "{left:?}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&scratch.path("state")), "{mounts}");
}

#[test]
fn an_existing_file_is_used_in_place() {
    let scratch = Scratch::new("live_program_existing");
    let data = scratch.file("data", vec![7; 4 << 20]);
    fs::File::open(&data).unwrap().sync_all().unwrap();
    let before = fs::metadata(&data).unwrap();
    let tables = format!(
        "[[file]]\nname = 'data'\npath = '{data}'\n[[file]]\nname = 'own'\nsize = '1m'\n\
         [[open]]\nname = 'o'\nfile = 'data'\n[[open]]\nname = 'p'\nfile = 'own'\n\
         [[mapping]]\nname = 'm'\nopen = 'o'\nprivate = true\n[[thread]]\n\
         [[thread.phase]]\nmapping = 'm'\nworkload = 'sequential'\naccesses = 1024\n\
         [[thread.phase]]\nmapping = 'm'\npages = [1, 2, 3]\nwrite = true\n\
         [[thread.phase]]\nopen = 'p'\nworkload = 'read-sequential'\nbs = '64k'\naccesses = 16\n"
    );
    let path = scratch.file("program.toml", tables);
    // Freshly written pages are cached and would have to be evicted.
    let hot = output(&scratch, &format!("run {path} --on kernel"));
    assert!(hot.is_none_or(|output| output.status.code() == Some(4)));
    let cold = output(&scratch, &format!("run {path} --on kernel --cold"));
    assert!(cold.is_none_or(|output| output.status.success()));
    let dropped = filemap_kernel::cold_cache::drop_file(data.as_ref());
    if let Err(error) = dropped {
        return skip(error);
    }
    let Some(record) = json(&scratch, &format!("run {path} --on kernel --json -")) else { return };
    let files = &record["runs"][0]["files"];
    assert_eq!(files[0]["data_pages_read"], 1024);
    assert_eq!(files[1]["data_pages_read"], 256);
    let after = fs::metadata(&data).unwrap();
    assert_eq!((after.mtime_nsec(), after.len()), (before.mtime_nsec(), before.len()));
    assert_eq!(fs::read(&data).unwrap(), vec![7; 4 << 20], "nothing is written to it");
}
