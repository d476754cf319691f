//! Injection attempts: each runs on a thread of its own, and tries one target thread.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use super::injection::{AfterCall, Injection};
use super::status::Activity;
use super::{InjectionReport, MemoryAdvice, Refusal};
use crate::mapped_range::MappedRange;

/// How long to wait for an attempt. It exceeds this where the kernel blocks, for instance while
/// another thread of the target is in execve(2) of a file that cannot be read.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1500);

/// Maximum number of attempts in progress, including those that timed out.
const MAX_ABANDONED: usize = 64;
static ACTIVE_ATTEMPTS: AtomicUsize = AtomicUsize::new(0);

/// Time after which [`advise_any`] starts no further round over the threads.
const ANY_THREAD_TIMEOUT: Duration = Duration::from_millis(50);
const ROUND_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum number of threads examined, and tried, per round.
const MAX_THREADS: usize = 256;
const MAX_TRIED: usize = 8;

/// Read-locked while a thread of another process may be stopped.
static INJECTION_LOCK: RwLock<()> = RwLock::new(());

/// Runs `work` while this process holds no thread of another one. Use it around wait(2) for a
/// child: otherwise the wait would report the ptrace stop of a held thread.
pub fn without_injections<T>(work: impl FnOnce() -> T) -> T {
    let _held = INJECTION_LOCK.write().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Advises a range of another process's memory, by one madvise(2) made by its thread `tid`.
///
/// A concurrent waitpid(2) for the target in this process would report the thread's stop: see
/// [`without_injections`].
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
        populate: None,
    })
}

fn run_attempt(injection: Injection) -> Result<InjectionReport, Refusal> {
    let _held = INJECTION_LOCK.read().unwrap_or_else(PoisonError::into_inner);
    let slow = slow(injection.tid);
    let (attempt, receiver) = start_attempt(move || injection.run()).ok_or(slow.clone())?;
    let result = receiver.recv_timeout(ATTEMPT_TIMEOUT).map_err(|_| slow)?;
    // Only the end of the tracer thread detaches a tracee that did not stop.
    let _ = attempt.join();
    result
}

type AttemptResult = Result<InjectionReport, Refusal>;

/// Runs an attempt on a thread of its own; `None` if there are too many.
fn start_attempt(
    run: impl FnOnce() -> AttemptResult + Send + 'static,
) -> Option<(JoinHandle<()>, Receiver<AttemptResult>)> {
    let (sender, receiver) = sync_channel(1);
    if ACTIVE_ATTEMPTS.fetch_add(1, Ordering::Relaxed) >= MAX_ABANDONED {
        ACTIVE_ATTEMPTS.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let attempt = thread::Builder::new().name("advise".into()).spawn(move || {
        raise_priority();
        let result = run();
        ACTIVE_ATTEMPTS.fetch_sub(1, Ordering::Relaxed);
        // The receiver is gone after the timeout.
        let _ = sender.send(result);
    });
    if attempt.is_err() {
        ACTIVE_ATTEMPTS.fetch_sub(1, Ordering::Relaxed);
    }
    Some((attempt.ok()?, receiver))
}

fn slow(tid: u32) -> Refusal {
    Refusal::Slow { tid, milliseconds: ATTEMPT_TIMEOUT.as_millis() as u64 }
}

/// Whether a thread is blocked in mmap(2) while the call populates the mapping.
pub fn is_populating(pid: u32, tid: u32) -> bool {
    Activity::read(pid, tid).is_ok_and(|activity| activity == Activity::Populating)
}

/// An injection into a thread that populates a mapping in mmap(2). It waits in the background until
/// the call returns, which takes as long as reading the file.
///
/// It may be dropped or the process killed at any time: the thread continues.
pub struct PopulateInjection {
    tid: u32,
    result: Option<Receiver<AttemptResult>>,
    is_cancelled: Arc<AtomicBool>,
}

impl PopulateInjection {
    /// Begins to wait for thread `tid`. The calls are made as by [`advise_all`], by this thread
    /// only.
    pub fn start(
        pid: u32,
        tid: u32,
        range: &MappedRange,
        advice: &[MemoryAdvice],
        then: Arc<dyn Fn() + Send + Sync>,
    ) -> PopulateInjection {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let injection = Injection {
            pid,
            tid,
            range: range.clone(),
            advice: advice.to_vec(),
            after_call: Some(AfterCall(then)),
            populate: Some(is_cancelled.clone()),
        };
        let attempt = start_attempt(move || {
            let _held = INJECTION_LOCK.read().unwrap_or_else(PoisonError::into_inner);
            injection.run()
        });
        PopulateInjection { tid, result: attempt.map(|(_, receiver)| receiver), is_cancelled }
    }

    /// The result, once there is one.
    pub fn poll(&self) -> Option<Result<InjectionReport, Refusal>> {
        match self.result.as_ref().map(Receiver::try_recv) {
            Some(Ok(result)) => Some(result),
            Some(Err(TryRecvError::Empty)) => None,
            Some(Err(TryRecvError::Disconnected)) | None => Some(Err(slow(self.tid))),
        }
    }

    /// Ends the wait. The result is [`Refusal::Unfinished`] if the thread may still be making the
    /// calls.
    pub fn cancel(self) -> Result<InjectionReport, Refusal> {
        self.is_cancelled.store(true, Ordering::Release);
        let Some(receiver) = &self.result else { return Err(slow(self.tid)) };
        let milliseconds = ATTEMPT_TIMEOUT.as_millis() as u64;
        let unfinished = Refusal::Unfinished { tid: self.tid, milliseconds };
        receiver.recv_timeout(ATTEMPT_TIMEOUT).unwrap_or(Err(unfinished))
    }
}

impl Drop for PopulateInjection {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Release);
    }
}

