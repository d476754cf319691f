//! Programs on a booted kernel, if `FILEMAP_TEST_IMAGE` names one (and `FILEMAP_TEST_MODULES` its
//! modules).

use std::io::{BufRead, BufReader};
use std::process::Output;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::programs::PROGRAM;
use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, stderr};

/// Maximum relative error of the model against the kernel: in pages read, and in pages read of each
/// file.
const PAGES_ERROR: f64 = 0.01;
const FILE_ERROR: f64 = 0.03;

/// Six files, with memory for a third of them.
const SIX_FILES: &str = include_str!("six_files.toml");

/// The flags that boot the image; `None`, with a printed note, if none is named.
fn image() -> Option<String> {
    let Ok(path) = std::env::var("FILEMAP_TEST_IMAGE") else {
        skip("FILEMAP_TEST_IMAGE names no kernel image");
        return None;
    };
    let modules = std::env::var("FILEMAP_TEST_MODULES").ok();
    let modules = modules.map_or(String::new(), |path| format!(" --modules {path}"));
    Some(format!("--image {path}{modules}"))
}

fn output(scratch: &Scratch, args: &str) -> Output {
    let mut command = filemap(args);
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    Running::start(&mut command).output()
}

/// The messages of a command, without the notice that a busy host boots its guest slowly.
fn messages(output: &Output) -> String {
    let text = stderr(output);
    let lines = text.lines().filter(|line| !line.contains("the guest has not booted after"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Leftovers in the directory for the guest's disk, except the journal's.
fn left(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(scratch.path("")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "state" && !name.ends_with(".toml")).collect()
}

fn error(model: &Value, kernel: &Value) -> f64 {
    let pages = |value: &Value| value.as_f64().expect("pages read are known");
    (pages(model) / pages(kernel) - 1.0).abs()
}

#[test]
#[ignore = "boots a guest"]
fn shared_limit_reads_match_the_model() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_program");
    let path = scratch.file("program.toml", SIX_FILES);
    let args = format!("compare {path} --on model,kernel {image} --variants baseline --json -");
    let output = output(&scratch, &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [model, kernel] = [0, 1].map(|cell| &report["cells"][cell]["runs"][0]);
    assert_eq!(report["cells"][1]["engine"], "kernel");
    let read = |value: &Value| value["counters"]["data_pages_read"].clone();
    println!("pages read: model {}, kernel {}", read(model), read(kernel));
    assert!(error(&read(model), &read(kernel)) <= PAGES_ERROR);
    for file in 0..6 {
        let [ours, theirs] = [model, kernel].map(|run| &run["files"][file]);
        println!("{ours}\n{theirs}");
        assert!(error(&ours["data_pages_read"], &theirs["data_pages_read"]) <= FILE_ERROR);
        assert!(theirs["cached"].is_u64());
    }
    let threads = kernel["threads"].as_array().unwrap();
    assert_eq!(threads[0]["counters"]["accesses"], kernel["counters"]["accesses"]);
}

#[test]
#[ignore = "boots a guest"]
fn guest_limitations_are_one_line_errors() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_program_errors");
    let data = scratch.file("data.toml", [0; 8192]);
    let existing = PROGRAM.replace("size = '4m'", &format!("path = '{data}'"));
    let cases = [
        ("path", existing, 4, "give its size instead of its path"),
        ("starved", PROGRAM.replace("'24m'", "'1100k'"), 2, "raise the memory limit"),
        ("behind", PROGRAM.replace("advice = 'random'", "len = '1g'"), 2, "got SIGBUS"),
        ("cpus", format!("cpus = 1000\n{PROGRAM}"), 4, "give cpus ="),
        ("large", format!("ram = '1000g'\n{PROGRAM}"), 4, "a smaller --ram, or smaller files"),
    ];
    for (name, program, code, words) in cases {
        let path = scratch.file(&format!("{name}.toml"), program);
        let output = output(&scratch, &format!("run {path} --on kernel {image}"));
        let error = messages(&output);
        assert_eq!(output.status.code(), Some(code), "{name}: {error}");
        assert!(error.contains(words) && error.lines().count() == 1, "{name}: {error}");
        assert_eq!(left(&scratch), [""; 0], "{name}");
    }
}

#[test]
#[ignore = "boots a guest"]
fn signal_removes_guest() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_program_signal");
    let path = scratch.file("program.toml", PROGRAM);
    for (name, number, wait_ms) in [("INT", 2, 300), ("TERM", 15, 2500)] {
        let mut command = filemap(&format!("run {path} --on kernel --runs 500 {image}"));
        command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
        let running = Running::start(&mut command);
        sleep(Duration::from_millis(wait_ms));
        running.signal(name);
        let output = running.output();
        assert_eq!(output.status.code(), Some(128 + number), "{}", stderr(&output));
        assert_eq!(left(&scratch), [""; 0]);
    }
}

/// Each image is booted once for all jobs and variants.
#[test]
#[ignore = "boots a guest"]
fn jobs_of_several_files_share_the_boots_of_images() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_several");
    let path = std::env::var("FILEMAP_TEST_IMAGE").expect("it is set");
    // Two names for it: two images.
    let images = ["old", "new"].map(|name| scratch.file(name, std::fs::read(&path).unwrap()));
    let modules = image.split_once(" --modules ").map_or("", |(_, modules)| modules);
    let modules = if modules.is_empty() { String::new() } else { format!(" --modules {modules}") };
    let [one, two] = [("one", "random"), ("two", "stride:7")].map(|(name, workload)| {
        let text = format!("workload = '{workload}'\nfile_size = '4m'\naccesses = 50\nruns = 2\n");
        scratch.file(&format!("{name}.toml"), text)
    });
    let [old, new] = &images;
    let compare = format!(
        "compare {one} {two} --on kernel --image {old} --image {new}{modules} --variants \
         baseline,advice=random,read_ahead_kb=16 --seeds 2 --json -"
    );
    let output = output(&scratch, &compare);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 2 * 3);
    for (number, cell) in cells.iter().enumerate() {
        let file = if number < 6 { &one } else { &two };
        assert_eq!(cell["job_file"], file.as_str());
        assert_eq!(cell["runs"].as_array().unwrap().len(), 4);
        // The same kernel under another name makes the same decisions.
        let twin = &cells[if number % 6 < 3 { number + 3 } else { number - 3 }];
        assert_eq!(cell["figures"]["data_pages_read"], twin["figures"]["data_pages_read"]);
        assert_eq!(cell["figures"]["major_faults"], twin["figures"]["major_faults"]);
    }
    // Two jobs in three variants with two seeds each.
    let environment = report["environment"].to_string();
    assert!(environment.contains("1 of 12"), "{environment}");
    for name in images {
        std::fs::remove_file(name).unwrap();
    }
    assert_eq!(left(&scratch), [""; 0]);
}

