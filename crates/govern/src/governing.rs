//! The threads that follow and govern processes.
//!
//! One thread reads the events of the ring buffers and blocks on nothing else, since the kernel
//! drops events when a ring buffer is full. Four advisor threads take the tasks that may block:
//! opening files, reading `/proc`, stopping a thread of the program to inject madvise(2). All tasks
//! of a process go in order to advisor PID mod 4. The read time of each device is sampled once, in
//! a detached thread. Three reader threads issue the readahead calls, which block while the queue
//! of the device is full. When too many reads are queued, the oldest are dropped.
//!
//! A mapping is written to a journal in the user's run directory before it is advised: PID, start
//! time, address, file. Otherwise the advice that a killed governor leaves behind could not be told
//! from the program's own. `--release` reads the journal and restores mappings that are still
//! MADV_RANDOM and map the same file.

use std::collections::{HashMap, HashSet};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use filemap_attach::{Event, EventKind, FollowMethod, Follower, cgroup, now_ns, reason};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::advisor::AdvisorPool;
use crate::governor::Governor;
use crate::history_store::HistoryStore;
use crate::journal::{StaleJournal, start_ticks};
use crate::memory::MemoryPressure;
use crate::metrics::MetricsThread;
use crate::process::page_bytes;
use crate::reader::{ReadRequest, ReadaheadPool};
use crate::release::{UnrestoredMapping, release};
use crate::request::{AdvisorReply, AdvisorTask, Request, TakeMapping, TakeResult};
use crate::settings::GovernSettings;
use crate::statistics::{GovernStatistics, MappingState};

/// Interval at which state without events is polled: file sizes, memory pressure, cgroup members,
/// exited processes.
const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// Interval at which the file of metrics is replaced.
const METRICS_INTERVAL: Duration = Duration::from_secs(5);

/// Timeout of the wait for events: while events arrive, and the upper bound to which it doubles
/// while none do.
const BUSY_INTERVAL: Duration = Duration::from_millis(1);
const IDLE_INTERVAL: Duration = Duration::from_millis(10);

/// At shutdown, how long to wait for the replies of running tasks. Stopping a thread takes less.
const LAST_REPLIES_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout of the wait for events while readahead is active: a request that comes after the
/// program's own fault is useless. Purely random faults request nothing and do not shorten the
/// wait.
const READING_INTERVAL: Duration = Duration::from_micros(100);

/// Readahead counts as active for this long after the last request.
const READING_TIME: Duration = Duration::from_millis(10);

/// Maximum time until the session reports ready, even if existing mappings are not yet advised.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum outstanding tasks of one process, so that a process that keeps mapping does not starve
/// the others.
const MAX_TASKS: usize = 128;

/// Why a session cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refuses the events, or a process or cgroup does not exist.
    #[error(transparent)]
    Attach(#[from] filemap_attach::Error),
    /// A thread or a file of the governor cannot be created.
    #[error("the governor cannot be started: {0}")]
    Start(#[from] io::Error),
    /// No run directory is available.
    #[error("there is no directory for the files of a run; set XDG_RUNTIME_DIR to one of your own")]
    NoRunDirectory,
    /// A directory cannot be created in the run directory.
    #[error(
        "no directory can be made in '{}': {}; set XDG_RUNTIME_DIR to another",
        .parent.display(), reason(cause)
    )]
    CreateDirectory {
        /// The run directory.
        parent: PathBuf,
        /// The error of mkdir(2).
        cause: io::Error,
    },
}

/// The processes to govern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GovernTarget {
    /// The processes that the calling thread starts from now on.
    Children,
    /// Running processes and their descendants, and the members of cgroups, including later ones.
    Running {
        /// PIDs.
        pids: Vec<u32>,
        /// Paths of cgroups, or names of systemd units.
        cgroups: Vec<String>,
    },
}

impl GovernTarget {
    /// The PIDs that are targets at this moment.
    fn pids(&self) -> Vec<u32> {
        let GovernTarget::Running { pids, cgroups } = self else { return Vec::new() };
        let of_cgroups = cgroups.iter().filter_map(|name| cgroup::processes(name).ok()).flatten();
        pids.iter().copied().chain(of_cgroups).collect()
    }
}

