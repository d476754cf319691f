//! Runs potentially blocking file operations on threads that can be abandoned.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Opening a file on a local filesystem takes less.
const OPEN_TIMEOUT: Duration = Duration::from_millis(100);

/// Maximum number of concurrent opener threads, excluding abandoned ones.
const MAX_ACTIVE: usize = 4;

/// Maximum number of abandoned threads. Above it, every open is refused until one returns.
const MAX_ABANDONED: usize = 4;

#[derive(Debug, Default)]
struct OpenerThreads {
    active: usize,
    abandoned: usize,
}

static THREADS: Mutex<OpenerThreads> = Mutex::new(OpenerThreads { active: 0, abandoned: 0 });
static RETURNED: Condvar = Condvar::new();

fn threads() -> MutexGuard<'static, OpenerThreads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a thread of its own and waits up to [`OPEN_TIMEOUT`]. After that the thread is
/// abandoned, and the result it may still produce is dropped.
pub fn run_with_timeout<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let begin = Instant::now();
    acquire_slot(begin)?;
    let (answer, answered) = channel();
    let work = move || {
        let done = work();
        let mut threads = threads();
        // Sending fails if the caller has abandoned this thread.
        if answer.send(done).is_ok() {
            threads.active -= 1;
        } else {
            threads.abandoned -= 1;
        }
        drop(threads);
        RETURNED.notify_one();
    };
    if let Err(error) = thread::Builder::new().name("opener".into()).spawn(work) {
        threads().active -= 1;
        return Err(format!("no thread can be created ({error})"));
    }
    match answered.recv_timeout(OPEN_TIMEOUT.saturating_sub(begin.elapsed())) {
        Ok(done) => done,
        Err(RecvTimeoutError::Disconnected) => Err("opening it failed".into()),
        Err(RecvTimeoutError::Timeout) => abandon(answered),
    }
}

/// Counts a thread as abandoned, unless its result has just arrived.
fn abandon<T>(answered: std::sync::mpsc::Receiver<Result<T, String>>) -> Result<T, String> {
    let mut threads = threads();
    // Threads send their result under this lock, so it is either here by now or will fail to send.
    if let Ok(done) = answered.try_recv() {
        return done;
    }
    threads.active -= 1;
    threads.abandoned += 1;
    drop(answered);
    Err(format!("its filesystem did not answer in {} ms", OPEN_TIMEOUT.as_millis()))
}

fn acquire_slot(begin: Instant) -> Result<(), String> {
    let mut threads = threads();
    if threads.abandoned >= MAX_ABANDONED {
        return Err(format!("{MAX_ABANDONED} files before it did not answer, and still do not"));
    }
    let is_full = |threads: &mut OpenerThreads| threads.active >= MAX_ACTIVE;
    let left = OPEN_TIMEOUT.saturating_sub(begin.elapsed());
    threads = RETURNED
        .wait_timeout_while(threads, left, is_full)
        .unwrap_or_else(PoisonError::into_inner)
        .0;
    if threads.active >= MAX_ACTIVE {
        return Err(format!("{MAX_ACTIVE} files before it are still being opened"));
    }
    threads.active += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_up_on_unresponsive_opener() {
        assert_eq!(run_with_timeout(|| Ok(7)), Ok(7));
        assert_eq!(run_with_timeout(|| Err::<u8, _>("no".into())), Err("no".into()));
        let mut held = Vec::new();
        for _ in 0..MAX_ABANDONED {
            let (release, released) = channel::<()>();
            held.push(release);
            let begin = Instant::now();
            let late = run_with_timeout(move || released.recv().map_err(|_| "over".to_owned()));
            assert!(late.expect_err("it waits").contains("did not answer in 100 ms"));
            assert!(begin.elapsed() >= OPEN_TIMEOUT);
        }
        assert!(run_with_timeout(|| Ok(7)).expect_err("it is refused").contains("still do not"));
        drop(held);
        let begin = Instant::now();
        while run_with_timeout(|| Ok(7)) != Ok(7) {
            assert!(begin.elapsed() < Duration::from_secs(20), "threads come back");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