/// A letter on several jobs names each kernel, and the counter behind each row.
#[test]
#[ignore = "boots a guest"]
fn a_letter_names_the_kernels_that_were_booted() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_letter");
    let path = std::env::var("FILEMAP_TEST_IMAGE").expect("it is set");
    let other = scratch.file("twin", std::fs::read(&path).unwrap());
    let modules = image.split_once(" --modules ").map_or("", |(_, modules)| modules);
    let modules = if modules.is_empty() { String::new() } else { format!(" --modules {modules}") };
    let jobs = [("one.toml", "random"), ("two.toml", "stride:7")].map(|(name, workload)| {
        scratch.file(name, format!("workload = '{workload}'\nfile_size = '4m'\naccesses = 50\n"))
    });
    let compare = format!(
        "compare {} --on kernel --image {path} --image {other}{modules} --seeds 2 --format kernel",
        jobs.join(" ")
    );
    let output = output(&scratch, &compare);
    assert!(output.status.success(), "{}", stderr(&output));
    let letter = String::from_utf8(output.stdout).unwrap();
    let letter_words = letter.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "2 jobs: changes against",
        "Read from device:",
        "Kernels:",
        "uname -v '#",
        "built with ",
        "image sha256 ",
        "major faults: ru_majflt of getrusage(RUSAGE_THREAD)",
        "is the same image as",
        "guest of QEMU ",
        "one, twin, read from device: none with each of 2 seeds",
    ] {
        assert!(letter_words.contains(words), "{words}: {letter}");
    }
    assert!(letter.lines().all(|line| line.len() <= 75), "{letter}");
    std::fs::remove_file(other).unwrap();
}

