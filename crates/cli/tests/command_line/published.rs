//! `filemap published`.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{Scratch, json, stdout};

/// The table and the JSON of one run with the default seeds.
static REPORT: LazyLock<(String, Value)> = LazyLock::new(|| {
    let scratch = Scratch::new("published");
    let path = scratch.path("report.json");
    let text = stdout(&format!("published mmap-miss --json {path}"));
    let json = std::fs::read_to_string(path).expect("the report is written");
    (text, serde_json::from_str(&json).expect("one JSON object"))
});

/// Every published figure is within its tolerance; some cells exist only in the model.
#[test]
fn every_published_cell_holds() {
    let report = &REPORT.1;
    assert_eq!(report["schema"], 2);
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 40);
    let (published, alone): (Vec<_>, Vec<_>) =
        cells.iter().partition(|cell| cell["published"].is_number());
    assert_eq!((published.len(), alone.len()), (26, 14));
    for cell in published {
        assert_eq!((&cell["ok"], &cell["verdict"]), (&true.into(), &"ok".into()), "{cell}");
        assert_eq!(cell["below_mib"].is_number(), cell["workload"] != "random");
        assert!(cell["error"].is_number() && cell["figures"]["gib"].is_number(), "{cell}");
    }
    for cell in alone {
        assert_eq!((&cell["error"], &cell["ok"]), (&Value::Null, &Value::Null), "{cell}");
        assert_eq!(cell["published"], Value::Null);
    }
}

#[test]
fn random_cells_are_distributions() {
    let report = &REPORT.1;
    let cells = report["cells"].as_array().unwrap();
    for cell in cells {
        let distribution = &cell["figures"]["distribution"];
        if cell["workload"] != "random" {
            assert_eq!(*distribution, Value::Null);
            continue;
        }
        assert_eq!(distribution["samples"].as_array().unwrap().len(), 25);
        if cell["published"].is_number() {
            assert_eq!(cell["figures"]["published_inside"], true, "{cell}");
        }
        let bistable = cell["variant"] == "p2" && cell["file_gib"] == 20;
        let modes = distribution["modes"].as_array().unwrap();
        assert_eq!(modes.len(), if bistable { 2 } else { 1 }, "{cell}");
    }
}

#[test]
fn the_table_is_a_page_wide_and_says_what_it_rests_on() {
    let text = &REPORT.0;
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "26 of 26 judged cells hold",
        "What it does: Lets readahead",
        "Status: merged in 7.2.",
        "commits 0b9c0aeba938 (p1) and 9b0fcac3cfe7 (p2)",
        "One parameter is fitted (the size of the page cache, by one of these cells",
        "GiB touched and read",
        "which counts what the whole machine reads",
        "7.62 of the 8 GiB",
        "-2.2 GiB for each +0.1 GiB",
        "Why stride1021 does not improve",
        "Published twice by the authors",
        "several outcomes",
        "Elapsed seconds are not compared",
    ] {
        assert!(flat.contains(words), "{words}");
    }
}

#[test]
fn csv_has_one_line_a_cell() {
    let text = stdout("published mmap-miss --seeds 1 --format csv");
    assert_eq!(text.lines().count(), 41);
    assert!(text.starts_with("series,file_gib,ram_gib,workload,variant,published_gib,model_gib,"));
}

#[test]
fn too_few_seeds_decide_nothing_about_a_spread() {
    let report = json("published mmap-miss --seeds 1 --json -");
    let cells = report["cells"].as_array().unwrap();
    let undecided = |cell: &&Value| cell["published"].is_number() && cell["ok"].is_null();
    let undecided: Vec<_> = cells.iter().filter(undecided).collect();
    assert!(!undecided.is_empty());
    assert!(undecided.iter().all(|cell| cell["workload"] == "random"), "{undecided:?}");
}

/// Checks the number of cells of a series and of published ones; judged cells must hold.
fn cells(series: &str) -> (Vec<Value>, usize) {
    let report = json(&format!("published {series} --json -"));
    let cells = report["cells"].as_array().unwrap().clone();
    let (published, alone): (Vec<_>, Vec<_>) =
        cells.iter().partition(|cell| cell["published"].is_number());
    assert!(cells.iter().all(|cell| cell["series"] == series));
    let unjudged = |cell: &Value| {
        cell["ok"].is_null()
            && ["fitted", "not compared"].iter().any(|verdict| cell["verdict"] == *verdict)
    };
    let holds = |cell: &Value| cell["verdict"] == "ok" && cell["ok"] == true;
    assert!(published.iter().all(|cell| holds(cell) || unjudged(cell)), "{published:?}");
    assert!(alone.iter().all(|cell| cell["ok"].is_null() && cell["error"].is_null()));
    let summary = &report["summary"][0];
    let judged = published.iter().filter(|cell| holds(cell)).count();
    assert_eq!(
        (summary["judged"].clone(), summary["hold"].clone()),
        (judged.into(), judged.into())
    );
    let count = published.len();
    (cells, count)
}

/// Outside, pages read and major faults of the model's cell.
fn vma_bound(cells: &[Value], name: &str, variant: &str) -> (u64, u64, u64) {
    let cell = cells.iter().find(|cell| cell["name"] == name && cell["variant"] == variant);
    let figures = &cell.unwrap()["figures"];
    let counter = |name: &str| figures["counters"][name].as_u64().unwrap();
    let outside = figures["cached_outside"].as_u64().unwrap();
    (outside, counter("data_pages_read"), counter("major_faults"))
}

