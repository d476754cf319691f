//! Comparisons of synthetic runs.

use filemap_job::{Counters, EngineKind, FileRun, JobFlags, JobRuns as JobRan, JobSpec};
use serde_json::{Map, Value, json};

use super::parts::times;
use super::*;
use crate::engine::mock::Mock;
use crate::job_input::{JobInput, JobSource};

fn cell(variant: &str, engine: EngineKind, times: &[u64]) -> RanVariant {
    let spec = JobFlags {
        workload: Some("first".to_string()),
        file_size: Some(filemap_job::SizeText::from_bytes(1 << 20)),
        ..JobFlags::default()
    };
    let run = |&time: &u64| Run { elapsed_ns: Some(time), ..Run::default() };
    let job = spec.validate(None).unwrap();
    let runs = times.iter().map(run).collect();
    let record = Record::new(&job, engine.name(), Map::new(), runs);
    RanVariant { variant: variant.to_string(), job, record }
}

fn of_one(ran: Vec<RanVariant>) -> Comparison {
    Comparison::from_jobs(
        vec![JobVariants { job_file: None, ran, warnings: Vec::new() }],
        String::new(),
    )
}

#[test]
fn only_significant_times_are_called_faster() {
    let kernel = |variant, times: &[u64]| cell(variant, EngineKind::Kernel, times);
    let warnings = |ran: &[RanVariant]| {
        let comparison = of_one(ran.to_vec());
        times(&Variants::from_cells(&comparison, &comparison.cells)).join(" ")
    };
    let slow = kernel("a", &[110, 120, 130, 140, 150]);
    let fast = kernel("b", &[50, 60, 70, 80, 90]);
    let apart = warnings(&[slow.clone(), fast.clone()]);
    assert!(apart.contains("b against a: -46.2 %, faster (") && apart.contains("p = 0.008"));
    assert!(warnings(&[fast, slow.clone()]).contains("+85.7 %, slower"));
    let mixed = kernel("c", &[100, 125, 131, 145, 160]);
    assert!(warnings(&[slow.clone(), mixed]).contains("no difference shown"));
    let few = warnings(&[kernel("d", &[9, 9, 9]), kernel("e", &[1, 1, 1])]);
    assert!(few.contains("not tested") && few.contains("--runs 5"), "{few}");
    let model = cell("m", EngineKind::Model, &[1, 2, 3, 4, 5]);
    assert_eq!(warnings(&[model, slow]), "", "what is predicted is not tested");
    let odd = warnings(&[kernel("f", &[10, 11, 12, 11, 90])]);
    assert_eq!(odd, "f: Outliers in time: run 5 (90 ns).");
}

fn of_file(job_file: &str, read: [u64; 2]) -> JobVariants {
    let spec = "workload = 'first'\nfile_size = '1m'";
    let job = JobFlags::from_toml(spec).unwrap().validate(None).unwrap();
    let ran = |(variant, read): (&str, u64)| {
        let mut run = Run::default();
        run.counters.data_pages_read = Some(read);
        run.counters.major_faults = Some(read);
        let record = Record::new(&job, EngineKind::Model.name(), Map::new(), vec![run]);
        RanVariant { variant: variant.into(), job: job.clone(), record }
    };
    JobVariants {
        job_file: Some(job_file.into()),
        ran: ["baseline", "p1"].into_iter().zip(read).map(ran).collect(),
        warnings: vec!["so".into()],
    }
}

#[test]
fn each_job_has_its_own_first_variant() {
    let jobs = vec![of_file("a.toml", [100, 100]), of_file("b.toml", [100, 900])];
    let comparison = Comparison::from_jobs(jobs, "filemap compare a.toml b.toml".into());
    let report = comparison.report(false);
    let json: Value = serde_json::from_str(&report.record_json).unwrap();
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

fn of_files(variant: &str, engine: &str, pages: &[u64]) -> RanVariant {
    let run = |&pages: &u64| Run {
        counters: Counters { data_pages_read: Some(pages), ..Counters::default() },
        files: vec![FileRun {
            name: "data".to_string(),
            data_pages_read: Some(pages),
            cached: Some(7),
            ..FileRun::default()
        }],
        ..Run::default()
    };
    let text = "[[file]]\nname = 'data'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'data'\n\
        [[thread]]\n[[thread.phase]]\nopen = 'a'\nworkload = 'read-sequential'\n\
        accesses = 1\n";
    let program = JobSpec::from_toml(text).unwrap().validate(None).unwrap();
    let runs = pages.iter().map(run).collect();
    let (engine, environment) = (engine.parse().unwrap(), Map::new());
    let record = Record::from_job_runs(&program, JobRan { engine, environment, runs });
    RanVariant { variant: variant.to_string(), job: program, record }
}

#[test]
fn a_program_is_compared_by_file_with_the_spread_of_its_runs() {
    let ran =
        vec![of_files("baseline", "model", &[10]), of_files("baseline", "kernel", &[9, 12, 10])];
    let report = of_one(ran).report(false);
    let tables = report.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(table.text()),
        _ => None,
    });
    let text = tables.collect::<String>();
    assert!(text.contains("data        10  10 (9 to 12)"), "{text}");
    let json: Value = serde_json::from_str(&report.record_json).unwrap();
    let spread = json!({ "median": 10, "mad": 1, "min": 9, "max": 12 });
    assert_eq!(json["cells"][1]["figures"]["files"][0]["data_pages_read"], spread);
    assert_eq!(json["cells"][1]["runs"][2]["counters"]["data_pages_read"], 10);
    assert!(report.rows.rows.iter().any(|row| row[2] == "pages read of data"));
}

