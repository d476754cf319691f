//! Threads that ask the kernel to read.
//!
//! Each call returns when its reads are under way, or waits for room in the device's queue. So it
//! is made here and not where events are heard.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::{io, num::NonZeroU64};

use filemap_attach::FileId;
use filemap_policy::Pages;
use rustix::fs::{Advice, fadvise};

use crate::file::OpenFile;

/// More would not fill a device better: each has up to a megabyte under way.
const THREADS: usize = 3;

/// Calls that wait at most. What is older has been waited for in vain.
const MOST_WAITING: usize = 2048;

/// Reads that are asked for.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A call to be made.
#[derive(Debug)]
pub struct Read {
    pub id: FileId,
    pub file: Arc<OpenFile>,
    pub pages: Pages,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    has_more: Condvar,
    page_bytes: u64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Read>,
    is_over: bool,
}

impl Reader {
    /// Starts the threads.
    pub fn start(page_bytes: u64) -> io::Result<Reader> {
        let (queue, has_more) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { queue, has_more, page_bytes });
        let start = |_| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("reader".to_string()).spawn(move || shared.work())
        };
        let threads = (0..THREADS).map(start).collect::<io::Result<_>>()?;
        Ok(Reader { shared, threads })
    }

    /// Asks for reads in order, after those that wait already. Returns the oldest where too many
    /// wait: they are not made.
    pub fn ask(&self, reads: impl IntoIterator<Item = Read>) -> Vec<Read> {
        let mut queue = self.shared.queue();
        queue.waiting.extend(reads);
        let too_many = queue.waiting.len().saturating_sub(MOST_WAITING);
        let dropped = queue.waiting.drain(..too_many).collect();
        drop(queue);
        self.shared.has_more.notify_all();
        dropped
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_over = true;
        queue.waiting.clear();
        drop(queue);
        self.shared.has_more.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(read) = self.next() {
            let offset = read.pages.first * self.page_bytes;
            let length = NonZeroU64::new(read.pages.count() * self.page_bytes);
            // A read that is refused costs a fault later.
            let _ = fadvise(&read.file.file, offset, length, Advice::WillNeed);
        }
    }

    fn next(&self) -> Option<Read> {
        let mut queue = self.queue();
        loop {
            if queue.is_over {
                return None;
            }
            if let Some(read) = queue.waiting.pop_front() {
                return Some(read);
            }
            queue = self.has_more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
