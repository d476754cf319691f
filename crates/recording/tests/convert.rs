//! Jobs converted from recordings, compared with jobs written by hand.

use std::path::Path;

use filemap_job::{Job, JobSpec};
use filemap_model::{Digest, Profile, trace};
use filemap_recording::convert::{Conversion, ExistingFile, UnseenPages, convert};
use filemap_recording::{Event, EventKind, Header, MappingPages, Reader, RecordingMode, Writer};
use proptest::prelude::*;

use crate::support::{begin, drafts, events};

fn nowhere(_: &Path) -> Option<ExistingFile> {
    None
}

/// Events of one thread, with their waits in nanoseconds.
fn done(thread: u32, all: impl IntoIterator<Item = (u64, EventKind)>) -> Vec<Event> {
    all.into_iter().map(|(wait_ns, what)| Event { thread, wait_ns, kind: what }).collect()
}

fn touch(mapping: u32, page: u64) -> EventKind {
    EventKind::Touch { mapping, page, is_write: false }
}

fn map(open: u32, pages: u64, protection: u32, flags: u32) -> EventKind {
    EventKind::Map {
        open,
        address: 1 << 40,
        length_bytes: pages * 4096,
        offset_bytes: 0,
        protection,
        flags,
    }
}

fn converted_by(events: &[Event], existing: &dyn Fn(&Path) -> Option<ExistingFile>) -> Conversion {
    let mut writer = Writer::new(Vec::new(), "r", &Header::new(RecordingMode::Changes)).unwrap();
    events.iter().for_each(|event| writer.write(event).unwrap());
    let (bytes, _) = writer.finish().unwrap();
    let mut reader = Reader::new(bytes.as_slice(), "r").unwrap();
    convert(&mut reader, existing, UnseenPages::Untouched).unwrap()
}

fn converted(events: &[Event]) -> (Job, Vec<String>) {
    let Conversion { program, approximations, .. } = converted_by(events, &nowhere);
    let texts = approximations.iter().map(ToString::to_string).collect();
    (program.validate(None).unwrap(), texts)
}

/// Decision hash and elapsed time of a run of the model.
fn decided(program: &Job) -> (u64, Option<u64>) {
    let mut digest = Digest::default();
    let run = trace(program, &Profile::DEFAULT, &mut digest).unwrap();
    (digest.value(), run.elapsed_ns)
}

fn by_hand(text: &str) -> Job {
    JobSpec::from_toml(text).unwrap().validate(None).unwrap()
}

#[test]
fn one_thread_decides_as_a_job_by_hand() {
    let mut all = begin(4096);
    all.extend(done(
        0,
        [
            (
                0,
                EventKind::Madvise {
                    mapping: 0,
                    pages: MappingPages { first: 0, pages: 4096 },
                    advice: 1,
                },
            ),
            (1024, touch(0, 7)),
            (1024, touch(0, 900)),
            (1024, touch(0, 8)),
            // From here on, waits are the think time after the previous phase.
            (1024, EventKind::Read { open: 0, offset_bytes: 8192, length_bytes: 4096 }),
            (0, EventKind::Read { open: 0, offset_bytes: 12288, length_bytes: 4096 }),
            (0, EventKind::Read { open: 0, offset_bytes: 1 << 20, length_bytes: 100 }),
            (0, EventKind::Read { open: 0, offset_bytes: 0, length_bytes: 100 }),
            (
                0,
                EventKind::Madvise {
                    mapping: 0,
                    pages: MappingPages { first: 16, pages: 32 },
                    advice: 3,
                },
            ),
            (0, EventKind::Fadvise { open: 0, offset_bytes: 0, length_bytes: 65536, advice: 4 }),
            (0, EventKind::Readahead { open: 0, offset_bytes: 1 << 23, length_bytes: 1 << 20 }),
            (0, map(0, 64, 3, 2)),
            (0, EventKind::Touch { mapping: 1, page: 5, is_write: true }),
            (0, touch(1, 6)),
            (0, EventKind::Unmap { mapping: 1, part: None }),
            (0, touch(0, 4095)),
        ],
    ));
    let (program, texts) = converted(&all);
    let hand = by_hand(
        "[[file]]
        name = 'random.bin'
        size = '16m'
        [[open]]
        name = 'o'
        file = 'random.bin'
        [[mapping]]
        name = 'whole'
        open = 'o'
        [[mapping]]
        name = 'copied'
        open = 'o'
        len = '256k'
        private = true
        [[thread]]
        [[thread.phase]]
        mapping = 'whole'
        madvise = 'random'
        [[thread.phase]]
        mapping = 'whole'
        pages = [7, 900, 8]
        think_ns = 1024
        [[thread.phase]]
        open = 'o'
        workload = 'read-sequential'
        offset = '8k'
        len = '8k'
        bs = '4k'
        accesses = 2
        [[thread.phase]]
        open = 'o'
        offsets = [1048576, 0]
        bs = '100b'
        [[thread.phase]]
        mapping = 'whole'
        madvise = 'willneed'
        offset = '64k'
        len = '128k'
        [[thread.phase]]
        open = 'o'
        fadvise = 'dontneed'
        len = '64k'
        [[thread.phase]]
        open = 'o'
        fadvise = 'willneed'
        offset = '8m'
        len = '1m'
        [[thread.phase]]
        map = 'copied'
        [[thread.phase]]
        mapping = 'copied'
        pages = [5]
        write = true
        [[thread.phase]]
        mapping = 'copied'
        pages = [6]
        [[thread.phase]]
        unmap = 'copied'
        [[thread.phase]]
        mapping = 'whole'
        pages = [4095]
        ",
    );
    assert_eq!(program.threads[0].steps.len(), hand.threads[0].steps.len());
    assert_eq!(decided(&program), decided(&hand));
    assert_eq!(texts.last().unwrap(), "think times are the mean of each phase");
    assert_eq!(texts.len(), 2, "{texts:?}");
}

