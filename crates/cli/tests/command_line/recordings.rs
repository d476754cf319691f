//! Recordings: run as jobs, shown as job files, imported from traces.

use std::fs;

use filemap_recording::{Event, EventKind, Header, RecordingMode, Writer};
use serde_json::Value;

use crate::schema::check;
use crate::{Scratch, filemap, json, skip, stderr, stdout};

/// The mapping of a whole file of 64 MiB.
fn whole_mapping() -> EventKind {
    EventKind::Map {
        open: 0,
        address: 1 << 40,
        length_bytes: 64 << 20,
        offset_bytes: 0,
        protection: 1,
        flags: 1,
    }
}

/// Two threads on a file of 64 MiB: one touches pages and the other reads.
pub(crate) fn recording(mode: RecordingMode, path: &str, end: bool) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "r", &Header::new(mode)).unwrap();
    let mut write = |thread, wait_ns, kind| {
        writer.write(&Event { thread, wait_ns, kind }).unwrap();
    };
    write(0, 0, EventKind::Process { pid: 7, parent: None, program: "/usr/bin/reader".into() });
    write(0, 0, EventKind::Thread { process: 0, tid: 7 });
    write(0, 0, EventKind::Thread { process: 0, tid: 8 });
    write(0, 0, EventKind::File { path: path.into(), size_bytes: 64 << 20, device: 1, inode: 1 });
    write(0, 0, EventKind::Open { file: 0 });
    write(0, 0, EventKind::Open { file: 0 });
    write(0, 0, whole_mapping());
    for number in 0..500u64 {
        let page = number * 7919 % 16384;
        write(0, 900, EventKind::Touch { mapping: 0, page, is_write: false });
        let offset_bytes = number * 131_072 % (64 << 20);
        write(1, 100, EventKind::Read { open: 1, offset_bytes, length_bytes: 4096 });
    }
    if end {
        return writer.finish().unwrap().0;
    }
    writer.flush().unwrap();
    let whole = writer.finish().unwrap().0;
    // Truncated, and with a part missing.
    whole[..whole.len() - 4].to_vec()
}

/// The first run and the summary of a record.
fn happened(record: &Value) -> (Value, Value) {
    (record["runs"][0].clone(), record["summary"].clone())
}

/// A recording of 200 scattered touches, after 100 pages that may have been touched unseen.
fn recording_with_unseen_pages() -> Vec<u8> {
    let header = Header::new(RecordingMode::FirstTouches);
    let mut writer = Writer::new(Vec::new(), "r", &header).unwrap();
    let path = "/nowhere/data.bin".into();
    let pages = filemap_recording::MappingPages { first: 5000, pages: 100 };
    let touch =
        |number: u64| EventKind::Touch { mapping: 0, page: number * 7919 % 4096, is_write: false };
    let kinds = [
        EventKind::Process { pid: 7, parent: None, program: "/usr/bin/reader".into() },
        EventKind::Thread { process: 0, tid: 7 },
        EventKind::File { path, size_bytes: 64 << 20, device: 1, inode: 1 },
        EventKind::Open { file: 0 },
        whole_mapping(),
        EventKind::Unseen { mapping: 0, pages },
    ];
    for kind in kinds.into_iter().chain((0..200).map(touch)) {
        writer.write(&Event { thread: 0, wait_ns: 0, kind }).unwrap();
    }
    let gap = EventKind::Gap { kind: filemap_recording::GapKind::TouchedPages, count: 100 };
    writer.write(&Event { thread: 0, wait_ns: 0, kind: gap }).unwrap();
    writer.finish().unwrap().0
}

