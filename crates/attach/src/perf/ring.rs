//! The ring of a perf event, into which the kernel writes records.

use std::io;
use std::os::fd::AsFd;
use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// Where `struct perf_event_mmap_page` says how far was written and read, in bytes.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// A ring that is mapped: a page that says how far it was written and read, and the records.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is this ring's alone, and only who has it exclusively reads there.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `event` with room for `bytes`, a power of two of whole pages.
    pub(crate) fn map(event: impl AsFd, bytes: usize) -> io::Result<Ring> {
        let all = page_size() + bytes;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses an address where nothing is.
        let memory = unsafe { mmap(null_mut(), all, protection, flags, event, 0) }?;
        Ok(Ring { memory: memory.cast(), bytes })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page holds the word, which the kernel and this process share.
        unsafe { &*self.memory.add(offset).cast::<AtomicU64>() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let (head, tail) = (self.word(HEAD), self.word(TAIL));
        head.load(Ordering::Relaxed) == tail.load(Ordering::Relaxed)
    }

    /// Adds all records that are there to `records`, and makes room for others. Returns whether
    /// the ring was so full that the kernel may have lost some.
    pub(crate) fn drain(&mut self, records: &mut Vec<u8>) -> bool {
        let tail = self.word(TAIL).load(Ordering::Relaxed);
        let head = self.word(HEAD).load(Ordering::Acquire);
        let filled = (head.wrapping_sub(tail) as usize).min(self.bytes);
        if filled == 0 {
            return false;
        }
        let begin = tail as usize & (self.bytes - 1);
        let at_end = filled.min(self.bytes - begin);
        let mut add = |begin: usize, length: usize| {
            // SAFETY: the ring is after the first page, has room for `bytes`, and the kernel does
            // not write these anew before the tail moves.
            let written =
                unsafe { slice::from_raw_parts(self.memory.add(page_size() + begin), length) };
            records.extend_from_slice(written);
        };
        add(begin, at_end);
        add(0, filled - at_end);
        self.word(TAIL).store(head, Ordering::Release);
        self.bytes - filled < MAX_RECORD_BYTES
    }
}

/// No record has more bytes: those of mappings hold a path.
const MAX_RECORD_BYTES: usize = 4096 + 256;

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody has a part of it.
        let _ = unsafe { munmap(self.memory.cast(), page_size() + self.bytes) };
    }
}