/// A kernel that loops on its first instruction is reported while the command waits.
#[test]
#[ignore = "boots a guest"]
fn reports_hung_kernel() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_hangs");
    let modules = image.split_once(" --modules ").map(|(_, path)| format!(" --modules {path}"));
    let modules = modules.unwrap_or_default();
    let path = std::env::var("FILEMAP_TEST_IMAGE").expect("it is set");
    let mut bytes = std::fs::read(path).unwrap();
    // After the sectors that run in real mode (Documentation/arch/x86/boot.rst, `setup_sects`).
    let begin = (usize::from(bytes[0x1f1]) + 1) * 512;
    bytes[begin..][..2].copy_from_slice(&[0xeb, 0xfe]);
    let hangs = scratch.file("hangs", bytes);
    let job = "--workload random --file-size 1m --accesses 4";
    let mut command = filemap(&format!("run {job} --on kernel --image {hangs}{modules}"));
    command.env("FILEMAP_STATE", scratch.path("state")).env("TMPDIR", scratch.path(""));
    let mut running = Running::start(&mut command);
    let mut log = String::new();
    BufReader::new(running.stderr()).read_line(&mut log).unwrap();
    let words = format!("filemap: {hangs}: the guest has not booted after 30 s; it is given up");
    assert!(log.starts_with(&words), "{log}");
    running.signal("TERM");
    assert_eq!(running.output().status.code(), Some(143));
    std::fs::remove_file(hangs).unwrap();
    assert_eq!(left(&scratch), [""; 0]);
}

/// Of several images the one that fails is named: one that cannot boot, and one whose job fails.
#[test]
#[ignore = "boots a guest"]
fn names_failing_image() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_named");
    let path = std::env::var("FILEMAP_TEST_IMAGE").expect("it is set");
    let modules = image.split_once(" --modules ").map_or("none", |(_, modules)| modules);
    let other = scratch.file("other", std::fs::read(&path).unwrap());
    let empty = scratch.path("modules");
    std::fs::create_dir(&empty).unwrap();
    let images = format!("--image {path} --image {other}");
    let job = "--workload random --file-size 4m --accesses 5";
    let thrash =
        "--workload thrash --threads 4 --file-size 256k --sparse --duration 500ms --cpus 2";
    for (compare, code, named, words) in [
        (format!("{job} --modules {modules} --modules {empty}"), 4, &other, "--modules takes"),
        (format!("{job} --modules {empty} --modules {modules}"), 4, &path, "--modules takes"),
        (
            format!("{thrash} --modules {modules} --variants baseline,exec-unify"),
            4,
            &path,
            "exec_unify",
        ),
    ] {
        let output = output(&scratch, &format!("compare {compare} --on kernel {images}"));
        let error = messages(&output);
        assert_eq!((output.status.code(), error.lines().count()), (Some(code), 1), "{error}");
        assert!(error.starts_with(&format!("filemap: {named}: ")), "{error}");
        assert!(error.contains(words), "{error}");
    }
    std::fs::remove_file(other).unwrap();
    std::fs::remove_dir(empty).unwrap();
    assert_eq!(left(&scratch), [""; 0]);
}

/// A kernel with a series may have a switch for it. One that has none is refused before a job runs.
#[test]
#[ignore = "boots a guest"]
fn series_of_a_guest_are_switched_or_refused() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_switch");
    let job = "--workload thrash --threads 4 --file-size 256k --sparse --duration 500ms --cpus 2";
    let compare = format!("compare {job} --on kernel {image} --variants");
    let refused = output(&scratch, &format!("{compare} baseline,exec-unify"));
    let error = messages(&refused);
    assert_eq!((refused.status.code(), error.lines().count()), (Some(4), 1), "{error}");
    assert!(error.contains("/proc/sys/vm/exec_unify"), "{error}");
    let switched = output(&scratch, &format!("{compare} baseline,vma-retry --json -"));
    let error = stderr(&switched);
    match switched.status.code() {
        Some(4) => assert!(error.contains("/proc/sys/vm/vma_retry"), "{error}"),
        code => {
            assert_eq!(code, Some(0), "{error}");
            let report: Value = serde_json::from_slice(&switched.stdout).unwrap();
            let held = [0, 1]
                .map(|cell| &report["cells"][cell]["environment"]["series_switches"]["vma_retry"]);
            assert_eq!(held, ["0", "1"], "{report}");
        }
    }
    assert_eq!(left(&scratch), [""; 0]);
}

