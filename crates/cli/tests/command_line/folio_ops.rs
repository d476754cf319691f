//! The workload `folio-ops`: operations over folios with every way to count, in the small mm here.

use std::process::Command;

use serde_json::Value;

use crate::bad_input::fails;
use crate::running::Running;
use crate::skip::skip;
use crate::{Scratch, filemap, json, stdout};

/// A part of a second.
const SMALL: &str = "--workload folio-ops --file-size 4m --folio-sizes 4k,16k --runs 2";

const WAYS: [&str; 5] =
    ["page-mapcount", "plain-counts", "mm-owner", "no-page-mapcount", "precise-owners"];

#[test]
fn a_record_has_every_cell_of_every_repeat() {
    let record = json(&format!("run {SMALL} --json -"));
    assert_eq!(record["job"]["folio_sizes"], "4k,16k");
    assert_eq!(record["engine"], "model");
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let run = &run["folio_ops"];
        assert!(run["locked_ns"].as_f64() > Some(0.0), "{run}");
        for cell in run["cells"].as_array().unwrap() {
            check_copies(cell);
        }
    }
    let compared = record["compared"].as_array().unwrap();
    assert_eq!(compared.len(), 2 * 7);
    for of in compared {
        let ways = of["configurations"].as_array().unwrap();
        let names: Vec<_> = ways.iter().map(|way| way["counters"].as_str().unwrap()).collect();
        let threads = of["operation"].as_str().unwrap().starts_with("anon-cow");
        let alone = WAYS.into_iter().filter(|way| !threads || *way != "plain-counts");
        assert!(names.iter().copied().eq(alone), "{names:?}");
        assert!(ways[0]["change"].is_null() && ways[1]["change"]["percent"].is_object());
    }
    let command = record["command"].as_str().unwrap();
    assert_eq!(json(&format!("{} --json -", &command["filemap ".len()..]))["job"], record["job"]);
}

/// What is copied does not depend on time: with owners no page that has one owner left.
fn check_copies(cell: &Value) {
    let counts = (cell["copied"].as_u64(), cell["reused"].as_u64());
    let single = cell["folio_bytes"] == 4096;
    let unknown = ["page-mapcount", "plain-counts"].contains(&cell["counters"].as_str().unwrap());
    match cell["operation"].as_str().unwrap() {
        "munmap" | "fork" => assert_eq!(counts, (None, None), "{cell}"),
        "reuse-byte" | "child-reuse-byte" if single || !unknown => {
            assert_eq!(counts, (Some(0), Some(1024)), "{cell}");
        }
        "cow-byte" | "reuse-byte" | "child-reuse-byte" => {
            assert_eq!(counts, (Some(1024), Some(0)), "{cell}");
        }
        _ => assert!(counts.0 > Some(0) && counts.1 == Some(0), "{cell}"),
    }
    assert!(cell["ns_per_page"].as_f64() > Some(0.0), "{cell}");
}

#[test]
fn reports_are_a_page_wide_and_rows_are_flat() {
    let text = stdout(&format!("run {SMALL}"));
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "munmap: change of the time of a page in %",
        "fork: saving of a page in L",
        "with a fault's cost added",
        "- is faster",
        "+ is faster",
        "The MAD is the median of",
        "Pages that write faults copied",
        "~ marks all changes",
        "real atomics in real time",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("rules of Linux"), "{text}");
    assert!(!text.contains("byte: saving"), "writes do more than count: {text}");
    let is_left_out = text.contains("Two threads on one folio are left out");
    assert!(is_left_out != text.contains("Two threads that map and unmap one folio"), "{text}");
    let csv = stdout(&format!("run {SMALL} --format csv"));
    assert!(csv.starts_with("engine,repeat,folio_bytes,operation,counters,ns_per_page,"), "{csv}");
    let rows = |word: &str| csv.lines().filter(|line| line.contains(word)).count();
    assert_eq!((rows(",munmap,"), rows(",anon-cow-seq,")), (2 * 2 * 5, 2 * 2 * 4));
    let markdown = stdout(&format!("run {SMALL} --format markdown"));
    let headings = ["| 16 KiB |", "| no-page-mapcount |", "| page-mapcount |"];
    assert!(headings.iter().all(|heading| markdown.contains(heading)), "{markdown}");
    assert!(stdout(&format!("run {SMALL} --verbose")).contains("plain-counts"));
}

