//! Reads what a recorded start of a program touched, in file order, while the program starts.

use std::collections::VecDeque;
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use filemap_policy::PageRange;
use rustix::fs::{Advice, fadvise};

use crate::file::OpenFile;
use crate::memory::available_bytes;
use crate::process::page_bytes;
use crate::recorded::RecordedFile;

/// Reads in flight. More would delay the program's own.
const THREADS: usize = 2;

/// Maximum share of the available memory that is read.
const MEMORY_SHARE: u64 = 2;

/// Reads files in its own threads until it is dropped.
#[derive(Debug)]
pub struct Prefetch {
    shared: Arc<PrefetchShared>,
    threads: Vec<JoinHandle<()>>,
    totals: PrefetchTotals,
}

/// What a prefetch reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefetchTotals {
    /// Files that are read.
    pub files: u64,
    /// Files that are not there any more, or cannot be read ahead.
    pub skipped_files: u64,
    /// Bytes to read.
    pub bytes: u64,
    /// Bytes that are left out to keep half of the memory free.
    pub left_out_bytes: u64,
}

#[derive(Debug)]
struct PrefetchShared {
    pieces: Mutex<VecDeque<(Arc<OpenFile>, PageRange)>>,
    read_bytes: AtomicU64,
    is_over: AtomicBool,
}

impl Prefetch {
    /// Begins to read the recorded pages of `files`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(files: &[RecordedFile]) -> std::io::Result<Prefetch> {
        let (mut totals, mut pieces) = (PrefetchTotals::default(), VecDeque::new());
        let mut left_bytes = available_bytes() / MEMORY_SHARE;
        for recorded in files {
            let Some(file) = open(recorded) else {
                totals.skipped_files += 1;
                continue;
            };
            totals.files += 1;
            let file_pages = file.pages(page_bytes()).unwrap_or(0);
            for pages in &recorded.pages {
                let pages = PageRange { end: pages.end.min(file_pages), ..*pages };
                let bytes = pages.count() * page_bytes();
                if bytes > left_bytes {
                    totals.left_out_bytes += bytes;
                    continue;
                }
                left_bytes -= bytes;
                totals.bytes += bytes;
                let firsts = (pages.first..pages.end).step_by(file.call_pages as usize);
                let end = |first: u64| pages.end.min(first + file.call_pages);
                pieces.extend(
                    firsts.map(|first| (Arc::clone(&file), PageRange { first, end: end(first) })),
                );
            }
        }
        let shared = Arc::new(PrefetchShared {
            pieces: Mutex::new(pieces),
            read_bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let start = |_| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("prefetch".to_string()).spawn(move || shared.run())
        };
        let threads = (0..THREADS).map(start).collect::<Result<_, _>>()?;
        Ok(Prefetch { shared, threads, totals })
    }

    /// What it reads in all.
    pub fn totals(&self) -> PrefetchTotals {
        self.totals
    }

    /// Waits until everything is read. Returns the bytes.
    pub fn wait(mut self) -> u64 {
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        self.shared.read_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl PrefetchShared {
    fn run(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let next = self.pieces.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((file, pages)) = next else { return };
            let offset = pages.first * page_bytes();
            let bytes = pages.count() * page_bytes();
            // A refused call only costs the program a read of its own.
            let _ = fadvise(&file.file, offset, NonZeroU64::new(bytes), Advice::WillNeed);
            // Reading the last byte waits for the pages, which bounds the reads in flight.
            let last = (pages.end - 1) * page_bytes();
            let _ = rustix::io::pread(&file.file, &mut [0_u8], last);
            self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// Opens a recorded file, if it is a regular one on a local disk.
fn open(recorded: &RecordedFile) -> Option<Arc<OpenFile>> {
    // A FIFO or a device in its place must not be waited for.
    let data = recorded.path.metadata().ok()?;
    if !data.is_file() || data.size() == 0 {
        return None;
    }
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(&recorded.path).ok()?;
    OpenFile::new(file, page_bytes()).ok().map(Arc::new)
}
