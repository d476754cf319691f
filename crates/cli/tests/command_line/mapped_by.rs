//! Where in a program its mappings were made, as `filemap advise` names it.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::governed::Place;
use crate::skip::skip;
use crate::stderr;

const SOURCE: &str = include_str!("mapper.c");

/// The line of the source that has these words.
fn line(words: &str) -> usize {
    let words = format!("/* {words} */");
    SOURCE.lines().position(|line| line.ends_with(&words)).expect("it has them") + 1
}

/// `mapper.c`, compiled to `name` with further flags.
fn compiled(place: &Place, name: &str, flags: &[&str]) -> String {
    let program = place.scratch.path(name);
    let source = place.scratch.file("mapper.c", SOURCE);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-fno-optimize-sibling-calls", "-o", &program, &source, "-ldl"]);
    assert!(compiler.args(flags).status().expect("there is a C compiler").success());
    program
}

/// What `advise` says of where the file of a program was mapped; `None` where programs cannot be
/// recorded here. The program prints what it prints alone.
fn advised(place: &Place, words: &[&str]) -> Option<Value> {
    recorded(place, words).then(|| advice(place))
}

fn recorded(place: &Place, words: &[&str]) -> bool {
    let alone = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
    assert!(alone.status.success(), "{words:?}: {alone:?}");
    let recording = place.scratch.path("r");
    let mut command = place.command("record", &format!("--out {recording} --"));
    let output = command.args(words).output().expect("the command starts");
    let message = stderr(&output);
    if message.contains("nothing is recorded") {
        skip(&message);
        return false;
    }
    assert_eq!(output, alone, "{words:?}");
    true
}

fn advice(place: &Place) -> Value {
    let recording = place.scratch.path("r");
    let output = place.command("advise", &format!("{recording} --json -")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The callers of one place, without their addresses.
fn callers(place: &Value) -> Value {
    let callers = place["callers"].as_array().expect("a list");
    let of = |key: &'static str| callers.iter().map(move |caller| &caller[key]);
    let lines = of("function").zip(of("file")).zip(of("line").zip(of("module")));
    lines.map(|((function, file), (line, module))| json!([function, file, line, module])).collect()
}

#[test]
fn functions_and_lines_are_those_of_the_source() {
    let place = Place::new("mapped_by");
    let [_, data] = place.lookups();
    let program = compiled(&place, "mapper", &["-g"]);
    let library = compiled(&place, "libmapper.so", &["-g", "-shared", "-fPIC", "-DLIBRARY"]);
    let own = json!(["map_it", "mapper.c", line("by itself"), "mapper"]);
    let caller = json!(["open_data", "mapper.c", line("the caller"), "mapper"]);
    for (how, expected) in [
        (&[][..], vec![own.clone(), caller.clone()]),
        (
            &["library", &library],
            vec![
                json!(["map_in_library", "mapper.c", line("in the library"), "libmapper.so"]),
                json!(["main", "mapper.c", line("from main"), "mapper"]),
            ],
        ),
        (&["fork"], vec![own.clone()]),
        // The child touches what its parent has mapped.
        (&["inherited"], vec![own.clone(), caller.clone()]),
    ] {
        let words = [&[program.as_str(), &data][..], how].concat();
        let Some(report) = advised(&place, &words) else { return };
        let places = report["files"][0]["mapped_by"].as_array().expect("a list");
        assert_eq!(places.len(), 1, "{words:?}: {places:#?}");
        let found = callers(&places[0]);
        let found = found.as_array().unwrap();
        assert_eq!(found[..expected.len()], expected, "{words:?}");
        assert_eq!(found.last().unwrap()[0], "main", "{words:?}: {found:?}");
    }
    let said = advice(&place)["words"][0].to_string();
    let expected = format!("It is mapped by map_it (mapper.c:{}), called from", line("by itself"));
    assert!(said.contains(&expected), "{said}");
    let recording = place.scratch.path("r");
    let shown = place.command("record", &format!("--show {recording}")).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let expected =
        format!("# mapping 'data' was made by map_it (mapper.c:{}), ", line("by itself"));
    assert!(shown.lines().any(|line| line.starts_with(&expected)), "{shown}");
}

/// Without debug information there are symbols, without these the place in the file, and nothing of
/// a program that is another one now.
#[test]
fn what_is_not_known_is_not_made_up() {
    let place = Place::new("mapped_by_stripped");
    let [_, data] = place.lookups();
    let program = compiled(&place, "mapper", &["-g"]);
    let Some(report) = advised(&place, &[&program, &data]) else { return };
    let address = |report: &Value| {
        report["files"][0]["mapped_by"][0]["callers"][0]["address"].as_u64().expect("a number")
    };
    let known = address(&report);
    for (strip, function) in [("-g", json!("map_it")), ("-s", Value::Null)] {
        assert!(Command::new("strip").args([strip, &program]).status().unwrap().success());
        // It has the same build, and so the same addresses.
        let report = advice(&place);
        assert_eq!(
            callers(&report["files"][0]["mapped_by"][0])[0],
            json!([function, null, null, "mapper"])
        );
        let own = advised(&place, &[&program, &data]).expect("it was recorded before");
        assert_eq!((address(&own), address(&report)), (known, known));
        assert_eq!(
            callers(&own["files"][0]["mapped_by"][0])[0],
            json!([function, null, null, "mapper"])
        );
    }
    let words = advice(&place)["words"][0].to_string();
    assert!(words.contains(&format!("mapped by mapper+{known:#x}")), "{words}");
    // Another program under the same name.
    compiled(&place, "mapper", &["-g", "-DPAGES_UNUSED", "-O2"]);
    let report = advice(&place);
    assert_eq!(
        callers(&report["files"][0]["mapped_by"][0])[0],
        json!([null, null, null, "mapper"])
    );
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("has changed since it was recorded"), "{warnings}");
    fs::remove_file(&program).unwrap();
    let report = advice(&place);
    assert_eq!(
        callers(&report["files"][0]["mapped_by"][0])[0],
        json!([null, null, null, "mapper"])
    );
}

/// On a stack for signals and in the child of a vfork nothing is looked for, and the program does
/// what it does alone.
#[test]
fn where_it_is_not_safe_nobody_looks() {
    let place = Place::new("mapped_by_not");
    let [_, data] = place.lookups();
    let program = compiled(&place, "mapper", &["-g"]);
    let Some(report) = advised(&place, &[&program, &data, "signal"]) else { return };
    assert_eq!(report["files"][0]["mapped_by"], json!([]));
    let report = advised(&place, &[&program, &data, "vfork"]).expect("it was recorded before");
    let places = report["files"][0]["mapped_by"].as_array().expect("a list");
    assert_eq!((places.len(), &places[0]["mappings"]), (1, &json!(1)));
}
