//! The report on a machine's costs, and on how well they predict.

use filemap_job::format_size;
use filemap_report::units::number;
use filemap_report::{Column, Part, Report, csv, digits, figures, raw, table, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::footer::Footer;
use crate::json::to_json;
use crate::stats::{Sample, percent};

/// What was measured, and what a profile of it predicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Calibration {
    pub schema: u32,
    /// The machine profile, as a value and as TOML.
    pub profile: Value,
    pub profile_toml: String,
    pub costs: Vec<Cost>,
    /// What the device alone gives by size of request.
    pub direct: Vec<Direct>,
    /// Jobs with their measured and predicted times.
    pub rows: Vec<Row>,
    pub median_error_percent: Option<f64>,
    pub worst: Option<String>,
    pub warnings: Vec<String>,
    /// Where the profile is, and who uses it from now on, as a sentence.
    #[serde(default)]
    pub kept: String,
    #[serde(flatten)]
    pub footer: Footer,
}

/// A cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// What costs it.
    pub name: String,
    /// Every figure, in nanoseconds.
    pub ns: Sample,
}

/// Reads that bypass the page cache, one at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direct {
    /// Size of each.
    pub bytes: u64,
    /// Median time of one, by round.
    pub ns: Sample,
}

/// A job's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    workload: String,
    advice: String,
    /// Every measured time in seconds.
    measured_s: Sample,
    /// The predicted time in seconds.
    predicted_s: f64,
    /// Of the prediction against the median measured.
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

/// Small figures with a decimal.
fn figure(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { number(ns.round()) }
}

impl Row {
    /// A job that took so long, and should take so long.
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

/// The row with the largest error.
fn worst(rows: &[Row]) -> Option<&Row> {
    rows.iter().max_by(|a, b| a.error_percent.abs().total_cmp(&b.error_percent.abs()))
}

impl Calibration {
    /// The same with what its rows come to.
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
