//! Records of perf events, as `linux/perf_event.h` describes them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::points::Points;
use super::ring::RECORD_HEAD;
use super::{Map, Seen, What};
use crate::trace::Inode;

/// Kinds of records.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;

/// The flag of a new name that exec gave.
const BY_EXEC: u16 = 1 << 13;

/// Bytes at the end of each record that is no sample: the thread and the time.
const ORIGIN_BYTES: usize = 16;

/// Numbers, one behind the other.
struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_ne_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

/// What a record says, if it says something.
pub fn parse(record: &[u8], points: &Points) -> Option<Seen> {
    let mut head = Numbers(record);
    let (kind, flags) = (head.word()?, head.short()?);
    let body = record.get(RECORD_HEAD..)?;
    if kind == SAMPLE {
        return sample(body, points);
    }
    let (body, origin) = body.split_at_checked(body.len().checked_sub(ORIGIN_BYTES)?)?;
    let mut origin = Numbers(origin);
    let (pid, tid, at_ns) = (origin.word()?, origin.word()?, origin.long()?);
    let mut body = Numbers(body);
    let seen = |what| Some(Seen { at_ns, pid, tid, what });
    match kind {
        MMAP2 => seen(What::Map(map(body)?)),
        COMM if flags & BY_EXEC != 0 => seen(What::Exec),
        // The thread at the end is the one that calls; this is about the one that is made or ends.
        FORK | EXIT => {
            let (pid, parent, tid) = (body.word()?, body.word()?, body.word()?);
            let what = if kind == FORK { What::Begin { parent } } else { What::End };
            Some(Seen { at_ns, pid, tid, what })
        }
        LOST => seen(What::Lost { records: body.long().and_then(|_| body.long())? }),
        LOST_SAMPLES => seen(What::Lost { records: body.long()? }),
        _ => None,
    }
}

fn sample(body: &[u8], points: &Points) -> Option<Seen> {
    let mut body = Numbers(body);
    let (pid, tid, at_ns) = (body.word()?, body.word()?, body.long()?);
    let length = body.word()?;
    let what = points.say(body.bytes(length as usize)?)?;
    Some(Seen { at_ns, pid, tid, what })
}

fn map(mut body: Numbers<'_>) -> Option<Map> {
    let (_pid, _tid) = (body.word()?, body.word()?);
    let (address, length_bytes, offset_bytes) = (body.long()?, body.long()?, body.long()?);
    let (major, minor) = (body.word()?, body.word()?);
    let (number, _generation) = (body.long()?, body.long()?);
    let (protection, flags) = (body.word()?, body.word()?);
    let path = body.0.split(|byte| *byte == 0).next()?;
    // What is no file's has a name too, such as //anon or [stack].
    let is_file = number != 0 && path.first() == Some(&b'/') && !path.starts_with(b"//");
    let file = is_file.then(|| {
        let inode = Inode { major, minor, number };
        (inode, PathBuf::from(OsStr::from_bytes(path)))
    });
    Some(Map { address, length_bytes, offset_bytes, file, protection, flags })
}
