//! Written events are read back unchanged.

use filemap_recording::{Event, EventKind, Header, Reader, RecordingMode, Totals, Writer};
use proptest::prelude::*;

use crate::support::{begin, drafts, events, written};

/// The events of a complete recording.
fn read(bytes: &[u8]) -> Vec<Event> {
    let mut reader = Reader::new(bytes, "r").unwrap();
    let events: Vec<Event> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.truncated(), None);
    events
}

/// `events` without their waits.
fn what(events: &[Event]) -> Vec<(u32, EventKind)> {
    events.iter().map(|event| (event.thread, event.kind.clone())).collect()
}

proptest! {
    #[test]
    fn random_events_come_back(drafts in drafts(400), block in 1usize..500) {
        let events = events(&drafts);
        let back = read(&written(&events, block));
        prop_assert_eq!(what(&back), what(&events));
        for (back, event) in back.iter().zip(&events) {
            let (kept, wait) = (back.wait_ns, event.wait_ns.min(1 << 62));
            prop_assert!(kept.abs_diff(wait) <= wait / 4, "{} became {}", wait, kept);
        }
    }
}

#[test]
fn many_blocks_keep_the_order() {
    let mut all = begin(1 << 20);
    for number in 0..200_000u64 {
        let what = match number % 1000 {
            999 => EventKind::Read { open: 0, offset_bytes: number, length_bytes: 1 },
            _ => EventKind::Touch {
                mapping: 0,
                page: number * 7919 % (1 << 20),
                is_write: number % 3 == 0,
            },
        };
        all.push(Event { thread: 0, wait_ns: 1000, kind: what });
    }
    let bytes = written(&all, usize::MAX);
    assert_eq!(what(&read(&bytes)), what(&all));
    let waits: u64 = read(&bytes).iter().map(|event| event.wait_ns).sum();
    assert!(waits.abs_diff(200_000_000) < 200_000, "{waits}");
}

#[test]
fn the_header_and_the_totals_come_back() {
    let header = Header {
        command: ["python3", "get.py", "a b"].map(Into::into).to_vec(),
        mode: RecordingMode::Changes,
        resolution_ns: 1_000_000,
        open_pages: 300,
        page_size: 65536,
        clock: "CLOCK_MONOTONIC".to_string(),
        kernel: "6.18.3-amd64".to_string(),
        machine: "aarch64".to_string(),
    };
    let mut writer = Writer::new(Vec::new(), "r", &header).unwrap();
    for event in begin(1 << 10) {
        writer.write(&event).unwrap();
    }
    let touch = EventKind::Touch { mapping: 0, page: 63, is_write: false };
    writer.write(&Event { thread: 0, wait_ns: 0, kind: touch }).unwrap();
    // 1024 pages of 4 KiB are 64 pages of 64 KiB.
    let beyond = EventKind::Touch { mapping: 0, page: 64, is_write: false };
    let error = writer.write(&Event { thread: 0, wait_ns: 0, kind: beyond }).unwrap_err();
    assert!(error.to_string().contains("page 64 is touched in mapping 0, which has 64"), "{error}");
    let lost = EventKind::Lost { events: 5 };
    writer.write(&Event { thread: 0, wait_ns: 0, kind: lost }).unwrap();
    let (bytes, totals) = writer.finish().unwrap();
    assert_eq!(totals, Totals { events: 7, touches: 1, lost: 5 });
    let mut reader = Reader::new(bytes.as_slice(), "r").unwrap();
    assert_eq!(*reader.header(), header);
    assert_eq!(reader.by_ref().count(), 7);
    assert_eq!(reader.totals(), totals);
}
