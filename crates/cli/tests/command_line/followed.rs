//! `filemap record --without-library` has what the kernel tells of a program, into which nothing is
//! loaded.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use filemap_recording::{Event, Mode, Reader, What};

use crate::governed::Place;
use crate::recorded::{PAGES, events, first_touches, shown};
use crate::skip::skip;
use crate::stderr;
use crate::warm::is_applied;

/// The program `name` of a source beside this one, with the C library in it.
fn linked_statically(place: &Place, name: &str) -> String {
    let program = place.scratch.path(&format!("{name}-static"));
    let source = format!("{}/tests/command_line/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    let compiled = compiler.args(["-O1", "-static", "-pthread", "-o", &program, &source]).status();
    assert!(compiled.expect("there is a C compiler").success());
    program
}

/// Records `words` with `flags` to the file `name`, and compares what the program says with what
/// it says alone. `None` where the kernel does not tell it.
fn followed(place: &Place, flags: &str, words: &[&str]) -> Option<Vec<Event>> {
    let path = place.scratch.path("followed");
    let alone = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
    let mut command =
        place.command("record", &format!("--without-library {flags} --out {path} --"));
    let output = command.args(words).output().expect("the command starts");
    if !is_applied(&output) {
        return None;
    }
    assert_eq!(output.stdout, alone.stdout, "{words:?}");
    assert_eq!(output.status, alone.status, "{}", stderr(&output));
    assert!(!stderr(&output).contains("not whole"), "{}", stderr(&output));
    Some(events(&path))
}

fn touches(events: &[Event], of: u32) -> Vec<u64> {
    let pages = events.iter().filter_map(|event| match event.what {
        What::Touch { mapping, page, .. } if mapping == of => Some(page),
        _ => None,
    });
    pages.collect()
}

/// Each fault is a touch, and fault-around or a large folio hides the others.
#[test]
fn the_faults_of_a_static_program_are_recorded() {
    let place = Place::new("follow_static");
    let [_, data] = place.lookups();
    let program = linked_statically(&place, "lookups");
    let words = [&program[..], &data, "3000"];
    let Some(events) = followed(&place, "--files *data", &words) else { return };
    let all = first_touches(3000);
    let found = touches(&events, 0);
    // A huge page maps 512 pages at once.
    assert!(found.len() as u64 >= PAGES / 512 && found.len() <= all.len(), "{}", found.len());
    let mut rest = all.iter();
    let is_in_order = found.iter().all(|page| rest.any(|next| next == page));
    assert!(is_in_order, "what was told is not in the order of the touches");
    let path = place.scratch.path("followed");
    let reader = Reader::new(File::open(&path).unwrap(), &path).unwrap();
    assert_eq!(reader.header().mode, Mode::Faults);
    let run = place.command("run", &path).output().unwrap();
    let report = String::from_utf8_lossy(&run.stdout).replace('\n', " ");
    assert!(report.contains("fault-around or a large folio has mapped"), "{report}");
}

/// With a page to each fault, it is what the library records, but for what only that sees.
#[test]
fn all_touches_are_recorded_with_a_page_to_each_fault() {
    let place = Place::new("follow_warm");
    let [lookups, data] = place.lookups();
    for program in [lookups, linked_statically(&place, "lookups")] {
        let words = [&program[..], &data, "3000"];
        fs::read(&data).expect("it is there");
        let Some(events) = followed(&place, "--apply --files *data", &words) else { return };
        let path = place.scratch.path("followed");
        if Reader::new(File::open(&path).unwrap(), &path).unwrap().header().mode == Mode::Faults {
            skip("this kernel maps large folios whole");
            return;
        }
        assert_eq!(touches(&events, 0), first_touches(3000));
    }
}

/// Reads, unmapped parts, advice, threads, forks and writes to private mappings are there.
#[test]
fn steps_are_told_by_the_kernel() {
    let place = Place::new("follow_steps");
    let [_, data] = place.lookups();
    let program = linked_statically(&place, "steps");
    let words = [&program[..], &data];
    let Some(events) = followed(&place, "--files *data", &words) else { return };
    let found: Vec<String> = events.iter().filter_map(shown).collect();
    let mut rest = found.iter();
    for expected in [
        "process of None",
        "file 8192",
        "open 0",
        "0 read 0 3+1",
        "0 map 0 0+8192 1",
        "0 touch 0 5",
        "0 touch 0 900",
        "0 madvise 0 100+100 3",
        "0 read 0 7+2",
        "0 unmap 0 Some((0, 16))",
        "1 touch 0 4000",
        "process of Some(0)",
        "2 touch 1 6984",
        "exit of 1",
        "0 map 0 1024+64 3",
        "0 touch 2 1",
        "exit of 0",
    ] {
        assert!(rest.any(|line| line == expected), "{expected} is not in its place: {found:#?}");
    }
    let is_write = |page| {
        let touch = What::Touch { mapping: 2, page, is_write: true };
        events.iter().any(|event| event.what == touch)
    };
    assert!(is_write(1) && !is_write(2), "{found:#?}");
}

/// What the kernel reads of a program to start it is that program's, from the file that it maps.
#[test]
fn the_start_of_a_program_is_recorded() {
    let place = Place::new("follow_start");
    let [program, data] = place.lookups();
    let words = ["sh", "-c", &format!("exec {program} {data} 10")];
    let Some(events) = followed(&place, "--min-size 4k", &words) else { return };
    let file = |name: &str| {
        let files = events.iter().filter_map(|event| match &event.what {
            What::File { path, .. } => Some(path.clone()),
            _ => None,
        });
        files.map(|path| path.to_string_lossy().into_owned()).position(|path| path.ends_with(name))
    };
    let own = file("/lookups").expect("the program is a file") as u32;
    assert!(file("/data").is_some() && file("libc.so.6").is_some());
    let opens = events.iter().filter_map(|event| match event.what {
        What::Open { file } => Some(file),
        _ => None,
    });
    let open = opens.clone().position(|file| file == own).expect("it was opened") as u32;
    assert_eq!(opens.filter(|file| *file == own).count(), 1, "read and mapped by one open file");
    let at = |wanted: &dyn Fn(&What) -> bool| events.iter().position(|event| wanted(&event.what));
    let read =
        at(&|what| matches!(what, What::Read { open: of, offset_bytes: 0, .. } if *of == open));
    let mapped = at(&|what| matches!(what, What::Map { open: of, .. } if *of == open));
    assert!(read.is_some() && read < mapped, "{read:?} {mapped:?}");
    let programs: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.what {
            What::Process { program, .. } => Some(program.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(programs.len(), 2, "{programs:?}");
    assert!(programs[1].ends_with("/lookups"), "{programs:?}");
}

/// Programs that cannot load the library are refused with the flag that needs none.
#[test]
fn a_static_program_is_refused_with_the_flag_that_helps() {
    let place = Place::new("follow_refused");
    let program = linked_statically(&place, "lookups");
    let output = place.command("record", &format!("-- {program}")).output().unwrap();
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(4), 1), "{message}");
    for words in ["statically linked", "--without-library --apply", "--import", "perf record"] {
        assert!(message.contains(words), "{message}");
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&program, Some(1), None).expect("root may give files away");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        let output = place.command("record", &format!("--without-library -- {program}")).output();
        let message = stderr(&output.unwrap());
        assert!(message.contains("set-user-ID") && message.contains("setpriv"), "{message}");
        return;
    }
    let output = place.command("record", "--without-library -- true").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("root"), "{}", stderr(&output));
}
