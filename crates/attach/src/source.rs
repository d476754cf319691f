//! Event source over tracepoints, or over a [`Follower`] where tracepoints are unavailable.

use std::collections::HashSet;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::tracepoints::{TraceEvent, TraceEventKind, Tracepoints};
use crate::{Error, FollowMethod, Follower, MappedRange, event, now_ns};

/// Upper bound on the delay between a record's timestamp and its arrival in the ring buffer.
const MAX_RECORD_DELAY_NS: u64 = 1_000_000;

const MAX_WAIT: Duration = Duration::from_millis(2);

/// Programs map their files right after exec, and one soon after another.
const SPIN_AFTER_EXEC: Duration = Duration::from_millis(100);
const SPIN_AFTER_MAP: Duration = Duration::from_millis(10);
/// When faults are collected, the caller wants to examine each soon.
const SPIN_AFTER_FAULT: Duration = Duration::from_millis(2);

/// Events of processes, buffered until they can be delivered in order of time.
pub struct EventSource {
    backend: SourceBackend,
    /// Events read and not delivered yet. Records older than the newest of them may still arrive.
    pending: Vec<TraceEvent>,
    /// Copies of the mapping, advice, mmap(2), fork and exec events in `pending` that
    /// [`EventSource::take_new_events`] has not returned yet.
    unacted: Vec<TraceEvent>,
    /// PID, TID and address of each fault that [`EventSource::take_faults`] has not returned yet;
    /// `None` unless faults are collected.
    faults: Option<Vec<(u32, u32, u64)>>,
    spin_until: Instant,
    /// Whether a second CPU is available, so that polling does not delay the observed program.
    has_spare_cpu: bool,
}

enum SourceBackend {
    /// Requires root.
    Tracepoints(Tracepoints),
    Follower(Follower),
}

impl EventSource {
    /// Observes future children of the calling thread by the tracepoints of the tracefs at `root`.
    /// The returned event descriptors are disabled; each child enables them by
    /// [`crate::tracepoints::enable_events`].
    ///
    /// # Errors
    /// The caller may not use tracepoints.
    pub fn children_with_tracepoints(root: &Path) -> Result<(EventSource, Vec<RawFd>), Error> {
        let points = Tracepoints::for_children(root)?;
        let events = points.descriptors();
        Ok((EventSource::with_backend(SourceBackend::Tracepoints(points)), events))
    }

    /// Observes future children of the calling thread by unprivileged perf events.
    ///
    /// # Errors
    /// The caller may not use perf events.
    pub fn children() -> Result<EventSource, Error> {
        Ok(EventSource::with_backend(SourceBackend::Follower(Follower::for_children_with(
            FollowMethod::PerfEvents,
        )?)))
    }

    /// Observes running processes, by the tracepoints of the tracefs at `root` where available,
    /// otherwise by perf events. If only some processes can be observed, the last refusal is
    /// returned along with the source.
    ///
    /// # Errors
    /// None of the processes can be observed.
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
                // In a list, such as the members of a cgroup, processes may exit at any time.
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

    /// Whether system calls are reported: reads, advice, munmap(2) and mremap(2).
    pub fn reports_syscalls(&self) -> bool {
        matches!(self.backend, SourceBackend::Tracepoints(_))
    }

    /// Optional tracepoints that this kernel lacks.
    pub fn missing_tracepoints(&self) -> &[&'static str] {
        match &self.backend {
            SourceBackend::Tracepoints(points) => points.missing_tracepoints(),
            SourceBackend::Follower(_) => &[],
        }
    }

    /// Waits up to 2 ms for events. While mappings are likely to follow soon, it yields instead of
    /// sleeping: waking an idle CPU takes longer than a program needs to its first touches.
    ///
    /// # Errors
    /// Polling the rings fails.
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

    /// Moves new records from the rings to the pending events.
    ///
    /// # Errors
    /// As [`Follower::read_events`].
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
                    | TraceEventKind::MmapCall { .. }
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

    /// Takes the mapping, advice, mmap(2), fork and exec events read since the previous call, in no
    /// particular order.
    pub fn take_new_events(&mut self) -> Vec<TraceEvent> {
        std::mem::take(&mut self.unacted)
    }

    /// Starts collecting faults for [`EventSource::take_faults`].
    pub fn collect_faults(&mut self) {
        self.faults = Some(Vec::new());
    }

    /// Takes PID, TID and address of each fault read since the previous call.
    pub fn take_faults(&mut self) -> Vec<(u32, u32, u64)> {
        self.faults.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Page numbers (address / page size) in `range` of the pending faults in `from_ns..until_ns`.
    /// Events already returned by [`EventSource::take_events`] are not considered.
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

    /// Takes the pending events in order of time. Events younger than 1 ms are held back, since
    /// older records may still be on their way, unless `is_over`.
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
    let kind = match event.kind {
        event::EventKind::Map(range) => TraceEventKind::Map(range),
        event::EventKind::Fault { address, .. } => {
            TraceEventKind::Fault { address, is_write: false }
        }
        event::EventKind::Fork { parent } => TraceEventKind::Fork { parent },
        event::EventKind::Exec => TraceEventKind::Exec,
        event::EventKind::Exit => TraceEventKind::Exit,
        event::EventKind::Lost { records } => TraceEventKind::Lost { records },
    };
    TraceEvent { at_ns: event.at_ns, pid: event.pid, tid: event.tid, kind }
}
