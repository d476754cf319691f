//! All threads of a process.

use std::collections::HashSet;
use std::io;

use crate::{Error, process};

/// A thread makes others while its events are opened: this often new ones are looked for.
const MOST_LOOKS: u32 = 16;

/// Opens the events of each thread of a process by `follow`, and of those that it makes meanwhile.
///
/// # Errors
/// The process is gone; what `follow` gives for a thread that has not ended, as `refused` has it.
pub(crate) fn each_thread(
    pid: u32,
    mut follow: impl FnMut(u32) -> io::Result<()>,
    refused: impl Fn(io::Error) -> Error,
) -> Result<(), Error> {
    let mut followed = HashSet::new();
    for _ in 0..MOST_LOOKS {
        let threads = process::threads(pid)?;
        let new: Vec<_> = threads.into_iter().filter(|tid| followed.insert(*tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            match follow(tid) {
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                followed => followed.map_err(&refused)?,
            }
        }
    }
    Ok(())
}
