//! `filemap record -- PROGRAM` has what the program did, and the program does as it does alone.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use filemap_control::OPEN_PAGES;
use filemap_kernel::{cold, residency};
use filemap_recording::{Event, Reader, What};
use serde_json::Value;

use crate::governed::{Place, with_usual_signals};
use crate::running::Running;
use crate::{skip, stderr};

/// Pages of the file that is read.
pub const PAGES: u64 = 8192;

pub fn events(path: &str) -> Vec<Event> {
    let reader = Reader::new(File::open(path).expect("it was written"), path).expect("it is whole");
    reader.collect::<Result<_, _>>().expect("it is whole")
}

/// Whether a program was recorded; says that a part is skipped where the kernel does not permit it.
fn is_recorded(output: &Output) -> bool {
    let message = stderr(output);
    let is_refused = message.contains("nothing is recorded");
    if is_refused {
        skip(&message);
    }
    !is_refused
}

/// Records `words` to a file `name`, and compares what the program does with what it does alone.
pub fn recorded(place: &Place, name: &str, words: &[&str]) -> Option<Vec<Event>> {
    let path = place.scratch.path(name);
    let alone = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
    let mut command = place.command("record", &format!("--out {path} --"));
    let output = command.args(words).output().expect("the command starts");
    if !is_recorded(&output) {
        return None;
    }
    assert_eq!(output, alone, "{words:?}");
    Some(events(&path))
}

/// The pages of random accesses, by the same generator as the program's.
fn pages(accesses: u64) -> impl Iterator<Item = u64> {
    let mut state: u64 = 88_172_645_463_325_252;
    (0..accesses).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % PAGES
    })
}

/// Those that are touched first.
pub fn first_touches(accesses: u64) -> Vec<u64> {
    let mut seen = HashSet::new();
    pages(accesses).filter(|page| seen.insert(*page)).collect()
}

#[test]
fn a_recording_has_each_first_touch_in_order() {
    let place = Place::new("record_touches");
    let [program, data] = place.lookups();
    let Some(events) = recorded(&place, "r", &[&program, &data, "3000"]) else { return };
    let touches = events.iter().filter_map(|event| match event.what {
        What::Touch { mapping: 0, page, is_write: false } => Some(page),
        _ => None,
    });
    assert_eq!(touches.collect::<Vec<_>>(), first_touches(3000));
    assert!(!events.iter().any(|event| matches!(event.what, What::Lost { .. })));
}

/// The pages that are told of the same accesses where each change of page is.
fn changes(accesses: u64) -> Vec<u64> {
    let mut open = VecDeque::new();
    let mut told = Vec::new();
    for page in pages(accesses) {
        if !open.contains(&page) {
            told.push(page);
            open.push_back(page);
            if open.len() > OPEN_PAGES {
                open.pop_front();
            }
        }
    }
    told
}

/// With --changes pages are told again, and files stay cached. Reports say so, and nothing of
/// first touches.
#[test]
fn each_change_of_page_is_recorded() {
    let place = Place::new("record_changes");
    let [program, data] = place.lookups();
    let path = place.scratch.path("r");
    let alone = Command::new(&program).args([&data, "30000"]).output().expect("it starts");
    let mut command = place.command("record", &format!("--changes --out {path} --"));
    let output = command.args([&program, &data, "30000"]).output().expect("the command starts");
    assert_eq!(output, alone);
    let touches: Vec<u64> = events(&path)
        .iter()
        .filter_map(|event| match event.what {
            What::Touch { mapping: 0, page, is_write: false } => Some(page),
            _ => None,
        })
        .collect();
    assert!(touches.len() > first_touches(30_000).len() * 3);
    assert_eq!(touches, changes(30_000));
    let cached = residency::resident_pages(&File::open(&data).unwrap(), PAGES).unwrap().len();
    assert_eq!(cached, PAGES, "the file was dropped");
    let shown = place.command("record", &format!("--show {path}")).output().unwrap();
    let shown = String::from_utf8(shown.stdout).expect("text");
    assert!(shown.contains("# the recording has each change of page"), "{shown}");
    assert!(shown.contains(&format!("among the last {OPEN_PAGES} that")), "{shown}");
    assert!(!shown.contains("first touch"), "{shown}");
    let run = |limit: &str| {
        let mut command = place.command("run", &format!("{path} --json - {limit}"));
        let output = command.args(["--kernel", "6.18"]).output().expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        let record: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        record["run"]["counters"]["data_pages_read"].as_u64().expect("a number")
    };
    // Where memory does not hold the file, pages are read again.
    assert!(run("--memory-max 16m") > PAGES + PAGES / 2);
    assert!(run("") <= PAGES);
}

