//! Encoded size of a touch, and encoding time.

use std::time::Instant;

use filemap_recording::{Event, EventKind, Header, Reader, RecordingMode, Writer};

use crate::support::begin;

/// Pages of a 2 TiB file.
const PAGES: u64 = 1 << 29;

const TOUCHES: u64 = 1_000_000;

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Approximately standard normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A log-normal wait with a median of 1 us and a spread of about 30 %.
    fn wait_ns(&mut self) -> u64 {
        (1000.0 * (0.3 * self.normal()).exp()) as u64
    }
}

/// Bytes per touch over `TOUCHES` touches of the pages that `page` returns.
fn bytes_a_touch(name: &str, mut page: impl FnMut(&mut Random, u64) -> u64) -> f64 {
    let mut random = Random(88172645463325252);
    let header = Header::new(RecordingMode::Changes);
    let mut writer = Writer::new(Vec::new(), "r", &header).unwrap();
    begin(PAGES).iter().for_each(|event| writer.write(event).unwrap());
    let touches: Vec<Event> = (0..TOUCHES)
        .map(|number| {
            let page = page(&mut random, number);
            let what = EventKind::Touch { mapping: 0, page, is_write: false };
            Event { thread: 0, wait_ns: random.wait_ns(), kind: what }
        })
        .collect();
    let start = Instant::now();
    touches.iter().for_each(|event| writer.write(event).unwrap());
    let (bytes, _) = writer.finish().unwrap();
    let written = start.elapsed();
    let start = Instant::now();
    assert_eq!(
        Reader::new(bytes.as_slice(), "r").unwrap().map(Result::unwrap).count() as u64,
        TOUCHES + 5
    );
    let each = bytes.len() as f64 / TOUCHES as f64;
    let ns = |time: std::time::Duration| time.as_nanos() as f64 / TOUCHES as f64;
    println!(
        "{name}: {each:.3} bytes a touch; {:.0} ns to write, {:.0} ns to read it",
        ns(written),
        ns(start.elapsed())
    );
    each
}

/// 100 million touches take less than 400 MB for every access pattern.
#[test]
fn a_touch_takes_less_than_four_bytes() {
    let random = bytes_a_touch("random", |random, _| random.next() % PAGES);
    assert!(random < 4.0, "{random}");
    let sequential = bytes_a_touch("sequential", |_, number| number);
    assert!(sequential < 0.6, "{sequential}");
    // Zipf: the k-th most frequent page has frequency 1 / k; pages are scattered over the file.
    let zipf = bytes_a_touch("zipf", |random, _| {
        let rank = (PAGES as f64).powf(random.unit()) as u64;
        rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PAGES
    });
    assert!(zipf < 4.0, "{zipf}");
    let tree = bytes_a_touch("tree of three levels", |random, number| match number % 3 {
        0 => 1,
        1 => 1000 + random.next() % 500,
        _ => random.next() % PAGES,
    });
    assert!(tree < 2.7, "{tree}");
}
