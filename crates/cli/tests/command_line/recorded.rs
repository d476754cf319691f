//! `filemap record -- PROGRAM` records the program's accesses without changing its behaviour.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use filemap_kernel::{cold_cache, residency};
use filemap_recording::{Event, EventKind, GapKind, Reader};
use serde_json::Value;

use crate::governed::Place;
use crate::running::{Running, signal};
use crate::{skip, stderr};

/// Pages of the file that is read.
pub const PAGES: u64 = 8192;

pub fn events(path: &str) -> Vec<Event> {
    let reader = Reader::new(File::open(path).expect("it was written"), path).expect("it is whole");
    reader.collect::<Result<_, _>>().expect("it is whole")
}

/// Whether a program was recorded; prints that this part is skipped if the kernel forbids it.
pub fn is_recorded(output: &Output) -> bool {
    let message = stderr(output);
    let is_refused = output.status.code() == Some(4) && message.contains("perf events");
    if is_refused {
        skip(&message);
    }
    !is_refused
}

/// Maximum number of recordings of a program that touches its file before the recorder notices.
const MOST_RECORDINGS: usize = 50;

/// Records `words` to the file `name`, and compares the program's behaviour with an unrecorded run.
pub fn recorded(place: &Place, name: &str, words: &[&str]) -> Option<Vec<Event>> {
    recorded_with(place, name, "", words)
}

/// Like the function above, with further flags.
fn recorded_with(place: &Place, name: &str, flags: &str, words: &[&str]) -> Option<Vec<Event>> {
    let path = place.scratch.path(name);
    let alone = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
    let mut last = String::new();
    for _ in 0..MOST_RECORDINGS {
        let mut command = place.command("record", &format!("{flags} --output {path} --"));
        let output = command.args(words).output().expect("the command starts");
        if !is_recorded(&output) {
            return None;
        }
        assert_eq!((&output.stdout, output.status), (&alone.stdout, alone.status), "{words:?}");
        if !stderr(&output).contains("may lack") {
            assert_eq!(output, alone, "{words:?}");
            return Some(events(&path));
        }
        fs::remove_file(&path).expect("it was written");
        last = stderr(&output);
    }
    assert!(last.contains("too busy"), "{words:?} was never recorded with all touches: {last}");
    skip(&last);
    None
}

/// The pages of the file at `path` that are touched, in order.
pub fn touches(events: &[Event], path: &str) -> Vec<u64> {
    let (mut files, mut of_opens, mut of_mappings) = (Vec::new(), Vec::new(), Vec::new());
    let mut pages = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::File { path: of, .. } => files.push(of == Path::new(path)),
            EventKind::Open { file } => of_opens.push(files[*file as usize]),
            EventKind::Map { open, .. } => of_mappings.push(of_opens[*open as usize]),
            EventKind::Touch { mapping, page, .. } if of_mappings[*mapping as usize] => {
                pages.push(*page);
            }
            _ => {}
        }
    }
    pages
}

/// The pages of random accesses, by the same generator as the program's.
fn pages(accesses: u64) -> impl Iterator<Item = u64> {
    pages_of(PAGES, accesses)
}

/// The same in a file of `pages`.
fn pages_of(pages: u64, accesses: u64) -> impl Iterator<Item = u64> {
    let mut state: u64 = 88_172_645_463_325_252;
    (0..accesses).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % pages
    })
}

/// Only first touches.
pub fn first_touches(accesses: u64) -> Vec<u64> {
    let mut seen = HashSet::new();
    pages(accesses).filter(|page| seen.insert(*page)).collect()
}

#[test]
fn a_recording_has_each_first_touch_in_order() {
    let place = Place::new("record_touches");
    let [program, data] = place.lookups();
    let Some(events) = recorded(&place, "r", &[&program, &data, "3000"]) else { return };
    assert_eq!(touches(&events, &data), first_touches(3000));
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Lost { .. })));
}

