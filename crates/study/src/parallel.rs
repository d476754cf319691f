//! Jobs that do not depend on each other, on all processors.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use rustix::process::{Resource, getrlimit};

/// With less address space (`ulimit -v`) than this, no threads are started. A thread that finds no
/// memory while it starts is the end of the process (glibc).
const LEAST_ADDRESS_SPACE: u64 = 1 << 30;

/// What `of` makes of each of `items`, in their order. Where there is no room for threads, they are
/// done one after the other.
///
/// # Errors
/// That of an item for which `of` fails. Some of those after it are then not begun.
pub fn map<T: Send, R: Send, E: Send>(
    items: Vec<T>,
    of: impl Fn(T) -> Result<R, E> + Send + Sync,
) -> Result<Vec<R>, E> {
    let space = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    let threads = items.len() > 1 && space >= LEAST_ADDRESS_SPACE;
    match threads.then(|| ThreadPoolBuilder::new().build()) {
        // One item a piece: they differ in length by far.
        Some(Ok(pool)) => {
            let done = items.into_par_iter().with_max_len(1).map(of);
            pool.install(|| done.collect())
        }
        _ => items.into_iter().map(of).collect(),
    }
}
