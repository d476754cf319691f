//! Processes are followed and governed, in threads of this process.
//!
//! One thread reads events. It never waits for anything else, since the kernel drops events that
//! nobody reads. Four others, the advisors, do what may take its time: they open files, read
//! `/proc`, and stop a thread of the program to advise. All that is to be done for one process is
//! done by one of them, in order: that of the process' number modulo 4. How long a page takes to
//! read is looked at in a thread of its own, once for each device. Three readers ask the kernel to
//! read, since such a call waits for room in the device's queue. When too many reads wait, the
//! oldest are dropped.
//!
//! Each mapping is noted in a file of the user's directory before it is advised: process and its
//! start, address, file. Without a line there, a governor that is killed would leave advice that
//! nobody could tell from the program's own. `--release` goes by these lines, and restores what is
//! still RANDOM and maps the same file.

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
use crate::journal::{StaleJournal, start_ticks};
use crate::memory::MemoryPressure;
use crate::process::page_bytes;
use crate::reader::{ReadRequest, ReadaheadPool};
use crate::release::{UnrestoredMapping, release};
use crate::request::{AdvisorReply, AdvisorTask, Request, TakeMapping, TakeResult};
use crate::settings::GovernSettings;
use crate::statistics::{GovernStatistics, MappingState};

/// How often there is a look at what tells nothing by itself: files, memory, cgroups, and processes
/// that may have ended.
const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// How long nothing is read while there are events, and while there are none.
const BUSY_INTERVAL: Duration = Duration::from_millis(1);
const IDLE_INTERVAL: Duration = Duration::from_millis(10);

/// How long it is waited in the end for what is under way. To stop a thread takes less.
const LAST_REPLIES_TIMEOUT: Duration = Duration::from_secs(3);

/// The same while reads are asked for: what is asked for later than the program comes to it is of
/// no use. Nothing is read oftener where faults are on single pages that lie anywhere.
const READING_INTERVAL: Duration = Duration::from_micros(100);

/// Reads are asked for where the last was less than this ago.
const READING_TIME: Duration = Duration::from_millis(10);

/// How long it is waited at most until what is mapped is advised.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// Tasks of one process that wait at most: a process that maps without end leaves room for others.
const MAX_TASKS: usize = 128;

/// Why nothing can be governed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be followed, or a process or cgroup is not there.
    #[error(transparent)]
    Attach(#[from] filemap_attach::Error),
    /// A thread or a file of the governor's own cannot be made.
    #[error("the governor cannot be started: {0}")]
    Start(#[from] io::Error),
    /// There is no place for what a run leaves.
    #[error("there is no directory for what a run leaves; set XDG_RUNTIME_DIR to one of your own")]
    NoRunDirectory,
    /// Nothing can be made in that place.
    #[error(
        "no directory can be made in '{}': {}; set XDG_RUNTIME_DIR to another",
        .parent.display(), reason(cause)
    )]
    CreateDirectory {
        /// The place.
        parent: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

/// What is governed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GovernTarget {
    /// What the calling thread starts from now on.
    Children,
    /// Processes that run, and what they start; and those of cgroups, also later ones.
    Running {
        /// Numbers of processes.
        pids: Vec<u32>,
        /// Paths, or names of systemd units.
        cgroups: Vec<String>,
    },
}

impl GovernTarget {
    /// The processes that are there now.
    fn pids(&self) -> Vec<u32> {
        let GovernTarget::Running { pids, cgroups } = self else { return Vec::new() };
        let of_cgroups = cgroups.iter().filter_map(|name| cgroup::processes(name).ok()).flatten();
        pids.iter().copied().chain(of_cgroups).collect()
    }
}

/// What was done, after the end.
#[derive(Debug)]
pub struct GovernorOutcome {
    /// What was done for each process.
    pub statistics: GovernStatistics,
    /// Mappings whose advice could not be restored.
    pub unrestored: Vec<UnrestoredMapping>,
}

/// Processes are governed as long as this is there.
#[derive(Debug)]
pub struct GovernorSession {
    method: FollowMethod,
    shared: Arc<SessionShared>,
    thread: JoinHandle<GovernorOutcome>,
}

#[derive(Debug)]
struct SessionShared {
    /// It is to end, and becomes readable then.
    is_ending: AtomicBool,
    wakeup: OwnedFd,
    /// What was mapped when it began is advised, or was tried often enough.
    is_ready: AtomicBool,
    /// No process is left of those that were named.
    is_over: AtomicBool,
}

