//! `filemap advise`: remedies for a recorded program.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use filemap_recording::{Event, EventKind, Header, RecordingMode, Writer};
use serde_json::Value;

use crate::schema::{check, check_closed};
use crate::{Scratch, filemap, json, stderr, stdout};

/// Pages of the file: 256 MiB.
const PAGES: u64 = 65536;

/// A recording of a program that maps a file of [`PAGES`] and touches `pages` of it. The file does
/// not exist.
fn recording(pages: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut header = Header::new(RecordingMode::FirstTouches);
    header.command = vec!["./lookups".into(), "data file".into()];
    let mut writer = Writer::new(Vec::new(), "r", &header).unwrap();
    let bytes = PAGES * 4096;
    let begin = [
        EventKind::Process { pid: 7, parent: None, program: "/bin/lookups".into() },
        EventKind::Thread { process: 0, tid: 7 },
        EventKind::File {
            path: "/nowhere/data.mdb".into(),
            size_bytes: bytes,
            device: 1,
            inode: 2,
        },
        EventKind::Open { file: 0 },
        EventKind::Map {
            open: 0,
            address: 1 << 30,
            length_bytes: bytes,
            offset_bytes: 0,
            protection: 1,
            flags: 1,
        },
    ];
    let touches = pages.map(|page| EventKind::Touch { mapping: 0, page, is_write: false });
    for kind in begin.into_iter().chain(touches) {
        writer.write(&Event { thread: 0, wait_ns: 0, kind }).unwrap();
    }
    writer.finish().unwrap().0
}

/// A permutation of all pages, from a linear congruential generator with full period.
fn random(count: usize) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(12345), |page| Some((page * 1_664_525 + 1_013_904_223) % PAGES))
        .take(count)
}

/// The best answer, if there is one.
fn best(report: &Value, answer: &Value) -> Option<String> {
    let number = answer["best"].as_u64()?;
    let changes = &report["tried"][number as usize]["changes"];
    assert_eq!(changes.as_array().unwrap().len(), 1, "{changes}");
    Some(changes[0].as_str().unwrap().to_string())
}

#[test]
fn reports_do_not_overwrite_recordings() {
    let scratch = Scratch::new("advise_over");
    scratch.file("r", recording(random(200)));
    scratch.file("lookups", "#!/bin/sh");
    fs::set_permissions(scratch.path("lookups"), Permissions::from_mode(0o755)).unwrap();
    scratch.file("data file", "kept");
    for (flag, name, what) in [
        ("--json", "lookups", "the program"),
        ("--html", "data file", "an argument of the program"),
        ("--json", "r", "the job file"),
    ] {
        let before = fs::read(scratch.path(name)).unwrap();
        let mut command = filemap("advise r");
        let output = command.args([flag, name]).current_dir(&scratch.0).output().unwrap();
        let errors = stderr(&output);
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
        assert!(errors.contains(what) && errors.contains(flag), "{errors}");
        assert_eq!(fs::read(scratch.path(name)).unwrap(), before, "{name}");
    }
    // A recording is no record.
    let args = format!("report {} --html {}", scratch.path("r"), scratch.path("page"));
    let output = filemap(&args).output().unwrap();
    let errors = stderr(&output);
    assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
    assert!(errors.contains("is a recording") && errors.contains("filemap advise"), "{errors}");
}

