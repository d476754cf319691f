//! Jobs on the running kernel: results, refusals, and cleanup.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::running::{Running, signal};
use crate::skip::skip;
use crate::{Scratch, filemap, has_disk, stderr};

const JOB: &str = "run --on kernel --workload random --file-size 1m";

/// Runs until it is killed.
const ENDLESS: &str = "--workload random --file-size 16m --accesses 1000000 --runs 100000";

/// A command whose journals and temporary files are in a directory of its own.
fn in_scratch(scratch: &Scratch, args: &str) -> Command {
    let mut command = filemap(args);
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    command
}

/// Runs the command; it must fail with `code` and one line that has all of `words`.
#[track_caller]
fn fails(args: &str, code: i32, words: &[&str]) {
    let output = filemap(args).output().expect("the command starts");
    one_line(args, &output, code, words);
}

#[track_caller]
fn one_line(args: &str, output: &Output, code: i32, words: &[&str]) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{args}: {message}");
    assert!(message.starts_with("filemap: "), "{args}: {message}");
    assert_eq!(message.matches('\n').count(), 1, "{args}: {message}");
    for word in words {
        assert!(message.contains(word), "{args}: no '{word}' in: {message}");
    }
    assert!(output.stdout.is_empty(), "{args}");
}

/// stdout of the command; `None`, with a printed note, if it cannot run here.
fn json(command: &mut Command) -> Option<Value> {
    let output = command.output().expect("the command starts");
    if output.status.code() == Some(4) {
        skip(stderr(&output));
        return None;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    Some(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

#[test]
fn refuses_rules_of_other_kernels() {
    if !has_disk() {
        return;
    }
    for (flags, words) in [
        ("--with mmap-miss", &["miss-fault-address", "--image", "--on model"] as &[&str]),
        ("--ram 1g", &["--memory-max", "--on model"]),
        ("--kernel 6.12", &["--kernel 6.12", "leave it out", "--on model"]),
        ("--cache-limit 512k", &["--memory-max"]),
        ("--fault-around 32k", &["32768 bytes", "--change-settings", "--fault-around"]),
        ("--arch arm64 --page-size 16k --accesses 1", &["arm64", "--arch and --page-size"]),
        ("--accesses 100000000", &["100000000 accesses", "--accesses"]),
    ] {
        fails(&format!("{JOB} {flags}"), 4, words);
    }
    fails(&format!("{JOB} --image /no/such/kernel"), 2, &["/no/such/kernel", "bzImage"]);
    fails(&format!("{JOB} --image /proc/self/exe"), 2, &["boot header", "bzImage"]);
    let scratch = Scratch::new("kernel_variants");
    let program = scratch.file("program.toml", crate::programs::PROGRAM);
    for job in ["--workload first --file-size 1m --accesses 1", "--workload thrash", &program] {
        let compare = format!("compare {job} --on model,kernel --variants baseline,vma-bound");
        fails(&compare, 4, &["vma-bound", "in the running kernel", "--image"]);
    }
    fails("run --on kernel --workload first --accesses 1 --file-size 512p", 4, &["no room"]);
    for (args, words) in [
        ("run --workload first --file-size 1m --modules /lib", &["--image is missing"] as &[&str]),
        ("run --image a --image b --workload first --file-size 1m", &["--image", "multiple times"]),
        ("run --on model --image /boot --workload first --file-size 1m", &["--on kernel"]),
    ] {
        fails(args, 2, words);
    }
}

#[test]
fn refuses_unusable_files() {
    let scratch = Scratch::new("kernel_files");
    let (missing, directory) = (scratch.path("missing"), scratch.path(""));
    let empty = scratch.file("empty", "");
    let small = scratch.file("small", [1; 10_000]);
    let run = |flags: &str| format!("run --on kernel --workload first --accesses 1 {flags}");
    for (path, words) in [
        (&missing, &["missing", "no such file"]),
        (&directory, &["kernel_files", "it is a directory"]),
        (&empty, &["empty", "it is empty"]),
        (&"/dev/null".to_string(), &["/dev/null", "no regular file"]),
    ] {
        fails(&run(&format!("--file {path}")), 2, words);
    }
    fails(&run(&format!("--file {small} --file-size 1m")), 2, &["--file-size 1m", "10000"]);
    if Path::new("/dev/shm").is_dir() {
        let path = format!("/dev/shm/filemap-test-{}", std::process::id());
        if fs::write(&path, [1; 4096]).is_err() {
            return skip("/dev/shm is not ours to write to");
        }
        let output = filemap(&run(&format!("--file {path}"))).output().unwrap();
        fs::remove_file(&path).unwrap();
        one_line("--file on tmpfs", &output, 4, &["lives in memory", "on a disk"]);
    } else {
        skip("a file in memory: there is no /dev/shm");
    }
}

#[test]
fn a_file_with_another_readahead_size_is_refused() {
    if !has_disk() {
        return;
    }
    let scratch = Scratch::new("kernel_read_ahead");
    let path = scratch.file("file", [1; 10_000]);
    let args =
        format!("run --on kernel --workload first --accesses 1 --read-ahead-kb 20 --file {path}");
    fails(&args, 4, &["20 KiB", "--read-ahead-kb", "--file"]);
}

#[test]
fn cached_file_is_dropped_only_on_request() {
    let scratch = Scratch::new("kernel_hot");
    let path = scratch.file("file", vec![1; 4 << 20]);
    let job =
        format!("run --on kernel --workload sequential --accesses 1024 --file {path} --json -");
    let run = |flags: &str| in_scratch(&scratch, &format!("{job} {flags}")).output().unwrap();
    let Some(record) = json(&mut in_scratch(&scratch, &format!("{job} --cold"))) else { return };
    assert!(record["command"].as_str().unwrap().contains(" --cold"), "{record}");
    // Pages that a run leaves in the cache do not prevent the next run.
    let again = run("");
    assert!(again.status.success(), "{}", stderr(&again));
    fs::read(&path).unwrap();
    for command in ["run", "explain", "conform"] {
        let args = job.replacen("run --on kernel", command, 1);
        let flags = if command == "explain" { "--on kernel" } else { "" };
        let args = if command == "run" { job.clone() } else { format!("{args} {flags}") };
        let output = in_scratch(&scratch, &args).output().unwrap();
        let message = stderr(&output);
        if message.contains("tracefs") || message.contains("needs root") {
            skip(message);
            continue;
        }
        one_line(&args, &output, 4, &["1024 of the 1024 pages", "--cold"]);
    }
    assert_nothing_left(&scratch);
}

/// The governor follows before the first access, so that even this access reads no window.
#[test]
fn governed_job_reads_match_the_model() {
    let scratch = Scratch::new("kernel_governed");
    let read = |engine: &str| {
        let job = "--workload random --file-size 64m --read-ahead-kb 8192 --accesses 100";
        let args = format!("run --on {engine} {job} --governor --json -");
        let record = json(&mut in_scratch(&scratch, &args))?;
        record["runs"][0]["counters"]["data_pages_read"].as_u64()
    };
    let (Some(kernel), Some(model)) = (read("kernel"), read("model")) else { return };
    // If advice is too late, the kernel reads the page with some more around it.
    assert!(kernel < 3 * model, "{kernel} pages on the kernel, {model} in the model");
    assert_nothing_left(&scratch);
}

#[test]
fn no_temporary_directory() {
    if !has_disk() {
        return;
    }
    let output = filemap(JOB).env("TMPDIR", "/no/such/directory").output().unwrap();
    assert_eq!(stderr(&output).matches('\n').count(), 1, "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains(
            "the directory '/no/such/directory' of TMPDIR, which does not exist, is not available"
        ),
        "{}",
        stderr(&output)
    );
    if Path::new("/dev/shm").is_dir() {
        let output = filemap(JOB).env("TMPDIR", "/dev/shm").output().unwrap();
        one_line("TMPDIR in memory", &output, 4, &["lives in memory", "on a disk"]);
    } else {
        skip("TMPDIR in memory: there is no /dev/shm");
    }
}

#[test]
fn a_job_runs() {
    let scratch = Scratch::new("kernel_runs");
    let job = "--workload sequential --file-size 8m --accesses 2048 --runs 2";
    let mut command = in_scratch(&scratch, &format!("run --on kernel {job} --json -"));
    let Some(record) = json(&mut command) else { return };
    assert_eq!(record["engine"], "kernel");
    assert_eq!(record["runs"].as_array().unwrap().len(), 2);
    let counters = &record["runs"][0]["counters"];
    assert_eq!((&counters["accesses"], &counters["data_pages_read"]), (&2048.into(), &2048.into()));
    assert_eq!(counters["mmap_miss"], Value::Null);
    assert!(record["runs"][0]["vmstat"]["pgfault"].as_i64() > Some(0), "{record}");
    assert!(record["command"].as_str().unwrap().contains("--on kernel"));
    assert!(record["environment"]["command_line"].as_str().unwrap().contains("--runs 2"));
    assert_nothing_left(&scratch);
}

#[test]
fn model_and_kernel_in_one_table() {
    let scratch = Scratch::new("kernel_compare");
    let job = "--workload random --file-size 64m --accesses 500 --json -";
    let mut command = in_scratch(&scratch, &format!("compare --on model,kernel {job}"));
    let Some(report) = json(&mut command) else { return };
    let cells = report["cells"].as_array().unwrap();
    let engines: Vec<_> = cells.iter().map(|cell| cell["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["model", "kernel"]);
    if cells[0]["job"]["kernel"] == "6.18" {
        for name in ["bytes_read", "major_faults"] {
            let median = |cell: &Value| cell["figures"][name]["median"].as_f64().unwrap();
            let (model, kernel) = (median(&cells[0]), median(&cells[1]));
            assert!((kernel / model - 1.0).abs() <= 0.01, "{name}: {model}, {kernel}");
        }
    } else {
        skip(format!("the rules of {} are not compared", cells[0]["job"]["kernel"]));
    }
    assert_nothing_left(&scratch);
}

#[test]
fn interrupt_undoes_changes() {
    for flags in ["", "--read-ahead-kb 64 --fs ext4"] {
        let scratch = Scratch::new("kernel_interrupt");
        let Some(child) = started(&scratch, &format!("{ENDLESS} {flags}")) else { continue };
        child.signal("INT");
        assert_eq!(child.output().status.code(), Some(130));
        assert_nothing_left(&scratch);
    }
}

#[test]
fn killed_probe_is_an_error() {
    let scratch = Scratch::new("kernel_killed_probe");
    let Some(mut child) = started(&scratch, ENDLESS) else { return };
    let pid = child.id();
    // A probe that has finished does not notice; the next run's probe does.
    child.until_end(|| {
        probe_of(pid).map(|probe| signal("KILL", probe));
    });
    one_line("killed probe", &child.output(), 1, &["killed by signal 9", "memory"]);
    assert_nothing_left(&scratch);
}

#[test]
fn next_start_cleans_up_after_killed_command() {
    let scratch = Scratch::new("kernel_killed");
    let flags = "--read-ahead-kb 64 --fs ext4";
    let Some(mut child) = started(&scratch, &format!("{ENDLESS} {flags}")) else { return };
    child.signal("KILL");
    child.until_end(|| {});
    assert!(fs::read_dir(scratch.path("state")).unwrap().next().is_some(), "nothing to undo");
    let output = in_scratch(&scratch, "run --workload first --file-size 1m").output().unwrap();
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    assert_nothing_left(&scratch);
}

#[test]
fn killed_conform_is_cleaned_up() {
    let scratch = Scratch::new("kernel_killed_conform");
    let mut child = Running::start(&mut in_scratch(&scratch, "conform"));
    let has_traced = || {
        let journals = fs::read_dir(scratch.path("state")).into_iter().flatten().flatten();
        let texts = journals.filter_map(|journal| fs::read_to_string(journal.path()).ok());
        texts.into_iter().any(|text| text.contains(" trace ") && text.contains(" loop "))
    };
    if !child.reaches(has_traced) {
        return skipped(child);
    }
    child.signal("KILL");
    child.until_end(|| {});
    let output = in_scratch(&scratch, "run --workload first --file-size 1m").output().unwrap();
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    assert_nothing_left(&scratch);
}

#[test]
fn shrinking_file_ends_the_job() {
    let scratch = Scratch::new("kernel_shrinks");
    let path = scratch.file("file", vec![1; 16 << 20]);
    let job = ENDLESS.replace("--file-size 16m", &format!("--cold --file {path}"));
    let Some(child) = started(&scratch, &job) else { return };
    File::options().write(true).open(&path).unwrap().set_len(5000).unwrap();
    let output = child.output();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("must not shrink") || message.contains("has 5000 bytes"), "{message}");
    assert_eq!(message.matches('\n').count(), 1, "{message}");
}

#[test]
fn doctor_names_what_is_missing() {
    let scratch = Scratch::new("kernel_doctor");
    let Some(report) = json(&mut in_scratch(&scratch, "doctor --json -")) else { return };
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() > 5);
    for check in checks {
        assert!(check["here"].is_string() && check["ok"].is_boolean(), "{check}");
    }
    let text = in_scratch(&scratch, "doctor").env_remove("TMPDIR").output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 75), "{text}");
    assert_nothing_left(&scratch);
}

