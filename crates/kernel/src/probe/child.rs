//! The child side of a probe.

use std::fs::File;
use std::hint::spin_loop;
use std::io::{BufReader, Read, StdinLock, stdin, stdout};
use std::process::exit;
use std::thread::{Builder, Scope, scope};

use filemap_job::program::{NamedMapping, ProgramStep};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::flushes::FlushWatch;
use super::fork::{fork_processes, wait_processes};
use super::mapping::ProbeMapping;
use super::memory::{ChargedPage, HeldMemory, ProcessMemory};
use super::process::{OpenFiles, ProbeProcess};
use super::sync::ProbeSync;
use super::thread::{ChildContext, ProbeThread};
use super::wire::{Reply, install_sigbus_handler, read, write_reply};
use super::{HOLD_OWN_PAGE, ProbeResult, READ_CACHED, cpus};
use crate::Error;
use crate::cold_cache::read_pages;
use crate::residency::mapped_pages;

/// Stack size of each thread but the first; stacks are locked into memory.
const STACK_BYTES: usize = 256 << 10;

/// Runs the probe received on standard input. Returns the exit code.
pub(super) fn main() -> i32 {
    // If the parent is killed, it cannot stop this process itself.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut input = BufReader::new(stdin().lock());
    let mut notes_flushes = [0];
    if input.read_exact(&mut notes_flushes).is_err() {
        return 1;
    }
    let Ok(process) = read::<ProbeProcess>(&mut input) else { return 1 };
    match run(&process, notes_flushes == [1], &mut input) {
        Ok(ended) => i32::from(reply(&Reply::Done(ended)).is_err()),
        Err(error) => fail(&error),
    }
}

/// Reports `error` and exits the process, since other threads may be waiting for this one.
pub(super) fn fail(error: &Error) -> ! {
    // Held until exit, so that only one error is reported.
    let _output = stdout().lock();
    let text = error.to_string();
    let reported = if error.is_out_of_memory() {
        reply(&Reply::Starved(text))
    } else {
        reply(&Reply::Failed(text))
    };
    exit(i32::from(reported.is_err()))
}

pub(super) fn reply(reply: &Reply) -> Result<(), Error> {
    write_reply(&mut stdout().lock(), reply).map_err(|error| Error::call("answer", error))
}

fn run(
    process: &ProbeProcess,
    notes_flushes: bool,
    input: &mut BufReader<StdinLock>,
) -> Result<ProbeResult, Error> {
    if let Some(cpus) = process.cpus {
        cpus::bind_to_first_cpus(cpus)?;
    }
    let shared = share(process, OpenFiles::open(process)?)?;
    install_sigbus_handler()?;
    let (number, forked) = fork_processes(process.processes() - 1)?;
    let run = ChildRun { shared: &shared, number, forked: &forked };
    if number > 0 {
        run.run_forked()?;
        exit(0);
    }
    run.run_first(notes_flushes, input)
}

/// Creates the context shared by the threads, with the mappings that exist from the start.
fn share<'a>(process: &'a ProbeProcess, files: OpenFiles<'a>) -> Result<ChildContext<'a>, Error> {
    let reserve =
        |mapping: &'a NamedMapping| ProbeMapping::reserve(mapping, files.path(mapping.open));
    let mapped = process.mappings.iter().map(reserve).collect::<Result<Vec<_>, _>>()?;
    for (mapping, mapped) in
        process.mappings.iter().zip(&mapped).filter(|(mapping, _)| mapping.at_start)
    {
        mapped.map(files.get(mapping.open), files.path(mapping.open))?;
    }
    let (held, sync) = (HeldMemory::reserve(process.max_anonymous)?, ProbeSync::new(process)?);
    Ok(ChildContext { process, files, mapped, held, sync })
}

/// One process of the probe.
#[derive(Clone, Copy)]
struct ChildRun<'a> {
    shared: &'a ChildContext<'a>,
    /// Index of the process; process 0 has forked the others.
    number: usize,
    /// PIDs of the processes that it has forked.
    forked: &'a [u32],
}

impl<'a> ChildRun<'a> {
    /// Runs the threads of a forked process.
    fn run_forked(self) -> Result<(), Error> {
        scope(|scope| {
            let first = self.start_threads(scope).unwrap_or_else(|error| fail(&error));
            first.into_iter().for_each(|first| self.take_steps(first));
        });
        Ok(())
    }

    /// Runs the threads of the first process once the parent starts it. Returns the results of all
    /// processes.
    fn run_first(
        self,
        notes_flushes: bool,
        input: &mut BufReader<StdinLock>,
    ) -> Result<ProbeResult, Error> {
        let ChildContext { process, sync: meeting, mapped, .. } = self.shared;
        let (locked, begun_at_flushes) = scope(|scope| {
            let watch = notes_flushes.then(FlushWatch::start).transpose()?;
            if !self.forked.is_empty() {
                let body = || wait_processes(self.forked.len());
                spawn(scope, body).unwrap_or_else(|error| fail(&error));
            }
            let prepared =
                self.start_threads(scope).and_then(|first| self.wait_for_begin(first, input));
            // On failure, exit: the other threads would wait for the start forever.
            let (first, locked) = prepared.unwrap_or_else(|error| fail(&error));
            meeting.start.begin();
            if let Some(first) = first {
                meeting.start.wait(first.number);
                watch.iter().for_each(FlushWatch::begin);
                self.run_thread(first);
            }
            meeting.results.await_all();
            Ok::<_, Error>((
                locked,
                watch.as_ref().map(FlushWatch::access_counts).unwrap_or_default(),
            ))
        })?;
        let mapped = match mapped.first().filter(|_| process.report_mapped) {
            Some(first) => mapped_pages(first.address(), first.pages())?,
            None => Default::default(),
        };
        let ended = meeting.results.thread_results(meeting.start.begins_ns());
        let calls = meeting.results.call_waits();
        Ok(ProbeResult::new(locked, ended, calls, mapped, begun_at_flushes))
    }

