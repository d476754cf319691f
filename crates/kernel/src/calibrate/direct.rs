//! Reads that bypass the page cache, which measure the device alone.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};
use rustix::mm::{Advice, madvise};

use super::shuffled;
use crate::{Error, page_size};

/// Sizes in which is read, in bytes.
pub const DIRECT_BYTES: [u64; 5] = [4 << 10, 64 << 10, 128 << 10, 1 << 20, 8 << 20];

/// Reads of each of [`DIRECT_BYTES`].
const READS: u64 = 32;

/// Reads that overlap, and pairs of them.
const OVERLAPPING_BYTES: u64 = 4 << 20;
const PAIRS: u64 = 16;

/// Memory that is aligned to this is made of huge pages, where there are any. Requests for it have
/// few segments, as those for large folios do.
const HUGE_BYTES: usize = 2 << 20;

/// Maximum number of segments of a request, each a base page.
pub const REQUEST_SEGMENTS: u32 = 256;

/// Entries of a virtio ring that such a request takes: two more.
pub const REQUEST_ENTRIES: u32 = REQUEST_SEGMENTS + 2;

/// A feature of virtio: a request takes one entry of the ring, however many segments it has.
const INDIRECT_DESCRIPTORS: usize = 28;

/// A file that is read past the page cache.
pub(super) struct DirectReads<'a> {
    file: File,
    path: &'a Path,
    bytes: u64,
}

impl<'a> DirectReads<'a> {
    pub(super) fn open(path: &'a Path, bytes: u64) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECT);
        let file = options
            .open(path)
            .map_err(|error| Error::os("open past the page cache", path, error))?;
        Ok(DirectReads { file, path, bytes })
    }

    /// One read after the other: the median of each of [`DIRECT_BYTES`], in nanoseconds.
    pub(super) fn sequential_ns(&self) -> Result<[f64; DIRECT_BYTES.len()], Error> {
        let mut memory = AlignedBuffer::new(DIRECT_BYTES[DIRECT_BYTES.len() - 1]);
        let mut median_ns = [0.0; DIRECT_BYTES.len()];
        for (ns, bytes) in median_ns.iter_mut().zip(DIRECT_BYTES) {
            let slots = self.bytes / bytes;
            let reads = READS.min(slots);
            let mut all_ns = Vec::new();
            for number in 0..reads {
                let offset = shuffled(number, reads) * (slots / reads) * bytes;
                let start = Instant::now();
                self.read(memory.bytes(bytes), offset)?;
                all_ns.push(start.elapsed().as_nanos() as f64);
            }
            *ns = median(all_ns);
        }
        Ok(median_ns)
    }

    /// Time between the completions of two overlapping reads, relative to the time of one read. The
    /// second read is issued at half of the time of the first: 1 means that the device serves them
    /// one after the other, 0.5 that they share it, and 0 that both complete together. The lower
    /// quartile of some pairs: in others the processor was taken away.
    pub(super) fn completion_gap(&self) -> Result<f64, Error> {
        let mut memories =
            [AlignedBuffer::new(OVERLAPPING_BYTES), AlignedBuffer::new(OVERLAPPING_BYTES)];
        let pairs = PAIRS.min(self.bytes / OVERLAPPING_BYTES / 3).max(1);
        let place = |number| number % (self.bytes / OVERLAPPING_BYTES) * OVERLAPPING_BYTES;
        let mut alone_ns = Vec::new();
        for number in 0..pairs {
            let start = Instant::now();
            self.read(memories[0].bytes(OVERLAPPING_BYTES), place(number * 3))?;
            alone_ns.push(start.elapsed().as_nanos() as f64);
        }
        let alone_ns = quartile(alone_ns);
        let [first, second] = &mut memories;
        let mut apart_ns = Vec::new();
        for number in 0..pairs {
            let later = Duration::from_nanos((alone_ns / 2.0) as u64);
            let both = [
                (first.bytes(OVERLAPPING_BYTES), place(number * 3 + 1), Duration::ZERO),
                (second.bytes(OVERLAPPING_BYTES), place(number * 3 + 2), later),
            ];
            let ends = self.read_overlapping(both)?;
            let apart = ends[1]
                .saturating_duration_since(ends[0])
                .max(ends[0].saturating_duration_since(ends[1]));
            apart_ns.push(apart.as_nanos() as f64);
        }
        Ok(quartile(apart_ns) / alone_ns)
    }

    /// When two reads are complete, each made so much later than both threads are ready.
    fn read_overlapping(
        &self,
        reads: [(&mut [u8], u64, Duration); 2],
    ) -> Result<[Instant; 2], Error> {
        let ready = Barrier::new(2);
        let made = |(memory, offset, later): (&mut [u8], u64, Duration)| {
            ready.wait();
            let start = Instant::now();
            while start.elapsed() < later {
                std::hint::spin_loop();
            }
            self.read(memory, offset).map(|()| Instant::now())
        };
        let [first, second] = reads;
        thread::scope(|scope| {
            let other = scope.spawn(|| made(second));
            let first = made(first);
            Ok([first?, other.join().expect("a read does not panic")?])
        })
    }

    fn read(&self, memory: &mut [u8], offset: u64) -> Result<(), Error> {
        self.file
            .read_exact_at(memory, offset)
            .map_err(|error| Error::os("read past the page cache", self.path, error))
    }
}

/// Entries of the ring through which requests are given to the device of `path`; `None` where the
/// kernel does not say how many requests it takes.
pub(super) fn ring_entries(path: &Path) -> Option<u32> {
    let device = fs::metadata(path).ok()?.dev();
    let block = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition shares the queue of its disk.
    let disk = [block.clone(), format!("{block}/..")]
        .into_iter()
        .find(|disk| Path::new(&format!("{disk}/mq")).exists())?;
    let read = |file: &str| fs::read_to_string(format!("{disk}/{file}")).ok();
    let requests: u32 = read("mq/0/nr_tags")?.trim().parse().ok()?;
    let features = read("device/features").unwrap_or_default();
    let is_direct = features.as_bytes().get(INDIRECT_DESCRIPTORS) == Some(&b'0');
    // The driver of virtio then makes half as many requests as there are entries.
    Some(requests.saturating_mul(if is_direct { 2 } else { REQUEST_ENTRIES }))
}

/// Memory that is read to.
struct AlignedBuffer {
    all: Vec<u8>,
    aligned: usize,
}

impl AlignedBuffer {
    fn new(bytes: u64) -> AlignedBuffer {
        let mut all = vec![0u8; bytes as usize + HUGE_BYTES];
        let aligned = all.as_ptr().align_offset(HUGE_BYTES);
        let start = all[aligned..].as_mut_ptr().cast();
        // SAFETY: the range lies in memory that this process owns, and the advice changes no data.
        // A kernel without huge pages refuses it, which is harmless.
        let _ = unsafe { madvise(start, bytes as usize, Advice::LinuxHugepage) };
        for byte in all[aligned..][..bytes as usize].iter_mut().step_by(page_size() as usize) {
            *byte = 1;
        }
        AlignedBuffer { all, aligned }
    }

    fn bytes(&mut self, bytes: u64) -> &mut [u8] {
        &mut self.all[self.aligned..][..bytes as usize]
    }
}

fn median(figures: Vec<f64>) -> f64 {
    order_statistic(figures, 2)
}

/// The lower quartile of `figures`.
fn quartile(figures: Vec<f64>) -> f64 {
    order_statistic(figures, 4)
}

fn order_statistic(mut figures: Vec<f64>, of: usize) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / of]
}
