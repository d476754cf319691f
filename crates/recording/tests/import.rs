//! Traces of real runs, made with perf 6.1 on Linux 6.18: of a program with two threads and a fork,
//! and of one that touches random pages.
//!
//! The first program maps 64 MiB with MADV_RANDOM. Two threads touch every 997th page, starting at
//! pages 0 and 1; a forked child does the same starting at page 5. Finally the parent maps 1 MiB at
//! file offset 1 MiB and touches page 3 of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use filemap_recording::convert::{ExistingFile, UnseenPages, convert};
use filemap_recording::import::{ImportStats, TraceFormat, import};
use filemap_recording::{Event, EventKind, Reader};

const THREADS: &str = include_str!("data/threads_and_a_fork.txt");
const WITHOUT_ADDRESSES: &str = include_str!("data/without_addresses.txt");
const WITH_SYMBOLS: &str = include_str!("data/with_symbols.txt");

fn nowhere(_: &Path) -> Option<ExistingFile> {
    None
}

fn imported(kind: TraceFormat, text: &str) -> Result<(ImportStats, Vec<u8>), String> {
    let mut bytes = Vec::new();
    let done = import(kind, (text.as_bytes(), "trace"), (&mut bytes, "out"), &nowhere);
    let (imported, totals) = done.map_err(|error| error.to_string())?;
    assert_eq!(imported.faults + imported.assumed, totals.touches);
    Ok((imported, bytes))
}

fn events(bytes: &[u8]) -> Vec<Event> {
    Reader::new(bytes, "out").unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_trace_of_threads_and_a_fork() {
    let (imported, bytes) = imported(TraceFormat::PerfScript, THREADS).unwrap();
    let faults = THREADS.lines().filter(|line| line.contains("major-faults:")).count() as u64;
    // All major faults of this program are on its file.
    assert_eq!((imported.faults, imported.other_faults, imported.unknown_lines), (faults, 0, 0));
    assert_eq!(imported.lines, THREADS.lines().count() as u64);

    let events = events(&bytes);
    let mut processes = Vec::new();
    let mut threads = Vec::new();
    let mut touched: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    let mut maps = Vec::new();
    for event in &events {
        match &event.kind {
            EventKind::Process { pid, parent, .. } => processes.push((*pid, *parent)),
            EventKind::Thread { process, tid } => threads.push((*process, *tid)),
            EventKind::Map { length_bytes, offset_bytes, protection, flags, .. } => {
                maps.push((*length_bytes, *offset_bytes, *protection, *flags));
            }
            EventKind::Touch { mapping, page, is_write } => {
                assert!(!is_write);
                touched.entry((event.thread, *mapping)).or_default().push(*page);
            }
            EventKind::File { path, size_bytes, .. } => {
                assert_eq!(path, &PathBuf::from("/tmp/rec-perf/data.bin"));
                assert_eq!(*size_bytes, 64 << 20);
            }
            EventKind::Open { .. } => {}
            what => panic!("{what:?}"),
        }
    }
    assert_eq!(processes, [(23942, None), (23949, Some(0))]);
    assert_eq!(threads, [(0, 23947), (0, 23948), (1, 23949), (0, 23942)]);
    assert_eq!(maps, [(64 << 20, 0, 1, 2), (1 << 20, 1 << 20, 1, 1)]);
    let every = |first: u64| (first..16384).step_by(997).collect::<Vec<_>>();
    assert_eq!(touched[&(0, 0)], every(0));
    assert_eq!(touched[&(1, 0)], every(1));
    assert_eq!(touched[&(2, 0)], every(5));
    assert_eq!(touched[&(3, 1)], [3]);

    let mut reader = Reader::new(bytes.as_slice(), "out").unwrap();
    let job = convert(&mut reader, &nowhere, UnseenPages::Untouched).unwrap();
    let texts: Vec<String> = job.approximations.iter().map(ToString::to_string).collect();
    assert!(texts[0].contains("was imported and shows faults only"), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("1 mapping inherited by a fork")), "{texts:?}");
    let program = job.program.validate(None).unwrap();
    let names: Vec<&str> = program.mappings.iter().map(|mapping| mapping.name.as_str()).collect();
    assert_eq!(names, ["data.bin", "data.bin 2", "data.bin 3"]);
    assert_eq!(program.threads.len(), 4);
}