#[test]
fn advises_for_job_of_flags() {
    let job = "--workload random --file-size 256m --accesses 2000 --read-ahead-kb 8192";
    let report = json(&format!("advise {job} --json -"));
    check("advise", &report);
    let flags = best(&report, &report["answer"]);
    assert_eq!(flags.as_deref(), Some("MADV_RANDOM on file"));
    let command = report["command"].as_str().unwrap().strip_prefix("filemap ").unwrap();
    assert_eq!(json(&format!("{command} --json -"))["tried"], report["tried"]);
    let scratch = Scratch::new("advise_flags");
    let keys = "workload = 'random'\nfile_size = '256m'\naccesses = 2000\nread_ahead_kb = 8192\n";
    let path = scratch.file("job.toml", keys);
    assert_eq!(json(&format!("advise {path} --json -"))["tried"], report["tried"]);
    let output = filemap("advise --read-ahead-kb 64").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn advises_random_for_random_lookups() {
    let scratch = Scratch::new("advise_random");
    let path = scratch.file("r", recording(random(2000)));
    let report = json(&format!("advise {path} --read-ahead-kb 8192 --json -"));
    check("advise", &report);
    check_closed("advise", &report);
    let file = &report["files"][0];
    assert_eq!((&file["pages_used"], &file["contents"]), (&2000.into(), &"lmdb".into()));
    assert!(file["pages_read"].as_u64().unwrap() > 50_000, "{file}");
    assert_eq!(best(&report, &file["answer"]).as_deref(), Some("MADV_RANDOM on data.mdb"));
    assert_eq!(best(&report, &report["answer"]).as_deref(), Some("MADV_RANDOM on data.mdb"));
    let number = file["answer"]["best"].as_u64().unwrap() as usize;
    assert_eq!(report["tried"][number]["outcome"]["data_pages_read"], 2000);
    assert_eq!(report["tried"][number]["verdict"], "best");
    let text = stdout(&format!("advise {path} --read-ahead-kb 8192"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "MDB_NORDAHEAD",
        "filemap govern -- ./lookups 'data file'",
        "read_ahead_kb=128",
        "The readahead size of its device, a setting of every program there",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Predictions equal the results of `run` for the same program and setting.
#[test]
fn prediction_equals_run() {
    let scratch = Scratch::new("advise_run");
    let path = scratch.file("r", recording(random(500)));
    let report = json(&format!("advise {path} --json -"));
    for (setting, flags) in [
        (None, ""),
        (Some("read_ahead_kb=2048"), "--read-ahead-kb 2048"),
        (Some("fault_around=512k"), "--fault-around 512k"),
        (Some("filemap govern"), "--governor"),
    ] {
        let run = json(&format!("run {path} {flags} --json -"));
        let tried = report["tried"].as_array().unwrap();
        let outcome = match setting {
            None => &report["now"],
            Some(setting) => {
                let is_it = |tried: &&Value| tried["changes"] == serde_json::json!([setting]);
                &tried.iter().find(is_it).unwrap_or_else(|| panic!("{setting}"))["outcome"]
            }
        };
        let own = &run["runs"][0];
        for name in ["data_pages_read", "major_faults"] {
            assert_eq!(outcome[name], own["counters"][name], "{setting:?}");
        }
        assert_eq!(outcome["elapsed_ns"], own["elapsed_ns"], "{setting:?}");
    }
}

#[test]
fn a_scan_uses_what_it_reads() {
    let scratch = Scratch::new("advise_scan");
    let path = scratch.file("r", recording(0..PAGES));
    let report = json(&format!("advise {path} --read-ahead-kb 8192 --json -"));
    let file = &report["files"][0];
    assert_eq!((&file["pages_read"], &file["pages_used"]), (&PAGES.into(), &PAGES.into()));
    let answer = best(&report, &file["answer"]);
    assert!(answer.as_deref().is_none_or(|best| best.starts_with("MADV_SEQUENTIAL")), "{answer:?}");
}

#[test]
fn the_same_recording_gets_the_same_advice() {
    let scratch = Scratch::new("advise_again");
    let path = scratch.file("r", recording(random(300)));
    let command = format!("advise {path} --ram 64m --format csv");
    let first = stdout(&command);
    assert!(first.lines().count() > 10, "{first}");
    assert_eq!(first, stdout(&command));
    let report = json(&format!("advise {path} --ram 64m --json -"));
    let names = report["conditions"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|name| name["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

/// A start of a Java program: its library and classes are read best with different sizes. Its owner
/// advises neither, and the device has one size.
#[test]
fn libraries_get_no_advice_and_one_size_is_named() {
    let mut writer =
        Writer::new(Vec::new(), "r", &Header::new(RecordingMode::FirstTouches)).unwrap();
    let mut write = |kind| writer.write(&Event { thread: 0, wait_ns: 0, kind }).unwrap();
    write(EventKind::Process { pid: 7, parent: None, program: "/usr/bin/java".into() });
    write(EventKind::Thread { process: 0, tid: 7 });
    // The governor leaves small files alone.
    let files = [
        ("/nowhere/libjvm.so", 5, 8 << 20),
        ("/nowhere/classes.jsa", 1, 8 << 20),
        ("/nowhere/words.idx", 1, 64 << 20),
    ];
    for (file, (path, protection, size_bytes)) in files.into_iter().enumerate() {
        let file = file as u32;
        write(EventKind::File { path: path.into(), size_bytes, device: 1, inode: u64::from(file) });
        write(EventKind::Open { file });
        let address = (u64::from(file) + 1) << 32;
        let (length_bytes, offset_bytes) = (size_bytes, 0);
        let (open, flags) = (file, 1);
        write(EventKind::Map { open, address, length_bytes, offset_bytes, protection, flags });
    }
    let touch = |mapping, page| EventKind::Touch { mapping, page, is_write: false };
    for (number, page) in random(60).enumerate() {
        write(touch(0, page % 2048));
        write(touch(1, (number as u64 * 34) % 2048));
        write(touch(2, page * 7 % 16384));
    }
    let scratch = Scratch::new("advise_system");
    let path = scratch.file("r", writer.finish().unwrap().0);
    let advice = |more: &str| json(&format!("advise {path} --read-ahead-kb 8192 {more} --json -"));
    let names = |report: &Value, list: &str| -> Vec<String> {
        let files = report[list].as_array().unwrap().iter();
        let mut names: Vec<String> =
            files.map(|file| file["name"].as_str().unwrap().to_string()).collect();
        names.sort();
        names
    };
    let sizes = |report: &Value| {
        let words = report["words"].as_array().unwrap().iter();
        let lines = words.filter(|line| line.as_str().unwrap().contains("readahead size"));
        assert!(!report["words"].to_string().contains("read_ahead_kb="), "{report:#}");
        lines.count()
    };
    let own = advice("");
    check("advise", &own);
    assert_eq!(names(&own, "files"), ["words.idx"]);
    assert_eq!(names(&own, "left_out"), ["classes.jsa", "libjvm.so"]);
    assert_eq!(own["words"].as_array().unwrap().len(), 3, "{}", own["words"]);
    assert_eq!(sizes(&own), 1);
    let all = advice("--files *");
    assert_eq!(names(&all, "files"), ["classes.jsa", "libjvm.so", "words.idx"]);
    assert_eq!(sizes(&all), 1);
    let some = advice("--files *.jsa");
    assert_eq!((names(&some, "files"), sizes(&some)), (vec!["classes.jsa".to_string()], 1));
    assert!(some["command"].as_str().unwrap().contains("--files '*.jsa'"), "{}", some["command"]);
    // The totals are of all files.
    for other in [&all, &some] {
        assert_eq!(other["now"], own["now"]);
        assert_eq!(other["pages_used"], own["pages_used"]);
    }
    let java = own["to_write"][0]["lines"].to_string();
    assert!(java.contains("downcallHandle") && !java.contains("memmap2"), "{own:#}");
}

#[test]
fn refuses_files_that_are_not_recordings() {
    let scratch = Scratch::new("advise_refused");
    let job = scratch.file("job.toml", "workload = 'random'\nfile_size = '1m'\naccesses = 2\n");
    let timed = "[[file]]\nname = 'f'\nsize = '1m'\n[[open]]\nname = 'f'\nfile = 'f'\n[[mapping]]\n\
                 name = 'm'\nopen = 'f'\n[[thread]]\nfor = '1s'\nphase = [{ mapping = 'm', \
                 workload = 'random', accesses = 9 }]\n";
    let timed = scratch.file("timed.toml", timed);
    let path = scratch.file("r", recording(random(3)));
    let flat = json(&format!("advise {job} --json -"));
    assert!(flat["files"][0]["pages_read"].as_u64() > Some(0), "{flat}");
    for (args, code, words) in [
        (format!("advise {timed}"), 4, "give 'repeat' instead"),
        ("advise /nowhere/r".to_string(), 2, "'/nowhere/r'"),
        (format!("advise {path} --workload random"), 2, "--workload"),
        (format!("advise {path} --runs 3"), 2, "--check"),
        (format!("advise {path} --on kernel"), 2, "--on"),
        (format!("advise {path} --json {path}"), 2, "'"),
    ] {
        let output = filemap(&args).output().unwrap();
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {line}");
        assert!(line.contains(words) && line.lines().count() == 1, "{args}: {line}");
    }
    assert_eq!(fs::read(&path).unwrap(), recording(random(3)));
}

#[test]
fn accesses_are_mapped_by_time_and_offset() {
    let scratch = Scratch::new("advise_accesses");
    let job = "[[file]]\nname = 'a'\nsize = '64m'\n[[file]]\nname = 'b'\nsize = '16m'\n\
        [[open]]\nname = 'a'\nfile = 'a'\n[[open]]\nname = 'b'\nfile = 'b'\n\
        [[mapping]]\nname = 'a'\nopen = 'a'\n[[thread]]\n[[thread.phase]]\nmapping = 'a'\n\
        workload = 'random'\naccesses = 3000\n[[thread.phase]]\nopen = 'b'\n\
        workload = 'read-sequential'\nbs = '64k'\naccesses = 100\n";
    let job = scratch.file("job.toml", job);
    let advice = json(&format!("advise {job} --json -"));
    let maps = advice["accesses"].as_array().unwrap();
    let columns =
        |map: &Value| -> Vec<Vec<u64>> { serde_json::from_value(map["cells"].clone()).unwrap() };
    for (map, file, pages) in [(&maps[0], "a", 3000), (&maps[1], "b", 1600)] {
        assert_eq!(map["file"], file);
        assert_eq!(columns(map).iter().flatten().sum::<u64>(), pages, "{file}");
    }
    // The scan of b follows the look-ups in a, row by row.
    let [a, b] = [&maps[0], &maps[1]].map(columns);
    assert_eq!(a.len(), b.len());
    let first = b.iter().position(|rows| rows.iter().sum::<u64>() > 0).unwrap();
    assert!(a[first + 1..].iter().flatten().all(|pages| *pages == 0));
    let top = |rows: &Vec<u64>| rows.iter().rposition(|pages| *pages > 0);
    assert!(b[first..].iter().map(top).is_sorted(), "{b:?}");
    let page = stdout(&format!("advise {job} --html -"));
    assert!(page.contains("Accesses to b"), "no map");
}
