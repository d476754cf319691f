//! The record and report of a calibration.

use filemap_job::format_size;
use filemap_job::record::RecordKind;
use filemap_report::units::number;
use filemap_report::{Column, Part, Report, csv, digits, figures, raw, table, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::footer::Footer;
use crate::json::to_json;
use crate::stats::{Sample, percent};

/// Measured costs, and the predictions of the profile fitted to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Calibration {
    pub schema: u32,
    /// What the record is of.
    pub kind: RecordKind,
    /// The machine profile as a JSON value; `profile_toml` as TOML.
    pub profile: Value,
    pub profile_toml: String,
    pub costs: Vec<Cost>,
    /// Direct reads by request size.
    pub direct: Vec<Direct>,
    /// Jobs with measured and predicted times.
    pub rows: Vec<Row>,
    pub median_error_percent: Option<f64>,
    pub worst: Option<String>,
    pub warnings: Vec<String>,
    /// Sentence on where the profile is stored and which commands use it.
    #[serde(default)]
    pub kept: String,
    #[serde(flatten)]
    pub footer: Footer,
}

/// A measured cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// The operation.
    pub name: String,
    /// All samples in nanoseconds.
    pub ns: Sample,
}

/// Direct reads (O_DIRECT) of one size, at queue depth 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direct {
    /// Size of a read in bytes.
    pub bytes: u64,
    /// Median time of a read in each round, in nanoseconds.
    pub ns: Sample,
}

/// Measured and predicted time of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    workload: String,
    advice: String,
    /// All measured times in seconds.
    measured_s: Sample,
    /// Predicted time in seconds.
    predicted_s: f64,
    /// Error of the prediction against the measured median.
    error_percent: f64,
}

const COSTS: [Column<Cost>; 4] = [
    words("cost", |own| own.name.as_str().into()),
    figures("median", |own| figure(own.ns.median).into()),
    figures("min", |own| figure(own.ns.min).into()),
    figures("max", |own| figure(own.ns.max).into()),
];

const DIRECT: [Column<Direct>; 3] = [
    words("read", |own| format_size(own.bytes).into()),
    figures("us", |own| digits(Some(own.ns.median / 1000.0), 1)),
    figures("GB/s", |own| digits(Some(own.bytes as f64 / own.ns.median), 2)),
];

const ROWS: [Column<Row>; 6] = [
    words("workload", |row| row.workload.as_str().into()),
    words("advice", |row| row.advice.as_str().into()),
    figures("measured", |row| digits(Some(row.measured_s.median), 4)),
    figures("from-to", |row| format!("{:.4}-{:.4}", row.measured_s.min, row.measured_s.max).into()),
    figures("predicted", |row| digits(Some(row.predicted_s), 4)),
    figures("error", |row| format!("{:+.1} %", row.error_percent).into()),
];

const CSV: [Column<Row>; 5] = [
    raw("workload", |row| row.workload.as_str().into()),
    raw("advice", |row| row.advice.as_str().into()),
    raw("measured_s", |row| row.measured_s.median.into()),
    raw("predicted_s", |row| row.predicted_s.into()),
    raw("error_percent", |row| row.error_percent.into()),
];

/// Formats nanoseconds, with a decimal below 100.
fn figure(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { number(ns.round()) }
}

impl Row {
    /// Row of a job with its measured and predicted times.
    pub fn of(workload: &str, advice: &str, measured_s: Sample, predicted_s: f64) -> Row {
        Row {
            workload: workload.to_string(),
            advice: advice.to_string(),
            error_percent: percent(predicted_s, measured_s.median).unwrap_or(f64::INFINITY),
            measured_s,
            predicted_s,
        }
    }
}

/// The row with the largest absolute error.
fn worst(rows: &[Row]) -> Option<&Row> {
    rows.iter().max_by(|a, b| a.error_percent.abs().total_cmp(&b.error_percent.abs()))
}

impl Calibration {
    /// Adds `rows` and their summary.
    pub fn with_rows(self, rows: Vec<Row>) -> Self {
        let errors = rows.iter().map(|row| row.error_percent.abs()).collect();
        let worst = worst(&rows).map(|row| format!("{} {}", row.workload, row.advice));
        let median_error_percent = Sample::of(errors).map(|errors| errors.median);
        Calibration { median_error_percent, worst, rows, ..self }
    }

    /// The report.
    pub fn report(&self) -> Report {
        let conclusion = match (self.median_error_percent, worst(&self.rows)) {
            (Some(median), Some(worst)) => format!(
                "Median of the absolute errors: {median:.1} %. Worst row: {} with {} advice, \
                 {:+.1} %. Each row is predicted by a profile of the costs above, which come from \
                 other accesses; nothing is fitted to the rows. Rows and costs were measured in \
                 turn.",
                worst.workload, worst.advice, worst.error_percent
            ),
            _ => "No rows were measured.".to_string(),
        };
        let reads = "The device alone, one read at a time past the page cache:";
        let mut parts = vec![
            Part::Heading("Costs of this machine".to_string()),
            Part::Table(table("Nanoseconds, over the rounds:", &COSTS, &self.costs)),
            Part::Table(table(reads, &DIRECT, &self.direct)),
            Part::Heading("Predicted and measured".to_string()),
            Part::Table(table("Seconds:", &ROWS, &self.rows)),
            Part::Paragraph(conclusion),
            Part::Paragraph(self.kept.clone()),
        ];
        parts.extend(Part::warnings(&self.warnings));
        let (rows, footer) = (csv(&CSV, &self.rows), self.footer.footer());
        Report { parts, rows, footer, record_json: to_json(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, measured_s: f64, predicted_s: f64) -> Row {
        let measured_s = Sample::of(vec![measured_s]).expect("one figure");
        Row::of(workload, "normal", measured_s, predicted_s)
    }

    #[test]
    fn the_worst_row_and_the_median_are_those_of_absolute_errors() {
        let rows = vec![row("a", 1.0, 1.1), row("b", 1.0, 0.5), row("c", 2.0, 2.0)];
        let found = Calibration::default().with_rows(rows);
        assert_eq!(found.worst.as_deref(), Some("b normal"));
        let median = found.median_error_percent.expect("there are rows");
        assert!((median - 10.0).abs() < 1e-9, "{median}");
    }
}