#[test]
fn addresses_with_symbols_are_read_too() {
    let (imported, bytes) = imported(TraceFormat::PerfScript, WITH_SYMBOLS).unwrap();
    assert_eq!((imported.unknown_lines, imported.other_faults), (0, 0));
    assert!(imported.faults > 10);
    // The program selects pages with xorshift64.
    let mut state = 88172645463325252u64;
    let drawn = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % 16384
    });
    let touched = events(&bytes).into_iter().filter_map(|event| match event.kind {
        EventKind::Touch { page, .. } => Some(page),
        _ => None,
    });
    let touched: Vec<u64> = touched.collect();
    assert_eq!(touched, drawn.take(touched.len()).collect::<Vec<_>>());
}

#[test]
fn what_is_missing_is_told_with_the_command_that_has_it() {
    let without_mappings: String = THREADS
        .lines()
        .filter(|line| !line.contains("MMAP"))
        .map(|line| format!("{line}\n"))
        .collect();
    for (kind, text, words) in [
        (
            TraceFormat::PerfScript,
            WITHOUT_ADDRESSES,
            "its 20 faults have no address; print it with perf",
        ),
        (
            TraceFormat::PerfScript,
            &without_mappings,
            "it has no line about a mapping; print it with perf",
        ),
        (TraceFormat::PerfScript, "", "it is empty"),
        (TraceFormat::PerfScript, "\0\u{fffd} x\n\n", "it has no line about a mapping"),
        (TraceFormat::Lines, "1 2 3\n", "of its 1 lines none is a fault on a file"),
    ] {
        let error = imported(kind, text).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn lines_of_a_file_are_faults() {
    let text = "# a comment\n7 7 100 r 3 40960 some file.db\n7 7 110 r 3 40960 some file.db\n\
                7 8 120 w 9 40960 some file.db\nnot a line\n9 9 130 r 0 1 other\n";
    let (imported, bytes) = imported(TraceFormat::Lines, text).unwrap();
    // The second line is a retry of the first fault.
    assert_eq!((imported.faults, imported.unknown_lines, imported.lines), (3, 1, 6));
    let touches = events(&bytes).into_iter().filter_map(|event| match event.kind {
        EventKind::Touch { mapping, page, is_write } => {
            Some((event.thread, mapping, page, is_write))
        }
        _ => None,
    });
    let touches: Vec<_> = touches.collect();
    assert_eq!(touches, [(0, 0, 3, false), (1, 0, 9, true), (2, 1, 0, false)]);
}

proptest::proptest! {
    /// Lines cut and joined at random positions.
    #[test]
    fn no_text_is_too_odd(cuts in proptest::collection::vec(0usize..THREADS.len(), 0..20)) {
        let mut text = String::new();
        for pair in cuts.windows(2) {
            text += &THREADS[pair[0].min(pair[1])..pair[0].max(pair[1])];
        }
        for kind in TraceFormat::ALL {
            if let Ok((_, bytes)) = imported(kind, &text) {
                events(&bytes);
            }
        }
    }
}

/// A sequential scan faults at the first page of each fault-around window of 16 pages.
#[test]
fn what_fault_around_hides_of_a_scan_is_assumed() {
    let trace = |event: &str, pages: &[u64]| {
        let mut text =
            "s 7/7 1.0: PERF_RECORD_MMAP2 7/7: [0x1000000(0x800000) @ 0 fe:0 5 1]: r--s \
                        /a/scanned\n"
                .to_string();
        for page in pages {
            text += &format!("s 7/7 2.0: {event}: {:x}\n", 0x100_0000 + page * 4096 + 9);
        }
        let (imported, bytes) = imported(TraceFormat::PerfScript, &text).expect("it has faults");
        let touches = events(&bytes).into_iter().filter_map(|event| match event.kind {
            EventKind::Touch { page, .. } => Some(page),
            _ => None,
        });
        (imported.assumed, touches.collect::<Vec<_>>())
    };
    // Fault-around windows, then a folio of 64 pages and one of 512.
    let scan = [0, 16, 32, 96, 608];
    assert_eq!(trace("page-faults", &scan), (604, (0..=608).collect()));
    assert_eq!(trace("major-faults", &scan), (0, scan.to_vec()));
    // Further than one fault maps, backwards, and not at the start of a window.
    let random = [0, 528, 160, 175, 7];
    assert_eq!(trace("page-faults", &random), (0, random.to_vec()));
}