/// The result of a session.
#[derive(Debug)]
pub struct GovernorOutcome {
    /// Counters by process and mapping.
    pub statistics: GovernStatistics,
    /// Mappings whose advice could not be restored.
    pub unrestored: Vec<UnrestoredMapping>,
}

/// A running governor. [`GovernorSession::finish`] ends it and restores the advice.
#[derive(Debug)]
pub struct GovernorSession {
    method: FollowMethod,
    shared: Arc<SessionShared>,
    thread: JoinHandle<GovernorOutcome>,
}

#[derive(Debug)]
struct SessionShared {
    /// Set to end the session; `wakeup`, an eventfd, interrupts the wait for events.
    is_ending: AtomicBool,
    wakeup: OwnedFd,
    /// The mappings that existed at the start are advised or were tried four times, or
    /// [`READY_TIMEOUT`] has passed.
    is_ready: AtomicBool,
    /// All named processes and their descendants have exited.
    is_over: AtomicBool,
}

impl GovernorSession {
    /// Starts governing `target`. Advised mappings are journaled in `directory`, for
    /// [`crate::release()`]. Warnings go to `say`, as sentences without a full stop.
    ///
    /// # Errors
    /// The kernel refuses the events, or a named process or cgroup does not exist.
    pub fn start(
        target: &GovernTarget,
        settings: GovernSettings,
        directory: Option<PathBuf>,
        say: impl Fn(&str) + Send + 'static,
    ) -> Result<GovernorSession, Error> {
        let follower = match target {
            GovernTarget::Children => Follower::for_children()?,
            GovernTarget::Running { .. } => Follower::for_processes()?,
        };
        let way = follower.method();
        // This also removes the journals whose processes have all exited.
        directory.iter().for_each(|directory| drop(StaleJournal::find(directory)));
        if let (Some(directory), false) = (&directory, settings.observe_only) {
            // Advice that a killed governor left must not be mistaken for the program's own.
            release(directory, &target.pids());
        }
        let shared = Arc::new(SessionShared {
            is_ending: AtomicBool::new(false),
            wakeup: eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
            is_ready: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let settings = match way {
            FollowMethod::PerfEvents => settings,
            // Polled touches come in no order, which a plan would need.
            FollowMethod::PageTables => GovernSettings { memory: None, ..settings },
        };
        let mut work = SessionThread {
            follower,
            store: settings.memory.clone(),
            metrics: settings.metrics.clone().map(MetricsThread::start).transpose()?,
            next_metrics: Instant::now() + METRICS_INTERVAL,
            advisor: AdvisorPool::start(&settings, directory)?,
            reader: ReadaheadPool::start(page_bytes())?,
            governor: Governor::new(settings, way == FollowMethod::PerfEvents),
            memory: MemoryPressure::default(),
            target: target.clone(),
            followed: HashSet::new(),
            tasks: HashMap::new(),
            last_read: None,
            started_at: Instant::now(),
            warned: HashSet::new(),
            warn: Box::new(say),
            shared: Arc::clone(&shared),
        };
        if let Err(error) = work.follow_targets() {
            work.advisor.end(Vec::new());
            return Err(error);
        }
        let builder = thread::Builder::new().name("governor".to_string());
        Ok(GovernorSession { method: way, shared, thread: builder.spawn(move || work.run())? })
    }

    /// How the kernel reports events of the processes.
    pub fn method(&self) -> FollowMethod {
        self.method
    }

    /// Whether the mappings that existed at the start are advised. A process that stays in system
    /// calls is tried four times, some tens of milliseconds in all.
    pub fn is_ready(&self) -> bool {
        self.shared.is_ready.load(Ordering::Relaxed)
    }

    /// Whether all named processes and their descendants have exited.
    pub fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    /// Ends the session and restores the advice in the processes that are still running.
    pub fn finish(self) -> GovernorOutcome {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        // The write fails only if the counter is at its maximum, and then the eventfd is readable.
        let _ = rustix::io::write(&self.shared.wakeup, &1_u64.to_ne_bytes());
        let failed =
            |_| GovernorOutcome { statistics: GovernStatistics::default(), unrestored: Vec::new() };
        self.thread.join().unwrap_or_else(failed)
    }
}

struct SessionThread {
    follower: Follower,
    advisor: AdvisorPool,
    reader: ReadaheadPool,
    governor: Governor,
    store: Option<HistoryStore>,
    metrics: Option<MetricsThread>,
    /// When metrics are written again.
    next_metrics: Instant,
    memory: MemoryPressure,
    target: GovernTarget,
    /// PID and start time of the followed processes that were named or found in a cgroup.
    followed: HashSet<(u32, u64)>,
    /// Outstanding tasks by process.
    tasks: HashMap<u32, usize>,
    /// Time of the last readahead request.
    last_read: Option<Instant>,
    /// Time of the start, for [`READY_TIMEOUT`].
    started_at: Instant,
    warned: HashSet<String>,
    warn: Box<dyn Fn(&str) + Send>,
    shared: Arc<SessionShared>,
}

impl SessionThread {
    fn run(mut self) -> GovernorOutcome {
        // The default timer slack of 50 us would stretch waits of 100 us.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut next_tick = Instant::now() + TICK_INTERVAL;
        let mut pause = BUSY_INTERVAL;
        while !self.shared.is_ending.load(Ordering::Relaxed) {
            let is_woken = self.wait(pause);
            let heard = self.process_events();
            self.update_ready();
            let is_ending = self.shared.is_ending.load(Ordering::Relaxed);
            if is_woken && !heard && !is_ending {
                // The event descriptor of an exited process stays readable: do not spin on it.
                thread::sleep(BUSY_INTERVAL);
            }
            let is_busy = heard && !self.governor.only_watches();
            pause = if is_busy || !self.tasks.is_empty() {
                BUSY_INTERVAL
            } else {
                (pause * 2).clamp(BUSY_INTERVAL, IDLE_INTERVAL)
            };
            if self.last_read.is_some_and(|last| last.elapsed() < READING_TIME) {
                pause = READING_INTERVAL;
            }
            if Instant::now() >= next_tick {
                self.tick();
                next_tick = Instant::now() + TICK_INTERVAL;
            }
        }
        self.process_events();
        self.finish()
    }

    /// Sets `is_ready` once the existing mappings are advised. Until then, mappings whose process
    /// was in a system call are retried on every round instead of every tick. [`READY_TIMEOUT`]
    /// bounds the wait for a process that keeps mapping.
    fn update_ready(&mut self) {
        if self.shared.is_ready.load(Ordering::Relaxed) {
            return;
        }
        let is_late = self.started_at.elapsed() >= READY_TIMEOUT;
        if is_late || self.tasks.is_empty() && !self.governor.expects_more() {
            self.shared.is_ready.store(true, Ordering::Relaxed);
        } else {
            self.governor.retry_idle(now_ns());
            self.execute_requests();
        }
    }

    /// Waits for events or the end of the session, at most `pause`. Returns whether a descriptor is
    /// readable.
    fn wait(&self, pause: Duration) -> bool {
        let mut waited_for: Vec<PollFd<'_>> = Vec::new();
        let fds = self.follower.poll_fds();
        waited_for.extend(fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        waited_for.push(PollFd::new(&self.shared.wakeup, PollFlags::IN));
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        poll(&mut waited_for, Some(&pause)).is_ok_and(|ready| ready > 0)
    }

    /// Handles all pending events and replies, and executes the resulting requests. Returns whether
    /// there were events.
    fn process_events(&mut self) -> bool {
        let (governor, mut events) = (&mut self.governor, 0_u64);
        let read = self.follower.read_events(&mut |event: Event| {
            events += u64::from(!matches!(event.kind, EventKind::Lost { .. }));
            governor.on_event(&event);
        });
        if let Err(error) = read {
            self.warn_once(&error.to_string());
        }
        while let Some(answer) = self.advisor.next_reply() {
            self.on_reply(answer);
        }
        self.execute_requests();
        events > 0
    }

    fn on_reply(&mut self, answer: AdvisorReply) {
        let pid = match &answer {
            AdvisorReply::Took { pid, .. }
            | AdvisorReply::Checked { pid, .. }
            | AdvisorReply::Maps { pid, .. }
            | AdvisorReply::NoMaps { pid } => Some(*pid),
            AdvisorReply::Released { leave, .. } => Some(leave.pid),
            AdvisorReply::PageReadTime { .. } => None,
        };
        if let Some(pid) = pid
            && let Some(tasks) = self.tasks.get_mut(&pid)
        {
            *tasks -= 1;
            if *tasks == 0 {
                self.tasks.remove(&pid);
            }
        }
        if let AdvisorReply::Took { pid, took: TakeResult::Refused(reason), .. } = &answer {
            self.warn_once(&format!("a mapping of process {pid} is not governed: {reason}"));
        }
        self.governor.on_reply(answer, now_ns());
    }

    /// Warns once per message; messages that differ only in digits count as the same.
    fn warn_once(&mut self, text: &str) {
        let kind: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.warned.insert(kind) {
            (self.warn)(text);
        }
    }

    fn execute_requests(&mut self) {
        let mut reads = Vec::new();
        for request in self.governor.take_requests() {
            match request {
                Request::Read { id, file, pages, is_for_later } => {
                    reads.push(ReadRequest { id, file, pages, is_speculative: is_for_later });
                }
                Request::CancelReads { id } => self.reader.cancel_speculative(id),
                Request::Watch { pid, range } => self.follower.watch(pid, &range),
                Request::Unwatch { pid, range } => self.follower.unwatch(pid, &range),
                Request::Task(task) => self.submit(task),
            }
        }
        if !reads.is_empty() {
            self.last_read = Some(Instant::now());
            for ReadRequest { id, pages, .. } in self.reader.submit(reads) {
                self.governor.on_dropped_read(id, pages);
            }
        }
    }

    /// Queues a task. Tasks with a reply are limited to [`MAX_TASKS`] per process; beyond that, and
    /// if the queue is full, the governor gets an immediate reply that makes it retry.
    fn submit(&mut self, task: AdvisorTask) {
        if !task.has_reply() {
            return drop(self.advisor.submit(task));
        }
        let pid = task.pid();
        let tasks = self.tasks.entry(pid).or_insert(0);
        let refused = if *tasks >= MAX_TASKS { Some(task) } else { self.advisor.submit(task) };
        match refused {
            None => *tasks += 1,
            Some(AdvisorTask::Take(TakeMapping { id, pid, .. })) => {
                let took =
                    TakeResult::Retry("it has more mappings than can be examined".to_string());
                self.governor.on_reply(AdvisorReply::Took { id, pid, took }, now_ns());
            }
            Some(AdvisorTask::Leave(leave)) => {
                self.governor
                    .on_reply(AdvisorReply::Released { leave, stopped_ns: None }, now_ns());
            }
            // The governor requests it again.
            Some(_) => {}
        }
        self.tasks.retain(|_, tasks| *tasks > 0);
    }

    fn tick(&mut self) {
        for pid in self.governor.pids() {
            if start_ticks(pid).is_none() {
                self.governor.on_exit(pid);
            }
        }
        self.governor.tick();
        self.remember(false);
        self.governor.retry_idle(now_ns());
        let pids = self.governor.pids();
        let short = self.memory.processes_under_pressure(&pids);
        self.governor.set_memory_short(|pid| short.contains(&pid));
        self.advisor.retain_processes(&pids.into_iter().collect());
        if let Err(error) = self.follow_targets() {
            self.warn_once(&error.to_string());
        }
        self.execute_requests();
        if let Some(metrics) = self.metrics.as_ref().filter(|_| Instant::now() >= self.next_metrics)
        {
            metrics.write(self.governor.statistics());
            self.next_metrics = Instant::now() + METRICS_INTERVAL;
        }
    }

    /// Stores the touch histories of closed files. At the end the costs of their devices are
    /// measured too, as the devices are idle then.
    fn remember(&mut self, is_end: bool) {
        let touched = self.governor.take_touched_files();
        let Some(store) = &self.store else { return };
        touched.iter().filter(|_| is_end).for_each(|file| file.measure_device(store));
        let failed: Vec<String> =
            touched.into_iter().filter_map(|file| file.remember(store).err()).collect();
        for reason in failed {
            self.warn_once(&format!("what was touched of a file is not remembered: {reason}"));
        }
    }

    /// Follows the named processes, and new members of the cgroups.
    fn follow_targets(&mut self) -> Result<(), Error> {
        let GovernTarget::Running { pids, cgroups } = self.target.clone() else { return Ok(()) };
        let mut all: Vec<u32> = Vec::new();
        if self.followed.is_empty() {
            all.extend(&pids);
        }
        let (mut failed, mut failed_of_cgroup) = (None, None);
        for name in &cgroups {
            match cgroup::processes(name) {
                Ok(found) => all.extend(found),
                Err(error) => failed = Some(error),
            }
        }
        let own = std::process::id();
        for pid in all.into_iter().filter(|pid| *pid != own) {
            let Some(start) = start_ticks(pid) else {
                if pids.contains(&pid) {
                    failed = Some(filemap_attach::Error::Gone { pid });
                }
                continue;
            };
            if self.followed.contains(&(pid, start)) {
                continue;
            }
            match self.follower.add(pid) {
                Ok(()) => drop(self.followed.insert((pid, start))),
                // It has exited meanwhile.
                Err(filemap_attach::Error::Gone { .. }) if !pids.contains(&pid) => {}
                Err(error) if pids.contains(&pid) => failed = Some(error),
                Err(error) => failed_of_cgroup = Some(error),
            }
        }
        match failed_of_cgroup {
            Some(error) if self.followed.is_empty() => failed = Some(error),
            // The other members of the cgroup are still followed.
            Some(error) => self.warn_once(&error.to_string()),
            None => {}
        }
        self.followed.retain(|(pid, start)| start_ticks(*pid) == Some(*start));
        let is_over =
            cgroups.is_empty() && self.followed.is_empty() && self.governor.pids().is_empty();
        self.shared.is_over.store(is_over, Ordering::Relaxed);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Waits for the replies of running tasks: mappings advised at the last moment have to be
    /// restored too.
    fn drain_replies(&mut self) {
        self.advisor.stop_taking();
        let deadline = Instant::now() + LAST_REPLIES_TIMEOUT;
        while !self.tasks.is_empty() && Instant::now() < deadline {
            match self.advisor.next_reply() {
                Some(answer) => self.on_reply(answer),
                None => thread::sleep(BUSY_INTERVAL),
            }
        }
    }

    fn finish(mut self) -> GovernorOutcome {
        self.drain_replies();
        for pid in self.governor.pids() {
            if start_ticks(pid).is_none() {
                self.governor.on_exit(pid);
            }
        }
        let given_back = self.governor.restorable();
        self.governor.close_files(true);
        self.remember(true);
        let left = self.advisor.end(given_back.clone());
        let mut statistics = self.governor.statistics();
        for process in statistics.processes.iter_mut().filter(|own| own.is_running) {
            for mapping in &mut process.mappings {
                let is_it =
                    |pid: u32, address: u64| (pid, address) == (process.pid, mapping.address);
                let was_given = given_back.iter().any(|(pid, own)| is_it(*pid, own.address));
                let is_left = left.iter().any(|own| is_it(own.pid, own.range.address));
                if mapping.state == MappingState::Governed && was_given && !is_left {
                    mapping.state = MappingState::Restored;
                }
            }
        }
        if let Some(reason) = self.metrics.take().and_then(|file| file.end(&statistics)) {
            (self.warn)(&format!("the file of --metrics is not up to date: {reason}"));
        }
        GovernorOutcome { statistics, unrestored: left }
    }
}
