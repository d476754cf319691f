//! Threads that begin together, or not at all.

use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread::{self, Builder};

use crate::error::{Error, reason};

/// Runs each of `bodies` on a thread, and begins when all threads are there.
///
/// # Errors
/// When one of them cannot be started. Then none of `bodies` has run.
pub fn at_once<T: Send, F: FnOnce() -> T + Send>(
    bodies: Vec<F>,
    thread: impl Fn() -> Builder,
) -> Result<Vec<T>, Error> {
    let threads = bodies.len();
    let begin = &Barrier::new(threads);
    thread::scope(|scope| {
        let start = |body: F| {
            let (go, told) = channel::<()>();
            let body = move || {
                // Nobody says so any more if not all could be started.
                told.recv().ok()?;
                begin.wait();
                Some(body())
            };
            thread().spawn_scoped(scope, body).map(|handle| (go, handle))
        };
        let started = bodies.into_iter().map(start).collect::<Result<Vec<_>, _>>();
        let (go, handles): (Vec<_>, Vec<_>) = started
            .map_err(|error| {
                Error::CannotRun(format!(
                    "{threads} threads at once cannot be started: {}; raise the limit of \
                     processes, or let filemap use fewer CPUs (taskset)",
                    reason(&error)
                ))
            })?
            .into_iter()
            .unzip();
        go.iter().for_each(|go| go.send(()).expect("each thread waits for it"));
        let ends = handles.into_iter().map(|handle| handle.join().expect("no count is wrong"));
        Ok(ends.map(|end| end.expect("each thread was told to go")).collect())
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn all_threads_run_at_once() {
        let meet = Barrier::new(3);
        let bodies = (0..3).map(|number| {
            let meet = &meet;
            move || (meet.wait(), number).1
        });
        assert_eq!(at_once(bodies.collect(), Builder::new).unwrap(), [0, 1, 2]);
    }

    /// Threads that are there would otherwise wait for the missing one for ever.
    #[test]
    fn no_thread_runs_where_one_cannot_be_started() {
        let (ran, started) = (AtomicUsize::new(0), Cell::new(0));
        let too_large = || {
            started.set(started.get() + 1);
            if started.get() == 3 { Builder::new().stack_size(1 << 60) } else { Builder::new() }
        };
        let bodies = vec![|| ran.fetch_add(1, Relaxed); 3];
        let error = at_once(bodies, too_large).unwrap_err();
        assert_eq!((error.exit_code(), ran.load(Relaxed)), (4, 0));
        assert_eq!(
            error.one_line(),
            "3 threads at once cannot be started: resource temporarily unavailable; raise the \
             limit of processes, or let filemap use fewer CPUs (taskset)"
        );
    }
}