#[test]
fn what_a_job_cannot_say_is_told() {
    let mut all = begin(1024);
    let second = EventKind::Thread { process: 0, tid: 8 };
    let child = EventKind::Process { pid: 9, parent: Some(0), program: "/usr/bin/reader".into() };
    let of_child = EventKind::Thread { process: 1, tid: 9 };
    all.extend(done(1, [(0, second), (0, child), (0, of_child)]));
    let pages = MappingPages { first: 0, pages: 1 };
    all.extend(done(
        0,
        [
            (0, touch(0, 1)),
            (0, EventKind::Touch { mapping: 0, page: 2, is_write: true }),
            (0, EventKind::Protect { mapping: 0, pages, protection: 3 }),
            (0, EventKind::Madvise { mapping: 0, pages, advice: 12 }),
            (0, EventKind::Unmap { mapping: 0, part: Some(pages) }),
            (0, EventKind::Move { mapping: 0, to: 1 << 41, length_bytes: 2048 * 4096 }),
            (0, EventKind::Truncate { file: 0, size_bytes: 2048 * 4096 }),
            (0, touch(0, 2047)),
            (0, EventKind::Lost { events: 3 }),
        ],
    ));
    all.extend(done(1, [(0, touch(0, 3)), (0, EventKind::Unmap { mapping: 0, part: None })]));
    all.extend(done(2, [(0, touch(0, 4))]));
    let (program, texts) = converted(&all);
    assert_eq!(
        texts,
        [
            "3 events were lost while recording",
            "the recorded size is used for 1 file ('/data/random.bin'): missing, or on a \
             filesystem where pages cannot be counted, and taken to have no holes",
            "the largest size is used from the start for 1 file ('/data/random.bin')",
            "1 change of the size of a file is left out",
            "the job has one process, in which the 2 recorded ones are threads, each with mappings \
             of its own",
            "1 mapping inherited by a fork is there from the start, without earlier advice",
            "1 mapping that several threads use, map or unmap is there throughout",
            "its 3 threads begin together",
            "1 mremap of a mapping is left out; it has its largest length from the start",
            "1 mprotect is left out, with the VMAs that it makes",
            "1 munmap of a part of a mapping is left out",
            "1 call of madvise or fadvise of kinds that jobs cannot have is left out",
            "1 write to shared mappings is taken as reads, as such writes are not modelled",
        ]
    );
    let threads: Vec<&str> = program.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(threads, ["reader 7", "reader 8", "reader 9"]);
    assert_eq!(program.mappings.len(), 2);
    assert_eq!(program.mappings[0].mapping.pages.0, 2048);
    assert!(program.mappings.iter().all(|mapping| mapping.at_start));
    decided(&program);
}

