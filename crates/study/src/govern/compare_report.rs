//! The report of `filemap govern --compare`.

use filemap_job::Spread;
use filemap_report::units::{bytes, bytes_range, time_range};
use filemap_report::{
    Better, CellValue, Column, ComparisonTable, Figure, Part, Report, Sample, Table, Unit,
    csv_column, csv_table, figure_column, fold_cell, text_column, text_table,
};

use super::compare::{GovernCompareRecord, GovernVariant};
use super::exits;
use super::record::escape_control;
use crate::json::to_json;
use crate::trial::MeasureComparison;

impl GovernCompareRecord {
    /// The report.
    pub fn report(&self) -> Report {
        let heading = format!("Plain and governed: {}", escape_control(&self.program.join(" ")));
        let mut parts = vec![Part::Heading(heading)];
        let failed =
            self.differences.iter().map(|difference| format!("Check failed: {difference}."));
        parts.extend(failed.map(Part::Paragraph));
        // Exits that only governed runs have are listed among the differences.
        let failure = exits::failure_text(&self.endings, self.first.as_ref());
        parts.extend(failure.filter(|_| !exits::differ(&self.endings)).map(Part::Paragraph));
        parts.extend([
            Part::Facts(self.facts()),
            Part::Comparison(median_table(&self.cells)),
            Part::Table(text_table("", &VERDICTS, &self.cells)),
            Part::Paragraph(TESTED.to_string()),
        ]);
        if let Some(reason) = &self.ungoverned {
            parts.push(Part::Paragraph(format!(
                "No file of this program was governed, so that only chance tells the runs apart: \
                 {reason}."
            )));
        }
        parts.extend(self.unsteady_outputs().map(Part::Paragraph));
        parts.extend(self.notes.iter().map(|note| Part::Paragraph(escape_control(note))));
        let rows = csv_rows(&self.cells);
        Report { parts, rows, footer: self.footer.footer(), record_json: to_json(self) }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let total: u64 = self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
        let total = bytes(total as f64);
        let [plain, governed] = [GovernVariant::Plain, GovernVariant::Governed]
            .map(|variant| self.measured_runs(variant).count());
        let cached = self.runs.iter().map(|sample| sample.run.cached_bytes).max().unwrap_or(0);
        let mut facts = vec![("Runs", format!("{plain} plain and {governed} governed, in turn"))];
        facts.push(match self.files.as_slice() {
            [] => ("Files", "none that the program maps".to_string()),
            [file] => ("File", format!("{}, {total}", escape_control(&file.path))),
            files => ("Files", format!("{}, {total}", files.len())),
        });
        let start = match (self.files.as_slice(), cached) {
            ([], _) => "whatever was in the page cache, as no file is known".to_string(),
            (_, 0) => "cold: nothing of the files was in the page cache before a run".to_string(),
            (_, cached) => format!(
                "cold, except for up to {} of the files, which stayed in the page cache",
                bytes(cached as f64)
            ),
        };
        facts.push(("Start", start));
        facts.into_iter().map(|(label, text)| (label.to_string(), text)).collect()
    }
}

/// How the p-value is computed, and what the figures cover.
const TESTED: &str = "p is how often chance alone sets runs apart as much (unpaired permutation \
                      test on ranks). The figures are those of the program and of \
                      all that it started and waited for.";

/// Maximum width of a verdict, so that the table fits into text reports.
const VERDICT_COLUMNS: usize = 13;

/// Verdict, p-value and ranges of each measure.
const VERDICTS: [Column<MeasureComparison>; 5] = [
    text_column("", |cell| cell.measure.name().into()),
    text_column("governed is", |cell| fold_cell(&cell.verdict, VERDICT_COLUMNS).into()),
    figure_column("p", |cell| format!("{:.3}", cell.p_value).into()),
    figure_column("plain,\nleast to most", |cell| range(cell, cell.plain)),
    figure_column("governed,\nleast to most", |cell| range(cell, cell.governed)),
];

/// A measure, and one of its two variants.
type VariantRow<'a> = (&'a MeasureComparison, &'static str, Spread);

/// Columns of the CSV form.
const fn csv_columns<'a>() -> [Column<VariantRow<'a>>; 8] {
    [
        csv_column("measure", |(cell, ..)| cell.measure.key().into()),
        csv_column("variant", |(_, variant, _)| (*variant).into()),
        csv_column("median", |(_, _, spread)| spread.median.into()),
        csv_column("mad", |(_, _, spread)| spread.mad.into()),
        csv_column("min", |(_, _, spread)| spread.min.into()),
        csv_column("max", |(_, _, spread)| spread.max.into()),
        csv_column("p_value", |(cell, ..)| cell.p_value.into()),
        csv_column("verdict", |(cell, ..)| cell.verdict.as_str().into()),
    ]
}

const VARIANT_NAMES: [&str; 2] = ["plain", "governed"];

