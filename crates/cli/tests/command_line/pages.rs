//! HTML pages: equal from a run and from its record, and rendered by a browser.

mod browser;

use std::fs;

use serde_json::Value;

use crate::{Scratch, filemap, stderr, stdout};

/// Commands whose pages are tested, under short names.
const COMMANDS: [(&str, &str); 14] = [
    ("run", "run --workload random --file-size 4g --read-ahead-kb 8192"),
    ("grid", "run --workload random --file-size 256m --cache-limit 32m --accesses 9000"),
    ("far", "run --workload sequential --file-size 1p --sparse --map-offset 512t --map-len 1m"),
    ("seeds", "run --workload random --file-size 64m --seeds 25 --with p2 --accesses 600"),
    ("explain", "explain --workload stride:2053 --file-size 1g --ram 512m --accesses 30000"),
    (
        "compare",
        "compare --workload random --file-size 64m --variants baseline,p1+p2,advice=random \
         --seeds 9",
    ),
    (
        "thrash",
        "compare --workload thrash --threads 12 --file-size 1m --sparse --cpus 3 --memory-max 4m \
         --duration 300ms --variants baseline,vma-retry",
    ),
    ("folio-ops", "folio-ops --size 2m --folio-sizes 16k --runs 1"),
    ("published", "published mmap-miss vma-bound exec-order --seeds 5"),
    ("program", "run PROGRAM"),
    ("explain-program", "explain PROGRAM"),
    ("threads", "run THREADS"),
    ("advise", "advise PROGRAM"),
    ("advise-threads", "advise THREADS"),
];

const PROGRAM: &str = "memory_max = '8m'\n[[file]]\nname = 'data <b>'\nsize = '64m'\n\
    [[open]]\nname = 'index'\nfile = 'data <b>'\n[[open]]\nname = 'scan'\nfile = 'data <b>'\n\
    [[mapping]]\nname = 'tree'\nopen = 'index'\nlen = '16m'\n[[thread]]\nname = 'search'\n\
    [[thread.phase]]\nmapping = 'tree'\nworkload = 'random'\naccesses = 700\n\
    [[thread.phase]]\nopen = 'scan'\nworkload = 'read-sequential'\nbs = '64k'\naccesses = 256\n";

/// Threads with private files and a shared one, together larger than memory.
const THREADS: &str = "memory_max = '24m'\ncpus = 2\nread_ahead_kb = 2048\n\
    [[file]]\nname = 'a name of a file that is too long for one line of a table of 80.columns'\n\
    size = '64m'\n[[file]]\nname = 'b.mdb'\nsize = '128m'\n[[file]]\nname = 'c'\nsize = '8m'\n\
    [[open]]\nname = 'a'\n\
    file = 'a name of a file that is too long for one line of a table of 80.columns'\n\
    [[open]]\nname = 'b'\nfile = 'b.mdb'\n[[open]]\nname = 'b again'\nfile = 'b.mdb'\n\
    [[open]]\nname = 'c'\nfile = 'c'\n[[mapping]]\nname = 'a'\nopen = 'a'\n\
    [[mapping]]\nname = 'b'\nopen = 'b'\n[[mapping]]\nname = 'tail of b'\nopen = 'b again'\n\
    offset = '64m'\n[[mapping]]\nname = 'c'\nopen = 'c'\nprivate = true\n\
    [[thread]]\nname = 'scan'\n[[thread.phase]]\nmapping = 'a'\nworkload = 'sequential'\n\
    accesses = 16384\n[[thread]]\nname = 'lookups'\n[[thread.phase]]\nmapping = 'b'\n\
    workload = 'random'\naccesses = 3000\nthink_ns = 2000\n[[thread]]\nname = 'more lookups'\n\
    [[thread.phase]]\nmapping = 'tail of b'\nworkload = 'random'\naccesses = 3000\n\
    [[thread]]\nname = 'copies'\n[[thread.phase]]\nmapping = 'c'\nworkload = 'random'\n\
    accesses = 900\nwrite = true\n[[thread.phase]]\nmapping = 'c'\nworkload = 'random'\n\
    accesses = 900\n[[thread.phase]]\nopen = 'c'\nworkload = 'read-sequential'\nbs = '64k'\n\
    accesses = 128\n";

