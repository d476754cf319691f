//! Every object that a command writes conforms to its schema.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use filemap_study::schema;
use jsonschema::Validator;
use serde_json::Value;

use crate::skip::skip;
use crate::{Scratch, filemap, has_disk, json, stderr};

/// Built once: that takes longer than most checks.
static VALIDATORS: LazyLock<BTreeMap<&'static str, Validator>> = LazyLock::new(|| {
    let all = schema::all_schemas().into_iter();
    let built = all.map(|(name, schema)| {
        let validator = jsonschema::validator_for(schema.as_value());
        (name, validator.unwrap_or_else(|error| panic!("{name}: {error}")))
    });
    built.collect()
});

/// Violations of the schema `name` in `object`.
fn faults(name: &str, object: &Value) -> Vec<String> {
    VALIDATORS[name].iter_errors(object).map(|e| format!("{}: {e}", e.instance_path)).collect()
}

pub fn check(name: &str, object: &Value) {
    let faults = faults(name, object);
    assert!(faults.is_empty(), "{name}: {faults:#?}");
}

/// The schema refuses `object` with each of its keys renamed, and with one more.
pub fn check_closed(name: &str, object: &Value) {
    let keys = object.as_object().expect("an object").keys();
    for key in keys.clone() {
        let mut renamed = object.clone();
        let map = renamed.as_object_mut().unwrap();
        let value = map.remove(key).unwrap();
        assert!(!faults(name, &Value::Object(map.clone())).is_empty(), "{name} without {key}");
        map.insert(format!("{key}_renamed"), value);
        assert!(!faults(name, &renamed).is_empty(), "{name}: {key} renamed");
    }
    assert!(keys.len() > 2, "{name}");
}

fn has_provenance(environment: &Value) {
    for key in ["date", "host_kernel", "filemap", "revision", "engine"] {
        assert!(environment.get(key).is_some(), "{key}: {environment}");
    }
    let date = environment["date"].as_str().unwrap();
    assert!(date.len() == 20 && date.ends_with('Z'), "{date}");
}

const JOBS: [&str; 6] = [
    "--workload random --file-size 64m",
    "--workload stride:2053 --file-size 64m --cache-limit 16m --runs 2",
    "--workload read-random --bs 8k --file-size 16m --with mmap-miss --accesses 20",
    "--workload exec --file-size 4m --accesses 50",
    "--workload sequential --file-size 16m --split 64 --advice sequential --fs xfs",
    "--workload random --file-size 64m --advice random --arch arm64 --page-size 64k",
];

#[test]
fn reports_of_jobs() {
    let scratch = Scratch::new("schema");
    for job in JOBS {
        let run = json(&format!("run {job} --json -"));
        check("run", &run);
        has_provenance(&run["environment"]);
        let without_runs = job.replace("--runs 2", "");
        check("explain", &json(&format!("explain {without_runs} --json -")));
        let variants = if job.contains("--with") { "baseline,p1" } else { "baseline,mmap-miss" };
        let job = job.replace("--with mmap-miss", "");
        check("compare", &json(&format!("compare {job} --variants {variants} --json -")));
    }
    let thrash = "--workload thrash --threads 8 --file-size 1m --memory-max 2m --duration 200ms";
    check("run", &json(&format!("run {thrash} --json -")));
    let folio_ops = json("folio-ops --size 2m --folio-sizes 16k --runs 1 --json -");
    check("folio-ops", &folio_ops);
    has_provenance(&folio_ops["environment"]);
    let variants = "--variants baseline,vma-retry,writers=1";
    check("compare", &json(&format!("compare {thrash} {variants} --json -")));
    let phases = "file_size = '8m'\n[[phase]]\nworkload = 'random'\naccesses = 9\n\
                  [[phase]]\nworkload = 'read-sequential'\naccesses = 3\n";
    let phases = scratch.file("phases.toml", phases);
    let run = json(&format!("run {phases} --json -"));
    check("run", &run);
    check_closed("run", &run);
    check_closed("explain", &json(&format!("explain {phases} --json -")));
    if std::path::Path::new("/bin/sh").exists() {
        check("run", &json("run --workload elf --file /bin/sh --json -"));
        check("explain", &json("explain --workload elf --file /bin/sh --json -"));
    }
}

