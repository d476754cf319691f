//! Where the kernel tells what processes do.

use std::os::fd::RawFd;
use std::time::Duration;

use filemap_attach::{self as attach, Follower, MappedFile, MappedRange};
use filemap_kernel::following::{Following, Map, Seen, What};
use filemap_kernel::journal::Journal;
use filemap_kernel::trace::Inode;
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;

/// A record is in its ring by so long after its time.
const DELAY_NS: u64 = 1_000_000;

/// What is told of processes.
pub struct Source {
    by: By,
    /// What was told, and may be later than what is told next.
    early: Vec<Seen>,
    /// Mappings and advice of [`Source::early`] that nobody has looked at.
    fresh: Vec<Seen>,
}

enum By {
    /// Tracepoints, which root has.
    Points(Following),
    Events(Follower),
}

impl Source {
    /// Of what this thread starts, by tracepoints. They begin where a child switches them on.
    pub fn points(journal: &Journal) -> Result<(Source, Vec<RawFd>), Error> {
        let following = Following::open(journal)?;
        let events = following.descriptors();
        Ok((Source::of(By::Points(following)), events))
    }

    /// Of what this thread starts, for everybody.
    pub fn children() -> Result<Source, Error> {
        Ok(Source::of(By::Events(Follower::of_children()?)))
    }

    /// Of processes that run.
    pub fn processes(pids: &[u32]) -> Result<Source, Error> {
        let mut follower = Follower::of_processes()?;
        for pid in pids {
            match follower.add(*pid) {
                // Of a cgroup, processes may end at any time.
                Err(attach::Error::Gone { .. }) if pids.len() > 1 => {}
                added => added?,
            }
        }
        Ok(Source::of(By::Events(follower)))
    }

    fn of(by: By) -> Source {
        Source { by, early: Vec::new(), fresh: Vec::new() }
    }

    /// Whether it tells what goes through system calls: reads, advice, and what is taken away.
    pub fn tells_calls(&self) -> bool {
        matches!(self.by, By::Points(_))
    }

    /// What this kernel does not tell though it could.
    pub fn missing(&self) -> &[&'static str] {
        match &self.by {
            By::Points(following) => following.missing(),
            By::Events(_) => &[],
        }
    }

    /// Waits until something is told, for at most 2 ms.
    pub fn wait(&mut self) -> Result<(), Error> {
        match &mut self.by {
            By::Points(following) => following.wait(2),
            By::Events(follower) => drop(follower.wait(Duration::from_millis(2))?),
        }
        Ok(())
    }

    /// Takes over what was told meanwhile.
    pub fn pull(&mut self) -> Result<(), Error> {
        let first = self.early.len();
        let early = &mut self.early;
        match &mut self.by {
            By::Points(following) => following.read(early),
            By::Events(follower) => follower.read(&mut |event| early.push(seen(event)))?,
        }
        let is_fresh = |seen: &&Seen| {
            matches!(seen.what, What::Map(_) | What::Advise { .. } | What::AdviseFile { .. })
        };
        self.fresh.extend(self.early[first..].iter().filter(is_fresh).cloned());
        Ok(())
    }

    /// The mappings and the advice that were told since this was asked last, in no order.
    pub fn fresh(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.fresh)
    }

    /// How many faults of a range are told that came in this time, and are not taken yet.
    pub fn faults(&self, pid: u32, range: &MappedRange, from_ns: u64, until_ns: u64) -> u64 {
        let is_in = |seen: &&Seen| match seen.what {
            What::Fault { address, .. } => {
                seen.pid == pid
                    && (range.address..range.end()).contains(&address)
                    && (from_ns..until_ns).contains(&seen.at_ns)
            }
            _ => false,
        };
        self.early.iter().filter(is_in).count() as u64
    }

    /// What was told, in order of time. What is less than a millisecond old comes the next time, or
    /// now where it `is_over`.
    pub fn take(&mut self, is_over: bool) -> Vec<Seen> {
        self.early.sort_by_key(|seen| seen.at_ns);
        let until_ns = now_ns().saturating_sub(DELAY_NS);
        let count = if is_over {
            self.early.len()
        } else {
            self.early.partition_point(|seen| seen.at_ns < until_ns)
        };
        self.early.drain(..count).collect()
    }
}

/// Now by the clock of what is told.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

fn seen(event: attach::Event) -> Seen {
    let what = match event.what {
        attach::What::Map(range) => What::Map(map(range)),
        attach::What::Fault { address, .. } => What::Fault { address, is_write: false },
        attach::What::Begin { parent } => What::Begin { parent },
        attach::What::Exec => What::Exec,
        attach::What::End => What::End,
        attach::What::Lost { records } => What::Lost { records },
    };
    Seen { at_ns: event.at_ns, pid: event.pid, tid: event.tid, what }
}

fn map(range: MappedRange) -> Map {
    let file = range.file.map(|MappedFile { id, path }| {
        (Inode { major: id.major, minor: id.minor, number: id.inode }, path)
    });
    let flags = if range.is_shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
    Map {
        address: range.address,
        length_bytes: range.length_bytes,
        offset_bytes: range.offset_bytes,
        file,
        protection: range.protection,
        flags: flags.cast_unsigned(),
    }
}

/// The range of a mapping, for those who act on it.
pub fn range(map: &Map) -> MappedRange {
    let file = map.file.as_ref().map(|(inode, path)| MappedFile {
        id: attach::FileId { major: inode.major, minor: inode.minor, inode: inode.number },
        path: path.clone(),
    });
    MappedRange {
        address: map.address,
        length_bytes: map.length_bytes,
        offset_bytes: map.offset_bytes,
        file,
        protection: map.protection,
        is_shared: map.flags & libc::MAP_SHARED.cast_unsigned() != 0,
    }
}
