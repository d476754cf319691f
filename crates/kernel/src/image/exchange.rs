//! The host's end of the disk between it and a guest.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use super::channel::BLOCK_BYTES;
use super::frame::{self, ChannelFrame, FrameHeader, FrameKind, MAX_HEADER_BYTES};

/// A file in memory: a full disk does not take an answer along.
#[derive(Debug)]
pub(super) struct HostChannel {
    pub(super) file: File,
    /// Where answers begin.
    pub(super) answers_at: u64,
    /// Where the next frame does.
    next_at: u64,
    /// Where the next job is written, and its number.
    pub(super) task_at: u64,
    tasks: usize,
}

/// Room for jobs, and for answers. Memory is taken only for what was written and not yet read.
const TASK_BYTES: u64 = 1 << 30;
const ANSWER_BYTES: u64 = 1 << 40;

impl HostChannel {
    /// An empty disk.
    pub(super) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("filemap-jobs", MemfdFlags::CLOEXEC)?);
        file.set_len(TASK_BYTES + ANSWER_BYTES)?;
        let (answers_at, next_at) = (TASK_BYTES, TASK_BYTES);
        Ok(HostChannel { file, answers_at, next_at, task_at: 0, tasks: 0 })
    }

    /// Gives the guest another job.
    pub(super) fn add(&mut self, payload: &str) -> io::Result<()> {
        let frame = frame::encode(FrameKind::Task, self.tasks, payload.as_bytes());
        let length = frame.len().next_multiple_of(BLOCK_BYTES) as u64;
        // A block without a header is left behind the last.
        if self.task_at + length >= self.answers_at {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (first, rest) = frame.split_at(frame.len().min(BLOCK_BYTES));
        self.file.write_all_at(rest, self.task_at + BLOCK_BYTES as u64)?;
        self.file.write_all_at(first, self.task_at)?;
        self.task_at += length;
        self.tasks += 1;
        Ok(())
    }

    /// What the guest has sent next; `None` if nothing yet.
    ///
    /// # Errors
    /// What is wrong with it. While the guest runs, the next look may find it right.
    pub(super) fn next_frame(&mut self) -> Result<Option<ChannelFrame>, &'static str> {
        let read = |bytes: &mut [u8], at| {
            self.file.read_exact_at(bytes, at).map_err(|_| "it does not fit on its disk")
        };
        let length = self.file.metadata().map_or(0, |file| file.len());
        if self.next_at >= length {
            return Ok(None);
        }
        let mut start = [0; MAX_HEADER_BYTES];
        read(&mut start, self.next_at)?;
        let Some((header, head)) = FrameHeader::parse(&start)? else { return Ok(None) };
        let end = (self.next_at + head as u64).checked_add(header.length as u64);
        if end.is_none_or(|end| length < end) {
            return Err("its length does not fit");
        }
        let mut bytes = vec![0; header.length];
        read(&mut bytes, self.next_at + head as u64)?;
        let frame = header.into_frame(bytes)?;
        let length = (head + header.length).next_multiple_of(BLOCK_BYTES) as u64;
        let punched = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // It only saves memory.
        let _ = fallocate(&self.file, punched, self.next_at, length);
        self.next_at += length;
        Ok(Some(frame))
    }
}