/// A read whose first pages are still being read ahead is recorded from its beginning, although the
/// kernel does not report the lookup of these pages.
#[test]
fn a_recording_has_the_beginning_of_each_read() {
    if !rustix::process::geteuid().is_root() {
        return skip("reads are recorded as root only");
    }
    let place = Place::new("record_reads");
    let [_, data] = place.lookups();
    let (size, input) = (132 << 10, format!("if={data}"));
    let words = ["dd", &input, "of=/dev/null", "bs=132k", "status=none"];
    for run in 0..5 {
        let Some(events) = recorded(&place, &run.to_string(), &words) else { return };
        let starts = events.iter().filter_map(|event| match event.kind {
            EventKind::Read { offset_bytes, length_bytes, .. } if length_bytes > 0 => {
                Some(offset_bytes)
            }
            _ => None,
        });
        let starts: Vec<u64> = starts.collect();
        let expected: Vec<u64> =
            (0..(PAGES * 4096).div_ceil(size)).map(|read| read * size).collect();
        assert_eq!(starts, expected, "run {run}");
    }
}

/// Each touch of a page is recorded that is not among the 128 pages before it.
#[test]
fn recording_of_changes_has_touched_pages() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root may take pages from a process");
    }
    if !crate::has_disk() {
        return;
    }
    const IN_FILE: u64 = 1024;
    const OPEN: usize = 128;
    const MAX_ATTEMPTS: usize = 5;
    let place = Place::new("record_changes");
    let [program, data] = place.lookups();
    let file = File::options().write(true).open(&data).expect("it was written");
    file.set_len(IN_FILE * 4096).and_then(|()| file.sync_all()).expect("it can be cut");
    let words: [&str; 3] = [&program, &data, "6000"];
    // Below 1 % of the touches, pages that stay mapped for longer are not reported.
    let mut missed = None;
    for _ in 0..MAX_ATTEMPTS {
        let Some(events) = recorded_with(&place, "r", "--changes", &words) else { return };
        fs::remove_file(place.scratch.path("r")).expect("it was written");
        let touched = touches(&events, &data);
        assert!(touched.len() > 5000, "{} of 6000 touches", touched.len());
        missed = missed_touch(&touched, pages_of(IN_FILE, 6000), OPEN);
        if missed.is_none() {
            return;
        }
    }
    panic!("touch was missed: {missed:?}");
}

/// The first of `pages` that `touched` lacks although `most_open` others were touched since its
/// last touch: the page, and how many others.
fn missed_touch(
    touched: &[u64],
    pages: impl Iterator<Item = u64>,
    most_open: usize,
) -> Option<(u64, Option<usize>)> {
    let mut touches = touched.iter().peekable();
    let mut last: Vec<u64> = Vec::new();
    for page in pages {
        let age = last.iter().rev().position(|seen| *seen == page);
        let is_touched = touches.next_if_eq(&&page).is_some();
        if !is_touched && age.is_none_or(|age| age >= most_open) {
            return Some((page, age));
        }
        last.retain(|seen| *seen != page);
        last.push(page);
    }
    assert_eq!(touches.next(), None);
    None
}

/// Without permission to reclaim pages of a process, recording does not start.
#[test]
fn refuses_changes_without_root() {
    let place = Place::new("record_changes_refused");
    let is_root = rustix::process::geteuid().is_root();
    let mut command = place.command("record", "--changes -- true");
    if is_root {
        command.uid(65534);
    }
    let output = command.output().expect("the command starts");
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(4), 1), "{message}");
    assert!(message.contains("--changes") && message.contains("as root"), "{message}");
}

/// Time to read a window of 8 MiB, even on a busy disk.
const PAUSE_US: &str = "50000";

/// How often the kernel is tried: what is still being read when the program goes on, as on a disk
/// that others use, is not what the model has.
const TRIES: usize = 5;