/// Time for a window of 8 MiB to arrive, also on a busy disk.
const PAUSE_US: &str = "50000";

/// How often the kernel is tried: what is still being read when the program goes on, as on a disk
/// that others use, is not what the model has.
const TRIES: usize = 5;

/// The model of the recording reads what the program reads alone on a cold file.
#[test]
fn the_model_of_a_recording_reads_what_the_program_reads() {
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
    let modelled = record["run"]["counters"]["data_pages_read"].as_u64().expect("a number");
    let read = || {
        // The kernel's readahead ends where it finds pages that are still there.
        cold::drop_file(Path::new(&data)).expect("it can be dropped");
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

/// A short form of an event, without what differs from run to run.
pub fn shown(event: &Event) -> Option<String> {
    let thread = event.thread;
    Some(match &event.what {
        What::Process { parent, .. } => format!("process of {parent:?}"),
        What::Thread { process, .. } => format!("thread of {process}"),
        What::File { size_bytes, .. } => format!("file {}", size_bytes / 4096),
        What::Open { file } => format!("open {file}"),
        What::Map { open, length_bytes, offset_bytes, protection, .. } => format!(
            "{thread} map {open} {}+{} {protection}",
            offset_bytes / 4096,
            length_bytes / 4096
        ),
        What::Unmap { mapping, part } => {
            format!("{thread} unmap {mapping} {:?}", part.map(|part| (part.first, part.pages)))
        }
        What::Madvise { mapping, pages, advice } => {
            format!("{thread} madvise {mapping} {}+{} {advice}", pages.first, pages.pages)
        }
        What::Fadvise { open, offset_bytes, length_bytes, advice } => {
            format!("{thread} fadvise {open} {offset_bytes}+{} {advice}", length_bytes / 4096)
        }
        What::Read { open, offset_bytes, length_bytes } => {
            format!("{thread} read {open} {}+{}", offset_bytes / 4096, length_bytes / 4096)
        }
        What::Touch { mapping, page, .. } => format!("{thread} touch {mapping} {page}"),
        What::Truncate { file, size_bytes } => format!("file {file} is {}", size_bytes / 4096),
        What::Exit { process } => format!("exit of {process}"),
        _ => return None,
    })
}

#[test]
fn steps_are_recorded_as_they_were() {
    let place = Place::new("record_steps");
    let [_, data] = place.lookups();
    let program = place.compiled("steps");
    let Some(events) = recorded(&place, "r", &[&program, &data]) else { return };
    let found: Vec<String> = events.iter().filter_map(shown).collect();
    let expected = [
        "process of None",
        "thread of 0",
        "file 8192",
        "open 0",
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
    assert_eq!(found, expected);
}

/// A file that grows has each size from the mapping on that is made then.
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

/// A recording as a job file is the same job.
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
        record["run"].take()
    });
    assert_eq!(of_recording, of_job);
}

