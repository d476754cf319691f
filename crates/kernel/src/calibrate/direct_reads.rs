//! Reads that bypass the page cache, which measure the device alone.

use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use filemap_job::random::Rng;
use rustix::fs::{major, minor};
use rustix::mm::{Advice, madvise};

use super::{MIN_BYTES, shuffled};
use crate::{Error, page_size};

/// Read sizes in bytes.
pub const DIRECT_BYTES: [u64; 5] = [4 << 10, 64 << 10, 128 << 10, 1 << 20, 8 << 20];

/// Number of reads of each of [`DIRECT_BYTES`].
const READS: u64 = 32;

/// Numbers of reads in flight for which the device is measured.
pub const IN_FLIGHT: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Size of these reads, and the time for each number.
const SINGLE_BYTES: u64 = 4 << 10;
const IN_FLIGHT_TIME: Duration = Duration::from_millis(80);

/// Size of the overlapping reads, and the number of pairs.
const OVERLAPPING_BYTES: u64 = 4 << 20;
const PAIRS: u64 = 16;

/// Bytes that `st_blocks` counts in.
const BLOCK_BYTES: u64 = 512;

/// Buffers aligned to this get huge pages where available. Their requests then have few segments,
/// like requests for large folios.
const HUGE_BYTES: usize = 2 << 20;

/// Maximum number of segments of a request, each a base page.
pub const REQUEST_SEGMENTS: u32 = 256;

/// Virtio ring entries taken by such a request: header and status in addition to the segments.
pub const REQUEST_ENTRIES: u32 = REQUEST_SEGMENTS + 2;

/// The virtio feature VIRTIO_RING_F_INDIRECT_DESC: a request takes one ring entry, whatever its
/// number of segments.
const INDIRECT_DESCRIPTORS: usize = 28;

/// A file read with O_DIRECT: neither what is cached nor what programs have mapped changes.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    path: PathBuf,
    bytes: u64,
}

/// What the device alone takes, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectSample {
    /// One read at a time: the median for each of [`DIRECT_BYTES`].
    pub sequential_ns: [f64; DIRECT_BYTES.len()],
    /// Time per read of 4 KiB with each of [`IN_FLIGHT`] in flight.
    pub in_flight_ns: [f64; IN_FLIGHT.len()],
    /// Time between the completions of two reads, the second issued at half of the time of the
    /// first, relative to the time of one read: 0 when both complete together.
    pub apart: f64,
}

/// Whether reads of the file `found` can measure its device: it is regular, large enough, and has
/// no holes, which need no device.
pub fn is_measurable(found: &Metadata) -> bool {
    let bytes = found.len();
    found.is_file() && bytes >= MIN_BYTES && found.blocks() * BLOCK_BYTES >= bytes
}

impl DirectFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// It cannot be read with O_DIRECT, or is not measurable.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECT);
        let file =
            options.open(path).map_err(|error| Error::os("open with O_DIRECT", path, error))?;
        let found = file.metadata().map_err(|error| Error::os("look at", path, error))?;
        let bytes = found.len();
        if !is_measurable(&found) {
            return Err(Error::unavailable(
                format!("'{}' of {bytes} bytes as a file to measure its device", path.display()),
                "name a file of 64 MiB or more without holes",
            ));
        }
        let direct = DirectFile { file, path: path.to_owned(), bytes };
        // Some filesystems accept the flag and refuse the reads.
        direct.read(AlignedBuffer::new(SINGLE_BYTES).bytes(SINGLE_BYTES), 0)?;
        Ok(direct)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Measures everything once.
    ///
    /// # Errors
    /// A read fails.
    pub fn sample(&self) -> Result<DirectSample, Error> {
        let mut sample = DirectSample {
            sequential_ns: self.sequential_ns()?,
            apart: self.completion_gap()?,
            ..DirectSample::default()
        };
        for (ns, readers) in sample.in_flight_ns.iter_mut().zip(IN_FLIGHT) {
            *ns = self.in_flight_ns(readers)?;
        }
        Ok(sample)
    }

    /// Time per read of 4 KiB at a random place, by `readers` threads.
    fn in_flight_ns(&self, readers: u64) -> Result<f64, Error> {
        let slots = self.bytes / SINGLE_BYTES;
        let ready = Barrier::new(readers as usize);
        let reads = |reader: u64| {
            let mut memory = AlignedBuffer::new(SINGLE_BYTES);
            let mut random = Rng(readers << 32 | reader);
            ready.wait();
            let start = Instant::now();
            let mut count = 0u64;
            while start.elapsed() < IN_FLIGHT_TIME {
                self.read(memory.bytes(SINGLE_BYTES), random.below(slots) * SINGLE_BYTES)?;
                count += 1;
            }
            Ok(count as f64 / start.elapsed().as_nanos() as f64)
        };
        let per_ns: f64 = thread::scope(|scope| {
            let reads = &reads;
            let threads: Vec<_> =
                (0..readers).map(|reader| scope.spawn(move || reads(reader))).collect();
            let rates = threads.into_iter().map(|reader| reader.join().expect("no read panics"));
            rates.sum::<Result<f64, Error>>()
        })?;
        Ok(1.0 / per_ns.max(f64::MIN_POSITIVE))
    }

    /// Sequential reads: the median for each of [`DIRECT_BYTES`], in nanoseconds.
    fn sequential_ns(&self) -> Result<[f64; DIRECT_BYTES.len()], Error> {
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
    /// quartile over several pairs, since in some a thread was preempted.
    fn completion_gap(&self) -> Result<f64, Error> {
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

    /// Completion times of two reads, each issued at its own delay after both threads are ready.
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
            .map_err(|error| Error::os("read with O_DIRECT", &self.path, error))
    }
}

/// Number of entries in the request ring of the device of `path`; `None` if the kernel does not
/// report the maximum number of requests.
pub fn ring_entries(path: &Path) -> Option<u32> {
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
    // Without indirect descriptors the virtio driver sets nr_requests to half the number of ring
    // entries.
    Some(requests.saturating_mul(if is_direct { 2 } else { REQUEST_ENTRIES }))
}

/// Destination buffer for reads.
struct AlignedBuffer {
    all: Vec<u8>,
    aligned: usize,
}

impl AlignedBuffer {
    fn new(bytes: u64) -> AlignedBuffer {
        let mut all = vec![0u8; bytes as usize + HUGE_BYTES];
        let aligned = all.as_ptr().align_offset(HUGE_BYTES);
        let start = all[aligned..].as_mut_ptr().cast();
        // SAFETY: the range lies in memory owned by this process, and the advice changes no data. A
        // kernel without huge pages refuses it, which is harmless.
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

fn order_statistic(mut figures: Vec<f64>, rank_count: usize) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / rank_count]
}
