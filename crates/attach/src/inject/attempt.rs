//! Attempts at advice: each on a thread of its own, by one thread after another.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::injection::{Injection, Then};
use super::status::Activity;
use super::{Advice, Advised, Refusal};
use crate::mapped_range::MappedRange;

/// For how long an attempt is waited for. It takes longer where the kernel itself blocks, as it
/// does while another thread of the process is in execve(2) of a file that cannot be read.
const ATTEMPT_LIMIT: Duration = Duration::from_millis(1500);

/// How many attempts that nobody waits for any more can be left.
const MOST_LEFT: usize = 64;
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// When [`advise_any`] begins no further round.
const ANY_LIMIT: Duration = Duration::from_millis(50);
const PAUSE_BETWEEN_ROUNDS: Duration = Duration::from_millis(1);

/// How many threads of a process are looked at, and how many tried in one round.
const MOST_THREADS: usize = 256;
const MOST_TRIED: usize = 8;

/// Held shared while a thread of another process may be stopped.
static STOPS: RwLock<()> = RwLock::new(());

/// Does `work` while this process stops no thread of another one. A wait for a child belongs in
/// there: it would end with such a stop.
pub fn without_injections<T>(work: impl FnOnce() -> T) -> T {
    let _held = STOPS.write().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Advises a range of another process' memory, by one madvise(2) that a thread of it makes.
///
/// A process that waits for that one with waitpid(2) meanwhile would take the stop of the thread
/// for one of its own: see [`without_injections`].
pub fn madvise(
    pid: u32,
    tid: u32,
    range: &MappedRange,
    advice: Advice,
) -> Result<Advised, Refusal> {
    attempt(Injection { pid, tid, range: range.clone(), advice: vec![advice], then: None })
}

fn attempt(injection: Injection) -> Result<Advised, Refusal> {
    let _held = STOPS.read().unwrap_or_else(PoisonError::into_inner);
    let milliseconds = ATTEMPT_LIMIT.as_millis() as u64;
    let slow = Refusal::Slow { tid: injection.tid, milliseconds };
    let (sender, receiver) = sync_channel(1);
    if UNDER_WAY.fetch_add(1, Ordering::Relaxed) >= MOST_LEFT {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
        return Err(slow);
    }
    let attempt = thread::Builder::new().name("advise".into()).spawn(move || {
        hurry();
        let result = injection.run();
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
        // Nobody receives it after the limit.
        let _ = sender.send(result);
    });
    let Ok(attempt) = attempt else {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
        return Err(slow);
    };
    let Ok(result) = receiver.recv_timeout(ATTEMPT_LIMIT) else { return Err(slow) };
    // It only ends now, and with it the tracing of a thread that did not stop.
    let _ = attempt.join();
    result
}

/// Has this thread run soon after it wakes up, also on a machine whose CPUs are all busy: a thread
/// of a program waits for it. What is refused only makes it later.
fn hurry() {
    const SHORTEST_SLICE_NS: u64 = 100_000;
    // Sleeps of some microseconds are meant so.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let realtime = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call; all zero are attributes.
    unsafe {
        if libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const realtime) == 0 {
            return;
        }
        // Anybody may ask for a short slice, from Linux 6.12 on.
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_policy = libc::SCHED_OTHER as u32;
        attributes.sched_nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        attributes.sched_runtime = SHORTEST_SLICE_NS;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

/// Advises as [`madvise`] does, by `preferred_tid` or else by another thread that can be held.
pub fn advise_any(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: Advice,
) -> Result<Advised, Refusal> {
    let (range, tid) = (range.clone(), preferred_tid);
    by_any(&Injection { pid, tid, range, advice: vec![advice], then: None }, ANY_LIMIT)
}

/// Gives all of `advice` in one stop of such a thread, until one fails, and does `then` after each
/// of them, while the thread is held. No round over the threads begins after `limit`.
pub fn advise_all(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: &[Advice],
    then: Arc<dyn Fn() + Send + Sync>,
    limit: Duration,
) -> Result<Advised, Refusal> {
    let (range, tid) = (range.clone(), preferred_tid);
    by_any(&Injection { pid, tid, range, advice: advice.to_vec(), then: Some(Then(then)) }, limit)
}

fn by_any(injection: &Injection, limit: Duration) -> Result<Advised, Refusal> {
    let (pid, preferred_tid) = (injection.pid, injection.tid);
    let begin = Instant::now();
    loop {
        let mut result = attempt(injection.clone());
        if may_another_succeed(&result) {
            for tid in others(pid, preferred_tid) {
                let by_another = attempt(Injection { tid, ..injection.clone() });
                // Threads come and go: one that ended says nothing about the process.
                if matches!(by_another, Err(Refusal::Gone { .. })) {
                    continue;
                }
                result = by_another;
                if !may_another_succeed(&result) {
                    break;
                }
            }
        }
        if !may_another_succeed(&result) || begin.elapsed() >= limit {
            return result;
        }
        sleep(PAUSE_BETWEEN_ROUNDS);
    }
}

fn may_another_succeed(result: &Result<Advised, Refusal>) -> bool {
    match result {
        Err(Refusal::Gone { .. }) => true,
        Err(Refusal::Unfinished { .. }) | Ok(_) => false,
        Err(refusal) => !refusal.is_lasting(),
    }
}

/// Threads in a page fault, which are not disturbed by anything; then those that run.
fn others(pid: u32, preferred_tid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut threads: Vec<(bool, u32)> = tasks
        .take(MOST_THREADS)
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .filter(|tid| *tid != preferred_tid)
        .filter_map(|tid| match Activity::read(pid, tid) {
            Ok(Activity::Faulting) => Some((false, tid)),
            Ok(Activity::Running) => Some((true, tid)),
            Ok(Activity::InSystemCall) | Err(_) => None,
        })
        .collect();
    threads.sort_by_key(|(runs, _)| *runs);
    threads.into_iter().map(|(_, tid)| tid).take(MOST_TRIED).collect()
}
