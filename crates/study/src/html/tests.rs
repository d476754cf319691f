//! Pages of synthetic records: escaping, size limits, and rejected input.

use filemap_core::readahead::miss::MAX_MMAP_MISS;
use filemap_job::{EngineKind, Job, JobFlags, JobRuns, JobSpec, Record, Run};
use serde_json::{Value, json};

use super::page;
use crate::explain::{
    CounterPoint, FileHistory, Grid, History, HistoryWindow, INTERVALS, ROWS, RunHistory,
    ThreadWaits, WaitHistory,
};
use crate::run::RunRecord;

fn job(toml: &str) -> Job {
    JobFlags::from_toml(toml).unwrap().validate(None).unwrap()
}

fn run_of(toml: &str, history: Option<&History>) -> String {
    let job = job(toml);
    let runs = vec![Run { seed: 7, ..Run::default() }];
    let mut environment = serde_json::Map::new();
    environment.insert("filemap".into(), "1</p>".into());
    environment.insert("odd<key>".into(), "\"quoted\" & <b>".into());
    let mut record = Record::new(&job, "model", environment, runs);
    record.warnings.push("look at '<script>alert(1)</script>'".to_string());
    let history = history.map(|history| RunHistory {
        accesses: history.accesses,
        files: vec![FileHistory { history: history.clone(), ..FileHistory::default() }],
        ..RunHistory::default()
    });
    RunRecord::new(record, &job, history, "filemap run '<i>'".to_string()).report(false).record_json
}

/// A history of maximum size with distinct cells, for a run of 500,000 windows.
fn largest() -> History {
    let cells = |factor: u64| -> Vec<Vec<u64>> {
        let cell = |interval, row| (interval * 7919 + row * 104_729) % 99_991 * factor;
        (0..INTERVALS).map(|i| (0..ROWS).map(|row| cell(i, row)).collect()).collect()
    };
    let (read, used) = (cells(3), cells(1));
    let sums = |cells: &[Vec<u64>]| cells.iter().map(|rows| rows.iter().sum()).collect();
    let point = |number: u64| CounterPoint {
        access: number * 1_000_000,
        low: (number % 991) as u16,
        high: MAX_MMAP_MISS,
        last: (number % 997) as u16,
    };
    History {
        accesses: 512_000_000,
        page_bytes: 4096,
        mapped: [1 << 38, (1 << 38) + ROWS * 1_000_000],
        calls: vec![500_000 / INTERVALS; INTERVALS as usize],
        resident: sums(&read),
        resident_used: sums(&used),
        read: sums(&read),
        used: sums(&used),
        windows: None,
        grid: Some(Grid { start: 1 << 38, row_pages: 1_000_000, read, used }),
        causes: Some(Vec::new()),
        mmap_miss: Some((0..512).map(point).collect()),
        mmap_miss_threshold: Some(100),
    }
}

fn windows(count: u64) -> History {
    let window = |number: u64| HistoryWindow {
        access: number * 3,
        by: "read-around".to_string(),
        start: number * 2_000_003 % 1_000_000_007,
        pages: 2048,
        read: 2048,
        used: number % 2049,
    };
    History {
        accesses: count * 3,
        page_bytes: 4096,
        mapped: [0, 1_000_000_007],
        calls: vec![7; INTERVALS as usize],
        read: vec![70; INTERVALS as usize],
        used: vec![7; INTERVALS as usize],
        resident: vec![70; INTERVALS as usize],
        resident_used: vec![7; INTERVALS as usize],
        windows: Some((0..count).map(window).collect()),
        ..History::default()
    }
}

/// A record with the maximum number of charted files, each with `history`, and waits of all causes.
fn program_of(history: &History) -> String {
    let text = "[[file]]\nname = 'a'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'a'\n\
        [[thread]]\n[[thread.phase]]\nopen = 'a'\nworkload = 'read-sequential'\naccesses = 1\n";
    let file = |number: usize| FileHistory {
        name: format!("<b>file {number}"),
        counter_of: Some("open <i>".to_string()),
        history: history.clone(),
    };
    let wait = |cause: &&str| WaitHistory {
        cause: cause.to_string(),
        ns: (0..INTERVALS).map(|number| number * 7_919_173 % 99_999_989).collect(),
    };
    let waits: Vec<WaitHistory> =
        ["read-around", "single", "async", "memory", "cpu", "<u>"].iter().map(wait).collect();
    let thread = |number: u64| ThreadWaits {
        name: format!("thread <s> {number}"),
        ns: (0..waits.len() as u64).map(|cause| cause * 1000 + number).collect(),
    };
    let history = RunHistory {
        accesses: history.accesses,
        files: (0..6).map(file).collect(),
        other_files: 3,
        threads: (0..64).map(thread).collect(),
        waits,
    };
    let spec = JobSpec::from_toml(text).unwrap().validate(None).unwrap();
    let (engine, environment) = (EngineKind::Model, serde_json::Map::new());
    let ran = JobRuns { engine, environment, runs: vec![Run::default()] };
    let record = Record::from_job_runs(&spec, ran);
    RunRecord::new(record, &spec, Some(history), "filemap run p.toml".to_string())
        .report(false)
        .record_json
}