/// The recording, run in the model, reads the same pages as the program alone on a cold file.
#[test]
fn model_of_recording_reads_the_same_pages() {
    if !crate::has_disk() {
        return;
    }
    let place = Place::new("record_model");
    let [program, data] = place.lookups();
    if recorded(&place, "r", &[&program, &data, "40"]).is_none() {
        return;
    }
    let recording = place.scratch.path("r");
    let run =
        place.command("run", &format!("{recording} --kernel host --json -")).output().unwrap();
    assert!(run.status.success(), "{}", stderr(&run));
    let record: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
    let modelled = record["runs"][0]["counters"]["data_pages_read"].as_u64().expect("a number");
    let read = || {
        // The kernel's readahead stops at pages that are still cached.
        cold_cache::drop_file(Path::new(&data)).expect("it can be dropped");
        let mut alone = Command::new(&program);
        let alone = alone.args([&data, "40"]).env("LOOKUPS_PAUSE_US", PAUSE_US).output();
        assert!(alone.expect("it starts").status.success());
        residency::resident_pages(&File::open(&data).unwrap(), PAGES).unwrap().len()
    };
    let mut tried = Vec::new();
    let agrees = (0..TRIES).any(|_| {
        tried.push(read());
        tried.last().is_some_and(|&read| modelled.abs_diff(read) * 1000 <= read)
    });
    assert!(agrees, "model {modelled}, kernel {tried:?}");
}

/// An event in short, without the parts that vary between runs.
pub fn shown(event: &Event) -> Option<String> {
    let thread = event.thread;
    Some(match &event.kind {
        EventKind::Process { parent, .. } => format!("process of {parent:?}"),
        EventKind::Thread { process, .. } => format!("thread of {process}"),
        EventKind::File { size_bytes, .. } => format!("file {}", size_bytes / 4096),
        EventKind::Open { file } => format!("open {file}"),
        EventKind::Map { open, length_bytes, offset_bytes, protection, .. } => format!(
            "{thread} map {open} {}+{} {protection}",
            offset_bytes / 4096,
            length_bytes / 4096
        ),
        EventKind::Unmap { mapping, part } => {
            format!("{thread} unmap {mapping} {:?}", part.map(|part| (part.first, part.pages)))
        }
        EventKind::Madvise { mapping, pages, advice } => {
            format!("{thread} madvise {mapping} {}+{} {advice}", pages.first, pages.pages)
        }
        EventKind::Fadvise { open, offset_bytes, length_bytes, advice } => {
            format!("{thread} fadvise {open} {offset_bytes}+{} {advice}", length_bytes / 4096)
        }
        EventKind::Readahead { open, offset_bytes, length_bytes } => {
            format!("{thread} readahead {open} {}+{}", offset_bytes / 4096, length_bytes / 4096)
        }
        EventKind::Read { open, offset_bytes, length_bytes } => {
            format!("{thread} read {open} {}+{}", offset_bytes / 4096, length_bytes / 4096)
        }
        EventKind::Touch { mapping, page, .. } => format!("{thread} touch {mapping} {page}"),
        EventKind::Truncate { file, size_bytes } => format!("file {file} is {}", size_bytes / 4096),
        EventKind::Exit { process } => format!("exit of {process}"),
        _ => return None,
    })
}

