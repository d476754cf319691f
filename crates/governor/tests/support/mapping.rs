//! Mappings that test programs make, by the functions of the C library that programs call.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use super::draws::Digest;

pub const PAGE_BYTES: usize = 4096;

/// A mapping, which is unmapped when this drops.
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: it is memory that no thread writes.
unsafe impl Sync for Mapping {}
// SAFETY: the same.
unsafe impl Send for Mapping {}

impl Mapping {
    /// All of `file`, shared and read-only.
    pub fn of(file: &File) -> Mapping {
        let bytes = file.metadata().expect("the size of the file").len() as usize;
        Mapping::with(file, 0, bytes, libc::MAP_SHARED).expect("the file can be mapped")
    }

    /// `bytes` bytes of `file` behind `offset`, read-only.
    pub fn with(file: &File, offset: usize, bytes: usize, flags: i32) -> io::Result<Mapping> {
        let (descriptor, offset) = (file.as_raw_fd(), offset as libc::off_t);
        // SAFETY: the kernel chooses a place that is free.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ, flags, descriptor, offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: start.cast(), bytes })
    }

    pub fn start(&self) -> *mut u8 {
        self.start
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn pages(&self) -> u64 {
        (self.bytes / PAGE_BYTES) as u64
    }

    /// The number at the beginning of a page.
    pub fn word(&self, page: u64) -> u64 {
        let place = page as usize * PAGE_BYTES;
        assert!(place + 8 <= self.bytes);
        // SAFETY: the place is inside the mapping, and aligned.
        unsafe { self.start.add(place).cast::<u64>().read_volatile() }
    }

    /// The sum of the numbers of a page.
    pub fn sum(&self, page: u64) -> u64 {
        let place = page as usize * PAGE_BYTES;
        assert!(place + PAGE_BYTES <= self.bytes);
        // SAFETY: the page is inside the mapping, which nobody writes.
        let words = unsafe { std::slice::from_raw_parts(self.start.add(place).cast(), 512) };
        words.iter().fold(0, |sum: u64, word: &u64| sum.wrapping_add(*word))
    }

    /// A digest of all pages, in order.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::NEW;
        (0..self.pages()).for_each(|page| digest.add(self.sum(page)));
        digest.0
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: nobody writes them.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// The program's own advice. Returns what madvise(2) does.
    pub fn advise(&self, advice: i32) -> i32 {
        // SAFETY: it is a mapping of a file, of which no advice used here loses anything.
        unsafe { libc::madvise(self.start.cast(), self.bytes, advice) }
    }

    /// The mapping's place and length, which nobody unmaps any more.
    pub fn into_raw(self) -> (*mut u8, usize) {
        let of = std::mem::ManuallyDrop::new(self);
        (of.start, of.bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
