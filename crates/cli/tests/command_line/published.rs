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

/// Every published figure within its tolerance, and the cells that are the model's alone.
#[test]
fn every_published_cell_holds() {
    let report = &REPORT.1;
    assert_eq!(report["schema"], 1);
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
        "Posted: linux-mm, 2026-04-27, [PATCH v3 0/2]",
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

/// The cells of a series, and how many of them are published; those hold.
fn cells(series: &str) -> (Vec<Value>, usize) {
    let report = json(&format!("published {series} --json -"));
    let cells = report["cells"].as_array().unwrap().clone();
    let (published, alone): (Vec<_>, Vec<_>) =
        cells.iter().partition(|cell| cell["published"].is_number());
    assert!(cells.iter().all(|cell| cell["series"] == series));
    let fitted = |cell: &Value| cell["verdict"] == "fitted" && cell["ok"].is_null();
    let holds = |cell: &Value| cell["verdict"] == "ok" && cell["ok"] == true;
    assert!(published.iter().all(|cell| holds(cell) || fitted(cell)), "{published:?}");
    assert!(alone.iter().all(|cell| cell["ok"].is_null() && cell["error"].is_null()));
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
    assert_eq!((cells.len(), published), (10, 2));
    let verdicts = [&cells[0]["verdict"], &cells[1]["verdict"]];
    assert_eq!(verdicts, ["fitted", "ok"], "the cold row is fitted and tests nothing");
    for cell in &cells[..2] {
        assert!(cell["error"].as_f64().unwrap().abs() <= 10.0);
        assert_eq!(cell["assumed"]["walk_ns"], 30.0);
    }
    let phase = |index: usize, phase: &str| {
        let figures = &cells[2 + index]["figures"][phase];
        ["major_faults", "readahead_calls", "itlb_walks"].map(|name| figures[name].as_u64())
    };
    assert_eq!(phase(0, "cold"), [4096, 4096, 8192].map(Some));
    assert_eq!(phase(1, "cold"), [1, 129, 256].map(Some));
    assert_eq!(phase(1, "random"), [0, 0, 0].map(Some));
    assert_eq!(phase(2, "random"), phase(3, "random"), "nothing changes without HUGEPAGE");
}

#[test]
fn series_together_have_one_table_each_a_page_wide() {
    let text = stdout("published mmap-miss vma-bound exec-order --seeds 1 --format csv");
    let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    let counts = ["mmap-miss,", "vma-bound,", "exec-order,"].map(series);
    assert_eq!(counts, [40, 28, 16]);
    let text = stdout("published vma-bound exec-order");
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
}

#[test]
fn a_full_report_has_this_machines_programs() {
    let text = stdout("published vma-bound --full");
    assert!(text.lines().all(|line| line.chars().count() <= 75), "{text}");
    if std::path::Path::new("/bin/sh").exists() {
        assert!(text.contains("Programs and libraries of this machine"), "{text}");
    }
    assert!(stdout("published vma-bound").contains("With --full: this machine's programs."));
}

/// What a column shows is declared in data/published.toml by its place in a cell. A place that no
/// cell has would leave the column empty.
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