/// A record of `advise` whose strings need escaping.
fn advised() -> Value {
    let outcome = |pages: u64, ns: u64| {
        json!({ "data_pages_read": pages, "files": [pages], "major_faults": 9, "elapsed_ns": ns,
            "elapsed_ns_at_half_latency": ns / 2, "elapsed_ns_at_double_latency": ns * 2 })
    };
    let tried = |change: &str, verdict: &str, pages, ns| {
        json!({ "changes": [change], "verdict": verdict,
            "outcome": outcome(pages, ns) })
    };
    json!({
        "schema": 2, "kind": "advise", "scope": "s", "command": "filemap advise 'r'", "environment": {},
        "warnings": ["look at <b>"], "name": "<i>r</i>", "page_bytes": 4096,
        "words": ["<s>data.mdb reads 545 166 pages for 3624 touched (150x).", "Together: more."],
        "to_write": [{ "change": "MADV_RANDOM on <u>",
            "lines": [{ "place": "C", "text": "a < b;" }] }],
        "governed": "Where it cannot be changed.", "read_ahead_kb": 8192, "latency_ns": 54_000,
        "files": [{ "name": "a", "contents": "lmdb", "pages_read": 545_166, "pages_used": 3624,
            "answer": { "best": 0, "ties": [1], "ties_with_now": false } }],
        "answer": { "best": 0, "ties": [1], "ties_with_now": false },
        "now": outcome(545_166, 1_600_000_000),
        "tried": [
            tried("MADV_RANDOM on <u>", "best", 3624, 400_000_000),
            tried("read_ahead_kb=0", "tied", 3624, 410_000_000),
            tried("slow", "slower", 3624, 60_000_000_000),
            tried("more", "reads more", 999_999, 1_700_000_000),
        ],
        "conditions": [
            { "name": "read_ahead_kb=128", "now": outcome(9, 9), "answer": outcome(8, 8),
                "best": "filemap govern" },
            { "name": "page cache of 1m", "now": null, "answer": null, "best": null },
        ],
    })
}

const JOB: &str = "workload = 'random'\nfile_size = '64m'";

