//! Generators of random recordings.

use std::path::PathBuf;

use filemap_recording::{Event, EventKind, GapKind, Header, MappingPages, RecordingMode, Writer};
use proptest::prelude::*;

/// A random event whose indexes are not yet reduced to existing objects.
#[derive(Clone, Debug)]
pub struct Draft {
    pub kind: u8,
    pub wait_ns: u64,
    pub numbers: [u64; 4],
    pub text: Vec<u8>,
}

pub fn drafts(most: usize) -> impl Strategy<Value = Vec<Draft>> {
    let wait = prop_oneof![0u64..100, 100u64..1_000_000, any::<u64>()];
    let number = prop_oneof![Just(0), 0u64..5, 0u64..100_000, any::<u64>()];
    // Touches are the most frequent events.
    let kind = prop_oneof![3 => Just(0u8), 2 => 0u8..23];
    let text = proptest::collection::vec(any::<u8>(), 0..20);
    let draft = (kind, wait, [number.clone(), number.clone(), number.clone(), number], text);
    let draft =
        draft.prop_map(|(kind, wait_ns, numbers, text)| Draft { kind, wait_ns, numbers, text });
    proptest::collection::vec(draft, 0..most)
}

/// The events of `drafts`, with indexes reduced to objects introduced before.
pub fn events(drafts: &[Draft]) -> Vec<Event> {
    let mut counts = Counts::default();
    let path = |text: &[u8]| {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(text))
    };
    let mut events = Vec::new();
    for draft in drafts {
        let [a, b, c, d] = draft.numbers;
        let pick = |count: usize| (count > 0).then(|| (a % count.max(1) as u64) as u32);
        let part = |pages: u64| {
            let first = b % pages;
            MappingPages { first, pages: c % (pages - first) + 1 }
        };
        let what = match draft.kind {
            1 => Some(EventKind::Process {
                pid: b as u32,
                parent: pick(counts.processes),
                program: path(&draft.text),
            }),
            2 => pick(counts.processes).map(|process| EventKind::Thread { process, tid: c as u32 }),
            4 => Some(EventKind::File {
                path: path(&draft.text),
                size_bytes: a,
                device: b,
                inode: c,
            }),
            5 => pick(counts.files).map(|file| EventKind::Open { file }),
            6 => pick(counts.opens).map(|open| EventKind::Map {
                open,
                address: b,
                length_bytes: c.max(1),
                offset_bytes: d,
                protection: b as u32,
                flags: c as u32,
            }),
            kind => pick(counts.mappings.len()).and_then(|mapping| {
                let pages = counts.mappings[mapping as usize];
                Some(match kind {
                    0 => EventKind::Touch { mapping, page: b % pages, is_write: c % 2 == 1 },
                    7 => EventKind::Unmap { mapping, part: None },
                    8 => EventKind::Unmap { mapping, part: Some(part(pages)) },
                    9 => EventKind::Protect { mapping, pages: part(pages), protection: d as u32 },
                    10 => EventKind::Move { mapping, to: b, length_bytes: c.max(1) },
                    11 => EventKind::Madvise { mapping, pages: part(pages), advice: d as u32 },
                    22 => EventKind::Unseen { mapping, pages: part(pages) },
                    _ => return None,
                })
            }),
        };
        let what = what.or_else(|| {
            let (offset_bytes, length_bytes) = (b, c);
            Some(match draft.kind {
                12 => {
                    let open = pick(counts.opens)?;
                    EventKind::Fadvise { open, offset_bytes, length_bytes, advice: d as u32 }
                }
                13 => {
                    EventKind::Readahead { open: pick(counts.opens)?, offset_bytes, length_bytes }
                }
                14 => EventKind::Read { open: pick(counts.opens)?, offset_bytes, length_bytes },
                15 => EventKind::Truncate { file: pick(counts.files)?, size_bytes: b },
                16 => EventKind::Close { open: pick(counts.opens)? },
                17 => EventKind::Exit { process: pick(counts.processes)? },
                18 => EventKind::Lost { events: b },
                19 => EventKind::Gap { kind: GapKind::from_number(d as u32), count: b },
                20 => EventKind::Memory {
                    process: pick(counts.processes)?,
                    anonymous_bytes: b,
                    peak_bytes: c,
                },
                21 => EventKind::Cached { file: pick(counts.files)?, first: b, pages: c },
                _ => return None,
            })
        });
        let Some(what) = what else { continue };
        let introduces = matches!(what, EventKind::Process { .. } | EventKind::Thread { .. });
        let thread = match (introduces, counts.threads) {
            (true, _) => d as u32,
            (false, 0) => continue,
            (false, threads) => (d % threads as u64) as u32,
        };
        counts.add(&what);
        events.push(Event { thread, wait_ns: draft.wait_ns, kind: what });
    }
    events
}

#[derive(Default)]
struct Counts {
    processes: usize,
    threads: usize,
    files: usize,
    opens: usize,
    mappings: Vec<u64>,
}

impl Counts {
    fn add(&mut self, what: &EventKind) {
        match what {
            EventKind::Process { .. } => self.processes += 1,
            EventKind::Thread { .. } => self.threads += 1,
            EventKind::File { .. } => self.files += 1,
            EventKind::Open { .. } => self.opens += 1,
            EventKind::Map { length_bytes, .. } => self.mappings.push(length_bytes.div_ceil(4096)),
            EventKind::Move { mapping, length_bytes, .. } => {
                self.mappings[*mapping as usize] = length_bytes.div_ceil(4096);
            }
            _ => {}
        }
    }
}

/// A process with one thread, a file, an open file description of it, and a mapping of `pages`
/// pages.
pub fn begin(pages: u64) -> Vec<Event> {
    let path = PathBuf::from("/data/random.bin");
    let all = [
        EventKind::Process { pid: 7, parent: None, program: "/usr/bin/reader".into() },
        EventKind::Thread { process: 0, tid: 7 },
        EventKind::File { path, size_bytes: pages * 4096, device: 1, inode: 2 },
        EventKind::Open { file: 0 },
        EventKind::Map {
            open: 0,
            address: 1 << 40,
            length_bytes: pages * 4096,
            offset_bytes: 0,
            protection: 1,
            flags: 1,
        },
    ];
    all.into_iter().map(|what| Event { thread: 0, wait_ns: 0, kind: what }).collect()
}

/// The recording of `events`, flushed after every `block` events.
pub fn written(events: &[Event], block: usize) -> Vec<u8> {
    let header =
        Header { command: vec!["reader".into()], ..Header::new(RecordingMode::FirstTouches) };
    let mut writer = Writer::new(Vec::new(), "r", &header).unwrap();
    for some in events.chunks(block) {
        some.iter().for_each(|event| writer.write(event).unwrap());
        writer.flush().unwrap();
    }
    writer.finish().unwrap().0
}
