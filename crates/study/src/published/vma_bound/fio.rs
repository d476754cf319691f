//! fio's rows: as published, and as fio counts here.

use serde_json::{Value, json};

use super::super::data::{FioRow, PUBLISHED};
use super::super::{FioRun, FioRuns};
use crate::stats::{Sample, percent};
use filemap_report::Part;
use filemap_report::{Head, Table};

/// A published row; there is no figure of the model beside it.
pub(super) fn published_json(row: &FioRow) -> Value {
    let (before, after) = medians(row);
    json!({
        "series": "vma-bound",
        "name": format!("fio {} {}", row.ioengine, row.rw),
        "published": null,
        "figures": {
            "published_mib_s": { "before": row.before_mib_s, "after": row.after_mib_s },
            "published_median_mib_s": { "before": before, "after": after },
            "published_change_percent": percent(after, before),
        },
        "error": null,
        "ok": null,
        "verdict": "not compared",
    })
}

fn medians(row: &FioRow) -> (f64, f64) {
    let median = |runs: &[f64]| Sample::of(runs.to_vec()).expect("a row has runs").median;
    (median(&row.before_mib_s), median(&row.after_mib_s))
}

pub(super) fn published_table() -> Table {
    let row = |row: &FioRow| {
        let (before, after) = medians(row);
        let spread = |runs: &[f64]| Sample::of(runs.to_vec()).expect("a row has runs");
        let range = |sample: Sample| format!("{}-{}", sample.min, sample.max);
        vec![
            row.ioengine.clone(),
            row.rw.clone(),
            format!("{before}"),
            range(spread(&row.before_mib_s)),
            format!("{after}"),
            range(spread(&row.after_mib_s)),
            percent(after, before).map_or("-".to_string(), |change| format!("{change:+.1} %")),
        ]
    };
    Table {
        title: "Published: fio, MiB/s, median and range of five runs".to_string(),
        columns: vec![
            Head::left("engine"),
            Head::left("rw"),
            Head::right("before"),
            Head::right("range"),
            Head::right("after"),
            Head::right("range"),
            Head::right("change"),
        ],
        rows: PUBLISHED.vma_bound.rows.iter().map(row).collect(),
    }
}

/// What fio came to here, in a table; in a line where it did not run.
pub(super) fn measured_parts(runs: &Result<FioRuns, String>) -> Vec<Part> {
    let runs = match runs {
        Ok(runs) => runs,
        Err(reason) => return vec![Part::Paragraph(format!("fio itself did not run: {reason}."))],
    };
    let row = |run: &FioRun| {
        let [before, inside, after] = run.cached;
        let [ioengine, rw] = [&run.ioengine, &run.rw].map(String::clone);
        let advises = if run.advises { "yes" } else { "no" }.to_string();
        let mib_s = format!("{:.0}", run.mib_s);
        let counts = [run.major_faults, before, inside, after].map(|count| count.to_string());
        [ioengine, rw, advises, mib_s].into_iter().chain(counts).collect()
    };
    let mut columns = ["engine", "rw", "advises"].map(Head::left).to_vec();
    let counts = ["MiB/s", "major", "cached\nbefore", "\ninside", "\nafter"];
    columns.extend(counts.map(Head::right));
    let read_ahead = runs.read_ahead_kb.map_or("its".to_string(), |kib| format!("{kib} KiB of"));
    vec![
        Part::Table(Table {
            title: format!("fio itself here: {}, Linux {}", runs.version, runs.kernel),
            columns,
            rows: runs.rows.iter().map(row).collect(),
        }),
        Part::Paragraph(format!(
            "The published sizes on a cold file of our own, {read_ahead} readahead; cached: pages \
             before, in and behind the GiB that fio was given. {}",
            told(runs)
        )),
    ]
}

/// What the rows show of mappings and advice.
fn told(runs: &FioRuns) -> String {
    let of = |engine: &'static str| runs.rows.iter().filter(move |run| run.ioengine == engine);
    let find =
        |rw: &str, advises: bool| of("mmap").find(|run| run.rw == rw && run.advises == advises);
    let mut words = Vec::new();
    if of("mmap").any(|run| run.cached[0] > 0) && of("psync").all(|run| run.cached[0] == 0) {
        words.push(
            "Its mmap engine reads what lies before that GiB, and psync does not: this fio maps \
             a file from its first page on, and no access comes near the start of a mapping \
             inside the file."
                .to_string(),
        );
    }
    if let (Some(with), Some(without)) = (find("randread", true), find("randread", false)) {
        words.push(format!(
            "Its advice alone takes its random faults from {} to {} major ones.",
            without.major_faults, with.major_faults
        ));
    }
    words.join(" ")
}

pub(super) fn measured_json(runs: &FioRuns) -> impl Iterator<Item = Value> {
    runs.rows.iter().map(|run| {
        let advice = if run.advises { "advised" } else { "not advised" };
        json!({
            "series": "vma-bound",
            "name": format!("fio {} {}, {advice}, measured", run.ioengine, run.rw),
            "published": null,
            "figures": {
                "fio": runs.version,
                "kernel": runs.kernel,
                "read_ahead_kb": runs.read_ahead_kb,
                "mib_s": run.mib_s,
                "major_faults": run.major_faults,
                "cached": {
                    "before": run.cached[0],
                    "inside": run.cached[1],
                    "after": run.cached[2],
                },
            },
            "error": null,
            "ok": null,
            "verdict": "measured here",
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> FioRuns {
        let row = |ioengine: &str, advises: bool, major_faults, before| FioRun {
            ioengine: ioengine.to_string(),
            rw: "randread".to_string(),
            advises,
            mib_s: 37.4,
            major_faults,
            cached: [before, 5, 0],
        };
        FioRuns {
            version: "fio-3.33".to_string(),
            kernel: "6.18.1".to_string(),
            read_ahead_kb: Some(8192),
            rows: vec![
                row("mmap", true, 900, 4),
                row("mmap", false, 9, 4),
                row("psync", true, 0, 0),
            ],
        }
    }

    #[test]
    fn what_the_rows_show_is_said() {
        let parts = measured_parts(&Ok(runs()));
        let [Part::Table(table), Part::Paragraph(text)] = parts.as_slice() else { panic!() };
        assert_eq!(table.rows[0], ["mmap", "randread", "yes", "37", "900", "4", "5", "0"]);
        assert!(text.contains("from its first page on"), "{text}");
        assert!(text.contains("from 9 to 900 major ones"), "{text}");
    }

    #[test]
    fn what_they_do_not_show_is_not() {
        let mut inside = runs();
        inside.rows.iter_mut().for_each(|run| run.cached[0] = 0);
        assert!(!told(&inside).contains("first page"));
        inside.rows.remove(0);
        assert_eq!(told(&inside), "");
        let missing = measured_parts(&Err("fio is missing".to_string()));
        let text = "fio itself did not run: fio is missing.".to_string();
        assert!(matches!(missing.as_slice(), [Part::Paragraph(own)] if *own == text));
    }
}