#[test]
fn files_that_are_there_are_named_by_their_path() {
    let mut all = begin(1024);
    let path = "/data/other.bin".into();
    all.extend(done(
        0,
        [
            (0, EventKind::File { path, size_bytes: 8192, device: 1, inode: 3 }),
            (0, EventKind::Open { file: 1 }),
            (0, map(1, 2, 1, 1)),
            (0, touch(1, 0)),
            (0, touch(0, 0)),
            (0, touch(0, 9)),
        ],
    ));
    let existing = |size_bytes: u64| {
        move |path: &Path| {
            let is_first = path == Path::new("/data/random.bin");
            is_first.then_some(ExistingFile { layer: None, size_bytes, identity: (1, 2) })
        }
    };
    let same = converted_by(&all, &existing(1024 * 4096));
    // The most accessed file comes first.
    assert_eq!(same.program.file[0].path.as_deref(), Some("/data/random.bin"));
    assert_eq!(same.program.file[1].size.as_ref().map(|size| size.0.as_str()), Some("8k"));
    let first_text = |job: &Conversion| job.approximations.iter().map(ToString::to_string).next();
    assert!(first_text(&same).unwrap().contains("used for 1 file ('/data/other.bin'): missing"));
    let other = converted_by(&all, &existing(4096));
    assert_eq!(other.program.file[0].path, None);
    assert_eq!(other.program.file[0].size.as_ref().map(|size| size.0.as_str()), Some("4m"));
    let changed = |text: &str| text.contains("1 file ('/data/random.bin') of another size now");
    assert!(other.approximations.iter().any(|approximation| changed(&approximation.to_string())));
}

#[test]
fn a_recording_without_accesses_is_no_job() {
    let mut writer = Writer::new(Vec::new(), "r", &Header::new(RecordingMode::Changes)).unwrap();
    begin(4).iter().for_each(|event| writer.write(event).unwrap());
    let (bytes, _) = writer.finish().unwrap();
    let convert_bytes = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes, "r").unwrap();
        convert(&mut reader, &nowhere, UnseenPages::Untouched).unwrap_err().to_string()
    };
    assert!(
        convert_bytes(&bytes).contains("it has no accesses to files"),
        "{}",
        convert_bytes(&bytes)
    );
    let cut = &bytes[..bytes.len() - 1];
    assert!(convert_bytes(cut).contains("it is cut off before"), "{}", convert_bytes(cut));
}

proptest! {
    /// A converted job survives printing and parsing.
    #[test]
    fn the_job_file_is_the_same_job(drafts in drafts(200)) {
        let mut all = begin(1000);
        all.extend(events(&drafts).into_iter().map(|mut event| {
            // Index 0 of each kind is taken by the objects of `begin`.
            shift(&mut event.kind);
            let introduces =
                matches!(event.kind, EventKind::Process { .. } | EventKind::Thread { .. });
            event.thread += u32::from(!introduces);
            event
        }));
        all.extend(done(0, [(0, touch(0, 7))]));
        let job = converted_by(&all, &nowhere).program;
        // Random sizes may exceed the limits of a job, which validation reports.
        let Ok(valid) = job.validate(None) else { return Ok(()) };
        let text = toml::to_string(&job).unwrap();
        let back = JobSpec::from_toml(&text).unwrap().validate(None).unwrap();
        prop_assert_eq!(valid, back);
    }
}

/// Increments all indexes in `what`.
fn shift(what: &mut EventKind) {
    match what {
        EventKind::Process { parent, .. } => *parent = parent.map(|parent| parent + 1),
        EventKind::Thread { process, .. }
        | EventKind::Exit { process }
        | EventKind::Memory { process, .. } => {
            *process += 1;
        }
        EventKind::Open { file }
        | EventKind::Truncate { file, .. }
        | EventKind::Cached { file, .. } => *file += 1,
        EventKind::Map { open, .. }
        | EventKind::Fadvise { open, .. }
        | EventKind::Readahead { open, .. }
        | EventKind::Read { open, .. }
        | EventKind::Close { open } => *open += 1,
        EventKind::Unmap { mapping, .. }
        | EventKind::Protect { mapping, .. }
        | EventKind::Move { mapping, .. }
        | EventKind::Madvise { mapping, .. }
        | EventKind::Unseen { mapping, .. }
        | EventKind::Touch { mapping, .. } => *mapping += 1,
        EventKind::File { .. } | EventKind::Lost { .. } | EventKind::Gap { .. } => {}
    }
}

