//! Where the kernel tells what processes do.

use std::collections::HashSet;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::trace_points::{TraceEvent, TraceEventKind, Tracepoints};
use crate::{Error, FollowMethod, Follower, MappedRange, event, now_ns};

/// A record is in its ring by so long after its time.
const MAX_RECORD_DELAY_NS: u64 = 1_000_000;

const MAX_WAIT: Duration = Duration::from_millis(2);

/// Programs map their files when they begin, and one after the other.
const SPIN_AFTER_EXEC: Duration = Duration::from_millis(100);
const SPIN_AFTER_MAP: Duration = Duration::from_millis(10);
/// Where faults are kept, each is to be looked at soon.
const SPIN_AFTER_FAULT: Duration = Duration::from_millis(2);

/// TraceEventKind is told of processes.
pub struct EventSource {
    backend: SourceBackend,
    /// TraceEventKind was told, and may be later than what is told next.
    pending: Vec<TraceEvent>,
    /// Mappings, advice, new processes and new programs of [`EventSource::early`] that nobody has
    /// looked at.
    unacted: Vec<TraceEvent>,
    /// The process, the thread and the address of each fault that nobody has looked at, where they
    /// are kept.
    faults: Option<Vec<(u32, u32, u64)>>,
    spin_until: Instant,
    /// There is another CPU for the program.
    has_spare_cpu: bool,
}

enum SourceBackend {
    /// Tracepoints, which root has.
    Tracepoints(Tracepoints),
    Follower(Follower),
}

impl EventSource {
    /// Of what this thread starts, by the tracepoints at `root`. They begin where a child switches
    /// them on.
    ///
    /// # Errors
    /// No right to them.
    pub fn children_with_tracepoints(root: &Path) -> Result<(EventSource, Vec<RawFd>), Error> {
        let points = Tracepoints::for_children(root)?;
        let events = points.descriptors();
        Ok((EventSource::with_backend(SourceBackend::Tracepoints(points)), events))
    }

    /// Of what this thread starts, for everybody.
    ///
    /// # Errors
    /// No right to perf events.
    pub fn children() -> Result<EventSource, Error> {
        Ok(EventSource::with_backend(SourceBackend::Follower(Follower::for_children_with(
            FollowMethod::PerfEvents,
        )?)))
    }

    /// Of processes that run, by the tracepoints at `root` where they may be used, and why some of
    /// them cannot be followed if others can.
    ///
    /// # Errors
    /// None of them can be followed.
    pub fn processes(
        pids: &[u32],
        root: Option<&Path>,
    ) -> Result<(EventSource, Option<Error>), Error> {
        let points = root.and_then(|root| Tracepoints::for_processes(root).ok());
        let mut by = match points {
            Some(points) => SourceBackend::Tracepoints(points),
            None => {
                SourceBackend::Follower(Follower::for_processes_with(FollowMethod::PerfEvents)?)
            }
        };
        let (mut followed, mut refused) = (0, None);
        for pid in pids {
            let added = match &mut by {
                SourceBackend::Tracepoints(points) => points.add(*pid),
                SourceBackend::Follower(follower) => follower.add(*pid),
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
        Ok((EventSource::with_backend(by), refused))
    }

    fn with_backend(by: SourceBackend) -> EventSource {
        let has_cpus = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
        let (early, fresh) = (Vec::new(), Vec::new());
        EventSource {
            backend: by,
            pending: early,
            unacted: fresh,
            faults: None,
            spin_until: Instant::now(),
            has_spare_cpu: has_cpus,
        }
    }

    /// Whether it tells what goes through system calls: reads, advice, and what is taken away.
    pub fn reports_syscalls(&self) -> bool {
        matches!(self.backend, SourceBackend::Tracepoints(_))
    }

    /// TraceEventKind this kernel does not tell though it could.
    pub fn missing_tracepoints(&self) -> &[&'static str] {
        match &self.backend {
            SourceBackend::Tracepoints(points) => points.missing_tracepoints(),
            SourceBackend::Follower(_) => &[],
        }
    }

    /// Waits until something is told, for at most 2 ms. It does not sleep where files are likely to
    /// be mapped soon, as a CPU that has to be woken is up later than a program's first touches.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn wait(&mut self) -> Result<(), Error> {
        if Instant::now() < self.spin_until {
            std::thread::yield_now();
            return Ok(());
        }
        match &mut self.backend {
            SourceBackend::Tracepoints(points) => points.wait(MAX_WAIT)?,
            SourceBackend::Follower(follower) => drop(follower.wait(MAX_WAIT)?),
        }
        Ok(())
    }

    /// Takes over what was told meanwhile.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn read_events(&mut self) -> Result<(), Error> {
        let first = self.pending.len();
        let early = &mut self.pending;
        match &mut self.backend {
            SourceBackend::Tracepoints(points) => {
                points.read_events(true, &mut |event| early.push(event))
            }
            SourceBackend::Follower(follower) => {
                follower.read_events(&mut |event| early.push(to_trace_event(event)))?
            }
        }
        if let Some(faulted) = &mut self.faults {
            faulted.extend(self.pending[first..].iter().filter_map(|seen| match seen.kind {
                TraceEventKind::Fault { address, .. } => Some((seen.pid, seen.tid, address)),
                _ => None,
            }));
        }
        let is_fresh = |seen: &&TraceEvent| {
            matches!(
                seen.kind,
                TraceEventKind::Map(_)
                    | TraceEventKind::Exec
                    | TraceEventKind::Fork { .. }
                    | TraceEventKind::MadviseCall { .. }
                    | TraceEventKind::FadviseCall { .. }
                    | TraceEventKind::ReadaheadCall { .. }
            )
        };
        self.unacted.extend(self.pending[first..].iter().filter(is_fresh).cloned());
        let awake = self.pending[first..].iter().filter_map(|seen| match seen.kind {
            TraceEventKind::Exec => Some(SPIN_AFTER_EXEC),
            TraceEventKind::Map(_) => Some(SPIN_AFTER_MAP),
            TraceEventKind::Fault { .. } if self.faults.is_some() => Some(SPIN_AFTER_FAULT),
            _ => None,
        });
        if let Some(longest) = awake.max().filter(|_| self.has_spare_cpu) {
            self.spin_until = self.spin_until.max(Instant::now() + longest);
        }
        Ok(())
    }