#[test]
fn records_steps_in_order() {
    let place = Place::new("record_steps");
    let [_, data] = place.lookups();
    let program = place.compiled("steps");
    let Some(events) = recorded(&place, "r", &[&program, &data]) else { return };
    let found: Vec<String> = events.iter().filter_map(shown).collect();
    let all = [
        "process of None",
        "thread of 0",
        "file 8192",
        "open 0",
        "0 fadvise 0 0+0 1",
        "0 readahead 0 64+2",
        "0 read 0 3+1",
        "0 map 0 0+8192 1",
        "0 touch 0 5",
        "0 touch 0 900",
        "0 touch 0 901",
        "0 madvise 0 100+100 3",
        "0 touch 0 150",
        "0 read 0 7+2",
        "0 fadvise 0 0+64 2",
        "0 unmap 0 Some((0, 16))",
        "0 touch 0 20",
        "thread of 0",
        "1 touch 0 4000",
        "0 touch 0 5000",
        "0 touch 0 5001",
        "0 touch 0 5002",
        "process of Some(0)",
        "thread of 1",
        "2 map 0 16+8176 1",
        "2 touch 1 6984",
        "2 touch 1 6985",
        "exit of 1",
        "0 touch 0 7100",
        "0 map 0 1024+64 3",
        "0 touch 2 1",
        "0 touch 2 2",
        "exit of 0",
    ];
    // Only root sees system calls but mmap(2), and the pages that they touch.
    if rustix::process::geteuid().is_root() {
        assert_eq!(found, all);
        return;
    }
    // munmap(2) is seen only if another mapping takes its place. Until then, a child inherits the
    // mapping whole.
    let is_unmap = |line: &str| line.contains(" unmap ");
    let is_unmapped = found.iter().any(|line| is_unmap(line));
    let root_only = [" read", " madvise ", " fadvise ", " unmap ", " touch 0 500"];
    let is_visible = |line: &&&str| !root_only.iter().any(|call| line.contains(call));
    let expected = all.iter().filter(is_visible).map(|line| match *line {
        "2 map 0 16+8176 1" if !is_unmapped => "2 map 0 0+8192 1",
        "2 touch 1 6984" if !is_unmapped => "2 touch 1 7000",
        "2 touch 1 6985" if !is_unmapped => "2 touch 1 7001",
        line => line,
    });
    let found: Vec<&String> = found.iter().filter(|line| !is_unmap(line)).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
    let lacks = |event: &Event| {
        matches!(event.kind, EventKind::Gap { kind: GapKind::SystemCalls, count: 1 })
    };
    assert!(events.iter().any(lacks));
}

/// A thread that maps a file with MAP_POPULATE is held before its first touch, however soon that
/// is, and whether the kernel reads the file or finds it cached.
#[test]
fn records_touches_of_populated_mapping() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root sees the flags of mmap(2)");
    }
    let place = Place::new("record_populated");
    let [_, data] = place.lookups();
    let program = place.compiled("populate");
    let last = PAGES - 256..PAGES;
    let expected: Vec<u64> = last.clone().chain([77, 20]).collect();
    let Some(events) = recorded(&place, "r", &[&program, &data, "cold"]) else { return };
    assert_eq!(touches(&events, &data), expected);
    let populates = |event: &&Event| {
        let populate = libc::MAP_POPULATE.cast_unsigned();
        matches!(event.kind, EventKind::Map { flags, .. } if flags & populate != 0)
    };
    assert_eq!(events.iter().filter(populates).count(), 1);
    let is_gap = |event: &Event| matches!(event.kind, EventKind::Gap { .. });
    assert!(!events.iter().any(is_gap));
    // Locked pages stay mapped, whether they were touched or not.
    let words: [&str; 3] = [&program, &data, "lock"];
    let path = place.scratch.path("locked");
    let mut command = place.command("record", &format!("--output {path} --"));
    let output = command.args(words).output().expect("the command starts");
    assert!(stderr(&output).contains("32 pages that the program locked"), "{}", stderr(&output));
    let events = self::events(&path);
    let expected: Vec<u64> = last.chain([77]).collect();
    assert_eq!(touches(&events, &data), expected);
    let is_locked = |event: &Event| {
        matches!(event.kind, EventKind::Gap { kind: GapKind::LockedPages, count: 32 })
    };
    assert!(events.iter().any(is_locked));
    let found: Vec<String> = events.iter().filter_map(shown).collect();
    assert!(found.contains(&"0 madvise 0 16+32 22".to_string()), "{found:?}");
}

