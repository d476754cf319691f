//! Threads that ask the kernel to read.
//!
//! The device's queue takes a hundred megabytes and more, and a fault of the program that comes
//! after them waits for all of them. So no more is under way at a time than keeps the device busy.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::{io, num::NonZeroU64};

use filemap_attach::FileId;
use filemap_policy::Pages;
use rustix::fs::{Advice, fadvise};

use crate::file::OpenFile;

/// Each has one call under way. More would not read faster.
const THREADS: usize = 3;

/// So many of them are for what the program may do later. More would make the single pages late
/// that it waits for meanwhile.
const MOST_FOR_LATER: usize = 2;

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
    /// It is for what the program may do later.
    pub is_for_later: bool,
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
    waiting_for_later: VecDeque<Read>,
    reading_for_later: usize,
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
        let mut dropped = Vec::new();
        for read in reads {
            let waiting = queue.of(read.is_for_later);
            waiting.push_back(read);
            if waiting.len() > MOST_WAITING {
                dropped.extend(waiting.pop_front());
            }
        }
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
        queue.waiting_for_later.clear();
        drop(queue);
        self.shared.has_more.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Queue {
    fn of(&mut self, is_for_later: bool) -> &mut VecDeque<Read> {
        if is_for_later { &mut self.waiting_for_later } else { &mut self.waiting }
    }

    /// The next call to be made. Whoever has made one for later says so.
    fn next(&mut self) -> Option<Read> {
        if let Some(read) = self.waiting.pop_front() {
            return Some(read);
        }
        if self.reading_for_later >= MOST_FOR_LATER {
            return None;
        }
        let read = self.waiting_for_later.pop_front()?;
        self.reading_for_later += 1;
        Some(read)
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
            // That returned when the reads were under way. This waits for the last of them.
            let last_page = read.pages.end.saturating_sub(1) * self.page_bytes;
            let _ = rustix::io::pread(&read.file.file, &mut [0_u8], last_page);
            if read.is_for_later {
                // This thread itself goes on with the next one.
                self.queue().reading_for_later -= 1;
            }
        }
    }

    fn next(&self) -> Option<Read> {
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
