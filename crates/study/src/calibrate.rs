//! The report on a machine's costs, and on how well they predict.

use filemap_job::record::SCHEMA;
use serde::Serialize;
use serde_json::Value;

use crate::footer::Footer;
use crate::json::to_json;
use crate::stats::{Sample, percent};
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// What was measured, and what a profile of it predicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The costs, in order.
    pub costs: Vec<Cost>,
    /// What the device alone gives by size of request.
    pub direct: Vec<Direct>,
    /// The machine profile, as TOML and as a value.
    pub profile: (String, Value),
    /// Where the profile is, and who uses it from now on, as a sentence.
    pub kept: String,
    /// What a reader of the report should know, each a sentence without its full stop.
    pub warnings: Vec<String>,
    /// Jobs with their measured and predicted times.
    pub rows: Vec<Row>,
}

/// A cost.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cost {
    /// What costs it.
    pub name: &'static str,
    /// Every figure, in nanoseconds.
    pub ns: Sample,
}

/// Reads that bypass the page cache, one at a time.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Direct {
    /// Size of each.
    pub bytes: u64,
    /// Median time of one, by round.
    pub ns: Sample,
}

/// A job's time.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// Its workload.
    pub workload: String,
    /// Its advice.
    pub advice: String,
    /// Every measured time in seconds.
    pub measured_s: Sample,
    /// The predicted time in seconds.
    pub predicted_s: f64,
}

impl Row {
    /// Of the prediction against the median measured, in percent.
    pub fn error_percent(&self) -> f64 {
        percent(self.predicted_s, self.measured_s.median).unwrap_or(f64::INFINITY)
    }
}

impl Calibration {
    /// Median of the absolute errors of the rows in percent, if there are rows.
    pub fn median_error_percent(&self) -> Option<f64> {
        let errors = self.rows.iter().map(|row| row.error_percent().abs()).collect();
        Sample::of(errors).map(|errors| errors.median)
    }

    /// The row with the largest error.
    pub fn worst(&self) -> Option<&Row> {
        self.rows.iter().max_by(|a, b| a.error_percent().abs().total_cmp(&b.error_percent().abs()))
    }
}

/// The report on `calibration`.
pub fn report(calibration: &Calibration, footer: Footer) -> Report {
    let json = json(calibration, &footer);
    let conclusion = match (calibration.median_error_percent(), calibration.worst()) {
        (Some(median), Some(worst)) => format!(
            "Median of the absolute errors: {median:.1} %. Worst row: {} with {} advice, {:+.1} %. \
             Each row is predicted by a profile of the costs above, which come from other \
             accesses; nothing is fitted to the rows. Rows and costs were measured in turn.",
            worst.workload,
            worst.advice,
            worst.error_percent()
        ),
        _ => "No rows were measured.".to_string(),
    };
    let mut parts = vec![
        Part::Heading("Costs of this machine".to_string()),
        Part::Table(costs(&calibration.costs)),
        Part::Table(direct(&calibration.direct)),
        Part::Heading("Predicted and measured".to_string()),
        Part::Table(rows(&calibration.rows)),
        Part::Paragraph(conclusion),
        Part::Paragraph(calibration.kept.clone()),
    ];
    parts.extend(Part::warnings(&calibration.warnings));
    Report { parts, rows: flat(&calibration.rows), footer: footer.footer(), json }
}

fn costs(costs: &[Cost]) -> Table {
    let row = |cost: &Cost| {
        let Sample { median, min, max, .. } = cost.ns;
        vec![cost.name.to_string(), figure(median), figure(min), figure(max)]
    };
    Table {
        title: "Nanoseconds, over the rounds:".to_string(),
        columns: vec![
            Head::left("cost"),
            Head::right("median"),
            Head::right("min"),
            Head::right("max"),
        ],
        rows: costs.iter().map(row).collect(),
    }
}

/// Small figures with a decimal.
fn figure(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { filemap_report::units::number(ns.round()) }
}