#[test]
fn what_does_not_go_with_it_is_told_with_the_remedy() {
    for (args, words) in [
        ("run", &["--with p1", "--with", "side by side"][..]),
        ("run", &["--image x", "--image", "leave it out"]),
        ("run", &["--threads 2", "--threads", "leave it out"]),
        ("run", &["--log -", "--log", "--format csv"]),
        ("run", &["--svg x.svg", "--svg", "--format csv"]),
        ("run", &["--seeds 3", "--seeds", "--runs"]),
        ("run", &["--apply", "--apply", "--on kernel"]),
        ("run", &["--runs 0", "--runs", "1 to"]),
        ("run", &["--runs 1001", "--runs", "1 to 1000"]),
        ("compare", &["--variants baseline,p1", "compare", "filemap run"]),
        ("conform", &["", "conform", "filemap run"]),
        ("explain", &["", "--mapped is missing", "filemap run"]),
    ] {
        fails(&format!("{args} --workload folio-ops {}", words[0]), 2, &words[1..]);
    }
    for (flags, words) in [
        ("--file-size 3m", ["--file-size: 3m", "2m or 4m"]),
        ("--file-size 64k", ["--file-size: 64k", "2m to 1t"]),
        ("--folio-sizes 12k", ["--folio-sizes: 12k", "power of two"]),
        ("--folio-sizes 4m", ["--folio-sizes: 4m", "4k to 2m"]),
        ("--folio-sizes 16k,16k", ["--folio-sizes: 16k", "give it once"]),
    ] {
        fails(&format!("run --workload folio-ops {flags}"), 2, &words);
    }
    let too_large = "run --workload folio-ops --file-size 1t --folio-sizes 2m";
    fails(too_large, 4, &["--file-size 1t", "of memory are needed", "are available"]);
    let other = "--file-size 1m --folio-sizes 16k";
    fails(&format!("run --workload first {other}"), 2, &["--folio-sizes", "folio-ops"]);
    fails(&format!("run --workload thrash {other}"), 2, &["--folio-sizes", "folio-ops"]);
}

#[test]
fn with_one_cpu_it_says_what_is_left_out() {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_filemap"), "run"]).args(SMALL.split(' '));
    let Ok(output) = command.output() else { return skip("there is no taskset") };
    if !output.status.success() {
        return skip("CPU 0 is not for this process");
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Two threads on one folio are left out"), "{text}");
}

#[test]
fn a_job_file_says_the_same() {
    let scratch = Scratch::new("folio_ops");
    let job = "workload = 'folio-ops'\nfile_size = '2m'\nfolio_sizes = '16k'\nruns = 1\n";
    let path = scratch.file("job.toml", job);
    let record = json(&format!("run {path} --runs 2 --json -"));
    assert_eq!((&record["job"]["file_size"], &record["job"]["runs"]), (&"2m".into(), &2.into()));
    let wrong = scratch.file("wrong.toml", format!("{job}threads = 2\n"));
    fails(&format!("run {wrong}"), 2, &["--threads", "leave it out"]);
}

#[test]
fn a_signal_ends_it() {
    let long = "run --workload folio-ops --file-size 64m --runs 1000";
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let child = Running::start(&mut filemap(long));
        std::thread::sleep(std::time::Duration::from_millis(500));
        child.signal(signal);
        assert_eq!(child.output().status.code(), Some(128 + number));
    }
}

#[test]
fn mappings_are_told_with_counts_of_pages_and_without() {
    let args = "explain --workload folio-ops --folio-sizes 64k --mapped 0-15 --mapped 0-3 \
                --mapped 8";
    let report = json(&format!("{args} --json -"));
    let folio = &report["folios"][0];
    let told = |way: usize, mm: usize| {
        let mm = &folio["told"][way]["mms"][mm];
        (mm["rss"].as_u64().unwrap(), mm["pss"].as_f64().unwrap(), mm["uss"].as_u64().unwrap())
    };
    // By hand: four pages have two mappings, and one more.
    assert_eq!(told(0, 0), (16, 13.5, 11));
    assert_eq!(told(0, 1), (4, 2.0, 0));
    // 21 mappings of 16 pages are one a page.
    assert_eq!(told(1, 0), (16, 16.0, 0));
    assert_eq!(told(1, 2), (1, 1.0, 0));
    let owners: Vec<_> = (0..3)
        .map(|mm| (&folio["owners"][mm]["two_slots"], &folio["owners"][mm]["precise"]))
        .map(|(two_slots, precise)| (two_slots.as_bool(), precise.as_bool()))
        .collect();
    let [known, not] = [Some(true), Some(false)];
    assert_eq!(owners, [(known, known), (known, known), (not, known)]);
    let text = stdout(args);
    assert!(text.contains("+2.50") && text.contains("not known"), "{text}");
    let one = "explain --workload folio-ops --folio-sizes 16k --mapped";
    fails(&format!("{one} 4"), 2, &["--mapped 4", "0 to 3"]);
    fails(&format!("{one} 0-1,1"), 2, &["--mapped 0-1,1", "twice"]);
    fails(&format!("{one} 3-1"), 2, &["3-1 ends before it begins", "give 1-3"]);
    fails(&format!("{one} 0-99999999999999999999"), 2, &["no folio has a page 9999", "0 to 511"]);
    fails(&format!("{one} x"), 2, &["'x'", "0-15"]);
    fails(&format!("{one} 1 --runs 3"), 2, &["--runs", "leave it out"]);
    fails("explain --workload first --file-size 1m --mapped 1", 2, &["--mapped", "folio-ops"]);
}
