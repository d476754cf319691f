//! Threads that may wait for ever in place of the caller.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A file of a local filesystem is opened in less.
const OPEN_TIMEOUT: Duration = Duration::from_millis(100);

/// So many threads open files at the same time, besides those that were given up.
const MAX_ACTIVE: usize = 4;

/// So many threads may have been given up: after that nothing is opened until one comes back.
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

/// Does `work` in a thread of its own. The thread is given up where it does not answer in time;
/// what it opens later is closed.
pub fn run_with_timeout<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let begin = Instant::now();
    acquire_slot(begin)?;
    let (answer, answered) = channel();
    let work = move || {
        let done = work();
        let mut threads = threads();
        // Nobody waits for it any more where it was given up.
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
        return Err(format!("no thread can be made ({error})"));
    }
    match answered.recv_timeout(OPEN_TIMEOUT.saturating_sub(begin.elapsed())) {
        Ok(done) => done,
        Err(RecvTimeoutError::Disconnected) => Err("opening it failed".into()),
        Err(RecvTimeoutError::Timeout) => abandon(answered),
    }
}

/// Counts a thread as given up, unless it answers just now.
fn abandon<T>(answered: std::sync::mpsc::Receiver<Result<T, String>>) -> Result<T, String> {
    let mut threads = threads();
    // It answers with this lock held: now it has, or it never will to anybody.
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
    fn who_does_not_answer_is_given_up() {
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
