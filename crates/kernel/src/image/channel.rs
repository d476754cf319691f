//! The disk over which host and guest exchange frames: jobs at the front, answers behind them.
//!
//! The guest reads and writes the disk with O_DIRECT, so that a list of any length does not affect
//! its page cache. The host accesses the file that backs the disk while the guest runs. Each frame
//! begins at a new block, and its first block is written last: if the header is present, so is the
//! whole frame.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use super::frame::{self, ChannelFrame, FrameHeader, FrameKind, MAX_HEADER_BYTES};

/// Unit and alignment of O_DIRECT.
pub(super) const BLOCK_BYTES: usize = 4096;

/// Bytes per read or write.
const PIECE_BYTES: usize = 1 << 20;

/// Interval between two polls for a job, and the number of polls that may find it incomplete.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_DAMAGED_READS: u32 = 100;

/// The guest's end of the channel.
#[derive(Debug)]
pub(super) struct GuestChannel {
    disk: File,
    /// Longer than a piece, since a piece begins at the first aligned address in it.
    memory: Vec<u8>,
    tasks_at: u64,
    answers_at: u64,
}

impl GuestChannel {
    /// Opens the disk at `path`, with answers beginning at byte `answers_at`.
    pub(super) fn open(path: &Path, answers_at: u64) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        let disk = options.read(true).write(true).custom_flags(libc::O_DIRECT).open(path)?;
        Ok(GuestChannel {
            disk,
            memory: vec![0; PIECE_BYTES + BLOCK_BYTES],
            tasks_at: 0,
            answers_at,
        })
    }

    /// Waits for the next job, and returns it with its number.
    pub(super) fn await_task(&mut self) -> Result<(usize, String), String> {
        let mut damaged = 0;
        loop {
            match self.next_task() {
                Ok(Some(task)) => return Ok(task),
                Ok(None) => damaged = 0,
                // The host may still be writing it.
                Err(_) if damaged < MAX_DAMAGED_READS => damaged += 1,
                Err(error) => return Err(error),
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// The next job of the list; `None` after the last one.
    fn next_task(&mut self) -> Result<Option<(usize, String)>, String> {
        let wrong = |reason: &str| format!("the host's job list is invalid: {reason}");
        let failed = |error: io::Error| format!("read the host's job list: {error}");
        let mut first = Vec::new();
        self.read(self.tasks_at, BLOCK_BYTES, &mut first).map_err(failed)?;
        let Some((header, head)) = FrameHeader::parse(&first).map_err(wrong)? else {
            return Ok(None);
        };
        let length = head.checked_add(header.length).ok_or_else(|| wrong("its length"))?;
        let mut frame = first;
        while frame.len() < length {
            let bytes = (length - frame.len()).min(PIECE_BYTES);
            self.read(self.tasks_at + frame.len() as u64, bytes, &mut frame).map_err(failed)?;
        }
        frame.truncate(length);
        self.tasks_at += length.next_multiple_of(BLOCK_BYTES) as u64;
        let frame = header.into_frame(frame.split_off(head)).map_err(wrong)?;
        match frame.kind {
            FrameKind::Task => Ok(Some((frame.task, frame.text().map_err(wrong)?))),
            _ => Err(wrong("it contains something other than jobs")),
        }
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, kind: FrameKind, task: usize, bytes: &[u8]) -> io::Result<()> {
        let header = FrameHeader::new(kind, task, bytes).to_line();
        let length = header.len() + bytes.len();
        let mut at = BLOCK_BYTES;
        while at < length {
            let piece = &bytes[at - header.len()..];
            let piece = &piece[..piece.len().min(PIECE_BYTES)];
            self.write(self.answers_at + at as u64, piece)?;
            at += piece.len();
        }
        let first = bytes.len().min(BLOCK_BYTES - header.len());
        self.write(self.answers_at, &[header.as_bytes(), &bytes[..first]].concat())?;
        self.answers_at += length.next_multiple_of(BLOCK_BYTES) as u64;
        Ok(())
    }

    /// Appends to `to` the `bytes` bytes at `at`, and the rest of their last block.
    fn read(&mut self, at: u64, bytes: usize, to: &mut Vec<u8>) -> io::Result<()> {
        let piece = piece(&mut self.memory, bytes);
        self.disk.read_exact_at(piece, at)?;
        to.extend_from_slice(piece);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let piece = piece(&mut self.memory, bytes.len());
        piece[..bytes.len()].copy_from_slice(bytes);
        piece[bytes.len()..].fill(0);
        self.disk.write_all_at(piece, at)
    }
}

/// An aligned slice of `memory` with whole blocks for `bytes` bytes.
fn piece(memory: &mut [u8], bytes: usize) -> &mut [u8] {
    let start = memory.as_ptr().align_offset(BLOCK_BYTES);
    &mut memory[start..][..bytes.next_multiple_of(BLOCK_BYTES)]
}

/// A stream of bytes from a job to the host, in addition to its answer.
#[derive(Debug)]
pub struct JobLog<'a> {
    channel: &'a mut GuestChannel,
    task: usize,
    pending: Vec<u8>,
}

impl<'a> JobLog<'a> {
    pub(super) fn new(channel: &'a mut GuestChannel, task: usize) -> Self {
        JobLog { channel, task, pending: Vec::new() }
    }
}

impl Write for JobLog<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PIECE_BYTES - self.pending.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.pending.extend_from_slice(taken);
        if self.pending.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.channel.send(FrameKind::Log, self.task, &self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }
}