    /// The mappings, the advice, the new processes and the new programs that were told since this
    /// was asked last, in no order.
    pub fn take_new_events(&mut self) -> Vec<TraceEvent> {
        std::mem::take(&mut self.unacted)
    }

    /// Keeps faults for [`EventSource::faulted`].
    pub fn collect_faults(&mut self) {
        self.faults = Some(Vec::new());
    }

    /// The process, the thread and the address of each fault that was told since this was asked
    /// last.
    pub fn take_faults(&mut self) -> Vec<(u32, u32, u64)> {
        self.faults.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The pages of a range on which faults are told that came in this time, and are not taken yet:
    /// addresses, divided by the page size.
    pub fn faulted_pages(
        &self,
        pid: u32,
        range: &MappedRange,
        from_ns: u64,
        until_ns: u64,
    ) -> HashSet<u64> {
        let page_bytes = rustix::param::page_size() as u64;
        let page = |seen: &TraceEvent| match seen.kind {
            TraceEventKind::Fault { address, .. } => {
                let is_in = seen.pid == pid
                    && range.contains(address)
                    && (from_ns..until_ns).contains(&seen.at_ns);
                is_in.then_some(address / page_bytes)
            }
            _ => None,
        };
        self.pending.iter().filter_map(page).collect()
    }

    /// TraceEventKind was told, in order of time. TraceEventKind is less than a millisecond old
    /// comes the next time, or now where it `is_over`.
    pub fn take_events(&mut self, is_over: bool) -> Vec<TraceEvent> {
        self.pending.sort_by_key(|seen| seen.at_ns);
        let until_ns = now_ns().saturating_sub(MAX_RECORD_DELAY_NS);
        let count = if is_over {
            self.pending.len()
        } else {
            self.pending.partition_point(|seen| seen.at_ns < until_ns)
        };
        self.pending.drain(..count).collect()
    }
}

fn to_trace_event(event: event::Event) -> TraceEvent {
    let what = match event.kind {
        event::EventKind::Map(range) => TraceEventKind::Map(range),
        event::EventKind::Fault { address, .. } => {
            TraceEventKind::Fault { address, is_write: false }
        }
        event::EventKind::Fork { parent } => TraceEventKind::Fork { parent },
        event::EventKind::Exec => TraceEventKind::Exec,
        event::EventKind::Exit => TraceEventKind::Exit,
        event::EventKind::Lost { records } => TraceEventKind::Lost { records },
    };
    TraceEvent { at_ns: event.at_ns, pid: event.pid, tid: event.tid, kind: what }
}
