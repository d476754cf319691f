//! `filemap search`.

use serde_json::Value;

use crate::{Scratch, filemap, json, stderr, stdout};

const SPLITS: &str = "search --variants baseline,vma-bound --worse majors --jobs 500 --seed 3";

fn undated(mut report: Value) -> Value {
    report["environment"]["date"].take();
    report
}

/// However many processors there are.
#[test]
fn a_seed_finds_the_same_jobs_again() {
    let found = undated(json(&format!("{SPLITS} --json -")));
    let mut command = filemap(&format!("{SPLITS} --json -"));
    let alone = command.env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert_eq!(undated(serde_json::from_slice(&alone.stdout).unwrap()), found);
    let command = found["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert_eq!(undated(json(&format!("{command} --json -"))), found);
    let other = json(&format!("{} --json -", SPLITS.replace("--seed 3", "--seed 4")));
    assert_ne!(other["groups"], found["groups"]);
}

/// Each job that is told costs in `compare` what is told of it.
#[test]
fn jobs_cost_what_is_told() {
    let scratch = Scratch::new("search_repeats");
    let found = json(&format!("{SPLITS} --json -"));
    let groups = found["groups"].as_array().unwrap();
    assert!(groups.len() >= 3, "windows are clipped in faults, behind misses and at marks");
    let mut most = 0.0_f64;
    for group in groups {
        let cases = group["cases"].as_array().unwrap();
        for case in cases {
            let job = toml_of(&case["job"]);
            let path = scratch.file("job.toml", job);
            let variants = "--variants baseline,vma-bound --json -";
            let report = json(&format!("compare {path} {variants}"));
            let majors = |cell: usize| &report["cells"][cell]["figures"]["major_faults"]["median"];
            for (cell, side) in ["first", "second"].into_iter().enumerate() {
                assert_eq!(majors(cell), &case[side]["major_faults"], "{group}");
            }
            let of = |side: &str| case[side]["major_faults"].as_f64().unwrap();
            assert!(of("second") > of("first"));
            most = most.max(of("second") / of("first").max(1.0));
        }
        let accesses = |case: usize| cases[case]["accesses"].as_u64().unwrap();
        assert!(accesses(0) <= accesses(1) && accesses(0) <= accesses(2), "{group}");
    }
    assert!(most >= 100.0, "a scan of a mapping in pieces: {most}");
}

/// The keys of a job as TOML.
fn toml_of(job: &Value) -> String {
    let value: toml::Value = serde_json::from_value(without_null(job)).expect("it is a job");
    toml::to_string(&value).expect("it is a job")
}

fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key.clone(), without_null(value))).collect()
        }
        Value::Array(all) => all.iter().map(without_null).collect(),
        other => other.clone(),
    }
}

#[test]
fn what_makes_no_difference_finds_nothing() {
    let text = stdout("search --variants baseline,p1+baseline --differ --advice random --jobs 60");
    assert!(text.contains("None was found among"), "{text}");
    assert!(text.contains("proves nothing"), "{text}");
}

/// Jobs have what flags say.
#[test]
fn flags_bound_the_space() {
    let flags = "--read-ahead-kb 16 --workload sequential --fs xfs";
    let found = json(&format!("{SPLITS} {flags} --json -"));
    let groups = found["groups"].as_array().unwrap();
    assert!(!groups.is_empty());
    for case in groups.iter().flat_map(|group| group["cases"].as_array().unwrap()) {
        let job = &case["job"];
        assert_eq!((&job["read_ahead_kb"], &job["fs"]), (&16.into(), &"xfs".into()), "{job}");
        let phases = job["phase"].as_array().unwrap();
        assert!(phases.iter().all(|phase| phase["workload"] == "sequential"), "{job}");
    }
}

#[test]
fn tables_keep_to_75_columns() {
    let text = stdout(SPLITS);
    let is_copied = |line: &&str| line.contains("filemap ") || line.starts_with("Command:");
    for line in text.lines().filter(|line| !is_copied(line)) {
        assert!(line.chars().count() <= 75, "{line}");
    }
}

#[test]
fn what_cannot_be_searched_is_refused_in_one_line() {
    for (args, code, words) in [
        ("--variants baseline,p1", 2, &["--worse", "--differ"][..]),
        ("--differ", 2, &["--variants"]),
        ("--differ --variants p1", 2, &["two variants", "baseline,vma-bound"]),
        ("--differ --variants baseline,p1,p2", 2, &["two variants"]),
        ("--worse speed --variants baseline,p1", 2, &["'speed'", "bytes, majors, elapsed"]),
        ("--differ --worse bytes --variants baseline,p1", 2, &["cannot be used with"]),
        ("--differ --variants baseline,p1 --jobs 0", 2, &["out of range"]),
        ("--differ --variants baseline,p1 --time 3", 2, &["unit"]),
        ("--differ --variants baseline,p1 --on kernel", 4, &["in the model"]),
        ("--differ --variants baseline,p1 --workload thrash", 2, &["--workload thrash"]),
        ("--differ --variants baseline,p1 --runs 3", 2, &["--runs"]),
        ("--differ --variants baseline,p1 --file-size 1m --map-len 2m", 2, &["map"]),
    ] {
        let output = filemap(&format!("search {args}")).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{args}: {message}");
        assert!(output.stdout.is_empty(), "{args}");
    }
}