impl GovernorSession {
    /// Begins to govern `target`. What is advised is noted in `directory`, for
    /// [`crate::release()`]. What a user should know meanwhile is given to `say`, as a sentence
    /// without its end.
    ///
    /// # Errors
    /// When nothing can be followed: the kernel refuses it, or what is named is not there.
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
        // Journals of processes that are gone are removed by that.
        directory.iter().for_each(|directory| drop(StaleJournal::find(directory)));
        if let (Some(directory), false) = (&directory, settings.observe_only) {
            // Advice that a killed governor has left is not the program's.
            release(directory, &target.pids());
        }
        let shared = Arc::new(SessionShared {
            is_ending: AtomicBool::new(false),
            wakeup: eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
            is_ready: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let mut work = SessionThread {
            follower,
            advisor: AdvisorPool::start(settings.observe_only, directory)?,
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

    /// How processes are followed.
    pub fn method(&self) -> FollowMethod {
        self.method
    }

    /// Whether what was mapped when it began is advised. A process that does not leave its system
    /// calls is tried four times, which takes some hundredths of a second.
    pub fn is_ready(&self) -> bool {
        self.shared.is_ready.load(Ordering::Relaxed)
    }

    /// Whether no process is left of those that were named.
    pub fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    /// Ends it: advice is restored in the processes that live on.
    pub fn finish(self) -> GovernorOutcome {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        // It fails only where it is readable already.
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
    memory: MemoryPressure,
    target: GovernTarget,
    /// Processes that were named, or found in a cgroup, with their starts.
    followed: HashSet<(u32, u64)>,
    /// How many tasks of each process are not done yet.
    tasks: HashMap<u32, usize>,
    /// When a read was asked for last.
    last_read: Option<Instant>,
    /// When it began to govern.
    started_at: Instant,
    warned: HashSet<String>,
    warn: Box<dyn Fn(&str) + Send>,
    shared: Arc<SessionShared>,
}

impl SessionThread {
    fn run(mut self) -> GovernorOutcome {
        // Pauses of some microseconds are meant so.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut next_tick = Instant::now() + TICK_INTERVAL;
        let mut pause = BUSY_INTERVAL;
        while !self.shared.is_ending.load(Ordering::Relaxed) {
            let is_woken = self.wait(pause);
            let heard = self.process_events();
            self.update_ready();
            let is_ending = self.shared.is_ending.load(Ordering::Relaxed);
            if is_woken && !heard && !is_ending {
                // What has ended is readable for ever.
                thread::sleep(BUSY_INTERVAL);
            }
            pause = if heard || !self.tasks.is_empty() {
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

    /// Whoever waits for the governor is told when what was mapped is advised. A process that was
    /// in a system call is tried again soon for that, and later only now and then. One that maps
    /// without end is not waited for.
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

    /// Waits until there is something to read, or it is to end, or for `pause`. Returns whether
    /// there is something.
    fn wait(&self, pause: Duration) -> bool {
        let mut waited_for: Vec<PollFd<'_>> = Vec::new();
        let fds = self.follower.poll_fds();
        waited_for.extend(fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        waited_for.push(PollFd::new(&self.shared.wakeup, PollFlags::IN));
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        poll(&mut waited_for, Some(&pause)).is_ok_and(|ready| ready > 0)
    }

    /// Hears all that there is, and does what follows. Returns whether there was something.
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

    /// Says what is not said yet. What differs in numbers only is the same.
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

    /// Gives an advisor a task. Of those that it answers, one process has only so many at a time.
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
                let took = TakeResult::Retry("it maps more than can be looked at".to_string());
                self.governor.on_reply(AdvisorReply::Took { id, pid, took }, now_ns());
            }
            Some(AdvisorTask::Leave(leave)) => {
                self.governor
                    .on_reply(AdvisorReply::Released { leave, stopped_ns: None }, now_ns());
            }
            // It is asked for again.
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
        self.governor.retry_idle(now_ns());
        let pids = self.governor.pids();
        let short = self.memory.processes_under_pressure(&pids);
        self.governor.set_memory_short(|pid| short.contains(&pid));
        self.advisor.retain_processes(&pids.into_iter().collect());
        if let Err(error) = self.follow_targets() {
            self.warn_once(&error.to_string());
        }
        self.execute_requests();
    }

    /// Follows the processes that are named and those of the cgroups that are new.
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
                // It has ended meanwhile.
                Err(filemap_attach::Error::Gone { .. }) if !pids.contains(&pid) => {}
                Err(error) if pids.contains(&pid) => failed = Some(error),
                Err(error) => failed_of_cgroup = Some(error),
            }
        }
        match failed_of_cgroup {
            Some(error) if self.followed.is_empty() => failed = Some(error),
            // The others of the cgroup are followed all the same.
            Some(error) => self.warn_once(&error.to_string()),
            None => {}
        }
        self.followed.retain(|(pid, start)| start_ticks(*pid) == Some(*start));
        let is_over =
            cgroups.is_empty() && self.followed.is_empty() && self.governor.pids().is_empty();
        self.shared.is_over.store(is_over, Ordering::Relaxed);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Hears of what is being advised just now: it is to be restored too.
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
        GovernorOutcome { statistics, unrestored: left }
    }
}
