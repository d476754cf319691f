//! The report on a machine's costs, and on how well they predict.

use filemap_job::format_size;
use filemap_job::record::SCHEMA;
use filemap_report::units::number;
use filemap_report::{Column, Part, Report, Unit, csv, table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::footer::Footer;
use crate::json::to_json;
use crate::stats::{Sample, percent};

/// What was measured, and what a profile of it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Calibration {
    schema: u32,
    /// The machine profile, as a value and as TOML.
    profile: Value,
    pub profile_toml: String,
    costs: Vec<Cost>,
    /// What the device alone gives by size of request.
    direct: Vec<Direct>,
    /// Jobs with their measured and predicted times.
    rows: Vec<Row>,
    median_error_percent: Option<f64>,
    worst: Option<String>,
    warnings: Vec<String>,
    /// Where the profile is, and who uses it from now on, as a sentence.
    #[serde(default)]
    kept: String,
    #[serde(flatten)]
    footer: Footer,
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

/// What was measured.
pub struct Measured {
    pub costs: Vec<Cost>,
    pub direct: Vec<Direct>,
    pub rows: Vec<Row>,
    /// What a reader should know, each a sentence without its full stop.
    pub warnings: Vec<String>,
}

/// Of each cost.
const COSTS: [Column<Cost>; 4] = [
    Column::of("", "cost", Unit::Text, |own| own.name.as_str().into()),
    Column::of("", "median", Unit::Count, |own| figure(own.ns.median).into()),
    Column::of("", "min", Unit::Count, |own| figure(own.ns.min).into()),
    Column::of("", "max", Unit::Count, |own| figure(own.ns.max).into()),
];

/// Of each size of request.
const DIRECT: [Column<Direct>; 3] = [
    Column::of("", "read", Unit::Text, |own| format_size(own.bytes).into()),
    Column::of("", "us", Unit::Count, |own| format!("{:.1}", own.ns.median / 1000.0).into()),
    Column::of("", "GB/s", Unit::Ratio, |own| (own.bytes as f64 / own.ns.median).into()),
];

/// Of each job.
const ROWS: [Column<Row>; 6] = [
    WORKLOAD,
    ADVICE,
    Column::of("", "measured", Unit::Count, |row| seconds(row.measured_s.median).into()),
    Column::of("", "from-to", Unit::Count, |row| {
        format!("{}-{}", seconds(row.measured_s.min), seconds(row.measured_s.max)).into()
    }),
    Column::of("", "predicted", Unit::Count, |row| seconds(row.predicted_s).into()),
    Column::of("", "error", Unit::Count, |row| format!("{:+.1} %", row.error_percent).into()),
];

/// The same in CSV.
const CSV: [Column<Row>; 5] = [
    WORKLOAD,
    ADVICE,
    Column::of("measured_s", "", Unit::Count, |row| row.measured_s.median.into()),
    Column::of("predicted_s", "", Unit::Count, |row| row.predicted_s.into()),
    Column::of("error_percent", "", Unit::Percent, |row| row.error_percent.into()),
];

const WORKLOAD: Column<Row> =
    Column::of("workload", "workload", Unit::Text, |row| row.workload.as_str().into());

const ADVICE: Column<Row> =
    Column::of("advice", "advice", Unit::Text, |row| row.advice.as_str().into());

/// Small figures with a decimal.
fn figure(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { number(ns.round()) }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.4}")
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

impl Measured {
    /// The record of it, with the profile that it gives as TOML and as a value, and what is said
    /// of where that is.
    pub fn calibration(
        self,
        (profile_toml, profile): (String, Value),
        kept: String,
        footer: Footer,
    ) -> Calibration {
        let Measured { costs, direct, rows, warnings } = self;
        let errors = rows.iter().map(|row| row.error_percent.abs()).collect();
        let worst = worst(&rows).map(|row| format!("{} {}", row.workload, row.advice));
        Calibration {
            schema: SCHEMA,
            profile,
            profile_toml,
            costs,
            direct,
            median_error_percent: Sample::of(errors).map(|errors| errors.median),
            worst,
            rows,
            warnings,
            kept,
            footer,
        }
    }
}

impl Calibration {
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
        Report { parts, rows, footer, json: to_json(self) }
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
        let measured = Measured { costs: vec![], direct: vec![], rows, warnings: vec![] };
        let profile = (String::new(), Value::Null);
        let found = measured.calibration(profile, String::new(), Footer::default());
        assert_eq!(found.worst.as_deref(), Some("b normal"));
        let median = found.median_error_percent.expect("there are rows");
        assert!((median - 10.0).abs() < 1e-9, "{median}");
    }
}
