//! The ring of a perf event, into which the kernel writes records.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::page_size;

/// Where `struct perf_event_mmap_page` says how far was written and read, in bytes.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Bytes of the head of a record: its kind in 4, flags in 2, its length in 2.
pub const RECORD_HEAD: usize = 8;

/// A ring that is mapped: a page that says how far it was written and read, and the records.
#[derive(Debug)]
pub struct Ring {
    memory: *mut u8,
    bytes: usize,
    /// A record that is not in one piece.
    record: Vec<u8>,
}

// SAFETY: the memory is this ring's alone, and only who has it exclusively reads there.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `event` with room for `bytes`, a power of two of whole pages.
    pub fn map(event: &OwnedFd, bytes: u64) -> io::Result<Ring> {
        let bytes = bytes.next_power_of_two() as usize;
        let all = page_size() as usize + bytes;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses an address where nothing is.
        let memory = unsafe { mmap(null_mut(), all, protection, flags, event, 0) }?;
        Ok(Ring { memory: memory.cast(), bytes, record: Vec::new() })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page holds the word, which the kernel and this process share.
        unsafe { &*self.memory.add(offset).cast::<AtomicU64>() }
    }

    /// Hands all records that are there to `take`, and makes room for others.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut at = self.word(TAIL).load(Ordering::Relaxed);
        while head - at >= RECORD_HEAD as u64 {
            let length = usize::from(u16::from_ne_bytes([self.byte(at + 6), self.byte(at + 7)]));
            if length < RECORD_HEAD || head - at < length as u64 {
                at = head;
                break;
            }
            let mut record = std::mem::take(&mut self.record);
            record.clear();
            record.extend((at..at + length as u64).map(|place| self.byte(place)));
            take(&record);
            self.record = record;
            at += length as u64;
        }
        self.word(TAIL).store(at, Ordering::Release);
    }

    fn byte(&self, place: u64) -> u8 {
        let place = page_size() as usize + place as usize % self.bytes;
        // SAFETY: it is within the mapping, and was written before the kernel said so.
        unsafe { self.memory.add(place).read() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody has a part of it.
        let _ = unsafe { munmap(self.memory.cast(), page_size() as usize + self.bytes) };
    }
}
