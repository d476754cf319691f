//! A perf trace of a program leads to the same advice as a recording of the program.

use std::path::Path;
use std::process::Command;

use filemap_kernel::cold_cache;
use serde_json::Value;

use crate::governed::Place;
use crate::recorded;
use crate::skip::skip;
use crate::stderr;

/// The reason why perf cannot trace here, if any.
fn obstacle(place: &Place) -> Option<String> {
    let data = place.scratch.path("tried");
    let mut perf = Command::new("perf");
    match perf.args(["record", "-q", "-e", "page-faults", "-o", &data, "true"]).output() {
        Err(_) => Some("there is no perf".to_string()),
        Ok(output) if !output.status.success() => Some(format!("perf: {}", stderr(&output).trim())),
        Ok(_) => None,
    }
}

/// Traces `words` on a cold file as docs/RECORDING.md says, and imports that as the file `name`.
fn traced(place: &Place, file: &str, words: &[&str], name: &str) -> String {
    let [data, text] = ["perf.data", "trace.txt"].map(|name| place.scratch.path(name));
    cold_cache::drop_file(Path::new(file)).expect("it can be dropped");
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "page-faults", "-c", "1", "-d", "-o", &data, "--"]);
    assert!(record.args(words).output().expect("perf starts").status.success());
    let mut script = Command::new("perf");
    script.args(["script", "-i", &data, "--show-mmap-events", "--show-task-events", "--ns"]);
    let printed = script.args(["-F", "comm,pid,tid,time,event,addr"]).output().unwrap();
    std::fs::write(&text, printed.stdout).unwrap();
    let out = place.scratch.path(name);
    let import = place.command("record", &format!("--import perf-script {text} --output {out}"));
    let imported = { import }.output().unwrap();
    assert!(imported.status.success(), "{}", stderr(&imported));
    out
}

/// The result of `advise` for the file `data`: the best changes and their ties, as text, and the
/// number of pages used.
fn answer(place: &Place, recording: &str) -> (Vec<String>, u64) {
    let advise =
        place.command("advise", &format!("{recording} --read-ahead-kb 8192 --format json"));
    let output = { advise }.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let files = record["files"].as_array().expect("a list").iter();
    let mut data_files = files.filter(|file| file["name"].as_str() == Some("data"));
    let file = data_files.next().unwrap_or_else(|| panic!("{record:#}"));
    let ties = file["answer"]["ties"].as_array().cloned().unwrap_or_default();
    let best = [file["answer"]["best"].clone()].into_iter().chain(ties);
    let changes = |tried: u64| record["tried"][tried as usize]["changes"].to_string();
    let all = best.filter_map(|tried| tried.as_u64()).map(changes).collect();
    (all, file["pages_used"].as_u64().expect("a number"))
}

#[test]
fn a_trace_of_perf_has_the_verdict_of_the_recording() {
    let place = Place::new("perf_verdict");
    if let Some(reason) = obstacle(&place) {
        skip(reason);
        return;
    }
    let [lookups, data] = place.lookups();
    let scan = place.compiled("scan");
    let used = [recorded::first_touches(60).len() as u64, recorded::PAGES];
    let programs = [("few", &[&lookups[..], &data, "60"][..]), ("all", &[&scan, &data])];
    for ((name, words), used) in programs.into_iter().zip(used) {
        let out = place.scratch.path(name);
        let mut command = place.command("record", &format!("--output {out} --"));
        let output = command.args(words).output().expect("the command starts");
        if stderr(&output).contains("nothing is recorded") {
            skip(stderr(&output));
            return;
        }
        let trace = traced(&place, &data, words, &format!("{name}.traced"));
        let [(recorded, touched), (traced, seen)] = [&out, &trace].map(|path| answer(&place, path));
        // Both have most touches: a scan has started before its pages are recorded one at a time.
        for found in [touched, seen] {
            assert!(found * 10 >= used * 7 && found <= used, "{name}: {found} of {used}");
        }
        match name {
            // Each answer is among the best of the other; ties depend on think times.
            "few" => {
                let is_in = |all: &[String], names: &[String]| all.contains(&names[0]);
                let same = is_in(&recorded, &traced) || is_in(&traced, &recorded);
                assert!(same && traced[0].contains("MADV_RANDOM"), "{recorded:?}, {traced:?}");
            }
            _ => assert!(!traced.iter().any(|way| way.contains("MADV_RANDOM")), "{traced:?}"),
        }
    }
}
