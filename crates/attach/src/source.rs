//! Where the kernel tells what processes do.

use std::collections::HashSet;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::trace_points::{Event as Seen, TracePoints, What};
use crate::{Error, Follower, MappedRange, Way, event};

/// A record is in its ring by so long after its time.
const DELAY_NS: u64 = 1_000_000;

const LONGEST_WAIT: Duration = Duration::from_millis(2);

/// Programs map their files when they begin, and one after the other.
const AWAKE_AFTER_EXEC: Duration = Duration::from_millis(100);
const AWAKE_AFTER_MAP: Duration = Duration::from_millis(10);
/// Where faults are kept, each is to be looked at soon.
const AWAKE_AFTER_FAULT: Duration = Duration::from_millis(2);

/// What is told of processes.
pub struct Source {
    by: By,
    /// What was told, and may be later than what is told next.
    early: Vec<Seen>,
    /// Mappings, advice, new processes and new programs of [`Source::early`] that nobody has looked
    /// at.
    fresh: Vec<Seen>,
    /// The process, the thread and the address of each fault that nobody has looked at, where they
    /// are kept.
    faulted: Option<Vec<(u32, u32, u64)>>,
    awake_until: Instant,
    /// There is another CPU for the program.
    has_cpus: bool,
}

enum By {
    /// Tracepoints, which root has.
    Points(TracePoints),
    Events(Follower),
}

impl Source {
    /// Of what this thread starts, by the tracepoints at `root`. They begin where a child switches
    /// them on.
    ///
    /// # Errors
    /// No right to them.
    pub fn points(root: &Path) -> Result<(Source, Vec<RawFd>), Error> {
        let points = TracePoints::of_children(root)?;
        let events = points.descriptors();
        Ok((Source::of(By::Points(points)), events))
    }

    /// Of what this thread starts, for everybody.
    ///
    /// # Errors
    /// No right to perf events.
    pub fn children() -> Result<Source, Error> {
        Ok(Source::of(By::Events(Follower::of_children_by(Way::PerfEvents)?)))
    }

    /// Of processes that run, by the tracepoints at `root` where they may be used, and why some of
    /// them cannot be followed if others can.
    ///
    /// # Errors
    /// None of them can be followed.
    pub fn processes(pids: &[u32], root: Option<&Path>) -> Result<(Source, Option<Error>), Error> {
        let points = root.and_then(|root| TracePoints::of_processes(root).ok());
        let mut by = match points {
            Some(points) => By::Points(points),
            None => By::Events(Follower::of_processes_by(Way::PerfEvents)?),
        };
        let (mut followed, mut refused) = (0, None);
        for pid in pids {
            let added = match &mut by {
                By::Points(points) => points.add(*pid),
                By::Events(follower) => follower.add(*pid),
            };
            match added {
                // Of a cgroup, processes may end at any time.
                Err(Error::Gone { .. }) if pids.len() > 1 => {}
                Err(error) => refused = Some(error),
                Ok(()) => followed += 1,
            }
        }
        if followed == 0
            && let Some(error) = refused
        {
            return Err(error);
        }
        Ok((Source::of(by), refused))
    }

    fn of(by: By) -> Source {
        let has_cpus = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
        let (early, fresh) = (Vec::new(), Vec::new());
        Source { by, early, fresh, faulted: None, awake_until: Instant::now(), has_cpus }
    }

    /// Whether it tells what goes through system calls: reads, advice, and what is taken away.
    pub fn tells_calls(&self) -> bool {
        matches!(self.by, By::Points(_))
    }

    /// What this kernel does not tell though it could.
    pub fn missing(&self) -> &[&'static str] {
        match &self.by {
            By::Points(points) => points.missing(),
            By::Events(_) => &[],
        }
    }

    /// Waits until something is told, for at most 2 ms. It does not sleep where files are likely to
    /// be mapped soon, as a CPU that has to be woken is up later than a program's first touches.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn wait(&mut self) -> Result<(), Error> {
        if Instant::now() < self.awake_until {
            std::thread::yield_now();
            return Ok(());
        }
        match &mut self.by {
            By::Points(points) => points.wait(LONGEST_WAIT)?,
            By::Events(follower) => drop(follower.wait(LONGEST_WAIT)?),
        }
        Ok(())
    }

    /// Takes over what was told meanwhile.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn pull(&mut self) -> Result<(), Error> {
        let first = self.early.len();
        let early = &mut self.early;
        match &mut self.by {
            By::Points(points) => points.read(true, &mut |event| early.push(event)),
            By::Events(follower) => follower.read(&mut |event| early.push(seen(event)))?,
        }
        if let Some(faulted) = &mut self.faulted {
            faulted.extend(self.early[first..].iter().filter_map(|seen| match seen.what {
                What::Fault { address, .. } => Some((seen.pid, seen.tid, address)),
                _ => None,
            }));
        }
        let is_fresh = |seen: &&Seen| {
            matches!(
                seen.what,
                What::Map(_)
                    | What::Exec
                    | What::Begin { .. }
                    | What::Advise { .. }
                    | What::AdviseFile { .. }
                    | What::ReadAhead { .. }
            )
        };
        self.fresh.extend(self.early[first..].iter().filter(is_fresh).cloned());
        let awake = self.early[first..].iter().filter_map(|seen| match seen.what {
            What::Exec => Some(AWAKE_AFTER_EXEC),
            What::Map(_) => Some(AWAKE_AFTER_MAP),
            What::Fault { .. } if self.faulted.is_some() => Some(AWAKE_AFTER_FAULT),
            _ => None,
        });
        if let Some(longest) = awake.max().filter(|_| self.has_cpus) {
            self.awake_until = self.awake_until.max(Instant::now() + longest);
        }
        Ok(())
    }

    /// The mappings, the advice, the new processes and the new programs that were told since this
    /// was asked last, in no order.
    pub fn fresh(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.fresh)
    }

    /// Keeps faults for [`Source::faulted`].
    pub fn keep_faults(&mut self) {
        self.faulted = Some(Vec::new());
    }

    /// The process, the thread and the address of each fault that was told since this was asked
    /// last.
    pub fn faulted(&mut self) -> Vec<(u32, u32, u64)> {
        self.faulted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The pages of a range on which faults are told that came in this time, and are not taken yet:
    /// addresses, divided by the page size.
    pub fn faults(
        &self,
        pid: u32,
        range: &MappedRange,
        from_ns: u64,
        until_ns: u64,
    ) -> HashSet<u64> {
        let page_bytes = rustix::param::page_size() as u64;
        let page = |seen: &Seen| match seen.what {
            What::Fault { address, .. } => {
                let is_in = seen.pid == pid
                    && range.contains(address)
                    && (from_ns..until_ns).contains(&seen.at_ns);
                is_in.then_some(address / page_bytes)
            }
            _ => None,
        };
        self.early.iter().filter_map(page).collect()
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

fn seen(event: event::Event) -> Seen {
    let what = match event.what {
        event::What::Map(range) => What::Map(range),
        event::What::Fault { address, .. } => What::Fault { address, is_write: false },
        event::What::Begin { parent } => What::Begin { parent },
        event::What::Exec => What::Exec,
        event::What::End => What::End,
        event::What::Lost { records } => What::Lost { records },
    };
    Seen { at_ns: event.at_ns, pid: event.pid, tid: event.tid, what }
}