/// A file in memory, so that a full disk does not lose answers.
#[derive(Debug)]
pub(super) struct HostChannel {
    pub(super) file: File,
    /// Offset at which answers begin.
    pub(super) answers_at: u64,
    /// Offset of the next frame.
    next_at: u64,
    /// Offset and number of the next job.
    pub(super) task_at: u64,
    tasks: usize,
}

/// Space for jobs and for answers. Only unread frames take memory.
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

    /// Appends a job for the guest.
    pub(super) fn add(&mut self, payload: &str) -> io::Result<()> {
        let frame = frame::encode(FrameKind::Task, self.tasks, payload.as_bytes());
        let length = frame.len().next_multiple_of(BLOCK_BYTES) as u64;
        // The block after the last job is left without a header.
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

    /// The next frame from the guest; `None` if there is none yet.
    ///
    /// # Errors
    /// Why the frame is invalid. While the guest runs, it may be incomplete and become valid.
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
            return Err("its length does not match");
        }
        let mut bytes = vec![0; header.length];
        read(&mut bytes, self.next_at + head as u64)?;
        let frame = header.into_frame(bytes)?;
        let length = (head + header.length).next_multiple_of(BLOCK_BYTES) as u64;
        let punched = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Failure only costs memory.
        let _ = fallocate(&self.file, punched, self.next_at, length);
        self.next_at += length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(tasks: &[&str]) -> (HostChannel, GuestChannel) {
        let mut host = HostChannel::new().unwrap();
        tasks.iter().for_each(|task| host.add(task).unwrap());
        let channel = GuestChannel {
            disk: host.file.try_clone().unwrap(),
            memory: vec![0; PIECE_BYTES + BLOCK_BYTES],
            tasks_at: 0,
            answers_at: host.answers_at,
        };
        (host, channel)
    }

    #[test]
    fn transfers_frames_of_any_length() {
        let lengths = [0, 1, 4000, 4040, 4096, 5000, PIECE_BYTES, 2 * PIECE_BYTES + 4097];
        let texts = lengths.map(|length| "ab\n".repeat(length / 3 + 1)[..length].to_string());
        let (mut host, mut guest) = both(&texts.each_ref().map(String::as_str));
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(guest.next_task().unwrap(), Some((number, text.clone())));
            assert_eq!(host.next_frame(), Ok(None));
            guest.send(FrameKind::Begun, number, b"").unwrap();
            guest.send(FrameKind::Answer, number, text.as_bytes()).unwrap();
            assert_eq!(host.next_frame().unwrap().unwrap().kind, FrameKind::Begun);
            let frame = host.next_frame().unwrap().unwrap();
            assert_eq!((frame.task, frame.text().unwrap()), (number, text.clone()));
        }
        assert_eq!(guest.next_task().unwrap(), None);
        assert_eq!(host.next_frame(), Ok(None));
        host.add("another").unwrap();
        assert_eq!(guest.await_task().unwrap(), (texts.len(), "another".to_string()));
        host.task_at = host.answers_at - 2 * BLOCK_BYTES as u64;
        let large = "x".repeat(BLOCK_BYTES);
        assert_eq!(host.add(&large).unwrap_err().kind(), io::ErrorKind::StorageFull);
        host.add("the last").unwrap();
    }

    #[test]
    fn transfers_log_in_pieces() {
        let (mut host, mut guest) = both(&["job"]);
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES as u32 / 4).flat_map(u32::to_le_bytes).collect();
        let mut log = JobLog::new(&mut guest, 5);
        log.write_all(&bytes[..10]).unwrap();
        log.write_all(&bytes[10..]).unwrap();
        log.flush().unwrap();
        let mut got = Vec::new();
        while let Some(frame) = host.next_frame().unwrap() {
            assert_eq!((frame.kind, frame.task), (FrameKind::Log, 5));
            got.extend(frame.bytes);
        }
        assert!(got == bytes, "{} of {} bytes", got.len(), bytes.len());
    }

    #[test]
    fn ignores_incomplete_frames() {
        let (mut host, mut guest) = both(&["job"]);
        let first = guest.answers_at;
        guest.send(FrameKind::Answer, 0, &[b'x'; 3 * BLOCK_BYTES]).unwrap();
        let mut block = vec![0; BLOCK_BYTES];
        guest.disk.read_exact_at(&mut block, first).unwrap();
        guest.disk.write_all_at(&[0; BLOCK_BYTES], first).unwrap();
        assert_eq!(host.next_frame(), Ok(None));
        guest.disk.write_all_at(&block[..20], first).unwrap();
        assert!(host.next_frame().is_err());
        guest.disk.write_all_at(&block, first).unwrap();
        assert_eq!(host.next_frame().unwrap().unwrap().bytes.len(), 3 * BLOCK_BYTES);
    }
}