fn range(cell: &MeasureComparison, Spread { min, max, .. }: Spread) -> CellValue {
    let (min, max) = (min as f64, max as f64);
    CellValue::from(match cell.measure.unit() {
        Unit::Bytes => bytes_range(min, max),
        Unit::Nanoseconds => time_range(min, max),
        unit => format!("{} to {}", unit.text(min), unit.text(max)),
    })
}

/// Medians of both variants side by side.
fn median_table(cells: &[MeasureComparison]) -> ComparisonTable {
    let sample = |Spread { median, min, max, .. }: Spread| {
        Some(Sample { median, min: min as f64, max: max as f64, mark: "" })
    };
    let figure = |(at, cell): (usize, &MeasureComparison)| Figure {
        name: cell.measure.name().to_string(),
        unit: cell.measure.unit(),
        better: Better::Less,
        rank: Some(at),
        samples: [cell.plain, cell.governed].map(sample).to_vec(),
    };
    let variant =
        |name: &str| filemap_report::Variant { name: name.to_string(), ..Default::default() };
    let variants = VARIANT_NAMES.map(variant).to_vec();
    ComparisonTable { variants, figures: cells.iter().enumerate().map(figure).collect() }
}

/// One row for each measure and variant.
fn csv_rows(cells: &[MeasureComparison]) -> Table {
    let mut rows: Vec<VariantRow> = Vec::new();
    for cell in cells {
        rows.extend([
            (cell, VARIANT_NAMES[0], cell.plain),
            (cell, VARIANT_NAMES[1], cell.governed),
        ]);
    }
    csv_table(&csv_columns(), &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::super::compare::{GovernSample, GovernedFile};
    use super::*;
    use crate::footer::Footer;
    use crate::trial::RunSample;
    use filemap_report::{Format, TEXT_COLUMNS};

    fn run(variant: GovernVariant, read: u64) -> GovernSample {
        let run = RunSample {
            exit_code: Some(0),
            bytes_read: read << 20,
            major_faults: 12_345,
            elapsed_ns: read * 1_000_003,
            cpu_ns: 5_000_000,
            stdout: "a".to_string(),
            ..RunSample::default()
        };
        GovernSample { variant, run }
    }

    fn runs() -> GovernCompareRecord {
        let pair =
            |at: u64| [run(GovernVariant::Plain, 1000 + at), run(GovernVariant::Governed, 20 + at)];
        GovernCompareRecord {
            footer: Footer {
                scope: "one program".to_string(),
                command: "filemap govern --compare -- rg x".to_string(),
                environment: Map::new(),
            },
            program: vec!["rg".to_string(), "x".to_string()],
            files: vec![GovernedFile { path: "/data/a".to_string(), bytes: 1 << 30 }],
            runs: (0..5).flat_map(pair).collect(),
            ..GovernCompareRecord::default()
        }
    }

    /// The report of the record after a round trip through JSON.
    fn report(runs: &GovernCompareRecord) -> Report {
        let json = to_json(&runs.clone().with_results());
        serde_json::from_str::<GovernCompareRecord>(&json).unwrap().report()
    }

    #[test]
    fn tells_differences_from_chance() {
        let report = report(&runs());
        let text = report.render(Format::Table);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        for line in [
            "read 1002 MiB 22 MiB -97.8 %",
            "major faults 12 345 12 345 =",
            "read less 0.008 1000 to 1004 MiB 20 to 24 MiB",
            "major faults no difference 1.000 12 345 to 12 345 12 345 to 12 345",
        ] {
            assert!(lines.iter().any(|own| own == line), "{line}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= TEXT_COLUMNS), "{text}");
        let json: Value = serde_json::from_str(&report.record_json).unwrap();
        assert_eq!(json["cells"][0]["plain"]["median"], 1002 << 20);
        assert_eq!(json["cells"][2]["verdict"], "faster");
        assert_eq!(json["runs"].as_array().unwrap().len(), 10);
        assert_eq!(json["differences"], Value::Array(Vec::new()));
        assert_eq!(report.rows.rows.len(), 8);
    }

    #[test]
    fn fails_on_other_output_unless_plain_runs_differ() {
        let mut runs = runs();
        runs.runs[3].run.stdout = "b".to_string();
        runs.runs[3].run.exit_code = Some(1);
        assert_eq!(runs.clone().with_results().differences.len(), 2);
        assert!(report(&runs).render(Format::Table).contains("Check failed: the exit code"));
        runs.runs[0].run.stdout = "c".to_string();
        assert_eq!(runs.clone().with_results().differences.len(), 1);
        let text = report(&runs).render(Format::Table);
        assert!(text.contains("what stdout has differs among the plain runs already"), "{text}");
    }

    #[test]
    fn gives_reason_without_governed_file() {
        let mut runs = runs();
        runs.files.clear();
        runs.ungoverned = Some("it maps nothing".to_string());
        let text = report(&runs).render(Format::Table);
        assert!(text.contains("apart: it maps nothing."), "{text}");
        assert!(text.contains("none that the program maps"), "{text}");
    }
}