/// What is advised for a recording is no advice of the program, however often it was tried: `dd`
/// advises nothing, and is held late as it maps files of its locale and then waits in calls.
#[test]
fn recording_excludes_its_own_activity() {
    let place = Place::new("record_own_advice");
    let data = place.scratch.file("data", vec![7; 20 << 20]);
    for number in 0..10 {
        let path = place.scratch.path(&format!("r{number}"));
        let mut command = place.command("record", &format!("--output {path} --"));
        command.arg("dd").arg(format!("if={data}"));
        let output = command
            .args(["of=/dev/null", "bs=1M", "iflag=direct"])
            .output()
            .expect("the command starts");
        if !is_recorded(&output) {
            return;
        }
        let is_advice = |event: &&Event| matches!(event.kind, EventKind::Madvise { .. });
        let advised = events(&path).iter().filter(is_advice).count();
        assert_eq!(advised, 0, "{}", stderr(&output));
    }
}

/// A growing file has its current size from each new mapping on.
#[test]
fn a_file_that_grows_is_recorded_with_its_sizes() {
    let place = Place::new("record_grown");
    let program = place.compiled("grow");
    let data = place.scratch.file("grown", vec![1; 512 * 4096]);
    let Some(events) = recorded(&place, "r", &[&program, &data]) else { return };
    let found: Vec<String> = events.iter().filter_map(shown).collect();
    let sizes: Vec<&str> = found
        .iter()
        .map(String::as_str)
        .filter(|line| line.contains("file ") || line.contains("touch"))
        .collect();
    assert_eq!(sizes, ["file 512", "0 touch 0 7", "file 0 is 1024", "0 touch 1 1023"]);
}

/// A recording printed as a job file is the same job.
#[test]
fn a_recording_shown_is_the_same_job() {
    let place = Place::new("record_shown");
    let [program, data] = place.lookups();
    if recorded(&place, "r", &[&program, &data, "500"]).is_none() {
        return;
    }
    let recording = place.scratch.path("r");
    let shown = place.command("record", &format!("--show {recording}")).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    let job = place.scratch.file("job.toml", &shown.stdout);
    let [of_recording, of_job] = [&recording, &job].map(|path| {
        let run = place.command("run", &format!("{path} --json -")).output().unwrap();
        assert!(run.status.success(), "{}", stderr(&run));
        let mut record: Value = serde_json::from_slice(&run.stdout).expect("one JSON object");
        record["runs"][0].take()
    });
    assert_eq!(of_recording, of_job);
}

#[test]
fn unrecordable_program_is_a_one_line_error() {
    let place = Place::new("record_refused");
    let existing = place.scratch.file("there", "precious");
    let set_id = place.scratch.path("set-id");
    fs::copy("/bin/true", &set_id).unwrap();
    let orphan = place.scratch.file("orphan", "#!/no/such/interpreter\n");
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    for (args, code, words) in [
        ("-- no-such-program".to_string(), 127, "no-such-program"),
        ("-- /".to_string(), 126, "directory"),
        (String::new(), 2, "a program is missing"),
        ("--min-size x -- true".to_string(), 2, "--min-size"),
        (format!("--output {existing} -- cat {existing}"), 2, "--output"),
        (format!("--output {}/no/such -- true", place.scratch.path("run")), 2, "no/such"),
        (format!("--show {existing}"), 2, "there"),
        (
            format!("--output {} -- {orphan}", place.scratch.path("o")),
            126,
            "'/no/such/interpreter'",
        ),
    ] {
        let output = place.command("record", &args).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert_eq!(message.lines().count(), 1, "{args}: {message}");
        assert!(message.contains(words), "{args}: {message}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(fs::read_to_string(&existing).unwrap(), "precious");
}

/// The default name never overwrites an existing recording.
#[test]
fn an_older_recording_is_kept() {
    let place = Place::new("record_kept");
    let older = place.scratch.file("true.recording", "older");
    let mut command = place.command("record", "-- true");
    let output = command.current_dir(place.scratch.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("true.recording") && message.contains("give -o another file"),
        "{message}"
    );
    assert_eq!(fs::read_to_string(older).unwrap(), "older");
}

/// A full disk ends the recording but not the program.
#[test]
fn a_full_disk_leaves_the_program_alone() {
    let place = Place::new("record_full");
    let [program, data] = place.lookups();
    let alone = Command::new(&program).args([&data, "500"]).output().unwrap();
    let mut command = place.command("record", "--output /dev/full --");
    let output = command.args([&program, &data, "500"]).output().unwrap();
    if !is_recorded(&output) {
        return;
    }
    assert_eq!(output.stdout, alone.stdout);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.contains("/dev/full"), "{message}");
}

/// Signals to the command are forwarded to the program, and the recording so far is kept.
#[test]
fn forwards_signals_and_keeps_recording() {
    let place = Place::new("record_signals");
    let [program, data] = place.lookups();
    let path = place.scratch.path("r");
    for _ in 0..MOST_RECORDINGS {
        let mut command = place.command("record", &format!("--output {path} --"));
        command.args([&program, &data, "200", "wait"]);
        let mut running = Running::start(&mut command);
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(running.stdout()));
        assert!(lines.any(|line| line.expect("text") == "ready"));
        running.signal("TERM");
        let output = running.output();
        if !is_recorded(&output) {
            return;
        }
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(libc::SIGTERM));
        if !stderr(&output).contains("may lack") {
            return assert_eq!(touches(&events(&path), &data), first_touches(200));
        }
        fs::remove_file(&path).expect("it was written");
    }
    panic!("it was never recorded with all of its touches");
}

