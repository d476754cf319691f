//! `filemap compare`.

use serde_json::Value;

use crate::{filemap, json, stdout};

const JOB: &str = "compare --workload random --file-size 64m --accesses 500";

#[test]
fn cells_are_those_of_the_variants() {
    let report = json(&format!("{JOB} --variants baseline,p1,p1+p2 --json -"));
    assert_eq!(report["schema"], 1);
    let cells = report["cells"].as_array().unwrap();
    let names: Vec<_> = cells.iter().map(|cell| cell["variant"].as_str().unwrap()).collect();
    assert_eq!(names, ["baseline", "p1", "p1+p2"]);
    for cell in cells {
        assert_eq!(cell["engine"], "model");
        assert_eq!((&cell["error"], &cell["ok"]), (&Value::Null, &Value::Null));
        assert!(cell["figures"]["data_pages_read"]["median"].is_u64());
    }
    assert_eq!(cells[0]["change"]["bytes_read"], 0.0);
    assert_eq!(cells[0]["figures"], cells[1]["figures"], "p1 alone changes nothing");
    assert!(cells[2]["change"]["bytes_read"].as_f64().unwrap() < -50.0);
    assert_eq!(cells[2]["job"]["with"], "miss-fault-address+miss-no-retry");
}

#[test]
fn lists_may_have_blanks() {
    let args = format!("{JOB} --json - --variants");
    let cells = |words: &[&str]| {
        let output = filemap(&args).args(words).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["cells"].as_array().unwrap().iter().map(|cell| cell["variant"].clone()).collect()
    };
    for words in [&["baseline, p1 + p2"] as &[&str], &["baseline,", "p1 + p2"]] {
        let names: Vec<Value> = cells(words);
        assert_eq!(names, ["baseline", "p1 + p2"], "{words:?}");
    }
    let output = filemap(&format!("{JOB} --json - --with")).arg("p1, p2").output().unwrap();
    assert!(output.status.code() == Some(2), "one cell is no comparison");
    assert!(String::from_utf8_lossy(&output.stderr).contains("one variant"));
}

#[test]
fn the_command_of_a_report_repeats_it() {
    let report = json(&format!("{JOB} --seed 5 --variants baseline,mmap-miss --json -"));
    let command = report["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert_eq!(report, json(&format!("{command} --json -")));
}

#[test]
fn tables_keep_to_75_columns() {
    let variants = "baseline,p1,p2,p1+p2,mmap-miss,miss-fault-address+miss-no-retry";
    let text = stdout(&format!("{JOB} --variants {variants}"));
    for line in text.lines().filter(|line| !line.starts_with("Command:")) {
        assert!(line.chars().count() <= 75, "{line}");
    }
    for variant in ["p1 ", "p2 ", "p1+p2", "mmap-miss", "miss-fault-address+"] {
        assert!(text.contains(variant), "{variant}");
    }
}

#[test]
fn csv_has_one_line_a_cell_and_counter() {
    let text = stdout(&format!("{JOB} --variants baseline,p2 --format csv"));
    assert!(text.starts_with("engine,variant,counter,median,mad,min,max,change_percent,"));
    let lines = text.lines().filter(|line| line.contains(",bytes_read,"));
    assert_eq!(lines.count(), 2);
}

/// A change is warned of that no decision of the job shows, and only that.
#[test]
fn a_job_that_cannot_see_a_change_is_warned_of() {
    let whole = "compare --workload sequential --file-size 1m --accesses 64 --advice random";
    let report = json(&format!("{whole} --variants baseline,vma-bound --json -"));
    let warnings = report["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1);
    let warning = warnings[0].as_str().unwrap();
    assert!(warning.starts_with("this job cannot see this change: in vma-bound"), "{warning}");
    let text = stdout(&format!("{whole} --variants baseline,vma-bound"));
    assert!(text.contains("Warning: this job cannot see this change"));

    let part =
        "compare --workload first --accesses 1 --file-size 1m --map-offset 256k --map-len 16k";
    let report = json(&format!("{part} --variants baseline,vma-bound,exec-bypass --json -"));
    let warnings = report["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].as_str().unwrap().contains("in exec-bypass no rule"));
}
