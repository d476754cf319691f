//! `filemap advise --check` reruns the recorded program with the best answers.

use std::fs;
use std::path::Path;
use std::process::Output;

use filemap_recording::{Event, EventKind, Header, RecordingMode, Writer};
use serde_json::Value;

use crate::governed::{Place, sleeping};
use crate::running::Running;
use crate::schema::{check, check_closed};
use crate::{skip, stderr};

/// Records `words` to a file `r`; `None` if the kernel forbids it.
fn record(place: &Place, words: &[&str]) -> Option<String> {
    let path = place.scratch.path("r");
    let mut command = place.command("record", &format!("--output {path} --"));
    let output = command.args(words).output().expect("the command starts");
    let message = stderr(&output);
    if message.contains("nothing is recorded") {
        skip(&message);
        return None;
    }
    assert!(output.status.success(), "{message}");
    Some(path)
}

/// Result of `advise --check` for the recording at `path`.
fn checked(place: &Place, path: &str, more: &str) -> Output {
    let args = format!("{path} --check --runs 1 {more}");
    place.command("advise", &args).output().expect("the command starts")
}

/// Measurements of the variant `label`, or of the unchanged program.
fn variant<'a>(report: &'a Value, label: Option<&str>) -> Option<&'a Value> {
    let changes: Vec<&str> = label.into_iter().collect();
    let variants = report["check"]["variants"].as_array().expect("a list");
    variants.iter().find(|variant| variant["changes"] == serde_json::json!(changes))
}

fn pages(variant: &Value) -> u64 {
    variant["pages_read"]["median"].as_f64().expect("a number") as u64
}

/// Pages in holes are in no prediction, as the kernel does not read them.
#[test]
fn pages_in_holes_are_predicted_as_not_read() {
    if !crate::has_disk() {
        return;
    }
    let place = Place::new("check_holes");
    let [program, data] = place.lookups();
    let file = fs::File::options().write(true).open(&data).unwrap();
    let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    for hole in 0..4 {
        rustix::fs::fallocate(&file, punch, hole << 23, 5 << 20).unwrap();
    }
    file.sync_all().unwrap();
    let Some(path) = record(&place, &[&program, &data, "300"]) else { return };
    let output = checked(&place, &path, "--json -");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let predicted = report["now"]["data_pages_read"].as_u64().unwrap();
    assert!((1..=3072).contains(&predicted), "{predicted} of 3072 pages of data");
    let plain = variant(&report, None).expect("it is run as it is");
    if pages(plain) == 0 {
        return skip("the filesystem does not say what is read");
    }
    assert!(pages(plain).abs_diff(predicted) <= 64, "{plain} {predicted}");
    assert_ne!(report["check"]["verdict"], "mispredicted", "{}", report["check"]["text"]);
}

