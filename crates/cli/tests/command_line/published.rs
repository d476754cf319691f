//! `filemap published`.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{Scratch, json, stdout};

/// The table and the JSON of one run with the default seeds.
static REPORT: LazyLock<(String, Value)> = LazyLock::new(|| {
    let scratch = Scratch::new("published");
    let path = scratch.path("report.json");
    let text = stdout(&format!("published --json {path}"));
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
        assert_eq!(cell["ok"], true, "{cell}");
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
        "26 of 26 published cells hold",
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
    let report = json("published --seeds 1 --json -");
    let cells = report["cells"].as_array().unwrap();
    let undecided = |cell: &&Value| cell["published"].is_number() && cell["ok"].is_null();
    let undecided: Vec<_> = cells.iter().filter(undecided).collect();
    assert!(!undecided.is_empty());
    assert!(undecided.iter().all(|cell| cell["workload"] == "random"), "{undecided:?}");
}
