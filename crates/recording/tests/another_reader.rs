//! An independent reader in Python, written from docs/RECORDING.md, decodes the same events.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use filemap_recording::{Event, EventKind, MappingPages, Reader};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::support::{begin, drafts, events, written};

/// An event as the Python reader prints it.
fn words(event: &Event) -> String {
    let hex_of = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let hex = |path: &Path| hex_of(path.as_os_str().as_bytes());
    let what = match &event.kind {
        EventKind::Process { pid, parent, program } => {
            format!("process {pid} {} {}", parent.map_or(0, |parent| parent + 1), hex(program))
        }
        EventKind::Thread { process, tid } => format!("thread {process} {tid}"),
        EventKind::File { path, size_bytes, device, inode } => {
            format!("file {size_bytes} {device} {inode} {}", hex(path))
        }
        EventKind::Open { file } => format!("open {file}"),
        EventKind::Map { open, address, length_bytes, offset_bytes, protection, flags } => {
            format!("map {open} {address} {length_bytes} {offset_bytes} {protection} {flags} 0")
        }
        EventKind::Unmap { mapping, part: None } => format!("unmap {mapping}"),
        EventKind::Unmap { mapping, part: Some(MappingPages { first, pages }) } => {
            format!("unmap {mapping} {first} {pages}")
        }
        EventKind::Protect { mapping, pages: MappingPages { first, pages }, protection } => {
            format!("protect {mapping} {first} {pages} {protection}")
        }
        EventKind::Move { mapping, to, length_bytes } => {
            format!("move {mapping} {to} {length_bytes}")
        }
        EventKind::Madvise { mapping, pages: MappingPages { first, pages }, advice } => {
            format!("madvise {mapping} {first} {pages} {advice}")
        }
        EventKind::Unseen { mapping, pages: MappingPages { first, pages } } => {
            format!("unseen {mapping} {first} {pages}")
        }
        EventKind::Fadvise { open, offset_bytes, length_bytes, advice } => {
            format!("fadvise {open} {offset_bytes} {length_bytes} {advice}")
        }
        EventKind::Readahead { open, offset_bytes, length_bytes } => {
            format!("readahead {open} {offset_bytes} {length_bytes}")
        }
        EventKind::Read { open, offset_bytes, length_bytes } => {
            format!("read {open} {offset_bytes} {length_bytes}")
        }
        EventKind::Truncate { file, size_bytes } => format!("truncate {file} {size_bytes}"),
        EventKind::Touch { mapping, page, is_write } => {
            format!("touch {mapping} {page} {}", u8::from(*is_write))
        }
        EventKind::Close { open } => format!("close {open}"),
        EventKind::Exit { process } => format!("exit {process}"),
        EventKind::Lost { events } => format!("lost {events}"),
        EventKind::Memory { process, anonymous_bytes, peak_bytes } => {
            format!("memory {process} {anonymous_bytes} {peak_bytes}")
        }
        EventKind::Cached { file, first, pages } => format!("cached {file} {first} {pages}"),
        EventKind::Gap { kind, count } => format!("gap {} {count}", kind.number()),
    };
    format!("{} {} {what}", event.thread, event.wait_ns)
}

fn check(python: &str, name: &str, bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new("python3").args(["-c", python]).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let found = String::from_utf8(output.stdout).unwrap();
    let own = Reader::new(bytes, name).unwrap().map(|event| words(&event.unwrap()));
    assert_eq!(found.lines().collect::<Vec<_>>(), own.collect::<Vec<_>>());
}

#[test]
fn python_finds_the_same_events() {
    let python = include_str!("data/read_recording.py");
    if Command::new("python3").arg("-V").output().is_err() {
        println!("skipped: there is no python3 here");
        return;
    }
    // A fixed seed makes failures reproducible.
    let mut runner = TestRunner::deterministic();
    for number in 0..5 {
        let drafts = drafts(400).new_tree(&mut runner).unwrap().current();
        let events = events(&drafts);
        check(python, &format!("another_reader_{number}"), &written(&events, 100));
    }
    // One access pattern per page coding.
    let patterns: [fn(u64) -> u64; 3] = [
        |number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 35,
        |number| number,
        |number| if number % 3 < 2 { number % 3 } else { number * 7919 % (1 << 29) },
    ];
    for (number, page) in patterns.into_iter().enumerate() {
        let mut events = begin(1 << 29);
        events.extend((0..5000).map(|number| Event {
            thread: 0,
            wait_ns: number * 37 % 5000,
            kind: EventKind::Touch { mapping: 0, page: page(number), is_write: number % 7 == 0 },
        }));
        check(python, &format!("another_reader_of_pages_{number}"), &written(&events, 4000));
    }
}
