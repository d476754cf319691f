//! Independent jobs on all processors.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use rustix::process::{Resource, getrlimit};

/// Minimum address space (`ulimit -v`) for threads. glibc aborts the process when a thread finds no
/// memory while it starts.
const MIN_ADDRESS_SPACE: u64 = 1 << 30;

/// Maps `items` in parallel, with the results in order; sequentially if there is no room for
/// threads.
///
/// # Errors
/// The error of an item. Later items may not have run then.
pub fn map<T: Send, R: Send, E: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R, E> + Send + Sync,
) -> Result<Vec<R>, E> {
    let space = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    let threads = items.len() > 1 && space >= MIN_ADDRESS_SPACE;
    match threads.then(|| ThreadPoolBuilder::new().build()) {
        // Items vary widely in cost, so each is stolen alone.
        Some(Ok(pool)) => {
            let done = items.into_par_iter().with_max_len(1).map(work);
            pool.install(|| done.collect())
        }
        _ => items.into_iter().map(work).collect(),
    }
}
