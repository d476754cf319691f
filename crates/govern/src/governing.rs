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

use filemap_attach::{Event, Follower, Way, What, cgroup, reason};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::advisor::Advisor;
use crate::governor::Governor;
use crate::journal::{LeftJournal, start_ticks};
use crate::memory::Memory;
use crate::process::page_bytes;
use crate::reader::{Read, Reader};
use crate::release::{Left, release};
use crate::request::{Answer, Request, Take, Task, Took};
use crate::settings::Settings;
use crate::statistics::{MappingState, Statistics};

/// How often there is a look at what tells nothing by itself: files, memory, cgroups, and processes
/// that may have ended.
const TICK: Duration = Duration::from_millis(200);

/// How long nothing is read while there are events, and while there are none.
const BUSY: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(10);

/// How long it is waited in the end for what is under way. To stop a thread takes less.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// The same while reads are asked for: what is asked for later than the program comes to it is of
/// no use. Nothing is read oftener where faults are on single pages that lie anywhere.
const PROMPT: Duration = Duration::from_micros(100);

/// Reads are asked for where the last was less than this ago.
const PROMPT_TIME: Duration = Duration::from_millis(10);

/// How long it is waited at most until what is mapped is advised.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// Tasks of one process that wait at most: a process that maps without end leaves room for others.
const MOST_TASKS: usize = 128;

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
    NoPlace,
    /// Nothing can be made in that place.
    #[error(
        "no directory can be made in '{}': {}; set XDG_RUNTIME_DIR to another",
        .place.display(), reason(cause)
    )]
    NoDirectory {
        /// The place.
        place: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

/// What is governed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
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

impl Target {
    /// The processes that are there now.
    fn pids(&self) -> Vec<u32> {
        let Target::Running { pids, cgroups } = self else { return Vec::new() };
        let of_cgroups = cgroups.iter().filter_map(|name| cgroup::processes(name).ok()).flatten();
        pids.iter().copied().chain(of_cgroups).collect()
    }
}

/// What was done, after the end.
#[derive(Debug)]
pub struct Outcome {
    /// What was done for each process.
    pub statistics: Statistics,
    /// Mappings whose advice could not be restored.
    pub left: Vec<Left>,
}

/// Processes are governed as long as this is there.
#[derive(Debug)]
pub struct Governing {
    way: Way,
    shared: Arc<Shared>,
    thread: JoinHandle<Outcome>,
}

#[derive(Debug)]
struct Shared {
    /// It is to end, and becomes readable then.
    is_ending: AtomicBool,
    ends: OwnedFd,
    /// What was mapped when it began is advised, or was tried often enough.
    is_ready: AtomicBool,
    /// No process is left of those that were named.
    is_over: AtomicBool,
}

impl Governing {
    /// Begins to govern `target`. What is advised is noted in `directory`, for
    /// [`crate::release()`]. What a user should know meanwhile is given to `say`, as a sentence
    /// without its end.
    ///
    /// # Errors
    /// When nothing can be followed: the kernel refuses it, or what is named is not there.
    pub fn begin(
        target: &Target,
        settings: Settings,
        directory: Option<PathBuf>,
        say: impl Fn(&str) + Send + 'static,
    ) -> Result<Governing, Error> {
        let follower = match target {
            Target::Children => Follower::of_children()?,
            Target::Running { .. } => Follower::of_processes()?,
        };
        let way = follower.way();
        // Journals of processes that are gone are removed by that.
        directory.iter().for_each(|directory| drop(LeftJournal::all(directory)));
        if let (Some(directory), false) = (&directory, settings.only_observes) {
            // Advice that a killed governor has left is not the program's.
            release(directory, &target.pids());
        }
        let shared = Arc::new(Shared {
            is_ending: AtomicBool::new(false),
            ends: eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
            is_ready: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let mut work = Work {
            follower,
            advisor: Advisor::start(settings.only_observes, directory)?,
            reader: Reader::start(page_bytes())?,
            governor: Governor::new(settings, way == Way::PerfEvents),
            memory: Memory::default(),
            target: target.clone(),
            added: HashSet::new(),
            tasks: HashMap::new(),
            last_read: None,
            begun: Instant::now(),
            has_said: HashSet::new(),
            say: Box::new(say),
            shared: Arc::clone(&shared),
        };
        if let Err(error) = work.add_named() {
            work.advisor.end(Vec::new());
            return Err(error);
        }
        let builder = thread::Builder::new().name("governor".to_string());
        Ok(Governing { way, shared, thread: builder.spawn(move || work.until_end())? })
    }

    /// How processes are followed.
    pub fn way(&self) -> Way {
        self.way
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
    pub fn end(self) -> Outcome {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        // It fails only where it is readable already.
        let _ = rustix::io::write(&self.shared.ends, &1_u64.to_ne_bytes());
        let failed = |_| Outcome { statistics: Statistics::default(), left: Vec::new() };
        self.thread.join().unwrap_or_else(failed)
    }
}

struct Work {
    follower: Follower,
    advisor: Advisor,
    reader: Reader,
    governor: Governor,
    memory: Memory,
    target: Target,
    /// Processes that were named, or found in a cgroup, with their starts.
    added: HashSet<(u32, u64)>,
    /// How many tasks of each process are not done yet.
    tasks: HashMap<u32, usize>,
    /// When a read was asked for last.
    last_read: Option<Instant>,
    /// When it began to govern.
    begun: Instant,
    has_said: HashSet<String>,
    say: Box<dyn Fn(&str) + Send>,
    shared: Arc<Shared>,
}

impl Work {
    fn until_end(mut self) -> Outcome {
        // Pauses of some microseconds are meant so.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut next_tick = Instant::now() + TICK;
        let mut pause = BUSY;
        while !self.shared.is_ending.load(Ordering::Relaxed) {
            let is_woken = self.wait(pause);
            let heard = self.hear();
            self.get_ready();
            let is_ending = self.shared.is_ending.load(Ordering::Relaxed);
            if is_woken && !heard && !is_ending {
                // What has ended is readable for ever.
                thread::sleep(BUSY);
            }
            pause =
                if heard || !self.tasks.is_empty() { BUSY } else { (pause * 2).clamp(BUSY, IDLE) };
            if self.last_read.is_some_and(|last| last.elapsed() < PROMPT_TIME) {
                pause = PROMPT;
            }
            if Instant::now() >= next_tick {
                self.tick();
                next_tick = Instant::now() + TICK;
            }
        }
        self.hear();
        self.end()
    }

    /// Whoever waits for the governor is told when what was mapped is advised. A process that was
    /// in a system call is tried again soon for that, and later only now and then. One that maps
    /// without end is not waited for.
    fn get_ready(&mut self) {
        if self.shared.is_ready.load(Ordering::Relaxed) {
            return;
        }
        let is_late = self.begun.elapsed() >= READY_WITHIN;
        if is_late || self.tasks.is_empty() && !self.governor.expects_more() {
            self.shared.is_ready.store(true, Ordering::Relaxed);
        } else {
            self.governor.retry_idle(now_ns());
            self.carry_out();
        }
    }

    /// Waits until there is something to read, or it is to end, or for `pause`. Returns whether
    /// there is something.
    fn wait(&self, pause: Duration) -> bool {
        let mut waited_for: Vec<PollFd<'_>> = Vec::new();
        let fds = self.follower.fds();
        waited_for.extend(fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        waited_for.push(PollFd::new(&self.shared.ends, PollFlags::IN));
        let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        poll(&mut waited_for, Some(&pause)).is_ok_and(|ready| ready > 0)
    }

    /// Hears all that there is, and does what follows. Returns whether there was something.
    fn hear(&mut self) -> bool {
        let (governor, mut events) = (&mut self.governor, 0_u64);
        let read = self.follower.read(&mut |event: Event| {
            events += u64::from(!matches!(event.what, What::Lost { .. }));
            governor.hear(&event);
        });
        if let Err(error) = read {
            self.say_once(&error.to_string());
        }
        while let Some(answer) = self.advisor.answer() {
            self.answered(answer);
        }
        self.carry_out();
        events > 0
    }

    fn answered(&mut self, answer: Answer) {
        let pid = match &answer {
            Answer::Took { pid, .. } | Answer::Maps { pid, .. } | Answer::NoMaps { pid } => {
                Some(*pid)
            }
            Answer::Left { leave, .. } => Some(leave.pid),
            Answer::Sampled { .. } => None,
        };
        if let Some(pid) = pid
            && let Some(tasks) = self.tasks.get_mut(&pid)
        {
            *tasks -= 1;
            if *tasks == 0 {
                self.tasks.remove(&pid);
            }
        }
        if let Answer::Took { pid, took: Took::Refused(reason), .. } = &answer {
            self.say_once(&format!("a mapping of process {pid} is not governed: {reason}"));
        }
        self.governor.answer(answer, now_ns());
    }

    /// Says what is not said yet. What differs in numbers only is the same.
    fn say_once(&mut self, text: &str) {
        let kind: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if self.has_said.insert(kind) {
            (self.say)(text);
        }
    }

    fn carry_out(&mut self) {
        let mut reads = Vec::new();
        for request in self.governor.requests() {
            match request {
                Request::Read { id, file, pages, is_for_later } => {
                    reads.push(Read { id, file, pages, is_for_later });
                }
                Request::Watch { pid, range } => self.follower.watch(pid, &range),
                Request::Unwatch { pid, range } => self.follower.unwatch(pid, &range),
                Request::Task(task) => self.ask(task),
            }
        }
        if !reads.is_empty() {
            self.last_read = Some(Instant::now());
            for Read { id, pages, .. } in self.reader.ask(reads) {
                self.governor.was_not_read(id, pages);
            }
        }
    }

    /// Gives an advisor a task. Of those that it answers, one process has only so many at a time.
    fn ask(&mut self, task: Task) {
        if !task.is_answered() {
            return drop(self.advisor.ask(task));
        }
        let pid = task.pid();
        let tasks = self.tasks.entry(pid).or_insert(0);
        let refused = if *tasks >= MOST_TASKS { Some(task) } else { self.advisor.ask(task) };
        match refused {
            None => *tasks += 1,
            Some(Task::Take(Take { id, pid, .. })) => {
                let took = Took::Later("it maps more than can be looked at".to_string());
                self.governor.answer(Answer::Took { id, pid, took }, now_ns());
            }
            Some(Task::Leave(leave)) => {
                self.governor.answer(Answer::Left { leave, stopped_ns: None }, now_ns());
            }
            // It is asked for again.
            Some(_) => {}
        }
        self.tasks.retain(|_, tasks| *tasks > 0);
    }

    fn tick(&mut self) {
        for pid in self.governor.pids() {
            if start_ticks(pid).is_none() {
                self.governor.ended(pid);
            }
        }
        self.governor.tick();
        self.governor.retry_idle(now_ns());
        let pids = self.governor.pids();
        let short = self.memory.short(&pids);
        self.governor.set_memory_short(|pid| short.contains(&pid));
        self.advisor.keep(&pids.into_iter().collect());
        if let Err(error) = self.add_named() {
            self.say_once(&error.to_string());
        }
        self.carry_out();
    }

    /// Follows the processes that are named and those of the cgroups that are new.
    fn add_named(&mut self) -> Result<(), Error> {
        let Target::Running { pids, cgroups } = self.target.clone() else { return Ok(()) };
        let mut all: Vec<u32> = Vec::new();
        if self.added.is_empty() {
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
            if self.added.contains(&(pid, start)) {
                continue;
            }
            match self.follower.add(pid) {
                Ok(()) => drop(self.added.insert((pid, start))),
                // It has ended meanwhile.
                Err(filemap_attach::Error::Gone { .. }) if !pids.contains(&pid) => {}
                Err(error) if pids.contains(&pid) => failed = Some(error),
                Err(error) => failed_of_cgroup = Some(error),
            }
        }
        match failed_of_cgroup {
            Some(error) if self.added.is_empty() => failed = Some(error),
            // The others of the cgroup are followed all the same.
            Some(error) => self.say_once(&error.to_string()),
            None => {}
        }
        self.added.retain(|(pid, start)| start_ticks(*pid) == Some(*start));
        let is_over =
            cgroups.is_empty() && self.added.is_empty() && self.governor.pids().is_empty();
        self.shared.is_over.store(is_over, Ordering::Relaxed);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Hears of what is being advised just now: it is to be restored too.
    fn hear_last_answers(&mut self) {
        self.advisor.take_no_more();
        let deadline = Instant::now() + LAST_ANSWERS;
        while !self.tasks.is_empty() && Instant::now() < deadline {
            match self.advisor.answer() {
                Some(answer) => self.answered(answer),
                None => thread::sleep(BUSY),
            }
        }
    }

    fn end(mut self) -> Outcome {
        self.hear_last_answers();
        for pid in self.governor.pids() {
            if start_ticks(pid).is_none() {
                self.governor.ended(pid);
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
                    mapping.state = MappingState::GivenBack;
                }
            }
        }
        Outcome { statistics, left }
    }
}

/// Now, by the clock of the events.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
