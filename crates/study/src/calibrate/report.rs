//! The record and report of a calibration.

use filemap_job::format_size;
use filemap_job::record::RecordKind;
use filemap_report::units::number;
use filemap_report::{
    Column, Part, Report, csv_column, csv_table, figure_column, fixed, text_column, text_table,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::footer::Footer;
use crate::json::to_json;
use crate::stats::{SampleStats, percent};

/// Measured costs, and the predictions of the profile fitted to them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct CalibrateRecord {
    pub schema: u32,
    /// What the record is of.
    pub kind: RecordKind,
    /// The machine profile as a JSON value; `profile_toml` as TOML.
    pub profile: Value,
    pub profile_toml: String,
    pub costs: Vec<MeasuredCost>,
    /// Direct reads by request size.
    pub direct: Vec<DirectReads>,
    /// Direct reads of 4 KiB by the number of them in flight.
    #[serde(default)]
    pub in_flight: Vec<ReadsInFlight>,
    /// Jobs with measured and predicted times.
    pub rows: Vec<PredictedJob>,
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
pub struct MeasuredCost {
    /// The operation.
    pub name: String,
    /// All samples in nanoseconds.
    pub ns: SampleStats,
}

/// Direct reads (O_DIRECT) of one size, at queue depth 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DirectReads {
    /// Size of a read in bytes.
    pub bytes: u64,
    /// Median time of a read in each round, in nanoseconds.
    pub ns: SampleStats,
}

/// Direct reads of 4 KiB at random places, with a constant number of them in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadsInFlight {
    /// How many are in flight.
    pub requests: u64,
    /// Time per read in each round, in nanoseconds.
    pub ns: SampleStats,
    /// The same by the fitted device, whose `request_ns` and `queue_depth` come from all rows.
    pub fitted_ns: f64,
}

/// Measured and predicted time of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedJob {
    workload: String,
    advice: String,
    /// All measured times in seconds.
    measured_s: SampleStats,
    /// Predicted time in seconds.
    predicted_s: f64,
    /// Error of the prediction against the measured median.
    error_percent: f64,
}

const COSTS: [Column<MeasuredCost>; 4] = [
    text_column("cost", |own| own.name.as_str().into()),
    figure_column("median", |own| figure(own.ns.median).into()),
    figure_column("min", |own| figure(own.ns.min).into()),
    figure_column("max", |own| figure(own.ns.max).into()),
];

const DIRECT: [Column<DirectReads>; 3] = [
    text_column("read", |own| format_size(own.bytes).into()),
    figure_column("us", |own| fixed(Some(own.ns.median / 1000.0), 1)),
    figure_column("GB/s", |own| fixed(Some(own.bytes as f64 / own.ns.median), 2)),
];

const IN_FLIGHT: [Column<ReadsInFlight>; 4] = [
    text_column("in flight", |own| own.requests.to_string().into()),
    figure_column("us per read", |own| fixed(Some(own.ns.median / 1000.0), 1)),
    figure_column("fitted", |own| fixed(Some(own.fitted_ns / 1000.0), 1)),
    figure_column("reads/s", |own| number((1e9 / own.ns.median).round()).into()),
];

const ROWS: [Column<PredictedJob>; 6] = [
    text_column("workload", |row| row.workload.as_str().into()),
    text_column("advice", |row| row.advice.as_str().into()),
    figure_column("measured", |row| fixed(Some(row.measured_s.median), 4)),
    figure_column("from-to", |row| {
        format!("{:.4}-{:.4}", row.measured_s.min, row.measured_s.max).into()
    }),
    figure_column("predicted", |row| fixed(Some(row.predicted_s), 4)),
    figure_column("error", |row| format!("{:+.1} %", row.error_percent).into()),
];

const CSV: [Column<PredictedJob>; 5] = [
    csv_column("workload", |row| row.workload.as_str().into()),
    csv_column("advice", |row| row.advice.as_str().into()),
    csv_column("measured_s", |row| row.measured_s.median.into()),
    csv_column("predicted_s", |row| row.predicted_s.into()),
    csv_column("error_percent", |row| row.error_percent.into()),
];

/// Formats nanoseconds, with a decimal below 100.
fn figure(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { number(ns.round()) }
}

impl PredictedJob {
    /// Row of a job with its measured and predicted times.
    pub fn new(
        workload: &str,
        advice: &str,
        measured_s: SampleStats,
        predicted_s: f64,
    ) -> PredictedJob {
        PredictedJob {
            workload: workload.to_string(),
            advice: advice.to_string(),
            error_percent: percent(predicted_s, measured_s.median).unwrap_or(f64::INFINITY),
            measured_s,
            predicted_s,
        }
    }
}

/// The row with the largest absolute error.
fn worst(rows: &[PredictedJob]) -> Option<&PredictedJob> {
    rows.iter().max_by(|a, b| a.error_percent.abs().total_cmp(&b.error_percent.abs()))
}

impl CalibrateRecord {
    /// Adds `rows` and their summary.
    pub fn with_rows(self, rows: Vec<PredictedJob>) -> Self {
        let errors = rows.iter().map(|row| row.error_percent.abs()).collect();
        let worst = worst(&rows).map(|row| format!("{} {}", row.workload, row.advice));
        let median_error_percent = SampleStats::from_sorted(errors).map(|errors| errors.median);
        CalibrateRecord { median_error_percent, worst, rows, ..self }
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
        let reads = "The device alone, one read at a time, bypassing the page cache:";
        let in_flight = "The same with several reads of 4 KiB in flight, and the fitted device:";
        let mut parts = vec![
            Part::Heading("Costs of this machine".to_string()),
            Part::Table(text_table("Nanoseconds, over the rounds:", &COSTS, &self.costs)),
            Part::Table(text_table(reads, &DIRECT, &self.direct)),
            Part::Table(text_table(in_flight, &IN_FLIGHT, &self.in_flight)),
            Part::Heading("Predicted and measured".to_string()),
            Part::Table(text_table("Seconds:", &ROWS, &self.rows)),
            Part::Paragraph(conclusion),
            Part::Paragraph(self.kept.clone()),
        ];
        parts.extend(Part::warnings(&self.warnings));
        let (rows, footer) = (csv_table(&CSV, &self.rows), self.footer.footer());
        Report { parts, rows, footer, record_json: to_json(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, measured_s: f64, predicted_s: f64) -> PredictedJob {
        let measured_s = SampleStats::from_sorted(vec![measured_s]).expect("one figure");
        PredictedJob::new(workload, "normal", measured_s, predicted_s)
    }

    #[test]
    fn the_worst_row_and_the_median_are_those_of_absolute_errors() {
        let rows = vec![row("a", 1.0, 1.1), row("b", 1.0, 0.5), row("c", 2.0, 2.0)];
        let found = CalibrateRecord::default().with_rows(rows);
        assert_eq!(found.worst.as_deref(), Some("b normal"));
        let median = found.median_error_percent.expect("there are rows");
        assert!((median - 10.0).abs() < 1e-9, "{median}");
    }
}