#[test]
fn vma_bound_is_seen_where_mappings_end() {
    let (cells, published) = cells("vma-bound");
    assert_eq!(published, 1);
    for (pages, major) in [(16, 256), (64, 64), (512, 8)] {
        let name = format!("split scan, {pages} pages");
        assert_eq!(vma_bound(&cells, &name, "baseline").2, 1);
        assert_eq!(vma_bound(&cells, &name, "vma-bound").2, major);
    }
    let first = vma_bound(&cells, "4 MiB, first, 8M ra", "baseline");
    assert_eq!(first.0 + 1024, first.1, "{first:?}");
    assert_eq!(vma_bound(&cells, "4 MiB, first, 8M ra", "vma-bound"), (0, 1024, 1));
    let random = |variant| vma_bound(&cells, "mmap randread", variant);
    assert_eq!(random("baseline"), random("vma-bound"));
}

#[test]
fn exec_order_holds_over_what_it_declares() {
    let (cells, published) = cells("exec-order");
    assert_eq!((cells.len(), published), (17, 3));
    let verdicts = [&cells[0]["verdict"], &cells[1]["verdict"]];
    assert_eq!(verdicts, ["fitted", "not compared"], "what a walk takes was not published");
    assert!(cells[..2].iter().all(|cell| cell["assumed"]["walk_ns"] == 30.0));
    let walk_ns = cells[1]["figures"]["walk_ns_as_published"].as_f64().unwrap();
    assert!((20.0..25.0).contains(&walk_ns), "{walk_ns}");
    let read_ahead = |at: usize| {
        let figures = &cells[at]["figures"];
        ["misses", "median", "data_pages_read"].map(|name| figures[name].as_u64())
    };
    assert_eq!(read_ahead(14), [1000, 100, 1100].map(Some), "the 101st miss reads alone");
    assert_eq!(read_ahead(15), [1000, 1000, 2000].map(Some));
    assert_eq!(read_ahead(16), read_ahead(15), "as merged");
    assert_eq!((&cells[14]["published"], &cells[14]["verdict"]), (&100.0.into(), &"ok".into()));
    let phase = |index: usize, phase: &str| {
        let figures = &cells[2 + index]["figures"][phase];
        ["major_faults", "readahead_calls", "itlb_walks"].map(|name| figures[name].as_u64())
    };
    assert_eq!(phase(0, "cold"), [4096, 4096, 8192].map(Some));
    assert_eq!(phase(1, "cold"), [1, 129, 256].map(Some));
    assert_eq!(phase(1, "random"), [0, 0, 0].map(Some));
    assert_eq!(phase(3, "random"), phase(4, "random"), "nothing changes without HUGEPAGE");
}

#[test]
fn series_together_have_one_table_each_a_page_wide() {
    let text = stdout("published mmap-miss vma-bound exec-order --seeds 1 --format csv");
    let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    let counts = ["mmap-miss,", "vma-bound,", "exec-order,"].map(series);
    assert_eq!((counts[0], counts[2]), (40, 27));
    assert!(counts[1] >= 28, "programs of this machine are more: {}", counts[1]);
    let text = stdout("published vma-bound exec-order");
    let lines: Vec<&str> = text.lines().take(8).collect();
    assert!(lines.iter().any(|line| line.starts_with("2 of 2 judged cells hold")), "{lines:?}");
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
}

/// The segments of a program are VMAs that are close to each other in its file.
#[test]
fn programs_of_this_machine_show_why_vma_bound_was_reverted() {
    let text = stdout("published vma-bound");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["merged as 7b32f64bc512, reverted as 13a1e1a61885", "in no release"] {
        assert!(flat.contains(words), "{words}: {text}");
    }
    let report = json("published vma-bound --json -");
    let cells = report["cells"].as_array().unwrap();
    let find = |name: &str| cells.iter().find(|cell| cell["name"] == name);
    match find("/bin/bash in order") {
        Some(bash) => {
            let majors = &bash["figures"]["major_faults"];
            assert!(majors["after"].as_u64() > majors["before"].as_u64(), "{majors}");
            assert!(bash["figures"]["elapsed_change_percent"].as_f64() > Some(0.0));
            assert!(text.contains("Programs and libraries of this machine"), "{text}");
        }
        None => assert!(flat.contains("Not on this machine: bash"), "{text}"),
    }
    let full = stdout("published vma-bound --full");
    assert!(full.lines().all(|line| line.chars().count() <= 75), "{full}");
}

#[test]
fn list_has_status_of_each_series() {
    let text = stdout("published --list");
    for line in text.lines() {
        assert!(line.chars().count() <= 75, "{line}");
    }
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "mmap-miss 26 merged in 7.2",
        "vma-bound 5 merged, and reverted before a release: in no release",
        "20260601102205.3985788-1-usama.arif@linux.dev",
        "vma-retry 12 contested",
    ] {
        assert!(flat.contains(words), "{words}: {text}");
    }
    let all: Value = serde_json::from_str(&stdout("published --list --format json")).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 5);
}

/// data/published.toml declares each column by its path in a cell. A path that no cell has would
/// leave the column empty.
#[test]
fn each_column_has_a_figure() {
    let text = stdout("published mmap-miss vma-bound exec-order --seeds 2 --format markdown");
    let lines: Vec<&str> = text.lines().collect();
    let tables = lines.chunk_by(|one, other| one.starts_with('|') && other.starts_with('|'));
    let tables: Vec<_> = tables.filter(|table| table.len() > 2).collect();
    assert!(tables.len() > 8, "{text}");
    for table in tables {
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()
        };
        let rows: Vec<Vec<String>> = table[2..].iter().map(|line| cells(line)).collect();
        for (at, heading) in cells(table[0]).iter().enumerate() {
            let is_empty = rows.iter().all(|row| row[at] == "-" || row[at].is_empty());
            assert!(!is_empty, "column '{heading}' of\n{}", table.join("\n"));
        }
    }
}
