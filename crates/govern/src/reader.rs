//! Threads that issue the readahead calls.
//!
//! A device queue holds a hundred megabytes and more, and a demand fault queues behind all of it.
//! Therefore only as much is kept in flight as saturates the device.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::{io, num::NonZeroU64};

use filemap_attach::FileId;
use filemap_policy::PageRange;
use rustix::fs::{Advice, fadvise};

use crate::file::OpenFile;

/// Number of threads, each with one call in flight. More would not raise the throughput.
const THREADS: usize = 3;

/// Maximum speculative calls in flight. More would delay the program's demand faults.
const MAX_SPECULATIVE: usize = 2;

/// Maximum queued calls of each kind. The oldest are dropped: the program has probably faulted on
/// their pages by then.
const MAX_QUEUED: usize = 2048;

/// The reader threads and their queue.
#[derive(Debug)]
pub struct ReadaheadPool {
    shared: Arc<ReaderShared>,
    threads: Vec<JoinHandle<()>>,
}

/// A readahead call.
#[derive(Debug)]
pub struct ReadRequest {
    pub id: FileId,
    pub file: Arc<OpenFile>,
    pub pages: PageRange,
    /// Not needed by the current access pattern yet; served after all others.
    pub is_speculative: bool,
}

#[derive(Debug)]
struct ReaderShared {
    queue: Mutex<ReadQueue>,
    has_more: Condvar,
    page_bytes: u64,
}

#[derive(Debug, Default)]
struct ReadQueue {
    urgent: VecDeque<ReadRequest>,
    speculative: VecDeque<ReadRequest>,
    speculative_active: usize,
    is_over: bool,
}

impl ReadaheadPool {
    /// Starts the threads.
    pub fn start(page_bytes: u64) -> io::Result<ReadaheadPool> {
        let (queue, has_more) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(ReaderShared { queue, has_more, page_bytes });
        let start = |_| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("reader".to_string()).spawn(move || shared.run())
        };
        let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
        Ok(ReadaheadPool { shared, threads })
    }

    /// Queues reads in order. Returns the oldest ones that were dropped because the queue was full.
    pub fn submit(&self, reads: impl IntoIterator<Item = ReadRequest>) -> Vec<ReadRequest> {
        let mut queue = self.shared.queue();
        let mut dropped = Vec::new();
        for read in reads {
            let waiting = queue.queue_for(read.is_speculative);
            waiting.push_back(read);
            if waiting.len() > MAX_QUEUED {
                dropped.extend(waiting.pop_front());
            }
        }
        drop(queue);
        self.shared.has_more.notify_all();
        dropped
    }

    /// Drops the queued reads of a file that are not needed yet.
    pub fn cancel_speculative(&self, id: FileId) {
        self.shared.queue().speculative.retain(|read| read.id != id);
    }
}

impl Drop for ReadaheadPool {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_over = true;
        queue.urgent.clear();
        queue.speculative.clear();
        drop(queue);
        self.shared.has_more.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl ReadQueue {
    fn queue_for(&mut self, is_for_later: bool) -> &mut VecDeque<ReadRequest> {
        if is_for_later { &mut self.speculative } else { &mut self.urgent }
    }

    /// Takes the next call. After a speculative one the caller decrements `speculative_active`.
    fn next(&mut self) -> Option<ReadRequest> {
        if let Some(read) = self.urgent.pop_front() {
            return Some(read);
        }
        if self.speculative_active >= MAX_SPECULATIVE {
            return None;
        }
        let read = self.speculative.pop_front()?;
        self.speculative_active += 1;
        Some(read)
    }
}

impl ReaderShared {
    fn queue(&self) -> MutexGuard<'_, ReadQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some(read) = self.wait_for_next() {
            let offset = read.pages.first * self.page_bytes;
            let length = NonZeroU64::new(read.pages.count() * self.page_bytes);
            // A refused call only costs the program a fault later.
            let _ = fadvise(&read.file.file, offset, length, Advice::WillNeed);
            // fadvise(2) returns once the I/O is submitted. Reading the last byte waits for it,
            // which bounds the I/O in flight.
            let last_page = read.pages.end.saturating_sub(1) * self.page_bytes;
            let _ = rustix::io::pread(&read.file.file, &mut [0_u8], last_page);
            if read.is_speculative {
                // No notification is needed: this thread takes the next call itself.
                self.queue().speculative_active -= 1;
            }
        }
    }

    fn wait_for_next(&self) -> Option<ReadRequest> {
        let mut queue = self.queue();
        loop {
            if queue.is_over {
                return None;
            }
            if let Some(read) = queue.next() {
                return Some(read);
            }
            queue = self.has_more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