/// A stored record of conform, which needs a kernel to run.
const CONFORMED: &str = r#"{ "schema": 2, "kind": "conform", "scope": "s", "command": "filemap conform",
    "environment": { "filemap": "0.1.0", "date": "2026-11-23T00:00:00Z" },
    "patterns": [
        { "name": "random, 64 KiB", "decisions": 1092, "readahead_calls": 186, "excluded": 0,
          "mismatches": 0, "first_mismatch": null, "not_compared": null, "left_out": null,
          "ok": true, "job": "workload = \"random\"" },
        { "name": "a job with a name that is long enough to need more than one line of its table",
          "decisions": 20, "readahead_calls": 3, "excluded": 2, "mismatches": 4,
          "first_mismatch": { "line": 7, "access": 3, "before": ["readahead <at> 4"],
          "model": ["added 4 to 7"], "kernel": [] }, "not_compared": null, "left_out": null,
          "ok": false, "job": "workload = \"first\"" },
        { "name": "xfs", "decisions": 0, "readahead_calls": 0, "excluded": 0, "mismatches": 0,
          "first_mismatch": null, "not_compared": null, "left_out": "it needs mkfs.xfs",
          "ok": null, "job": "" } ] }"#;

/// Makes the pages of all kinds in `scratch`, and returns their names.
fn pages(scratch: &Scratch) -> Vec<&'static str> {
    let program = scratch.file("program.toml", PROGRAM);
    let threads = scratch.file("threads.toml", THREADS);
    for (name, command) in COMMANDS {
        let (json, html) = (scratch.path(&format!("{name}.json")), page_of(scratch, name));
        let args = command.replace("PROGRAM", &program).replace("THREADS", &threads);
        let output = filemap(&format!("{args} --json {json} --html {html}")).output().unwrap();
        // Too few seeds to judge a published cell do not make the page fail.
        assert!(output.status.code().is_some_and(|code| code < 2), "{args}: {}", stderr(&output));
    }
    let record = scratch.file("conform.json", CONFORMED);
    report(&record, &page_of(scratch, "conform"));
    COMMANDS.iter().map(|(name, _)| *name).chain(["conform"]).collect()
}

fn page_of(scratch: &Scratch, name: &str) -> String {
    scratch.path(&format!("{name}.html"))
}

