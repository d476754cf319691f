//! A trace that perf has made of a program has the verdict that a recording of the program has.

use std::path::Path;
use std::process::Command;

use filemap_kernel::cold;
use serde_json::Value;

use crate::governed::Place;
use crate::skip::skip;
use crate::stderr;

/// Why perf cannot trace here, if that is so.
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
    cold::drop_file(Path::new(file)).expect("it can be dropped");
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "page-faults", "-c", "1", "-d", "-o", &data, "--"]);
    assert!(record.args(words).output().expect("perf starts").status.success());
    let mut script = Command::new("perf");
    script.args(["script", "-i", &data, "--show-mmap-events", "--show-task-events", "--ns"]);
    let printed = script.args(["-F", "comm,pid,tid,time,event,addr"]).output().unwrap();
    std::fs::write(&text, printed.stdout).unwrap();
    let out = place.scratch.path(name);
    let import = place.command("record", &format!("--import perf-script {text} --out {out}"));
    let imported = { import }.output().unwrap();
    assert!(imported.status.success(), "{}", stderr(&imported));
    out
}

/// What `advise` says first of the file `data`: what to do, without figures.
fn verdict(place: &Place, recording: &str) -> String {
    let advise =
        place.command("advise", &format!("{recording} --read-ahead-kb 8192 --format json"));
    let output = { advise }.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let files = record["files"].as_array().expect("a list").iter();
    let mut of = files.filter(|file| file["name"].as_str() == Some("data"));
    let file = of.next().unwrap_or_else(|| panic!("{record:#}"));
    match file["answer"]["best"].as_u64() {
        Some(best) => record["tried"][best as usize]["changes"].to_string(),
        None => "nothing helps".to_string(),
    }
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
    for (name, words) in [("few", &[&lookups[..], &data, "60"][..]), ("all", &[&scan, &data])] {
        let out = place.scratch.path(name);
        let mut command = place.command("record", &format!("--out {out} --"));
        let output = command.args(words).output().expect("the command starts");
        if stderr(&output).contains("nothing is recorded") {
            skip(stderr(&output));
            return;
        }
        let trace = traced(&place, &data, words, &format!("{name}.traced"));
        let [recorded, traced] = [&out, &trace].map(|path| verdict(&place, path));
        assert_eq!(traced, recorded, "{name}");
        assert_eq!(recorded == "nothing helps", name == "all", "{name}: {recorded}");
    }
}