/// Figures that rest on touches that may be missing are intervals.
#[test]
fn unseen_touches_make_intervals() {
    let scratch = Scratch::new("recording_unseen");
    let taken = scratch.file("r", recording_with_unseen_pages());
    let settings = "--kernel 6.18 --read-ahead-kb 8192";
    let advice = json(&format!("advise {taken} {settings} --json -"));
    let unseen = &advice["unseen"];
    let used =
        [&advice["pages_used"], &unseen["most"]["pages_used"]].map(|pages| pages.as_u64().unwrap());
    assert_eq!((used, unseen["pages"].as_u64()), ([200, 300], Some(100)));
    let words = advice["words"][0].as_str().unwrap();
    assert!(words.contains("If none of them was, it touches 200 pages and reads"), "{words}");
    assert!(words.contains("; if all were, 300 pages, "), "{words}");
    let record = json(&format!("run {taken} {settings} --json -"));
    let least = record["runs"][0]["counters"]["data_pages_read"].as_u64().unwrap();
    let warnings: Vec<&str> =
        record["warnings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let warned = warnings.iter().find(|text| text.starts_with("100 pages may have been touched"));
    let warned = warned.unwrap_or_else(|| panic!("{warnings:?}"));
    let most = unseen["most"]["now"]["data_pages_read"].as_u64().unwrap();
    assert!(most > least, "{most} and {least}");
    let shown = filemap_report::units::number(most as f64);
    assert!(warned.contains(&format!("the model reads {shown} pages")), "{warned}");
    let text = stdout(&format!("compare {taken} {settings} --variants baseline,advice=random"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("with touches of all, baseline reads {shown} pages")), "{text}");
    assert!(text.contains("; advice=random reads 300 pages"), "{text}");
}

#[test]
fn recording_runs_like_its_job_file() {
    let scratch = Scratch::new("recording_runs");
    let taken = scratch.file("r", recording(RecordingMode::Changes, "/nowhere/data.bin", true));
    let shown = stdout(&format!("record --show {taken}"));
    let comments: Vec<&str> = shown.lines().take_while(|line| line.starts_with('#')).collect();
    assert!(comments.iter().any(|line| line.contains("'/nowhere/data.bin'")), "{comments:?}");
    let job = scratch.file("job.toml", &shown);
    for flags in ["", "--read-ahead-kb 16 --kernel 6.12", "--with mmap-miss --cache-limit 8m"] {
        let direct = json(&format!("run {taken} --json - {flags}"));
        let by_file = json(&format!("run {job} --json - {flags}"));
        assert_eq!(happened(&direct), happened(&by_file), "{flags}");
        assert_eq!(direct["runs"][0]["counters"]["accesses"], 1000);
        check("run", &direct);
    }
    let record = json(&format!("run {taken} --json -"));
    assert_eq!(record["job"]["thread"][0]["name"], "reader 7");
    assert_eq!(record["job"]["thread"][0]["phase"], Value::Array(vec![]), "no lists");
    let warnings = record["warnings"].as_array().unwrap();
    assert!(
        warnings.iter().any(|warning| warning == "its 2 threads begin together"),
        "{warnings:?}"
    );
    let one = |variants: &str| json(&format!("compare {taken} --variants {variants} --json -"));
    let compared = one("baseline,read_ahead_kb=16");
    assert_eq!(compared["cells"].as_array().unwrap().len(), 2);
    let found = json(&format!("search {taken} --variants baseline,p1 --differ --jobs 40 --json -"));
    check("search", &found);
    assert!(found["notes"].to_string().contains("begin together"), "{}", found["notes"]);
    let job = &found["groups"][0]["cases"][1]["job"];
    assert!(job["file"].as_array().unwrap().len() == 1 && job["thread"].is_array(), "{job}");
    let explained = stdout(&format!("explain {taken}"));
    assert!(explained.contains("begin together"), "{explained}");
    assert!(
        explained.contains("\nPages\n") && explained.contains("What would help"),
        "{explained}"
    );
    let explained = json(&format!("explain {taken} --json -"));
    check("explain", &explained);
    let files = explained["files"].as_array().unwrap();
    let pages = files.iter().map(|file| file["pages_read"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(record["runs"][0]["counters"]["data_pages_read"].as_u64(), Some(pages));
    assert_eq!(explained["history"]["threads"].as_array().unwrap().len(), 2);
}

#[test]
fn an_existing_file_is_named_by_its_path() {
    let scratch = Scratch::new("recording_existing");
    let data = scratch.path("data.bin");
    fs::File::create(&data).unwrap().set_len(64 << 20).unwrap();
    let taken = scratch.file("r", recording(RecordingMode::FirstTouches, &data, true));
    let shown = stdout(&format!("record --show {taken}"));
    // On tmpfs the files cannot be used for jobs on the kernel.
    if crate::has_disk() {
        assert!(shown.contains(&format!("path = \"{data}\"")), "{shown}");
    }
    assert!(shown.contains("# the recording has the first touch of each page only"), "{shown}");
    fs::File::create(&data).unwrap().set_len(1 << 20).unwrap();
    let shown = stdout(&format!("record --show {taken}"));
    assert!(shown.contains("size = \"64m\""), "{shown}");
    if crate::has_disk() {
        assert!(shown.contains("of another size now"), "{shown}");
    }
}

#[test]
fn invalid_recordings_are_one_line_errors() {
    let scratch = Scratch::new("recording_damaged");
    let whole = recording(RecordingMode::Changes, "/nowhere/data.bin", true);
    let mut changed = whole.clone();
    let middle = whole.len() / 2;
    changed[middle] ^= 1;
    let changed = scratch.file("changed", &changed);
    let header = scratch.file("header", &whole[..30]);
    let foreign = scratch.file("foreign", "[[file]]\n");
    let cut = scratch.file("cut", recording(RecordingMode::Changes, "/nowhere/data.bin", false));
    for (args, words) in [
        (format!("run {changed}"), "is damaged; copy the file again, or record again"),
        (format!("compare {changed} --variants p1"), "is damaged"),
        (format!("explain {changed}"), "is damaged"),
        (format!("conform {changed}"), "is damaged"),
        (format!("record --show {changed}"), "is damaged"),
        (format!("run {header}"), "byte 12: it ends inside its header"),
        (format!("record --show {foreign}"), "byte 0: it is no recording"),
        ("record --show /nowhere".to_string(), "recording '/nowhere' cannot be read"),
        ("record".to_string(), "--show RECORDING or --import KIND FILE"),
        (format!("record --import strace {foreign}"), "known: perf-script, lines"),
        (format!("run {cut} --workload random"), "--workload is for a job with one"),
    ] {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
        assert_eq!(error.lines().count(), 1, "{args}: {error}");
    }
    // A truncated recording runs up to its last complete event, with a warning.
    let text = stdout(&format!("run {cut}"));
    assert!(text.contains("is cut off at byte"), "{text}");
}

const TRACE: &str = include_str!("../../../recording/tests/data/threads_and_a_fork.txt");

#[test]
fn trace_import_lists_what_it_lacks() {
    let scratch = Scratch::new("recording_import");
    let trace = scratch.file("trace.txt", TRACE);
    let summary = stdout(&format!("record --import perf-script {trace}"));
    assert!(summary.contains("faults on files, of 92 lines"), "{summary}");
    let taken = scratch.path("trace.txt.recording");
    let before = fs::read(&taken).unwrap();
    for args in [format!("run {taken}"), format!("explain {taken}")] {
        let text = stdout(&args);
        assert!(text.contains("shows faults only"), "{text}");
    }
    let record = json(&format!("compare {taken} --variants baseline,p1 --json -"));
    assert!(record.to_string().contains("shows faults only"));
    for (args, words) in [
        (format!("record --import perf-script {trace}"), "exists already; give -o another file"),
        (
            format!("record --import perf-script {trace} --output {trace}"),
            "is the same file as the trace",
        ),
        (format!("record --import lines {trace} --output {taken}"), "none is a fault on a file"),
        (format!("run {taken} --json {taken}"), "is the same file as the job file"),
    ] {
        let output = filemap(&args).output().unwrap();
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(words), "{args}: {error}");
    }
    assert_eq!(fs::read(&trace).unwrap(), TRACE.as_bytes());
    assert_eq!(fs::read(&taken).unwrap(), before, "what fails changes nothing");
    // The same on stdout, with messages on stderr.
    let output =
        filemap(&format!("record --import perf-script {trace} --output -")).output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, before);
    assert!(stderr(&output).contains("It shows faults only"));
}

/// The locale of this machine, which other programs have mapped, does not stop a run on the kernel.
#[test]
fn kernel_runs_beside_programs_that_map_the_same_locale() {
    const LOCALE: &str = "/usr/lib/locale/C.utf8/LC_CTYPE";
    let Ok(locale) = fs::read(LOCALE) else { return skip("no locale") };
    if !crate::has_disk() {
        return;
    }
    let scratch = Scratch::new("recording_locale");
    let data = scratch.file("data", vec![1; 4 << 20]);
    let mut writer =
        Writer::new(Vec::new(), "r", &Header::new(RecordingMode::FirstTouches)).unwrap();
    let mut write = |kind| writer.write(&Event { thread: 0, wait_ns: 0, kind }).unwrap();
    write(EventKind::Process { pid: 7, parent: None, program: "/usr/bin/reader".into() });
    write(EventKind::Thread { process: 0, tid: 7 });
    for (file, (path, size_bytes)) in
        [(data.as_str(), 4 << 20), (LOCALE, locale.len() as u64)].into_iter().enumerate()
    {
        let (file, address) = (file as u32, (file as u64 + 1) << 32);
        write(EventKind::File { path: path.into(), size_bytes, device: 1, inode: 1 });
        write(EventKind::Open { file });
        let (open, length_bytes, offset_bytes) = (file, size_bytes, 0);
        let (protection, flags) = (1, 2);
        write(EventKind::Map { open, address, length_bytes, offset_bytes, protection, flags });
        for page in (0..size_bytes.div_ceil(4096)).rev().step_by(3) {
            write(EventKind::Touch { mapping: file, page, is_write: false });
        }
    }
    let path = scratch.file("r", writer.finish().unwrap().0);
    let record = json(&format!("compare {path} --on model,kernel --cold --json -"));
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("a new file of its size stands for 'LC_CTYPE'"), "{warnings}");
    let read =
        |cell: usize| record["cells"][cell]["runs"][0]["counters"]["data_pages_read"].as_u64();
    assert_eq!(read(0), read(1), "{record:#}");
}
