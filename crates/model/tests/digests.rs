//! The decisions and counts of 1,000 random jobs are still those that were recorded.
//!
//! The first line of `data/digests.jsonl` names the values. Each other line contains a job as in a
//! job file, so no change of a generator can hide one of the model. The jobs were drawn from all
//! kernels, series, architectures, filesystems, kinds of advice and limits, with splits, calls,
//! private writes, `read(2)`, phases, lists of accesses and programs.

use std::fmt::Write;

use filemap_core::page_cache::PageCache;
use filemap_core::units::PageCount;
use filemap_job::elf::Load;
use filemap_job::{Elf, JobFlags};
use filemap_model::extents::{ExtentCache, TinyChunks};
use filemap_model::{Digest, Profile, Timing, trace_on};
use serde_json::{Map, Value, json};

const DATA: &str = include_str!("data/digests.jsonl");

/// Number of jobs, of those whose memory is too small, and the recorded values of each other one.
const JOBS: usize = 1_000;
const OUT_OF_MEMORY: usize = 22;
const VALUES: usize = 22;

/// If this is set, the record is written instead: for a change of the model that is intended to
/// change decisions.
const RECORD: &str = "FILEMAP_RECORD_DIGESTS";

#[test]
fn jobs_decide_and_count_what_they_did() {
    if std::env::var_os(RECORD).is_some() {
        return record_what_has_changed();
    }
    let mut lines = DATA.lines();
    let names: Vec<String> = serde_json::from_str(lines.next().expect("a first line")).unwrap();
    let (mut jobs, mut failed, mut wrong) = (0, 0, String::new());
    for line in lines {
        jobs += 1;
        let line: Value = serde_json::from_str(line).unwrap();
        let recorded = line["found"].as_array().expect("what was found");
        let found = outcome(&line, ExtentCache::new);
        // Its small files have many chunks then.
        assert_eq!(outcome(&line, TinyChunks::new), found, "job {jobs} in tiny chunks");
        if recorded.len() == names.len() {
            let known = names.iter().map(String::as_str).zip(recorded);
            for (name, known) in known.filter(|(name, known)| found[*name] != **known) {
                let found = &found[name];
                writeln!(wrong, "job {jobs}: {name} is {found}, was {known}").unwrap();
            }
        } else {
            failed += 1;
            let found = json!([found["digest"], found["decisions"], found["error"]]);
            if found != line["found"] {
                let known = &line["found"];
                writeln!(wrong, "job {jobs}: {found}, was {known}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!((jobs, failed, names.len()), (JOBS, OUT_OF_MEMORY, VALUES));
}

/// Writes the lines of the jobs whose decisions have changed, and leaves the others as they are.
/// data/measured/digests.toml says how many a change of the model was intended to change, and why.
fn record_what_has_changed() {
    let (names, lines) = DATA.split_once('\n').expect("a first line");
    let known: Vec<String> = serde_json::from_str(names).unwrap();
    let mut text = format!("{names}\n");
    let mut changed = 0;
    for line in lines.lines() {
        let mut job: Value = serde_json::from_str(line).unwrap();
        let mut found = outcome(&job, ExtentCache::new);
        found = if found.get("error").is_some() {
            json!([found["digest"], found["decisions"], found["error"]])
        } else {
            known.iter().map(|name| found[name].take()).collect()
        };
        if found == job["found"] {
            text += line;
        } else {
            changed += 1;
            job["found"] = found;
            text += &job.to_string();
        }
        text.push('\n');
    }
    println!("{changed} jobs changed");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/digests.jsonl");
    std::fs::write(path, text).expect("a place for the record");
}

/// The digest and the counts of the job of a line, in a cache.
fn outcome<C: PageCache>(line: &Value, cache: fn(Option<PageCount>) -> C) -> Value {
    let job = spec(line).validate(None).expect("a valid job");
    let mut profile = Profile::DEFAULT;
    if line["slow"] == true {
        // So slow that the statistics of the lists are flushed every few misses.
        profile.device.latency_ns = 500_000_000;
    }
    let mut log = Digest::default();
    let cache = cache(job.machine.cache_limit);
    let traced = trace_on(&job, &profile, Timing::Device, cache, &mut log);
    let mut found = Map::new();
    match traced {
        Err(error) => drop(found.insert("error".to_string(), json!(error.to_string()))),
        Ok(traced) => {
            let run = traced.run;
            found.insert("elapsed_ns".to_string(), json!(run.elapsed_ns));
            let cached = [
                ("inside", &run.cached.inside),
                ("before", &run.cached.before),
                ("after", &run.cached.after),
                ("between", &run.cached.between),
            ];
            let counted = run.counters.iter().chain(cached);
            found.extend(counted.map(|(name, value)| (name.to_string(), json!(value))));
        }
    }
    found.insert("digest".to_string(), json!(format!("{:016x}", log.value())));
    found.insert("decisions".to_string(), json!(log.decisions()));
    Value::Object(found)
}

fn spec(line: &Value) -> JobFlags {
    let mut spec: JobFlags = serde_json::from_value(line["job"].clone()).unwrap();
    spec.elf = line.get("elf").map(elf);
    for (_, text) in spec.accesses_files() {
        let list = line["list"].as_array().expect("a list").iter();
        *text = Some(list.map(|page| format!("{page}\n")).collect());
    }
    spec
}

/// A program by its size, whether its addresses are fixed, and for each segment the offset and
/// bytes in the file, the address, and whether it is executable or writable.
fn elf(value: &Value) -> Elf {
    let number = |value: &Value| value.as_u64().unwrap();
    let flag = |value: &Value| value.as_bool().unwrap();
    let loads = value[2].as_array().unwrap().iter().enumerate();
    let load = |(position, load): (usize, &Value)| Load {
        number: position,
        offset: number(&load[0]),
        file_bytes: number(&load[1]),
        address: number(&load[2]),
        executable: flag(&load[3]),
        writable: flag(&load[4]),
    };
    Elf { size_bytes: number(&value[0]), fixed: flag(&value[1]), loads: loads.map(load).collect() }
}