#[track_caller]
fn report(record: &str, page: &str) {
    let output = filemap(&format!("report {record} --html {page}")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

#[test]
fn record_renders_its_page() {
    let scratch = Scratch::new("pages");
    for name in pages(&scratch) {
        let own = fs::read(page_of(&scratch, name)).unwrap();
        report(&scratch.path(&format!("{name}.json")), &scratch.path("again.html"));
        assert!(fs::read(scratch.path("again.html")).unwrap() == own, "{name} is another page");
        let text = String::from_utf8(own).unwrap();
        assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"), "{name}");
        assert!(text.len() < 3_000_000 && !text.contains("<b>"), "{name}");
    }
}

/// A history agrees with the decision log, line by line.
#[test]
fn history_matches_log() {
    let scratch = Scratch::new("pages-history");
    let (log, json) = (scratch.path("log.jsonl"), scratch.path("record.json"));
    for job in [
        "--workload random --file-size 64m --cache-limit 8m --accesses 5000",
        "--workload sequential --file-size 16m",
        "--workload stride:1021 --file-size 256m --accesses 20000 --with mmap-miss --ram 64m",
        "--workload read-random --bs 8k --file-size 16m --accesses 900",
        "--workload random --file-size 64m --map-offset 16m --map-len 1m --accesses 333",
        "--workload random --file-size 16m --arch arm64 --page-size 64k --accesses 77",
        "--workload exec --file-size 4m --accesses 50",
        "--workload first --file-size 1m --accesses 1",
    ] {
        stdout(&format!("run {job} --log {log} --json {json}"));
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        let history = &record["history"]["files"][0]["history"];
        let list = |row: &Value| -> Vec<u64> {
            row.as_array().expect("a list").iter().map(|value| value.as_u64().unwrap()).collect()
        };
        let accesses = history["accesses"].as_u64().unwrap();
        let intervals = history["calls"].as_array().unwrap().len() as u64;
        let [mut read, mut calls] = [(); 2].map(|()| vec![0; intervals as usize]);
        let (mut now, mut resident) = (0, vec![None; intervals as usize]);
        for line in fs::read_to_string(&log).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let number = |key: &str| line[key].as_u64().unwrap();
            let at = (number("access") * intervals / accesses) as usize;
            match line["decision"].as_str().unwrap() {
                "added" => {
                    let pages = number("folios") << number("order");
                    read[at] += pages;
                    now += pages;
                }
                "evicted" => now -= number("pages"),
                "readahead" | "no-readahead" => calls[at] += 1,
                _ => {}
            }
            resident[at] = Some(now);
        }
        let mut last = 0;
        let resident: Vec<u64> = resident
            .into_iter()
            .map(|now| {
                last = now.unwrap_or(last);
                last
            })
            .collect();
        assert_eq!(list(&history["read"]), read, "{job}");
        assert_eq!(list(&history["calls"]), calls, "{job}");
        assert_eq!(list(&history["resident"]), resident, "{job}");
        let sum = |value: &Value| list(value).iter().sum::<u64>();
        let pages_of = |keys: &[&str]| -> u64 {
            let causes = history["causes"].as_array().unwrap().iter();
            let own = causes.filter(|cause| keys.contains(&cause["cause"].as_str().unwrap()));
            own.map(|cause| cause["pages"].as_u64().unwrap()).sum()
        };
        assert_eq!(sum(&history["used"]), pages_of(&["used", "refetched"]), "{job}");
        let counters = &record["runs"][0]["counters"];
        assert_eq!(sum(&history["read"]), counters["data_pages_read"].as_u64().unwrap(), "{job}");
        let marks: [u64; 2] = match history["windows"].as_array() {
            Some(windows) => ["read", "used"]
                .map(|key| windows.iter().map(|window| window[key].as_u64().unwrap()).sum()),
            None => ["read", "used"]
                .map(|key| history["grid"][key].as_array().unwrap().iter().map(sum).sum()),
        };
        assert_eq!(marks, [sum(&history["read"]), sum(&history["used"])], "{job}");
    }
}

/// Pages that entered and left the cache in a line of a log.
fn pages_of_line(line: &Value) -> (u64, u64) {
    let number = |key: &str| line[key].as_u64().unwrap();
    match line["decision"].as_str().unwrap() {
        "added" => (number("folios") << number("order"), 0),
        "evicted" => (0, number("pages")),
        _ => (0, 0),
    }
}

/// The history of each file of a program is what the log says of that file, and where one thread
/// makes all accesses, what `explain` makes of them by itself.
#[test]
fn program_history_matches_log() {
    let scratch = Scratch::new("pages-program");
    let (log, json) = (scratch.path("log.jsonl"), scratch.path("record.json"));
    for (text, names) in [
        (PROGRAM, &["data <b>"][..]),
        (
            THREADS,
            &[
                "a name of a file that is too long for one line of a table of 80.columns",
                "b.mdb",
                "c",
            ],
        ),
    ] {
        let program = scratch.file("program.toml", text);
        stdout(&format!("run {program} --log {log} --json {json}"));
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        let history = &record["history"];
        let accesses = history["accesses"].as_u64().unwrap();
        assert_eq!(history["accesses"], record["runs"][0]["counters"]["accesses"]);
        let files = history["files"].as_array().unwrap();
        assert_eq!(files.len(), names.len());
        let list = |row: &Value| -> Vec<u64> {
            row.as_array().expect("a list").iter().map(|value| value.as_u64().unwrap()).collect()
        };
        let sum = |value: &Value| list(value).iter().sum::<u64>();
        for (number_of, name) in names.iter().enumerate() {
            let file = files.iter().find(|file| file["name"] == **name).expect("it is drawn");
            let own = &file["history"];
            let intervals = own["read"].as_array().unwrap().len() as u64;
            let mut read = vec![0; intervals as usize];
            let (mut now, mut at_end, mut of_file) = (0, 0, 0);
            for line in fs::read_to_string(&log).unwrap().lines() {
                let line: Value = serde_json::from_str(line).unwrap();
                if line["decision"] == "file" {
                    of_file = line["file"].as_u64().unwrap() as usize;
                }
                if of_file == number_of {
                    let (came, left) = pages_of_line(&line);
                    let at = line["access"].as_u64().unwrap() * intervals / accesses;
                    read[at as usize] += came;
                    now = now + came - left;
                    at_end = now;
                }
            }
            assert_eq!(list(&own["read"]), read, "{name}");
            assert_eq!(list(&own["resident"]).last(), Some(&at_end), "{name}");
            let of_run = &record["runs"][0]["files"][number_of];
            assert_eq!(of_run["data_pages_read"], sum(&own["read"]), "{name}");
            assert_eq!(of_run["cached"], at_end, "{name}");
            let causes = own["causes"].as_array().unwrap().iter();
            let used = causes
                .filter(|cause| ["used", "refetched"].contains(&cause["cause"].as_str().unwrap()));
            let used: u64 = used.map(|cause| cause["pages"].as_u64().unwrap()).sum();
            assert_eq!(sum(&own["used"]), used, "{name}");
            assert!(used > 0 && used <= sum(&own["read"]), "{name}");
        }
        if text == PROGRAM {
            let explained = stdout(&format!("explain {program} --json -"));
            let explained: Value = serde_json::from_str(&explained).unwrap();
            let causes = explained["files"][0]["causes"].as_array().unwrap().iter();
            for cause in causes {
                let own = files[0]["history"]["causes"].as_array().unwrap().iter();
                let own = own.clone().find(|own| own["cause"] == cause["cause"]).unwrap();
                assert_eq!((&own["pages"], &own["again"]), (&cause["pages"], &cause["again"]));
            }
        }
        // A thread either computes or waits, so it waits at most as long as it runs.
        let threads = history["threads"].as_array().unwrap();
        for (own, of_run) in threads.iter().zip(record["runs"][0]["threads"].as_array().unwrap()) {
            assert_eq!(own["name"], of_run["name"]);
            let (waited, elapsed) = (sum(&own["ns"]), of_run["elapsed_ns"].as_u64().unwrap());
            assert!(waited > 0 && waited <= elapsed, "{own}: {elapsed} ns");
        }
        let by_interval =
            history["waits"].as_array().unwrap().iter().map(|waits| sum(&waits["ns"]));
        let by_thread = threads.iter().map(|thread| sum(&thread["ns"]));
        assert_eq!(by_interval.sum::<u64>(), by_thread.sum::<u64>());
    }
}

#[test]
fn page_is_written_like_other_outputs() {
    let scratch = Scratch::new("pages-outputs");
    let job = "run --workload first --file-size 1m";
    let page = filemap(&format!("{job} --html -")).output().unwrap();
    assert!(page.stdout.starts_with(b"<!DOCTYPE html>"), "in place of the report");
    let record = scratch.path("record.json");
    assert!(filemap(&format!("{job} --json {record}")).output().unwrap().status.success());
    let before = fs::read(&record).unwrap();
    let missing = scratch.path("missing/page.html");
    let table = scratch.file("table.txt", "no JSON");
    let log = scratch.file("line.json", "{\"access\": 3}");
    for (args, code, words) in [
        (format!("{job} --html {record} --json {record}"), 2, "same file"),
        (format!("{job} --html - --json -"), 2, "cannot both go to stdout"),
        (format!("{job} --html {missing}"), 2, "no such file"),
        (format!("report {record} --html {record}"), 2, "same file as the record"),
        (format!("report {missing} --html -"), 2, "no such file"),
        (format!("report {table} --html -"), 2, "it is no record of filemap"),
        (format!("report {log} --html -"), 2, "there is no page of this record"),
        (format!("report {record}"), 2, "--html"),
    ] {
        let output = filemap(&args).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert!(message.contains(words) && message.lines().count() == 1, "{args}: {message}");
        assert!(output.stdout.is_empty(), "{args}");
    }
    assert_eq!(fs::read(&record).unwrap(), before);
    let mut from_stdin = filemap("report - --html -");
    let output = from_stdin.stdin(fs::File::open(&record).unwrap()).output().unwrap();
    assert!(output.stdout.starts_with(b"<!DOCTYPE html>"), "{}", stderr(&output));
}

/// Records of commands without `--html` can be rendered too.
#[test]
fn other_records_have_pages() {
    let scratch = Scratch::new("pages_others");
    for (args, heading) in [
        ("doctor --json -", "What this machine allows"),
        ("search --variants baseline,p2 --differ --jobs 9 --json -", "Jobs that distinguish p2"),
        ("govern --compare --runs 1 --json - -- true", "Plain and governed: true"),
    ] {
        let record = scratch.file("record.json", stdout(args));
        let page = stdout(&format!("report {record} --html -"));
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains(heading), "{args}: {page}");
    }
}
