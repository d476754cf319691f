//! Waits until no page of a file is being read any more.

use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::meter::StepMeter;
use crate::device_reads::DeviceReads;
use crate::residency::{CacheStat, MincoreView};
use crate::{Error, page_size};

/// Sees which pages of a file are still on their way.
pub(super) struct InFlightReads {
    // An open file of its own: this must not disturb the readahead state under test.
    file: File,
    view: MincoreView,
    file_pages: u64,
    present: Vec<u8>,
    /// What its device is reading, on a kernel without `cachestat`.
    device: Option<DeviceReads>,
}

/// Pages to either side of an access that readahead may have asked for.
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

    /// Waits for what is being read of `pages` pages from `page` on.
    pub(super) fn wait_range(&mut self, page: u64, pages: u64) -> Result<(), Error> {
        let end = page.saturating_add(pages).min(self.file_pages);
        let step = (2 * REACH_PAGES) as usize;
        (page..end).step_by(step).try_for_each(|page| self.wait_near((page + REACH_PAGES).min(end)))
    }

    /// Waits for what an access to `page` may have started.
    pub(super) fn wait_near(&mut self, page: u64) -> Result<(), Error> {
        let last_first = self.file_pages - self.present.len() as u64;
        let first = page.saturating_sub(REACH_PAGES).min(last_first);
        let start = Instant::now();
        if let Some(device) = &self.device {
            return device.wait(READ_TIMEOUT);
        }
        loop {
            // A page in the cache is resident for mincore only once it was read.
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

/// Tells whether anything was read since it was last asked: looking at thousands of pages is worth
/// it only then.
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