/// Reduces this thread's wakeup latency, even with all CPUs busy, because the target waits while it
/// is held. Best effort: failures only add latency.
fn raise_priority() {
    const MIN_SLICE_NS: u64 = 100_000;
    // Avoid the default timer slack of 50 µs on sleeps of a few microseconds.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let realtime = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameters outlive the call; sched_attr may be all zero.
    unsafe {
        if libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const realtime) == 0 {
            return;
        }
        // EEVDF lets unprivileged threads request a short slice since Linux 6.12.
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_policy = libc::SCHED_OTHER as u32;
        attributes.sched_nice = libc::getpriority(libc::PRIO_PROCESS, 0);
        attributes.sched_runtime = MIN_SLICE_NS;
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

/// [`madvise`] by `preferred_tid`, or failing that by any other thread that can be held.
pub fn advise_any(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: MemoryAdvice,
) -> Result<InjectionReport, Refusal> {
    let (range, tid) = (range.clone(), preferred_tid);
    run_by_any_thread(
        &Injection { pid, tid, range, advice: vec![advice], after_call: None, populate: None },
        ANY_THREAD_TIMEOUT,
    )
}

/// Applies all of `advice` in order during a single stop, until one call fails. Calls `then` after
/// each successful call, while the thread is held. Starts no round over the threads after `limit`.
pub fn advise_all(
    pid: u32,
    preferred_tid: u32,
    range: &MappedRange,
    advice: &[MemoryAdvice],
    then: Arc<dyn Fn() + Send + Sync>,
    limit: Duration,
) -> Result<InjectionReport, Refusal> {
    let (range, tid) = (range.clone(), preferred_tid);
    let (advice, after_call) = (advice.to_vec(), Some(AfterCall(then)));
    run_by_any_thread(&Injection { pid, tid, range, advice, after_call, populate: None }, limit)
}

fn run_by_any_thread(injection: &Injection, limit: Duration) -> Result<InjectionReport, Refusal> {
    let (pid, preferred_tid) = (injection.pid, injection.tid);
    let begin = Instant::now();
    loop {
        let mut result = run_attempt(injection.clone());
        if may_another_succeed(&result) {
            for tid in other_threads(pid, preferred_tid) {
                let by_another = run_attempt(Injection { tid, ..injection.clone() });
                // A thread that has exited says nothing about the process.
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

/// Candidate threads: first those blocked in a page fault, where there is no system call to
/// interrupt, then running ones.
fn other_threads(pid: u32, preferred_tid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut threads: Vec<(bool, u32)> = tasks
        .take(MAX_THREADS)
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .filter(|tid| *tid != preferred_tid)
        .filter_map(|tid| match Activity::read(pid, tid) {
            Ok(Activity::Faulting) => Some((false, tid)),
            Ok(Activity::Running) => Some((true, tid)),
            Ok(Activity::InSystemCall | Activity::Populating) | Err(_) => None,
        })
        .collect();
    threads.sort_by_key(|(runs, _)| *runs);
    threads.into_iter().map(|(_, tid)| tid).take(MAX_TRIED).collect()
}