/// A second thread advises between touches of the first, and starts after the touches that precede
/// its first event.
#[test]
fn advice_of_another_thread_comes_in_its_order() {
    let mut all = begin(4096);
    let event = |thread, what| Event { thread, wait_ns: 0, kind: what };
    let whole = MappingPages { first: 0, pages: 4096 };
    all.extend([
        event(0, touch(0, 1000)),
        event(0, touch(0, 2000)),
        event(1, EventKind::Thread { process: 0, tid: 8 }),
        event(0, touch(0, 3000)),
        event(1, EventKind::Madvise { mapping: 0, pages: whole, advice: 1 }),
        event(0, touch(0, 100)),
        event(0, touch(0, 200)),
        event(1, touch(0, 300)),
    ]);
    let (found, _) = converted(&all);
    let after = |thread: usize| -> Vec<(usize, Vec<(usize, usize)>)> {
        let each = found.threads[thread].after.iter();
        each.map(|(step, after)| {
            (*step, after.iter().map(|step| (step.thread, step.step)).collect())
        })
        .collect()
    };
    let steps: Vec<Vec<String>> = found
        .threads
        .iter()
        .map(|thread| thread.steps.iter().map(|step| found.describe_step(step)).collect())
        .collect();
    // First thread: two touches, one, and two after the advice. Second thread: advice, a touch.
    assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2], "{steps:?}");
    assert_eq!(after(0), [(2, vec![(1, 0)])]);
    assert_eq!(after(1), [(0, vec![(0, 0), (0, 1)])]);
    // Equal to the same accesses by a single thread, except for per-thread state.
    let mut alone = begin(4096);
    alone.extend([touch(0, 1000), touch(0, 2000), touch(0, 3000)].map(|what| event(0, what)));
    alone.push(event(0, EventKind::Madvise { mapping: 0, pages: whole, advice: 1 }));
    alone.extend([touch(0, 100), touch(0, 200), touch(0, 300)].map(|what| event(0, what)));
    let read = |program: &Job| {
        let run = trace(program, &Profile::DEFAULT, &mut ()).unwrap();
        run.counters.data_pages_read
    };
    assert_eq!(read(&found), read(&converted(&alone).0));
    // Without the dependencies the advice would apply to other accesses, and other pages would be
    // read.
    let begun_together = Job {
        threads: found
            .threads
            .iter()
            .map(|thread| filemap_job::program::Thread { after: Vec::new(), ..thread.clone() })
            .collect(),
        ..found.clone()
    };
    assert_ne!(read(&found), read(&begun_together));
}

/// Threads that take turns, such as those that a goroutine moves between, keep their turns. Threads
/// that run at the same time do not wait for each other.
#[test]
fn threads_that_take_turns_read_as_one_thread() {
    let event = |thread, what| Event { thread, wait_ns: 0, kind: what };
    let recording = |thread_of: &dyn Fn(u64) -> u32| {
        let mut all = begin(4096);
        all.push(event(1, EventKind::Thread { process: 0, tid: 8 }));
        all.extend((0..600).map(|at| event(thread_of(at), touch(0, at * at * 7 % 4096))));
        converted(&all).0
    };
    let read = |program: &Job| {
        let counters = trace(program, &Profile::DEFAULT, &mut ()).unwrap().counters;
        (counters.data_pages_read, counters.major_faults)
    };
    let waits =
        |program: &Job| -> usize { program.threads.iter().map(|thread| thread.after.len()).sum() };
    let alone = recording(&|_| 0);
    let in_turns = recording(&|at| (at / 60 % 2) as u32);
    assert_eq!((read(&in_turns), waits(&in_turns)), (read(&alone), 9));
    let at_once = recording(&|at| (at % 2) as u32);
    assert_eq!(waits(&at_once), 0);
    assert_ne!(read(&at_once), read(&alone));
}