#[test]
fn escapes_user_text() {
    let path =
        "workload = 'first'\nfile_size = '1m'\nfile = '/tmp/<img src=x onerror=alert(1)>\"&'";
    let page = page(&run_of(path, None)).unwrap();
    for raw in ["<img", "<script>alert", "<i>'", "1</p>,", "<b>", "odd<key>"] {
        assert!(!page.contains(raw), "{raw}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("odd&lt;key&gt;") && page.contains("&quot;quoted&quot; &amp; &lt;b&gt;"));
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = page(&run_of(JOB, Some(&largest()))).unwrap();
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<link", "<iframe"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_largest_page_is_small_enough() {
    for (history, least) in [(largest(), 300_000), (windows(1000), 200_000)] {
        let json = run_of(JOB, Some(&history));
        assert!(json.len() < 300_000, "{} bytes of JSON", json.len());
        let page = page(&json).unwrap();
        assert!((least..3_000_000).contains(&page.len()), "{} bytes", page.len());
    }
}

#[test]
fn pictures_show_the_numbers_of_the_record() {
    let page = page(&run_of(JOB, Some(&windows(3)))).unwrap();
    let label = "access 3, read-around: pages 2 000 003 to 2 002 050 (2048); 2048 came in, 1 of";
    assert!(page.contains(label), "{page}");
    assert!(page.contains("after accesses 0 to 0: 280 KiB in the page cache, 28 KiB of it"));
    assert!(page.contains("All 3 windows"));
    let json = run_of(JOB, Some(&largest()));
    let page = super::page(&json).unwrap();
    let history: Value = serde_json::from_str(&json).unwrap();
    let first = &history["history"]["files"][0]["history"]["grid"]["read"][0];
    let first: Vec<String> = first.as_array().unwrap().iter().map(ToString::to_string).collect();
    assert!(page.contains(&format!("data-read=\"{};", first.join(" "))));
}

#[test]
fn a_page_of_a_program_has_its_files_and_is_small_enough() {
    for history in [largest(), windows(1000 / 6)] {
        let json = program_of(&history);
        let page = page(&json).unwrap();
        assert!(json.len() < 3_000_000 && page.len() < 3_000_000, "{} bytes", page.len());
        assert!(page.contains("File &lt;b&gt;file 5") && page.contains("open file open &lt;i&gt;"));
        assert!(!["<b>", "<i>", "<u>", "<s>"].iter().any(|raw| page.contains(raw)));
        assert!(page.contains("pages of read-around") && page.contains("By thread"));
    }
}

#[test]
fn a_page_of_advice_has_the_answer_and_its_figures() {
    let page = page(&advised().to_string()).unwrap();
    assert!(!["<b>", "<i>", "<u>", "<s>data"].iter().any(|raw| page.contains(raw)));
    for text in [
        "What would help &lt;i&gt;r&lt;/i&gt;",
        "&lt;s&gt;data.mdb reads 545 166 pages",
        "MADV_RANDOM on &lt;u&gt;: 3624 pages read (14.2 MiB), 9 major faults, 400 ms; 200 ms to \
         800 ms with half and double latency",
        "a &lt; b;",
        "the program does not run so",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    // The best setting comes first, whatever the order in the record.
    let place = |text: &str| page.find(&format!("<th scope=\"row\">{text}")).expect("it is there");
    let order = ["as it is", "MADV_RANDOM", "read_ahead_kb=0", "slow", "more"].map(place);
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn invalid_record_is_a_one_line_error() {
    for (json, words) in [
        ("", "no record of filemap"),
        ("[1]", "no record of filemap"),
        ("{\"schema\": 1}", "its schema is 1, and this filemap reads 2"),
        ("{\"schema\": 2, \"runs\": []}", "no page of this record"),
        ("{\"runs\": []}", "no page of this record"),
        ("{\"schema\": 2, \"kind\": \"run\", \"runs\": []}", "missing field `job`"),
        (
            r#"{"schema": 2, "kind": "compare", "regressions": [], "cells": [], "environment": {}}"#,
            "nothing",
        ),
    ] {
        let error = page(json).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{json}: {error}");
    }
}

#[test]
fn a_history_that_contradicts_itself_is_refused() {
    let good: Value = serde_json::from_str(&run_of(JOB, Some(&largest()))).unwrap();
    assert!(page(&good.to_string()).is_ok());
    for (pointer, value) in [
        ("/history/files/0/history/calls", json!([])),
        ("/history/files/0/history/read/3", json!(1u64 << 60)),
        ("/history/files/0/history/grid/read/5", json!([1])),
        ("/history/files/0/history/grid/used", json!([])),
        ("/history/files/0/history/grid/row_pages", json!(0)),
        ("/history/files/0/history/mapped/0", json!(1u64 << 50)),
    ] {
        refused(&good, pointer, value);
    }
    let good: Value = serde_json::from_str(&program_of(&largest())).unwrap();
    for (pointer, value) in [
        ("/history/files/0/history/calls", json!([])),
        ("/history/waits/1/ns", json!([1, 2])),
        ("/history/waits/0/ns/0", json!(1u64 << 60)),
        ("/history/threads/3/ns", json!([])),
        ("/history/accesses", json!(u64::MAX)),
    ] {
        refused(&good, pointer, value);
    }
}

fn refused(good: &Value, pointer: &str, value: Value) {
    let mut bad = good.clone();
    *bad.pointer_mut(pointer).unwrap() = value;
    let error = page(&bad.to_string()).unwrap_err().to_string();
    assert!(error.contains("contradicts itself"), "{pointer}: {error}");
}

/// A record with random values replaced gives a page or an error, never a panic.
#[test]
fn records_from_elsewhere_do_no_harm() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let of_jobs = [windows(20), largest()].map(|history| run_of(JOB, Some(&history)));
    let others = [program_of(&windows(20)), advised().to_string()];
    for json in of_jobs.into_iter().chain(others) {
        let good: Value = serde_json::from_str(&json).unwrap();
        let mut pages = 0;
        for _ in 0..150 {
            let mut record = good.clone();
            for _ in 0..1 + random() % 3 {
                change(&mut record, &mut random);
            }
            pages += u32::from(page(&record.to_string()).is_ok());
        }
        // Most random changes are rejected, but not all.
        assert!(pages > 2, "{pages} pages");
    }
}

fn change(value: &mut Value, random: &mut impl FnMut() -> u64) {
    let depth = random() % 6;
    let mut at = value;
    for _ in 0..depth {
        let pick = random() as usize;
        // Checked first, so that the borrow ends if there is nothing to descend into.
        let is_inner = match at {
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => false,
        };
        if !is_inner {
            break;
        }
        at = match at {
            Value::Array(list) => {
                let count = list.len();
                &mut list[pick % count]
            }
            Value::Object(map) => {
                let count = map.len();
                map.values_mut().nth(pick % count).unwrap()
            }
            _ => unreachable!("it was looked at"),
        };
    }
    *at = match random() % 7 {
        0 => Value::Null,
        1 => json!(0),
        2 => json!(u64::MAX),
        3 => json!(random() % 5000),
        4 => json!("text <b>"),
        5 => json!([]),
        _ => json!(-1.5e300),
    };
}