/// A recorder that is killed leaves what was recorded by then, which can be read. It can no longer
/// say whether touches are missing, as where it came too late: then it is tried again.
#[test]
fn killed_recorder_leaves_partial_file() {
    let place = Place::new("record_killed");
    let [program, data] = place.lookups();
    for _ in 0..MOST_KILLED {
        let Some(touched) = killed_recording(&place, [&program, &data]) else { return };
        if touched == first_touches(200) {
            return;
        }
        fs::remove_file(place.scratch.path("r.part")).expect("it was left");
    }
    panic!("no part has all touches");
}

/// Number of attempts to kill a recorder.
const MOST_KILLED: usize = 5;

/// The touches of a file in the recording of a killed recorder, whose program continued.
fn killed_recording(place: &Place, [program, data]: [&str; 2]) -> Option<Vec<u64>> {
    let path = place.scratch.path("r");
    let mut command = place.command("record", &format!("--output {path} --"));
    command.args([program, data, "200", "wait"]);
    let mut running = Running::start(&mut command);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(running.stdout()));
    if !lines.any(|line| line.is_ok_and(|line| line == "ready")) {
        assert!(!is_recorded(&running.output()), "it has not run");
        return None;
    }
    // Events are flushed every second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let program_of = format!("/proc/{0}/task/{0}/children", running.id());
    let program = fs::read_to_string(program_of).expect("it runs");
    running.signal("KILL");
    running.until_end(|| {});
    assert!(!Path::new(&path).exists());
    // The program survives the recorder.
    assert!(signal("TERM", program.trim()), "it is gone");
    let part = format!("{path}.part");
    let reader = Reader::new(File::open(&part).expect("it is left"), &part).expect("it begins");
    let left: Vec<Event> = reader.collect::<Result<_, _>>().expect("its blocks are whole");
    let shown = place.command("record", &format!("--show {part}")).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("cut off"), "{shown:?}");
    // The next recording does not overwrite it.
    let again = place.command("record", &format!("--output {path} -- true")).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert!(stderr(&again).contains(".part"), "{}", stderr(&again));
    Some(touches(&left, data))
}

/// A recording without a touch names the files that were left out.
#[test]
fn names_files_that_are_not_recorded() {
    let place = Place::new("record_excluded");
    let [program, data] = place.lookups();
    let path = place.scratch.path("r");
    let mut command = place.command("record", &format!("--min-size 1g --output {path} --"));
    let output = command.args([&program, &data, "50"]).output().expect("the command starts");
    if is_recorded(&output) {
        let message = stderr(&output);
        assert!(message.contains(&format!("'{data}' has only 33554432 bytes")), "{message}");
    }
}

