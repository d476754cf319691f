//! What `filemap govern` remembers of files, its metrics, and what it does with recordings.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::governed::Place;
use crate::{schema, skip, stderr};

/// A program that reads a file at random, governed with a memory.
struct Remembered {
    place: Place,
    program: String,
    data: String,
    memory: String,
}

impl Remembered {
    fn new(test: &str) -> Remembered {
        let place = Place::new(test);
        let [program, data] = place.lookups();
        let memory = place.scratch.path("memory");
        Remembered { place, program, data, memory }
    }

    fn govern(&self, flags: &str, words: &str) -> Output {
        let mut command = self.place.filemap(&format!("{flags} --memory {}{words}", self.memory));
        // A program that exits immediately is not worth stopping.
        command.env("LOOKUPS_PAUSE_US", "2000").output().expect("the command starts")
    }

    /// Runs the program governed. Returns what was done with its file; `None` if nothing is
    /// governed here, which is said.
    fn done(&self, flags: &str) -> Option<String> {
        let report = self.place.scratch.path("report.json");
        let words = format!(" --json {report} -- {} {} 100", self.program, self.data);
        // What is cached shows nothing of readahead.
        let data = fs::File::open(&self.data).unwrap();
        data.sync_all().unwrap();
        rustix::fs::fadvise(&data, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let output = self.govern(flags, &words);
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
        schema::check("govern", &report);
        let done = report["files"][0]["done"].as_str().map(str::to_string);
        if done.is_none() || report["processes"][0]["observer"] == "pagemap" {
            skip(report["ungoverned"].as_str().unwrap_or("there are no perf events"));
            return None;
        }
        assert_eq!(report["files"][0]["path"], self.data.as_str());
        done
    }

    fn memories(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.memory).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        // What a device costs is kept beside what was touched.
        paths.filter(|path| path.extension().is_some_and(|own| own == "touches")).collect()
    }
}

#[test]
fn second_run_acts_by_what_first_has_touched() {
    let bench = Remembered::new("govern_memory");
    let Some(first) = bench.done("") else { return };
    assert_eq!(first, "watched only: first time");
    let memories = bench.memories();
    assert_eq!(memories.len(), 1);
    let Some(second) = bench.done("") else { return };
    assert!(second.contains("touched") && !second.contains("first time"), "{second}");
    assert_eq!(bench.memories(), memories);

    fs::write(&memories[0], "filemap touches 7\n").unwrap();
    let Some(damaged) = bench.done("") else { return };
    assert!(damaged.starts_with("watched only: '") && damaged.ends_with("is ignored"), "{damaged}");
    let Some(replaced) = bench.done("") else { return };
    assert!(!replaced.contains("watched"), "{replaced}");

    let forgotten = bench.govern("--forget", &format!(" {}", bench.data));
    assert!(forgotten.status.success() && bench.memories().is_empty(), "{}", stderr(&forgotten));
    let again = bench.govern("--forget", &format!(" {}", bench.data));
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("nothing is remembered of"), "{}", stderr(&again));
    let Some(first) = bench.done("") else { return };
    assert_eq!(first, "watched only: first time");
    let all = bench.govern("--forget", "");
    assert!(stderr(&all).contains("1 file is forgotten"), "{}", stderr(&all));
}

#[test]
fn memory_that_cannot_be_kept_is_said() {
    let bench = Remembered::new("govern_no_memory");
    fs::write(&bench.memory, "no directory").unwrap();
    let output = bench.govern("", " -- true");
    assert!(output.status.success());
    assert!(stderr(&output).contains("nothing is remembered"), "{}", stderr(&output));
}

