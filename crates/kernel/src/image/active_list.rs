//! The active list of a guest, which is short: a machine that works has a long one.
//!
//! What MADV_PAGEOUT evicts counts as used again soon where it returns before as many pages have
//! left as the active list of the machine is long (`workingset_test_recent`). The model takes that
//! list to be long enough, as it is where others use the machine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap};

use super::guest::scratch_disk;

/// The kernel brings its statistics of lists up to date every two seconds.
const STATISTICS: Duration = Duration::from_millis(2500);

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// How long the list was made, in bytes.
static LENGTH: Mutex<u64> = Mutex::new(0);

/// Makes the list at least `bytes` long, as long as the guest runs.
///
/// # Errors
/// In one line: when the disk cannot be read.
pub fn lengthen(bytes: u64) -> Result<(), String> {
    let mut length = LENGTH.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = bytes.next_multiple_of(PIECE as u64);
    if *length >= bytes {
        return Ok(());
    }
    let path = scratch_disk()?;
    let failed = |error: std::io::Error| format!("read {path}: {error}");
    let disk = File::open(&path).map_err(failed)?;
    // The second read makes a page active. Those that are mapped stay where caches are dropped.
    let mut piece = vec![0; PIECE];
    for _ in 0..2 {
        for offset in (*length..bytes).step_by(PIECE) {
            disk.read_exact_at(&mut piece, offset).map_err(failed)?;
        }
    }
    let flags = MapFlags::SHARED | MapFlags::POPULATE;
    // SAFETY: it is mapped where nothing is, and nothing refers to it.
    unsafe { mmap(null_mut(), (bytes - *length) as usize, ProtFlags::READ, flags, &disk, *length) }
        .map_err(|errno| failed(errno.into()))?;
    *length = bytes;
    std::thread::sleep(STATISTICS);
    Ok(())
}
