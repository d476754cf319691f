//! The child's side of a probe.

use std::io::{BufReader, Read, StdinLock, stdin, stdout};
use std::process::exit;
use std::sync::OnceLock;
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};
use std::time::Instant;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::files::Files;
use super::flushes::Watch;
use super::mapping::{self, Mapped};
use super::order::Order;
use super::own_page::OwnPage;
use super::process::Process;
use super::start::Start;
use super::thread::{Shared, Thread};
use super::wire::{Reply, write_reply};
use super::{Ended, EndedThread, HOLD_OWN_PAGE, PhaseCost, bus, cpus};
use crate::Error;
use crate::residency::mapped_pages;

/// Stack of each thread beside the first, all of which is locked into memory.
const STACK_BYTES: usize = 256 << 10;

/// Runs the probe that comes in on standard input; the process's exit code.
pub(super) fn main() -> i32 {
    // The parent cannot end us when it is killed itself.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut input = BufReader::new(stdin().lock());
    let mut notes_flushes = [0];
    if input.read_exact(&mut notes_flushes).is_err() {
        return 1;
    }
    let Ok(process) = Process::decode(&mut input) else { return 1 };
    match run(&process, notes_flushes == [1], &mut input) {
        Ok(ended) => i32::from(reply(&Reply::Done(ended)).is_err()),
        Err(error) => fail(&error),
    }
}

/// Tells `error` and ends the process: other threads may wait for what does not come any more.
pub(super) fn fail(error: &Error) -> ! {
    // Held to the end: one error is told.
    let _output = stdout().lock();
    let text = error.to_string();
    let told = match error.is_starved() {
        true => reply(&Reply::Starved(text)),
        false => reply(&Reply::Failed(text)),
    };
    exit(i32::from(told.is_err()))
}

pub(super) fn reply(reply: &Reply) -> Result<(), Error> {
    write_reply(&mut stdout().lock(), reply).map_err(|error| Error::call("answer", error))
}

/// Where the threads of a process meet.
struct Meeting<'a> {
    start: Start,
    shared: OnceLock<Shared<'a>>,
}

/// When a thread ended, and what its steps cost.
type Taken = (Instant, Vec<PhaseCost>);

fn run(
    process: &Process,
    notes_flushes: bool,
    input: &mut BufReader<StdinLock>,
) -> Result<Ended, Error> {
    if let Some(cpus) = process.cpus {
        cpus::bind(cpus)?;
    }
    let files = Files::open(process)?;
    let threads = process.threads.len();
    let meeting =
        Meeting { start: Start::new(threads, cpus::allowed() as usize), shared: OnceLock::new() };
    scope(|scope| {
        let watch = notes_flushes.then(Watch::start).transpose()?;
        let others = (1..threads).map(|number| start(scope, process, number, &meeting));
        let others = others.collect::<Result<Vec<_>, _>>().unwrap_or_else(|error| fail(&error));
        let named = others.iter().map(|other| other.thread().clone()).collect();
        let prepared = prepare(process, files, named, &meeting, input);
        // The others wait for the start, and would for ever.
        let (first, locked) = prepared.unwrap_or_else(|error| fail(&error));
        let start = meeting.start.begin_first();
        watch.iter().for_each(Watch::begin);
        let first = take_steps(first, &meeting);
        let begun_at_flushes = watch.as_ref().map(Watch::seen).unwrap_or_default();
        let others = others.into_iter().map(|other| other.join().expect("threads do not panic"));
        let threads = [first].into_iter().chain(others).map(|(end, steps)| EndedThread {
            elapsed_ns: end.duration_since(start).as_nanos() as u64,
            steps,
        });
        let first = meeting.shared.get().and_then(|shared| shared.mapped.first());
        let mapped = match first.filter(|_| process.report_mapped) {
            Some(first) => mapped_pages(first.address(), first.pages())?,
            None => Default::default(),
        };
        Ok(Ended::new(locked, threads.collect(), mapped, begun_at_flushes))
    })
}

/// Maps what is there at the start, and waits for the parent's word. The first thread, and whether
/// the memory of all is locked.
fn prepare<'a>(
    process: &'a Process,
    files: Files<'a>,
    others: Vec<std::thread::Thread>,
    meeting: &Meeting<'a>,
    input: &mut BufReader<StdinLock>,
) -> Result<(Thread<'a>, bool), Error> {
    let mut first = Thread::prepare(process, 0)?;
    meeting.start.all_are_ready(others);
    // Without the right to lock, what was run once is as good as locked unless memory is short.
    let locked = mlockall(MlockAllFlags::CURRENT).is_ok();
    // Only now: memory that is mapped later is not locked, and the files must not be.
    let shared = share(process, files)?;
    let shared = meeting.shared.get_or_init(|| shared);
    if process.settle {
        first.watch(shared)?;
    }
    bus::tell()?;
    let addresses = shared.mapped.iter().map(|mapped| mapped.address() as u64).collect();
    reply(&Reply::Ready { addresses })?;
    await_begin(input)?;
    // By now the limit of the memory is that of the run.
    mapping::hold(process.anonymous)?;
    Ok((first, locked))
}

/// Waits for the parent's word, and holds the pages that it asks for until then.
fn await_begin(input: &mut BufReader<StdinLock>) -> Result<(), Error> {
    let mut held = Vec::new();
    let mut word = [0];
    loop {
        if input.read_exact(&mut word).is_err() {
            // The parent is gone, or has thought better of it.
            exit(1);
        }
        match word {
            [HOLD_OWN_PAGE] => held.push(OwnPage::new()?),
            _ => return Ok(()),
        }
    }
}

/// What the threads of `process` share, with what is mapped at the start.
fn share<'a>(process: &'a Process, files: Files<'a>) -> Result<Shared<'a>, Error> {
    let reserve = |area| Mapped::reserve(area, files.path(area.open));
    let mapped = process.mappings.iter().map(reserve).collect::<Result<Vec<_>, _>>()?;
    for (area, mapped) in process.mappings.iter().zip(&mapped).filter(|(area, _)| area.at_start) {
        mapped.map(files.of(area.open), files.path(area.open))?;
    }
    Ok(Shared { process, files, mapped, order: Order::of(process) })
}

/// Starts thread `number`, which waits until all begin.
fn start<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    process: &'env Process,
    number: usize,
    meeting: &'env Meeting<'env>,
) -> Result<ScopedJoinHandle<'scope, Taken>, Error> {
    let body = move || {
        let thread = Thread::prepare(process, number).unwrap_or_else(|error| fail(&error));
        meeting.start.wait(number);
        take_steps(thread, meeting)
    };
    let started = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body);
    started.map_err(|error| Error::call("start a thread of the probe", error))
}

fn take_steps(thread: Thread, meeting: &Meeting) -> Taken {
    let shared = meeting.shared.get().expect("it is there before all begin");
    // The others may run for long.
    let costs = thread.run(shared).unwrap_or_else(|error| fail(&error));
    (Instant::now(), costs)
}
