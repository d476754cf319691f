//! Ring buffer of a perf event.

use std::io;
use std::os::fd::AsFd;
use std::ptr::null_mut;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// Offsets of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// A mapped ring buffer: the control page, followed by the data pages.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to this ring alone, and reading data requires `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `event` with `bytes` of data, a power of two and a multiple of the page
    /// size.
    pub(crate) fn map(event: impl AsFd, bytes: usize) -> io::Result<Ring> {
        let all = page_size() + bytes;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses an unused address.
        let memory = unsafe { mmap(null_mut(), all, protection, flags, event, 0) }?;
        Ok(Ring { memory: memory.cast(), bytes })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the word lies in the control page, which is shared with the kernel.
        unsafe { &*self.memory.add(offset).cast::<AtomicU64>() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        let (head, tail) = (self.word(HEAD), self.word(TAIL));
        head.load(Ordering::Relaxed) == tail.load(Ordering::Relaxed)
    }

    /// Appends all available records to `records`, and frees their space. Returns whether the ring
    /// was so full that the kernel may have dropped records.
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
            // SAFETY: the `bytes` of data follow the control page, and the kernel does not
            // overwrite unread records before `data_tail` advances.
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

/// Upper bound on the size of a record: PERF_RECORD_MMAP2 holds a path.
const MAX_RECORD_BYTES: usize = 4096 + 256;

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped with this size; no reference into it exists.
        let _ = unsafe { munmap(self.memory.cast(), page_size() + self.bytes) };
    }
}
