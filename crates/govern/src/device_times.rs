//! What reading costs on a file's own device, measured past the page cache.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use filemap_policy::Costs;

use crate::process::page_bytes;

/// Single pages that are read, far apart.
const SINGLE_READS: u64 = 9;

/// Long reads, and their size.
const LONG_READS: u64 = 3;
const LONG_BYTES: u64 = 1 << 20;

/// Smaller files are not measured.
const MIN_FILE_BYTES: u64 = 16 * LONG_BYTES;

/// The measurement ends after this time: on a slow or busy device with fewer reads.
const MAX_TIME: Duration = Duration::from_millis(20);

/// Alignment of memory that any device accepts.
const ALIGNMENT: usize = 4096;

/// Time of a fault besides its read, and of a page besides its transfer: of 10,175 single faults
/// (48 us, the shortest of such reads takes 40), and of 213,000 pages of read-around (3.4 us, the
/// shortest transfer takes 2.75), on a virtual machine with Linux 6.18.
const FAULT_NS: u64 = 8_000;
const PAGE_NS: u64 = 650;

/// Measures the device of `file`; takes 3 ms on a typical disk. `None` if the file is too small, or
/// cannot be read past the page cache.
pub fn measure(file: &File) -> Option<Costs> {
    use std::os::fd::AsRawFd;
    let size = file.metadata().ok()?.len();
    if size < MIN_FILE_BYTES {
        return None;
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let direct = File::options().read(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
    let mut memory = vec![0; LONG_BYTES as usize + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    let buffer = memory.get_mut(start..start + LONG_BYTES as usize)?;
    let begin = Instant::now();
    // Other reads of the device make these slower, never faster.
    let mut least_ns = |count: u64, bytes: u64| -> Option<u64> {
        let mut least_ns = None;
        for number in 1..=count {
            let offset = size / (count + 1) * number / LONG_BYTES * LONG_BYTES;
            let start = Instant::now();
            direct.read_exact_at(&mut buffer[..bytes as usize], offset).ok()?;
            let took_ns = start.elapsed().as_nanos() as u64;
            least_ns = Some(least_ns.map_or(took_ns, |least: u64| least.min(took_ns)));
            if begin.elapsed() > MAX_TIME {
                break;
            }
        }
        least_ns
    };
    let single_ns = least_ns(SINGLE_READS, page_bytes())?;
    let long_ns = least_ns(LONG_READS, LONG_BYTES)?;
    let page_ns = long_ns / (LONG_BYTES / page_bytes());
    Some(Costs { fault_ns: single_ns + FAULT_NS, page_ns: page_ns + PAGE_NS })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn measures_files_of_some_size() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(measure(&file), None, "it is empty");
        for _ in 0..32 {
            file.write_all(&vec![7; LONG_BYTES as usize]).unwrap();
        }
        file.sync_all().unwrap();
        // Some filesystems cannot read past the page cache.
        let Some(costs) = measure(&file) else { return };
        assert!(costs.fault_ns > FAULT_NS && costs.page_ns > PAGE_NS, "{costs:?}");
        assert!(costs.page_ns < costs.fault_ns, "{costs:?}");
    }
}