#[test]
fn reports_of_programs() {
    let scratch = Scratch::new("schema_program");
    let path = scratch.file("program.toml", crate::programs::PROGRAM);
    let run = json(&format!("run {path} --json -"));
    check("run", &run);
    check_closed("run", &run);
    has_provenance(&run["environment"]);
}

/// Seeds are above 2^53: a reader that takes numbers for floating point still has their text.
#[test]
fn seeds_are_text_too() {
    let run = json("run --workload random --file-size 4m --json -");
    for object in [&run["job"], &run["runs"][0]] {
        assert_eq!(object["seed"], 88172645463325252u64);
        assert_eq!(object["seed_text"], "88172645463325252");
    }
    let seconds = run["summary"]["elapsed_ns"]["median"].as_f64().unwrap();
    assert_eq!(run["runs"][0]["elapsed_ns"].as_f64(), Some(seconds));
    let inside = &run["summary"]["cached"]["inside"]["max"];
    assert_eq!((inside, inside.is_number()), (&run["runs"][0]["cached"]["inside"], true));
}

#[test]
fn published_tables() {
    let report = json("published mmap-miss vma-bound exec-order --seeds 1 --json -");
    check("published", &report);
    check_closed("published", &report);
    has_provenance(&report["environment"]);
}

/// Each line conforms to the schema and has its access number.
#[test]
fn lines_of_a_log() {
    let scratch = Scratch::new("schema-log");
    let path = scratch.path("log");
    let validator = &VALIDATORS["log"];
    for (job, last) in JOBS.iter().zip([163, 163, 19, 1073, 40, 9]) {
        let output = filemap(&format!("run {job} --log {path}")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut accesses = Vec::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(validator.is_valid(&line), "{line}");
            accesses.push(line["access"].as_u64().unwrap());
        }
        assert!(accesses.is_sorted() && accesses[0] == 0, "{job}");
        assert!(*accesses.last().unwrap() <= last, "{job}: {:?}", accesses.last());
    }
    let first = r#"{"access":0,"thread":0,"at_ns":"#;
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(first));
    for wrong in [
        r#"{"decision":"locked","lock":"vma"}"#,
        r#"{"access":0,"thread":0,"at_ns":5,"decision":"locked","lock":"vma","more":1}"#,
        r#"{"access":0,"thread":0,"at_ns":5,"decision":"locked"}"#,
        r#"{"access":0,"thread":0,"at_ns":5,"decision":"unlocked","lock":"vma"}"#,
    ] {
        assert!(!validator.is_valid(&serde_json::from_str(wrong).unwrap()), "{wrong}");
    }
}

#[test]
fn doctors_report() {
    let report = json("doctor --json -");
    check("doctor", &report);
    check_closed("doctor", &report);
    has_provenance(&report["environment"]);
}

#[test]
fn reports_of_the_running_kernel() {
    if !has_disk() {
        return;
    }
    let run = json("run --on kernel --workload random --file-size 16m --runs 2 --json -");
    check("run", &run);
    assert_eq!(run["environment"]["seed_text"], "88172645463325252");
    check("compare", &json("compare --on model,kernel --workload first --file-size 1m --json -"));
    let scratch = Scratch::new("schema-calibrate");
    let profile = scratch.path("profile.toml");
    let job = "--workload random --file-size 4m --json -";
    for command in [
        format!("calibrate --file-size 64m --runs 1 --output {profile} --json -"),
        format!("conform {job}"),
        format!("explain --on kernel {job}"),
    ] {
        let output = filemap(&command).output().unwrap();
        if output.status.code() == Some(4) {
            skip(format!("{command}: {}", stderr(&output)));
            continue;
        }
        let name = command.split(' ').next().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        check(name, &report);
        has_provenance(&report["environment"]);
    }
}