/// A record survives serialization: the report of the parsed JSON equals the original report.
#[test]
fn a_record_is_its_report() {
    let jobs = vec![of_file("a.toml", [100, 100]), of_file("b.toml", [100, 900])];
    let comparison = Comparison::from_jobs(jobs, "filemap compare a.toml b.toml".into());
    let report = comparison.report(true);
    let read: Comparison = serde_json::from_str(&report.record_json).unwrap();
    assert_eq!(read, comparison);
    assert_eq!(read.report(true).html(), report.html());
}

#[test]
fn every_figure_is_in_every_form() {
    let mut job = of_file("a.toml", [100, 100]);
    for RanVariant { record, .. } in &mut job.ran {
        record.runs[0].elapsed_ns = Some(7);
        record.summary = Summary::from_runs(&record.runs);
    }
    let comparison = of_one(job.ran);
    let report = comparison.report(false);
    let json: Value = serde_json::from_str(&report.record_json).unwrap();
    let schema = filemap_job::schema::serialized_schema::<Comparison>().to_value();
    let keys = schema["$defs"]["Measures"]["properties"].as_object().unwrap();
    assert_eq!(keys.len(), crate::figures::FIGURES.len());
    assert!(keys.keys().all(|key| json["cells"][0]["measures"].get(key).is_some()));
    for figure in ["added_bytes", "major_faults", "elapsed_ns"] {
        assert!(report.rows.rows.iter().any(|row| row[2] == figure), "{figure}");
    }
    let letter = comparison.letter(String::new(), &[]).text();
    let text = report.render(filemap_report::Format::Table);
    for form in [letter, text, report.html(), report.render(filemap_report::Format::Markdown)] {
        assert!(form.contains("added to the cache") && form.contains("elapsed"), "{form}");
    }
}

#[test]
fn each_kernel_keeps_its_environment() {
    let mut job = of_file("a.toml", [100, 100]);
    for (ran, release) in job.ran.iter_mut().zip(["6.12.1", "6.18.3"]) {
        ran.record.engine = EngineKind::Kernel.name().to_string();
        ran.record.environment.insert("kernel".to_string(), release.into());
    }
    let comparison = of_one(job.ran);
    let written = comparison.report(false).record_json;
    let read: Comparison = serde_json::from_str(&written).unwrap();
    let variants = Variants::from_cells(&read, &read.cells);
    let releases = variants.records.iter().map(|record| &record.environment["kernel"]);
    assert_eq!(releases.collect::<Vec<_>>(), ["6.12.1", "6.18.3"]);
}

fn ran(mock: &Mock, keys: &str, variants: &str, seeds: Option<u64>) -> Result<Value, Error> {
    let text = format!("workload = 'random'\nfile_size = '1m'\naccesses = 4\nseed = 7\n{keys}");
    let flags = JobFlags::from_toml(&text).unwrap();
    let input = JobInput::new(None, JobSource::default(), flags)?;
    let asked =
        CompareOptions { variants: vec![variants.to_string()], seeds, ..CompareOptions::default() };
    let variants = super::variants(&input, &asked)?;
    let comparison =
        run(vec![(None, Plan::new(input, &variants, &asked)?)], mock, &asked, String::new())?;
    Ok(serde_json::from_str(&comparison.report(false).record_json).unwrap())
}

#[test]
fn every_variant_runs_on_every_engine_in_turn() {
    let mock = Mock::with_io_bytes(12_345_000);
    let keys = "on = 'model,kernel'\nruns = 2";
    let report = ran(&mock, keys, "baseline,advice=random", None).unwrap();
    let mut turns = mock.turns();
    // Model jobs run in parallel, in any order.
    turns[..2].sort();
    let turn = |engine: &str, advice: &str| format!("{engine}: run {advice} 7");
    let model = ["normal", "random"].map(|advice| turn("model beside the host", advice));
    let host = ["normal", "random", "normal", "random"].map(|advice| turn("host", advice));
    assert_eq!(turns, [model.as_slice(), &host].concat());
    let cells = report["cells"].as_array().unwrap().iter();
    let cells = cells.map(|cell| [cell["engine"].as_str(), cell["variant"].as_str()]);
    let expected = [
        ["model", "baseline"],
        ["model", "advice=random"],
        ["kernel", "baseline"],
        ["kernel", "advice=random"],
    ];
    assert_eq!(cells.collect::<Vec<_>>(), expected.map(|cell| cell.map(Some)));
}

#[test]
fn boots_have_their_turns_after_what_runs_here() {
    let mock = Mock::default();
    let keys = "on = 'model,kernel'\nruns = 2";
    ran(&mock, keys, "baseline,advice=random", Some(2)).unwrap();
    assert_eq!(mock.turns().len(), 4 + 8);
}

#[test]
fn a_variant_that_fails_ends_the_comparison() {
    let mock = Mock::failing("host: run random 7");
    let keys = "on = 'kernel'\nruns = 2";
    let error = ran(&mock, keys, "baseline,advice=random", None).unwrap_err();
    assert_eq!((error.exit_code(), mock.turns().len()), (4, 2));
}
