//! The host's end of the disk between it and a guest.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use super::channel::BLOCK_BYTES;
use super::frame::{self, Frame, Header, Kind, LONGEST_HEADER};

/// A file in memory: a full disk does not take an answer along.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) file: File,
    /// Where answers begin.
    pub(super) answers_at: u64,
    /// Where the next frame does.
    next_at: u64,
}

impl Exchange {
    /// A disk with the jobs `tasks` on it, and `answer_bytes` of room for what comes back. It takes
    /// memory only for what was written and not yet read.
    pub(super) fn new(tasks: &[String], answer_bytes: u64) -> io::Result<Self> {
        let file = File::from(memfd_create("filemap-jobs", MemfdFlags::CLOEXEC)?);
        let mut at = 0;
        for (number, task) in tasks.iter().enumerate() {
            let frame = frame::encode(Kind::Task, number, task.as_bytes());
            file.write_all_at(&frame, at)?;
            at += frame.len().next_multiple_of(BLOCK_BYTES) as u64;
        }
        // A block without a header ends the list.
        let answers_at = at + BLOCK_BYTES as u64;
        let answer_bytes = answer_bytes.next_multiple_of(BLOCK_BYTES as u64);
        file.set_len(answers_at + answer_bytes)?;
        Ok(Exchange { file, answers_at, next_at: answers_at })
    }

    /// What the guest has sent next; `None` if nothing yet.
    ///
    /// # Errors
    /// What is wrong with it. While the guest runs, the next look may find it right.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, &'static str> {
        let read = |bytes: &mut [u8], at| {
            self.file.read_exact_at(bytes, at).map_err(|_| "it does not fit on its disk")
        };
        let length = self.file.metadata().map_or(0, |file| file.len());
        if self.next_at >= length {
            return Ok(None);
        }
        let mut start = [0; LONGEST_HEADER];
        read(&mut start, self.next_at)?;
        let Some((header, head)) = Header::parse(&start)? else { return Ok(None) };
        let end = (self.next_at + head as u64).checked_add(header.length as u64);
        if end.is_none_or(|end| length < end) {
            return Err("its length does not fit");
        }
        let mut bytes = vec![0; header.length];
        read(&mut bytes, self.next_at + head as u64)?;
        let frame = header.with(bytes)?;
        let length = (head + header.length).next_multiple_of(BLOCK_BYTES) as u64;
        let punched = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // It only saves memory.
        let _ = fallocate(&self.file, punched, self.next_at, length);
        self.next_at += length;
        Ok(Some(frame))
    }
}