#[test]
fn what_cannot_be_recorded_is_told_in_one_line() {
    let place = Place::new("record_refused");
    let there = place.scratch.file("there", "precious");
    let set_id = place.scratch.path("set-id");
    fs::copy("/bin/true", &set_id).unwrap();
    let orphan = place.scratch.file("orphan", "#!/no/such/interpreter\n");
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    for (args, code, words) in [
        ("-- no-such-program".to_string(), 127, "no-such-program"),
        ("-- /".to_string(), 126, "directory"),
        (String::new(), 2, "a program is missing"),
        ("--min-size x -- true".to_string(), 2, "--min-size"),
        (format!("--out {there} -- cat {there}"), 2, "--out"),
        (format!("--out {}/no/such -- true", place.scratch.path("run")), 2, "no/such"),
        (format!("--show {there}"), 2, "there"),
        (format!("--out {} -- {orphan}", place.scratch.path("o")), 126, "'/no/such/interpreter'"),
    ] {
        let output = place.command("record", &args).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args}: {message}");
        assert_eq!(message.lines().count(), 1, "{args}: {message}");
        assert!(message.contains(words), "{args}: {message}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(fs::read_to_string(&there).unwrap(), "precious");
    assert!(place.statistics().is_empty(), "{:?}", place.statistics());
}

/// What the library cannot record is told with the ways that need no library.
#[test]
fn other_ways_are_named_where_the_library_cannot_record() {
    let place = Place::new("record_other_ways");
    let [program, data] = place.lookups();
    let filemap = place.scratch.path("filemap");
    let out = place.scratch.path("r");
    let ignoring = format!("trap '' TRAP; exec {filemap} record --out {out} -- {program} {data} 9");
    let nested = format!("FILEMAP_RECORD=/run exec {filemap} record --out {out} -- true");
    let traced = format!("exec strace -o /dev/null -f {filemap} record --out {out} -- true");
    for (script, code, words) in [
        (&ignoring, 0, "nothing is recorded: SIGTRAP was ignored"),
        (&traced, 0, "nothing is recorded: a debugger or tracer is attached"),
        (&nested, 2, "FILEMAP_RECORD is set"),
    ] {
        if *script == traced && Command::new("strace").arg("-V").output().is_err() {
            skip("there is no strace");
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).env("XDG_RUNTIME_DIR", place.scratch.path("run"));
        let output = shell.output().expect("there is a shell");
        let message = stderr(&output);
        if !message.contains(words) && message.contains("nothing is recorded") {
            skip(&message);
            continue;
        }
        assert_eq!(output.status.code(), Some(code), "{script}: {message}");
        assert!(message.contains(words), "{script}: {message}");
        assert!(code != 0 || message.contains("--without-library --apply as root"), "{message}");
    }
}

/// The default name of a recording is not taken from one that is there.
#[test]
fn an_older_recording_is_kept() {
    let place = Place::new("record_kept");
    let older = place.scratch.file("true.recording", "older");
    let mut command = place.command("record", "-- true");
    let output = command.current_dir(place.scratch.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("true.recording") && message.contains("--out"), "{message}");
    assert_eq!(fs::read_to_string(older).unwrap(), "older");
}

/// A full disk ends the recording and not the program.
#[test]
fn a_full_disk_leaves_the_program_alone() {
    let place = Place::new("record_full");
    let [program, data] = place.lookups();
    let alone = Command::new(&program).args([&data, "500"]).output().unwrap();
    let mut command = place.command("record", "--out /dev/full --");
    let output = command.args([&program, &data, "500"]).output().unwrap();
    if !is_recorded(&output) {
        return;
    }
    assert_eq!(output.stdout, alone.stdout);
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.contains("/dev/full"), "{message}");
    assert!(place.statistics().is_empty(), "{:?}", place.statistics());
}

/// A signal for the command is the program's, and what was recorded by then is kept.
#[test]
fn signals_are_handed_on_and_the_recording_is_kept() {
    let place = Place::new("record_signals");
    let [program, data] = place.lookups();
    let path = place.scratch.path("r");
    let mut command = place.command("record", &format!("--out {path} --"));
    with_usual_signals(command.args([&program, &data, "200", "wait"]));
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
    let touches = events(&path).iter().filter(|e| matches!(e.what, What::Touch { .. })).count();
    assert_eq!(touches, first_touches(200).len());
    assert!(place.statistics().is_empty(), "{:?}", place.statistics());
}