/// The advice of the answer replaces the program's own bad advice.
#[test]
fn check_measures_prediction() {
    if !crate::has_disk() {
        return;
    }
    let place = Place::new("check_measured");
    let [program, data] = place.lookups();
    let Some(path) = record(&place, &[&program, &data, "300"]) else { return };
    let output = checked(&place, &path, "--json -");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let warned = stderr(&output);
    assert!(warned.contains("is run") && warned.contains("is discarded"), "{warned}");
    assert_eq!(warned.lines().count(), 1, "{warned}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    check("advise", &report);
    check_closed("advise", &report);
    assert_eq!(report["check"]["verdict"], "not-tested", "{}", report["check"]["text"]);
    let plain = variant(&report, None).expect("it is run as it is");
    if pages(plain) == 0 {
        return skip("the filesystem does not say what is read");
    }
    let random = variant(&report, Some("MADV_RANDOM on data")).expect("it is among the best");
    let tried = random["tried"].as_u64().unwrap() as usize;
    let predicted = report["tried"][tried]["outcome"]["data_pages_read"].as_u64().unwrap();
    // On a busy machine, pages of the program itself may have to be read again.
    assert!(pages(random).abs_diff(predicted) < 200, "{random} {predicted}");
    assert!(pages(plain) > 3 * pages(random), "{plain}");
    assert!(report["command"].as_str().unwrap().contains("--check --runs 1"), "{report}");
    assert!(place.statistics().is_empty(), "{:?}", place.statistics());
    let text = String::from_utf8(checked(&place, &path, "").stdout).unwrap();
    let measured = text.find("What was measured").expect("a part of the report");
    assert!(measured < text.find("What was tried").expect("the next part"), "{text}");
}

/// A program with different output under advice fails the check.
#[test]
fn different_output_fails_the_check() {
    if !crate::has_disk() {
        return;
    }
    let place = Place::new("check_differs");
    let [program, data] = place.lookups();
    let script = format!("LOOKUPS_FLAGS=1 {program} {data} 300");
    let Some(path) = record(&place, &["sh", "-c", &script]) else { return };
    let output = checked(&place, &path, "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
    assert!(text.contains("Check failed: what stdout has with MADV_RANDOM"), "{text}");
}

#[test]
fn a_program_that_changes_its_file_is_run_once() {
    let place = Place::new("check_changes");
    let [program, data] = place.lookups();
    let ran = place.scratch.path("ran");
    let script = format!("{program} {data} 300; touch {data}; echo >> {ran}");
    let Some(path) = record(&place, &["sh", "-c", &script]) else { return };
    fs::remove_file(&ran).unwrap();
    let output = checked(&place, &path, "");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains(&data) && message.contains("was changed"), "{message}");
    assert_eq!(fs::read_to_string(&ran).unwrap(), "\n", "it was run once");
    assert!(output.stdout.is_empty());
}

/// A recording of a program with a shared file mapping, started as `command`.
fn recording(command: &[&str], path: &Path, protection: u32, more: Option<EventKind>) -> Vec<u8> {
    let mut header = Header::new(RecordingMode::FirstTouches);
    header.command = command.iter().map(Into::into).collect();
    let mut writer = Writer::new(Vec::new(), "r", &header).unwrap();
    let size_bytes = 4096 * 4096;
    let touch = |page| EventKind::Touch { mapping: 0, page, is_write: false };
    let all = [
        EventKind::Process { pid: 7, parent: None, program: "/bin/x".into() },
        EventKind::Thread { process: 0, tid: 7 },
        EventKind::File { path: path.into(), size_bytes, device: 1, inode: 2 },
        EventKind::Open { file: 0 },
        EventKind::Map {
            open: 0,
            address: 1 << 30,
            length_bytes: size_bytes,
            offset_bytes: 0,
            protection,
            flags: 1,
        },
        touch(1),
        touch(3000),
    ];
    for kind in all.into_iter().chain(more) {
        writer.write(&Event { thread: 0, wait_ns: 0, kind }).unwrap();
    }
    writer.finish().unwrap().0
}

#[test]
fn uncheckable_advice_is_a_one_line_error() {
    let place = Place::new("check_refused");
    let nowhere = Path::new("/nowhere/data");
    let data = place.scratch.file("data", vec![1; 8192]);
    let data = Path::new(&data);
    let ran = place.scratch.path("ran");
    let touch: &[&str] = &["touch", &ran];
    let protect = EventKind::Protect {
        mapping: 0,
        pages: filemap_recording::MappingPages { first: 0, pages: 1 },
        protection: 3,
    };
    let write = EventKind::Touch { mapping: 0, page: 5, is_write: true };
    for (bytes, code, words) in [
        (recording(&[], nowhere, 1, None), 2, "does not say which program"),
        (recording(&["no-such-program"], nowhere, 1, None), 127, "no-such-program"),
        (recording(touch, data, 3, None), 4, "maps it so that it can be written"),
        (recording(touch, data, 1, Some(protect)), 4, "makes a mapping of it writable"),
        (recording(touch, data, 1, Some(write)), 4, "writes to it"),
        (recording(touch, nowhere, 1, None), 4, "'data' is not there as it was recorded"),
    ] {
        let path = place.scratch.file("r", bytes);
        let output = checked(&place, &path, "");
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{words}: {message}");
        assert!(message.contains(words) && message.lines().count() == 1, "{words}: {message}");
        assert!(output.stdout.is_empty() && !Path::new(&ran).exists());
    }
    let job = "[[file]]\nname = 'a'\nsize = '1m'\n[[open]]\nname = 'a'\nfile = 'a'\n\
        [[mapping]]\nname = 'm'\nopen = 'a'\n[[thread]]\n[[thread.phase]]\nmapping = 'm'\n\
        pages = [1]\n";
    let job = place.scratch.file("job.toml", job);
    let output = checked(&place, &job, "");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("is a job file"), "{}", stderr(&output));
    let output = place.command("advise", &format!("{job} --change-settings")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--check"), "{}", stderr(&output));
}

/// A signal ends the program and the command, and nothing is left.
#[test]
fn interrupted_check_leaves_nothing() {
    let place = Place::new("check_ended");
    let [program, data] = place.lookups();
    let slow = place.scratch.path("slow");
    let script = format!("{program} {data} 300; [ ! -e {slow} ] || sleep 1011");
    let Some(path) = record(&place, &["sh", "-c", &script]) else { return };
    fs::write(&slow, "").unwrap();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut command = place.command("advise", &format!("{path} --check"));
        let mut running = Running::start(&mut command);
        assert!(running.reaches(|| !sleeping(1011).is_empty()));
        running.signal(signal);
        let output = running.output();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
        assert!(sleeping(1011).is_empty());
        assert!(place.statistics().is_empty(), "{:?}", place.statistics());
    }
}

/// A program that stops itself is reported and killed.
#[test]
fn stopped_program_is_killed() {
    let place = Place::new("check_stops");
    let [program, data] = place.lookups();
    let stops = place.scratch.path("stops");
    let script = format!("{program} {data} 300; [ ! -e {stops} ] || kill -STOP $$");
    let Some(path) = record(&place, &["sh", "-c", &script]) else { return };
    fs::write(&stops, "").unwrap();
    let output = checked(&place, &path, "");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("stopped itself"), "{message}");
    assert!(place.statistics().is_empty(), "{:?}", place.statistics());
}