    /// Starts all threads of this process but the first, which is returned ready to run, and locks
    /// the memory of all of them.
    fn start_threads<'scope>(
        self,
        scope: &'scope Scope<'scope, 'a>,
    ) -> Result<Option<ProbeThread<'a>>, Error> {
        let ChildContext { process, sync: meeting, mapped, .. } = self.shared;
        let mut numbers = process.threads_of(self.number);
        let first = numbers.next();
        let mut others = 0;
        for number in numbers {
            let body = move || {
                let thread = ProbeThread::prepare(self.shared.process, number);
                let thread = thread.unwrap_or_else(|error| fail(&error));
                self.shared.sync.thread_ready(self.number);
                self.take_steps(thread);
            };
            spawn(scope, body)?;
            others += 1;
        }
        let first = first.map(|number| ProbeThread::prepare(process, number)).transpose()?;
        meeting.await_ready(self.number, others);
        let rooms: Vec<_> = mapped.iter().map(ProbeMapping::reserved_range).collect();
        let own = ProcessMemory::outside(&rooms)?;
        // Without the right to lock memory, the warmed-up code stays resident unless memory is
        // short.
        let is_locked = own.lock();
        let mut threads = process.threads_of(self.number);
        if threads.any(|thread| process.threads[thread].steps.contains(&ProgramStep::Fork)) {
            own.exclude_from_forks();
        }
        meeting.process_ready(is_locked);
        Ok(first)
    }

    /// Waits until all processes are ready and the parent starts the run. Returns the first thread,
    /// and whether the memory of all processes is locked.
    fn wait_for_begin(
        self,
        mut first: Option<ProbeThread<'a>>,
        input: &mut BufReader<StdinLock>,
    ) -> Result<(Option<ProbeThread<'a>>, bool), Error> {
        let ChildContext { process, mapped, sync: meeting, .. } = self.shared;
        let locked = meeting.await_locked(process.processes());
        // Only after locking: the file mappings must not be locked.
        if let Some(first) = first.as_mut().filter(|_| process.settle) {
            first.open_settles(self.shared)?;
        }
        let addresses = mapped.iter().map(|mapped| mapped.address() as u64).collect();
        reply(&Reply::Ready { addresses, forked: self.forked.to_vec() })?;
        // The run's memory limit applies to allocations from here on.
        read_begin(input, self.shared)?;
        Ok((first, locked))
    }

    /// Runs the steps of `thread` once it may begin.
    fn take_steps(self, thread: ProbeThread) {
        self.shared.sync.start.wait(thread.number);
        self.run_thread(thread);
    }

    /// Runs the steps of `thread`, and waits until all threads have finished.
    fn run_thread(self, thread: ProbeThread) {
        let number = thread.number;
        // The others may run for long, so exit at the first error.
        let costs = thread.run(self.shared).unwrap_or_else(|error| fail(&error));
        self.shared.sync.results.finish_thread(number, &costs);
    }
}

/// Spins until there is input. A governor makes a running thread give advice, but does not
/// interrupt one that waits in a system call.
fn run_until_readable(input: &BufReader<StdinLock>) {
    let waited_for = &mut [PollFd::new(input.get_ref(), PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    while input.buffer().is_empty() && poll(waited_for, Some(&at_once)) == Ok(0) {
        (0..SPINS_PER_POLL).for_each(|_| spin_loop());
    }
}

/// Number of spins between two polls: some hundred microseconds. A poll is short.
const SPINS_PER_POLL: u32 = 10_000;

/// Waits for the parent's start command; until then, holds the pages that it asks for. Holds the
/// anonymous memory of the process from then on.
fn read_begin(input: &mut BufReader<StdinLock>, shared: &ChildContext) -> Result<(), Error> {
    let ChildContext { process, held: memory, .. } = shared;
    let (mut held, mut has_memory) = (Vec::new(), false);
    let mut word = [0];
    loop {
        if process.is_governed {
            run_until_readable(input);
        }
        if input.read_exact(&mut word).is_err() {
            // The parent has exited or closed the pipe.
            exit(1);
        }
        match word {
            [HOLD_OWN_PAGE] => held.push(ChargedPage::new()?),
            [READ_CACHED] => {
                memory.allocate(process.anonymous)?;
                has_memory = true;
                for (path, ranges) in process.files.iter().zip(&process.cached) {
                    let read = File::open(path).and_then(|file| read_pages(&file, ranges));
                    read.map_err(|error| Error::os("read", path, error))?;
                }
                reply(&Reply::HasRead)?;
            }
            _ if has_memory => return Ok(()),
            _ => return memory.allocate(process.anonymous),
        }
    }
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() + Send + 'scope,
) -> Result<(), Error> {
    let started = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body);
    started.map(drop).map_err(|error| Error::call("start a thread of the probe", error))
}