/// Decisions of a booted kernel equal the model's, as far as its tracepoints show. With another
/// rule, the first difference is named and the job shrunk.
#[test]
#[ignore = "boots a guest"]
fn guest_decisions_match_the_model() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_conform");
    let args = format!("conform {image} --fuzz 3 --seed 4 --json -");
    let conform = output(&scratch, &args);
    let error = stderr(&conform);
    if conform.status.code() == Some(4) && error.contains("none of those that are modelled") {
        skip(error);
        return;
    }
    assert_eq!(conform.status.code(), Some(0), "{error}");
    let report: Value = serde_json::from_slice(&conform.stdout).unwrap();
    crate::schema::check("conform", &report);
    assert_eq!(report["booted"], true);
    let patterns = report["patterns"].as_array().unwrap();
    assert!(patterns.iter().all(|pattern| pattern["ok"] == true), "{patterns:?}");
    let decisions = patterns.iter().map(|pattern| pattern["decisions"].as_u64().unwrap());
    assert!(decisions.sum::<u64>() > 100);
    // By tracepoints or by kprobes.
    let unseen = report["not_shown"].as_array().unwrap().iter();
    let unseen = unseen.filter(|event| event.as_str().unwrap().starts_with("readahead/"));
    assert_eq!(
        unseen.count(),
        0,
        "{}: give a kernel with CONFIG_KPROBE_EVENTS",
        report["not_shown"]
    );
    // Kernels without a switch lack this series, which starts no window before the mapping.
    let job = "--workload random --file-size 4m --map-offset 1m --map-len 64k --accesses 4";
    let args = format!("conform {image} {job} --with vma-bound --json -");
    let differs = output(&scratch, &args);
    if differs.status.code() == Some(0) {
        skip("this kernel has vma-bound");
        return;
    }
    assert_eq!(differs.status.code(), Some(1), "{}", stderr(&differs));
    let report: Value = serde_json::from_slice(&differs.stdout).unwrap();
    let first = &report["patterns"][0]["first_mismatch"];
    assert_ne!(first["model"][0], first["kernel"][0], "{report}");
    assert_eq!(first["access"], 0);
    assert_eq!(left(&scratch), [""; 0]);
}

/// A reason that prevents all comparisons is reported once, and nothing else is.
#[test]
#[ignore = "boots a guest"]
fn conform_of_a_kernel_that_runs_no_pattern_is_one_line() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_no_pattern");
    let image = image.split_once(" --modules ").map_or(&*image, |(image, _)| image);
    let empty = scratch.path("modules");
    std::fs::create_dir(&empty).unwrap();
    let all = filemap_study::conform::built_in().len();
    for (what, patterns) in [("", all), (" --fuzz 3", 3)] {
        let output = output(&scratch, &format!("conform {image} --modules {empty}{what}"));
        let error = messages(&output);
        if error.contains("none of those that are modelled") {
            skip(error);
            return;
        }
        assert_eq!((output.status.code(), error.lines().count()), (Some(4), 1), "{error}");
        let words = format!("filemap: none of {patterns} patterns can run here: no modules for");
        assert!(error.starts_with(&words), "{error}");
        assert!(output.stdout.is_empty(), "{what}");
    }
    std::fs::remove_dir(empty).unwrap();
    assert_eq!(left(&scratch), [""; 0]);
}

/// `explain` uses the guest's own log.
#[test]
#[ignore = "boots a guest"]
fn guest_logs_decisions() {
    let Some(image) = image() else { return };
    let scratch = Scratch::new("guest_log");
    let job = "--workload random --file-size 8m --accesses 60";
    let path = scratch.path("log");
    let run = output(&scratch, &format!("run {job} {image} --log {path} --json -"));
    assert!(run.status.success(), "{}", stderr(&run));
    let record: Value = serde_json::from_slice(&run.stdout).unwrap();
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| crate::schema::check("log-kernel", line));
    let added = lines.iter().filter(|line| line["decision"] == "added");
    let pages = |line: &Value| line["folios"].as_u64().unwrap() << line["order"].as_u64().unwrap();
    let added: u64 = added.map(pages).sum();
    assert_eq!(record["runs"][0]["counters"]["data_pages_read"], added);
    std::fs::remove_file(path).unwrap();
    let explain = output(&scratch, &format!("explain {job} {image} --json -"));
    assert!(explain.status.success(), "{}", stderr(&explain));
    let report: Value = serde_json::from_slice(&explain.stdout).unwrap();
    crate::schema::check("explain", &report);
    let read = |cause: &Value| cause["pages"].as_u64().unwrap();
    let causes = report["causes"].as_array().unwrap();
    assert_eq!(causes.iter().map(read).sum::<u64>(), added);
    assert_eq!(left(&scratch), [""; 0]);
}