/// A running process is recorded for a while, and gets its own advice back afterwards.
#[test]
fn a_process_that_runs_is_recorded() {
    let place = Place::new("record_pid");
    let [program, data] = place.lookups();
    cold_cache::drop_file(Path::new(&data)).expect("it can be dropped");
    let mut command = Command::new(&program);
    command.args([&data, "400", "wait"]).env("LOOKUPS_WORK_US", "10000");
    let running = Running::start(&mut command);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (pid, path) = (running.id(), place.scratch.path("r"));
    let args = format!("--pid {pid} --cold --duration 1s --output {path}");
    let output = place.command("record", &args).output().expect("the command starts");
    if is_recorded(&output) {
        assert!(output.status.success(), "{}", stderr(&output));
        let touched = touches(&events(&path), &data);
        let all = first_touches(400);
        let is_in_order = |part: &[u64]| {
            let mut rest = all.iter();
            part.iter().all(|page| rest.any(|seen| seen == page))
        };
        assert!(touched.len() > 20 && is_in_order(&touched), "{touched:?}");
        // Until a thread of it could be held, pages that came with others show no touch.
        let exact = &touched[touched.len() * 3 / 4..];
        assert!(all.windows(exact.len()).any(|part| part == exact), "{touched:?}");
        let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).expect("it runs");
        let mut flags = smaps.lines().skip_while(|line| !line.contains(&data));
        let flags = flags.find(|line| line.starts_with("VmFlags:")).expect("flags");
        assert!(!flags.contains(" rr"), "{flags}");
    }
    running.signal("TERM");
    drop(running.output());
}

/// A static program is recorded like any other.
#[test]
fn a_static_program_is_recorded() {
    let place = Place::new("record_static");
    let [_, data] = place.lookups();
    let program = place.scratch.path("lookups-static");
    let source = format!("{}/tests/command_line/lookups.c", env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-O1", "-static", "-o", &program, &source]).status();
    assert!(compiled.expect("there is a C compiler").success());
    let Some(events) = recorded(&place, "r", &[&program, &data, "3000"]) else { return };
    assert_eq!(touches(&events, &data), first_touches(3000));
}

/// Programs and libraries are recorded on request.
#[test]
fn records_program_start_on_request() {
    let place = Place::new("record_start");
    let [program, data] = place.lookups();
    let path = place.scratch.path("r");
    let args = format!("--output {path} --include */lookups --include */data -- sh -c");
    let script = format!("exec {program} {data} 10");
    let output = place.command("record", &args).arg(script).output().expect("it starts");
    if !is_recorded(&output) {
        return;
    }
    let events = events(&path);
    let file = |name: &str| {
        events.iter().any(|event| match &event.kind {
            EventKind::File { path, .. } => path.to_string_lossy().ends_with(name),
            _ => false,
        })
    };
    assert!(file("/lookups") && file("/data") && !file("libc.so.6"));
}

/// The kernel ends the events of a program that gains privileges by exec.
#[test]
fn refuses_program_of_another_user_with_remedy() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root may give files away");
    }
    let place = Place::new("record_set_user_id");
    let [program, _] = place.lookups();
    std::os::unix::fs::chown(&program, Some(1), None).expect("root may give files away");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let output = place.command("record", &format!("-- {program}")).output();
    let message = stderr(&output.unwrap());
    assert!(message.contains("set-user-ID") && message.contains("setpriv"), "{message}");
}

#[test]
fn recording_of_nothing_replaces_no_other() {
    let place = Place::new("recording-of-nothing");
    let path = place.scratch.file("good.recording", "an earlier recording");
    let output = place.command("record", &format!("-o {path} -- true")).output().unwrap();
    if is_recorded(&output) {
        assert!(stderr(&output).contains("is left as it was"), "{}", stderr(&output));
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "an earlier recording");
    assert!(!Path::new(&format!("{path}.part")).exists());
}