/// Memory that changes between accesses is allocated and freed there, by the thread of the last
/// access.
#[test]
fn memory_follows_the_recorded_samples() {
    let memory = |pages: u64| EventKind::Memory {
        process: 0,
        anonymous_bytes: pages * 4096,
        peak_bytes: (pages + 5) * 4096,
    };
    let mut all = begin(64);
    all.extend(done(
        0,
        [
            (0, memory(3)),
            (0, touch(0, 1)),
            (0, memory(13)),
            (0, touch(0, 2)),
            (0, touch(0, 3)),
            (0, memory(9)),
            (0, touch(0, 4)),
            (0, EventKind::Exit { process: 0 }),
        ],
    ));
    let Conversion { program, approximations, .. } = converted_by(&all, &nowhere);
    assert_eq!(program.anonymous.as_ref().unwrap().bytes(), Ok(3 * 4096));
    let size = |size: &Option<filemap_job::SizeText>| size.as_ref().map(|size| size.0.clone());
    let phases = program.thread[0].phase.iter();
    let phases: Vec<_> = phases
        .map(|phase| (size(&phase.allocate), size(&phase.free), phase.pages.is_some()))
        .collect();
    let text = |size: &str| Some(size.to_string());
    let expected = [
        (None, None, true),
        (text("40k"), None, false),
        (None, None, true),
        (None, text("16k"), false),
        (None, None, true),
        (None, text("36k"), false),
    ];
    assert_eq!(phases, expected);
    let texts: Vec<String> = approximations.iter().map(ToString::to_string).collect();
    assert!(texts.iter().any(|text| text.contains("which grew to 0.1 MiB")), "{texts:?}");
    let mut fixed = program.clone();
    fixed.fix_anonymous();
    assert_eq!(fixed.validate(None).unwrap().max_anonymous().0, 3);
    assert_eq!(program.validate(None).unwrap().max_anonymous().0, 13);
}

/// Pages that may have been touched unseen are touched at their place in the order, or not at all.
#[test]
fn unseen_pages_are_untouched_or_touched() {
    let unseen = EventKind::Unseen { mapping: 0, pages: MappingPages { first: 8, pages: 3 } };
    let mut all = begin(64);
    all.extend(done(0, [(0, touch(0, 40)), (0, unseen), (0, touch(0, 9)), (0, touch(0, 20))]));
    let mut writer =
        Writer::new(Vec::new(), "r", &Header::new(RecordingMode::FirstTouches)).unwrap();
    all.iter().for_each(|event| writer.write(event).unwrap());
    let (bytes, _) = writer.finish().unwrap();
    let pages = |unseen| {
        let mut reader = Reader::new(bytes.as_slice(), "r").unwrap();
        let job = convert(&mut reader, &nowhere, unseen).unwrap();
        let list = job.program.thread[0].phase.iter().find_map(|phase| phase.pages.clone());
        (job.unseen_pages, list.map(|pages| pages.to_vec()))
    };
    assert_eq!(pages(UnseenPages::Untouched), (3, Some(vec![40, 9, 20])));
    assert_eq!(pages(UnseenPages::Touched), (3, Some(vec![40, 8, 9, 10, 9, 20])));
}

#[test]
fn cached_pages_are_those_of_their_file() {
    let cached = |first, pages| EventKind::Cached { file: 0, first, pages };
    let mut all = begin(64);
    all.extend(done(0, [(0, cached(3, 4)), (0, cached(60, 4)), (0, touch(0, 1))]));
    let Conversion { program, .. } = converted_by(&all, &nowhere);
    assert_eq!(program.start.as_deref(), Some("cold"));
    let job = JobSpec { start: Some("recorded".to_string()), ..program }.validate(None).unwrap();
    let ranges = job.files[0].file.cached.iter();
    assert_eq!(ranges.map(|range| range.start.0..range.end.0).collect::<Vec<_>>(), [3..7, 60..64]);
    assert_eq!(job.start_text(), "12 % cached");
    // Without such events nobody knows.
    let mut all = begin(64);
    all.extend(done(0, [(0, touch(0, 1))]));
    let Conversion { program, .. } = converted_by(&all, &nowhere);
    let refused = JobSpec { start: Some("recorded".to_string()), ..program }.validate(None);
    assert!(refused.unwrap_err().to_string().contains("does not have what was cached"));
}
