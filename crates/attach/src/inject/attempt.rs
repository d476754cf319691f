//! Attempts at advice: each on a thread of its own, by one thread after another.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::injection::{AfterCall, Injection};
use super::status::Activity;
use super::{InjectionReport, MemoryAdvice, Refusal};
use crate::mapped_range::MappedRange;

/// For how long an attempt is waited for. It takes longer where the kernel itself blocks, as it
/// does while another thread of the process is in execve(2) of a file that cannot be read.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1500);

/// How many attempts that nobody waits for any more can be left.
const MAX_ABANDONED: usize = 64;
static ACTIVE_ATTEMPTS: AtomicUsize = AtomicUsize::new(0);

/// When [`advise_any`] begins no further round.
const ANY_THREAD_TIMEOUT: Duration = Duration::from_millis(50);
const ROUND_INTERVAL: Duration = Duration::from_millis(1);

/// How many threads of a process are looked at, and how many tried in one round.
const MAX_THREADS: usize = 256;
const MAX_TRIED: usize = 8;

/// Held shared while a thread of another process may be stopped.
static INJECTION_LOCK: RwLock<()> = RwLock::new(());

/// Does `work` while this process stops no thread of another one. A wait for a child belongs in
/// there: it would end with such a stop.
pub fn without_injections<T>(work: impl FnOnce() -> T) -> T {
    let _held = INJECTION_LOCK.write().unwrap_or_else(PoisonError::into_inner);
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
    advice: MemoryAdvice,
) -> Result<InjectionReport, Refusal> {
    run_attempt(Injection {
        pid,
        tid,
        range: range.clone(),
        advice: vec![advice],
        after_call: None,
    })
}

fn run_attempt(injection: Injection) -> Result<InjectionReport, Refusal> {
    let _held = INJECTION_LOCK.read().unwrap_or_else(PoisonError::into_inner);
    let milliseconds = ATTEMPT_TIMEOUT.as_millis() as u64;
    let slow = Refusal::Slow { tid: injection.tid, milliseconds };
    let (sender, receiver) = sync_channel(1);
    if ACTIVE_ATTEMPTS.fetch_add(1, Ordering::Relaxed) >= MAX_ABANDONED {
        ACTIVE_ATTEMPTS.fetch_sub(1, Ordering::Relaxed);
        return Err(slow);
    }
    let attempt = thread::Builder::new().name("advise".into()).spawn(move || {
        raise_priority();
        let result = injection.run();
        ACTIVE_ATTEMPTS.fetch_sub(1, Ordering::Relaxed);
        // Nobody receives it after the limit.
        let _ = sender.send(result);
    });
    let Ok(attempt) = attempt else {
        ACTIVE_ATTEMPTS.fetch_sub(1, Ordering::Relaxed);
        return Err(slow);
    };
    let Ok(result) = receiver.recv_timeout(ATTEMPT_TIMEOUT) else { return Err(slow) };
    // It only ends now, and with it the tracing of a thread that did not stop.
    let _ = attempt.join();
    result
}

/// Has this thread run soon after it wakes up, also on a machine whose CPUs are all busy: a thread
/// of a program waits for it. What is refused only makes it later.
fn raise_priority() {
    const MIN_SLICE_NS: u64 = 100_000;
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
        attributes.sched_runtime = MIN_SLICE_NS;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

/// Advises as [`madvise`] does, by `preferred_tid` or else by another thread that can be held.
pub fn advise_any(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: MemoryAdvice,
) -> Result<InjectionReport, Refusal> {
    let (range, tid) = (range.clone(), preferred_tid);
    run_by_any_thread(
        &Injection { pid, tid, range, advice: vec![advice], after_call: None },
        ANY_THREAD_TIMEOUT,
    )
}

/// Gives all of `advice` in one stop of such a thread, until one fails, and does `then` after each
/// of them, while the thread is held. No round over the threads begins after `limit`.
pub fn advise_all(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: &[MemoryAdvice],
    then: Arc<dyn Fn() + Send + Sync>,
    limit: Duration,
) -> Result<InjectionReport, Refusal> {
    let (range, tid) = (range.clone(), preferred_tid);
    run_by_any_thread(
        &Injection { pid, tid, range, advice: advice.to_vec(), after_call: Some(AfterCall(then)) },
        limit,
    )
}

fn run_by_any_thread(injection: &Injection, limit: Duration) -> Result<InjectionReport, Refusal> {
    let (pid, preferred_tid) = (injection.pid, injection.tid);
    let begin = Instant::now();
    loop {
        let mut result = run_attempt(injection.clone());
        if may_another_succeed(&result) {
            for tid in other_threads(pid, preferred_tid) {
                let by_another = run_attempt(Injection { tid, ..injection.clone() });
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
        sleep(ROUND_INTERVAL);
    }
}

fn may_another_succeed(result: &Result<InjectionReport, Refusal>) -> bool {
    match result {
        Err(Refusal::Gone { .. }) => true,
        Err(Refusal::Unfinished { .. }) | Ok(_) => false,
        Err(refusal) => !refusal.is_lasting(),
    }
}

/// Threads in a page fault, which are not disturbed by anything; then those that run.
fn other_threads(pid: u32, preferred_tid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut threads: Vec<(bool, u32)> = tasks
        .take(MAX_THREADS)
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .filter(|tid| *tid != preferred_tid)
        .filter_map(|tid| match Activity::read(pid, tid) {
            Ok(Activity::Faulting) => Some((false, tid)),
            Ok(Activity::Running) => Some((true, tid)),
            Ok(Activity::InSystemCall) | Err(_) => None,
        })
        .collect();
    threads.sort_by_key(|(runs, _)| *runs);
    threads.into_iter().map(|(_, tid)| tid).take(MAX_TRIED).collect()
}
