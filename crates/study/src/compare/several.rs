//! Several jobs, each in the same variants.

use filemap_job::Record;

use super::cell::Cell;
use super::{data, report, worse};
use crate::footer::Footer;
use filemap_report::{Head, Table};
use filemap_report::{Part, Report};

/// A job with its variants.
#[derive(Clone, Debug, PartialEq)]
pub struct OfFile {
    /// The path of its job file.
    pub job_file: String,
    /// Its variants, all against the first.
    pub cells: Vec<Cell>,
    /// What is to be said of it.
    pub warnings: Vec<String>,
    /// The command that repeats it alone.
    pub command: String,
}

/// The report on `jobs`, one after the other, which `command` repeats.
///
/// # Panics
/// Without any job, or any cell of one.
pub fn of_several(jobs: &[OfFile], verbose: bool, command: String) -> Report {
    let records: Vec<Record> =
        jobs.iter().flat_map(|of| of.cells.iter().map(|cell| cell.record.clone())).collect();
    let footer = Footer::new(&records, command);
    let mut parts = Vec::new();
    let mut rows = Table::default();
    let (mut cells, mut regressions, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for of in jobs {
        let Report { parts: own, rows: own_rows, .. } =
            report(&of.cells, &of.warnings, verbose, of.command.clone());
        parts.extend(own.into_iter().map(|part| match part {
            Part::Heading(heading) => Part::Heading(format!("{}: {heading}", of.job_file)),
            part => part,
        }));
        rows.columns = vec![Head::left("job_file")];
        rows.columns.extend(own_rows.columns);
        let named = |row: Vec<String>| std::iter::once(of.job_file.clone()).chain(row).collect();
        rows.rows.extend(own_rows.rows.into_iter().map(named));
        cells.extend(data::cells(&of.cells, Some(&of.job_file)));
        for mut regression in data::regressions(&of.cells, &worse(&of.cells)) {
            regression["job_file"] = of.job_file.as_str().into();
            regressions.push(regression);
        }
        warnings.extend(of.warnings.iter().map(|warning| format!("{}: {warning}", of.job_file)));
    }
    let json = data::json(cells, regressions, &warnings, &footer);
    Report { parts, rows, footer: footer.footer(), json }
}

#[cfg(test)]
mod tests {
    use filemap_job::{EngineKind, JobSpec, Run};
    use serde_json::{Map, Value};

    use super::*;

    fn of_file(job_file: &str, read: [u64; 2]) -> OfFile {
        let spec = "workload = 'first'\nfile_size = '1m'";
        let job = JobSpec::from_toml(spec).unwrap().validate(None).unwrap();
        let cell = |(variant, read): (&str, u64)| {
            let mut run = Run::default();
            run.counters.data_pages_read = Some(read);
            run.counters.major_faults = Some(read);
            let record = Record::new(&job, EngineKind::Model.name(), Map::new(), vec![run]);
            Cell { variant: variant.into(), job: Some(job.clone()), record }
        };
        OfFile {
            job_file: job_file.into(),
            cells: ["baseline", "p1"].into_iter().zip(read).map(cell).collect(),
            warnings: vec!["so".into()],
            command: String::new(),
        }
    }

    #[test]
    fn each_job_has_its_own_first_variant() {
        let jobs = [of_file("a.toml", [100, 100]), of_file("b.toml", [100, 900])];
        let report = of_several(&jobs, false, "filemap compare a.toml b.toml".into());
        let json: Value = serde_json::from_str(&report.json).unwrap();
        let cells = json["cells"].as_array().unwrap();
        let files: Vec<&Value> = cells.iter().map(|cell| &cell["job_file"]).collect();
        assert_eq!(files, ["a.toml", "a.toml", "b.toml", "b.toml"]);
        assert_eq!(cells[2]["change"]["data_pages_read"], 0.0);
        assert_eq!(cells[3]["change"]["data_pages_read"], 800.0);
        assert_eq!(json["warnings"], serde_json::json!(["a.toml: so", "b.toml: so"]));
        let worse = json["regressions"].as_array().unwrap();
        assert!(!worse.is_empty());
        assert!(worse.iter().all(|worse| worse["job_file"] == "b.toml"), "{worse:?}");
        let headings = report.parts.iter().filter(|part| matches!(part, Part::Heading(_)));
        assert_eq!(headings.count(), 2);
        assert_eq!(report.rows.columns[0].name, "job_file");
        assert!(report.rows.rows.iter().all(|row| row.len() == report.rows.columns.len()));
    }
}
