//! Waits until no page of a file is being read: by `cachestat` and `mincore`, or before Linux 6.5
//! by the statistics of the device.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::meter::StepMeter;
use crate::residency::{CacheStat, MincoreView};
use crate::{Error, page_size};

/// Detects pages of a file that are being read.
pub(super) struct InFlightReads {
    // A separate open file, so as not to disturb the readahead state under test.
    file: File,
    view: MincoreView,
    file_pages: u64,
    present: Vec<u8>,
    /// Reads of its device, on a kernel without `cachestat`.
    device: Option<DeviceReads>,
}

/// Distance from an access, in pages, within which readahead may have requested pages.
const REACH_PAGES: u64 = 8192;
const READ_TIMEOUT: Duration = Duration::from_secs(30);

impl InFlightReads {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::os("open", path, error))?;
        let bytes =
            file.metadata().map_err(|error| Error::os("read the size of", path, error))?.len();
        let file_pages = bytes.div_ceil(page_size()).max(1);
        let view = MincoreView::map(&file, file_pages)?;
        let present = vec![1; file_pages.min(2 * REACH_PAGES) as usize];
        let device = match CacheStat::query(&file, ..) {
            Ok(_) => None,
            Err(_) => Some(DeviceReads::find(&file)?),
        };
        Ok(InFlightReads { file, view, file_pages, present, device })
    }

    /// Waits until none of `pages` pages from `page` on is being read.
    pub(super) fn wait_range(&mut self, page: u64, pages: u64) -> Result<(), Error> {
        let end = page.saturating_add(pages).min(self.file_pages);
        let step = (2 * REACH_PAGES) as usize;
        (page..end).step_by(step).try_for_each(|page| self.wait_near((page + REACH_PAGES).min(end)))
    }

    /// Waits for reads that an access to `page` may have started.
    pub(super) fn wait_near(&mut self, page: u64) -> Result<(), Error> {
        let last_first = self.file_pages - self.present.len() as u64;
        let first = page.saturating_sub(REACH_PAGES).min(last_first);
        let start = Instant::now();
        if let Some(device) = &self.device {
            return device.wait(READ_TIMEOUT);
        }
        loop {
            // mincore reports a cached page as resident only once it is up to date.
            self.view.query(first, &mut self.present)?;
            let resident = self.present.iter().filter(|&&byte| byte & 1 == 1).count() as u64;
            let range = first..first + self.present.len() as u64;
            if CacheStat::query(&self.file, range)?.cached == resident {
                return Ok(());
            }
            if start.elapsed() > READ_TIMEOUT {
                return Err(Error::Child {
                    message: format!("pages near page {page} are still being read after 30 s"),
                });
            }
            sleep(Duration::from_micros(50));
        }
    }
}

/// Tells whether anything was read since the last call: only then is it worth checking thousands of
/// pages.
pub(super) struct ReadProgress(Option<u64>);

impl ReadProgress {
    pub(super) fn new() -> Self {
        ReadProgress(None)
    }

    pub(super) fn has_advanced(&mut self, meter: &mut StepMeter) -> bool {
        let read_bytes = meter.read_bytes();
        let anything = read_bytes.is_none() || read_bytes != self.0;
        self.0 = read_bytes;
        anything
    }
}

/// Interval between two samples of the statistics, in which queued requests start and completions
/// are counted.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Number of consecutive samples that must find the device idle.
const IDLE_POLLS: u32 = 2;

/// The device of a file.
#[derive(Debug)]
pub(crate) struct DeviceReads {
    stat: PathBuf,
}

/// A snapshot of the statistics of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeviceStat {
    sectors_read: u64,
    in_flight: u64,
}

impl DeviceReads {
    /// The device of `file`.
    ///
    /// # Errors
    /// The filesystem has no block device of its own.
    pub(crate) fn find(file: &File) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(|error| Error::call("look at a file", error))?;
        let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let stat = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        if !stat.exists() {
            return Err(Error::unavailable(
                "seeing which pages are still being read on this filesystem",
                "use Linux 6.5 or later (cachestat), or a file on ext4 or XFS",
            ));
        }
        Ok(DeviceReads { stat })
    }

    /// Waits until nothing is being read, for at most `patience`.
    pub(crate) fn wait(&self, patience: Duration) -> Result<(), Error> {
        let start = Instant::now();
        let (mut last, mut idle) = (self.look()?, 0);
        while idle < IDLE_POLLS {
            sleep(POLL_INTERVAL);
            let now = self.look()?;
            idle = if now == last && now.in_flight == 0 { idle + 1 } else { 0 };
            last = now;
            if start.elapsed() > patience {
                let waited = patience.as_secs();
                return Err(Error::Child {
                    message: format!("the device still reads after {waited} s"),
                });
            }
        }
        Ok(())
    }

    fn look(&self) -> Result<DeviceStat, Error> {
        let text = fs::read_to_string(&self.stat);
        let text = text.map_err(|error| Error::os("read", &self.stat, error))?;
        look(&text).ok_or_else(|| Error::Child {
            message: format!("'{}' is in an unknown format", self.stat.display()),
        })
    }
}

/// Parses `/sys/dev/block/*/stat`: field 3 is sectors read, field 9 requests in flight.
fn look(stat: &str) -> Option<DeviceStat> {
    let numbers: Vec<u64> = stat.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(DeviceStat { sectors_read: *numbers.get(2)?, in_flight: *numbers.get(8)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_device_stat() {
        let line = "    4095   12  123456  900   7   1   64    3    2  880  903  0 0 0 0 0 0\n";
        assert_eq!(look(line), Some(DeviceStat { sectors_read: 123_456, in_flight: 2 }));
        assert_eq!(look("1 2 3"), None);
    }
}