/// Starts a job on the kernel and waits for its first probe; `None` where it cannot run.
fn started(scratch: &Scratch, job: &str) -> Option<Running> {
    let mut child = Running::start(&mut in_scratch(scratch, &format!("run --on kernel {job}")));
    let pid = child.id();
    if !child.reaches(|| probe_of(pid).is_some()) {
        skipped(child);
        return None;
    }
    sleep(Duration::from_millis(50));
    Some(child)
}

/// Prints why a command that exited immediately cannot run here.
#[track_caller]
fn skipped(child: Running) {
    let output = child.output();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    skip(stderr(&output));
}

/// A child of any thread of the process.
fn probe_of(pid: u32) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    tasks.flatten().find_map(|task| {
        let children = fs::read_to_string(task.path().join("children")).ok()?;
        children.split_whitespace().find_map(|child| {
            let line = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?;
            child.parse().ok().filter(|_| line.contains("__filemap-probe"))
        })
    })
}

/// No file, mount or journal is left in the directory.
#[track_caller]
fn assert_nothing_left(scratch: &Scratch) {
    let state = scratch.path("state");
    let left: Vec<_> = fs::read_dir(&state).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&state), "{mounts}");
    let files = fs::read_dir(scratch.path("")).unwrap().flatten();
    let files = files.filter(|entry| entry.file_name() != "state" && entry.file_name() != "file");
    assert_eq!(files.count(), 0);
}