#[test]
fn recording_takes_place_of_first_run() {
    let bench = Remembered::new("govern_plan");
    let recording = bench.place.scratch.path("lookups.recording");
    let words = format!("-o {recording} -- {} {} 100", bench.program, bench.data);
    let recorded = bench.place.command("record", &words).output().unwrap();
    if !recorded.status.success() {
        return skip(stderr(&recorded));
    }
    if let Some(done) = bench.done(&format!("--plan {recording}")) {
        assert!(done.contains("touched") && !done.contains("first time"), "{done}");
    }
    let alone = bench.place.filemap(&format!("--prefetch {recording}")).output().unwrap();
    assert!(alone.status.success());
    assert!(stderr(&alone).contains("are in the page cache now"), "{}", stderr(&alone));
    let mut command = bench.place.filemap(&format!("--prefetch {recording} -- sh -c"));
    assert_eq!(command.arg("exit 7").output().unwrap().status.code(), Some(7));
    for (flags, words) in [
        (format!("--prefetch {}", bench.data), "is no recording"),
        ("--prefetch nowhere".to_string(), "nowhere"),
        (format!("--plan {}", bench.data), "neither a recording nor an answer"),
        ("--plan nowhere".to_string(), "nowhere"),
    ] {
        let output = bench.place.filemap(&format!("{flags} -- true")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{flags}: {}", stderr(&output));
    }
}

#[test]
fn metrics_are_what_the_report_has() {
    let bench = Remembered::new("govern_metrics");
    let metrics = bench.place.scratch.path("filemap.prom");
    // A file is only watched at first.
    for _ in 0..2 {
        if bench.done(&format!("--metrics {metrics}")).is_none() {
            return;
        }
    }
    let text = fs::read_to_string(&metrics).unwrap();
    let report = fs::read(bench.place.scratch.path("report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().parse::<u64>().unwrap_or_else(|_| panic!("no {name} in {text}"))
    };
    let mappings = report["processes"].as_array().unwrap().iter();
    let mappings: Vec<&Value> =
        mappings.flat_map(|process| process["mappings"].as_array().unwrap()).collect();
    for (name, key) in [
        ("filemap_govern_major_faults_total", "faults"),
        ("filemap_govern_readahead_bytes_total", "advised_bytes"),
        ("filemap_govern_readahead_calls_total", "calls"),
    ] {
        let all: u64 = mappings.iter().map(|mapping| mapping[key].as_u64().unwrap()).sum();
        assert_eq!(value(name), all, "{name}");
    }
    assert!(value("filemap_govern_major_faults_total") > 0 || !crate::has_disk());
    assert_eq!(value("filemap_govern_running"), 0);
    assert!(text.contains(&format!("filemap_govern_file_info{{file=\"{}\"", bench.data)), "{text}");
    // A second implementation reads it.
    let python = crate::test_python();
    let parse = "import sys; from prometheus_client.openmetrics import parser; \
                 print(len(list(parser.text_string_to_metric_families(open(sys.argv[1]).read()))))";
    let parsed = std::process::Command::new(&python).args(["-c", parse, &metrics]).output();
    match parsed {
        Ok(parsed) if parsed.status.success() => assert_eq!(parsed.stdout, b"10\n"),
        Ok(parsed) if !stderr(&parsed).contains("ModuleNotFoundError") => {
            panic!("{}\n{text}", stderr(&parsed))
        }
        _ => skip(format!("{python} has no prometheus_client")),
    }
}

#[test]
fn metrics_that_cannot_be_written_are_refused() {
    let bench = Remembered::new("govern_metrics_refused");
    for (path, words) in [
        ("/nowhere/filemap.prom", "'/nowhere/filemap.prom' cannot be written"),
        ("-", "stdout is none"),
        ("/dev/null", "no regular file"),
        (bench.program.as_str(), "same file as the program"),
    ] {
        let words_after = format!(" -- {} {} 1", bench.program, bench.data);
        let output = bench.govern(&format!("--metrics {path}"), &words_after);
        let code = output.status.code();
        assert!(code == Some(1) || code == Some(2), "{path}: {code:?} {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{path}: {}", stderr(&output));
    }
}