fn direct(direct: &[Direct]) -> Table {
    let row = |read: &Direct| {
        let median = read.ns.median;
        let gigabytes = read.bytes as f64 / median;
        vec![
            filemap_job::format_size(read.bytes),
            format!("{:.1}", median / 1000.0),
            format!("{gigabytes:.2}"),
        ]
    };
    Table {
        title: "The device alone, one read at a time past the page cache:".to_string(),
        columns: vec![Head::left("read"), Head::right("us"), Head::right("GB/s")],
        rows: direct.iter().map(row).collect(),
    }
}

fn rows(rows: &[Row]) -> Table {
    let row = |row: &Row| {
        let Sample { median, min, max, .. } = row.measured_s;
        vec![
            row.workload.clone(),
            row.advice.clone(),
            format!("{median:.4}"),
            format!("{min:.4}-{max:.4}"),
            format!("{:.4}", row.predicted_s),
            format!("{:+.1} %", row.error_percent()),
        ]
    };
    Table {
        title: "Seconds:".to_string(),
        columns: vec![
            Head::left("workload"),
            Head::left("advice"),
            Head::right("measured"),
            Head::right("from-to"),
            Head::right("predicted"),
            Head::right("error"),
        ],
        rows: rows.iter().map(row).collect(),
    }
}

fn flat(rows: &[Row]) -> Table {
    let names = ["workload", "advice", "measured_s", "predicted_s", "error_percent"];
    let row = |row: &Row| {
        vec![
            row.workload.clone(),
            row.advice.clone(),
            row.measured_s.median.to_string(),
            row.predicted_s.to_string(),
            row.error_percent().to_string(),
        ]
    };
    Table {
        title: String::new(),
        columns: names.map(Head::left).into(),
        rows: rows.iter().map(row).collect(),
    }
}

/// The report as JSON.
#[derive(Serialize, schemars::JsonSchema)]
pub(crate) struct Json<'a> {
    schema: u32,
    profile: &'a Value,
    profile_toml: &'a str,
    costs: &'a [Cost],
    direct: &'a [Direct],
    rows: Vec<JsonRow<'a>>,
    median_error_percent: Option<f64>,
    worst: Option<String>,
    warnings: &'a [String],
    #[serde(flatten)]
    footer: &'a Footer,
}

/// A row as JSON.
#[derive(Serialize, schemars::JsonSchema)]
struct JsonRow<'a> {
    #[serde(flatten)]
    row: &'a Row,
    error_percent: f64,
}

fn json(calibration: &Calibration, footer: &Footer) -> String {
    let rows = calibration.rows.iter();
    to_json(&Json {
        schema: SCHEMA,
        profile: &calibration.profile.1,
        profile_toml: &calibration.profile.0,
        costs: &calibration.costs,
        direct: &calibration.direct,
        rows: rows.map(|row| JsonRow { row, error_percent: row.error_percent() }).collect(),
        median_error_percent: calibration.median_error_percent(),
        worst: calibration.worst().map(|row| format!("{} {}", row.workload, row.advice)),
        warnings: &calibration.warnings,
        footer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, measured_s: f64, predicted_s: f64) -> Row {
        Row {
            workload: workload.to_string(),
            advice: "normal".to_string(),
            measured_s: Sample::of(vec![measured_s]).expect("one figure"),
            predicted_s,
        }
    }

    #[test]
    fn the_worst_row_and_the_median_are_those_of_absolute_errors() {
        let rows = vec![row("a", 1.0, 1.1), row("b", 1.0, 0.5), row("c", 2.0, 2.0)];
        let profile = (String::new(), Value::Null);
        let kept = String::new();
        let (costs, direct, warnings) = (vec![], vec![], vec![]);
        let calibration = Calibration { costs, direct, profile, kept, warnings, rows };
        assert_eq!(calibration.worst().map(|row| row.workload.as_str()), Some("b"));
        let median = calibration.median_error_percent().expect("there are rows");
        assert!((median - 10.0).abs() < 1e-9, "{median}");
    }
}
