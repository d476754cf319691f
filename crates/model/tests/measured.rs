//! The model against counters of a real kernel: `data/measured-6.12.json`.

use filemap_job::{Engine, Job, JobSpec, Run};
use filemap_model::{Model, Profile};
use serde_json::Value;

/// The job of one measured run.
fn job(measured: &Value) -> Job {
    let number = |key: &str| measured[key].as_u64();
    let text = |key: &str| measured[key].as_str().map(str::to_string);
    let series: Vec<&str> =
        measured["series"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let spec = JobSpec {
        kernel: text("kernel"),
        with: (!series.is_empty()).then(|| series.join("+")),
        workload: text("workload"),
        accesses: number("accesses"),
        seed: number("xorshift64_seed"),
        file_size: number("file_size").map(|bytes| filemap_job::SizeText(bytes.to_string())),
        map_offset: number("map_offset").map(|bytes| filemap_job::SizeText(bytes.to_string())),
        map_len: number("map_len").map(|bytes| filemap_job::SizeText(bytes.to_string())),
        read_ahead_kb: number("read_ahead_kb"),
        split: number("split"),
        split_prot: text("split_prot"),
        ..JobSpec::default()
    };
    spec.validate(None).unwrap()
}

fn run(job: &Job) -> Run {
    let record = Model { profile: Profile::DEFAULT }.run(job).unwrap();
    record.runs[0].clone()
}

#[test]
fn counters_equal_those_of_linux_6_12() {
    let data: Value =
        serde_json::from_str(include_str!("../../../data/measured-6.12.json")).unwrap();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (number, measured) in data["runs"].as_array().unwrap().iter().enumerate() {
        let job = job(measured);
        let run = run(&job);
        let pairs = [
            ("data_pages_read", run.counters.data_pages_read),
            ("major_faults", run.counters.major_faults),
            ("cached_inside", run.cached.inside),
            ("cached_before", run.cached.before),
            ("cached_after", run.cached.after),
        ];
        for (key, modelled) in pairs {
            let Some(real) = measured[key].as_u64() else { continue };
            checked += 1;
            if modelled != Some(real) {
                wrong.push(format!(
                    "run {number} {}: {key} {modelled:?}, real {real}",
                    job.command()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{checked} checked\n{}", wrong.join("\n"));
}
