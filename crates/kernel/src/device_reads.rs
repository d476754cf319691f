//! What a block device is reading, for kernels that do not tell it of each page.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Error;

/// Between two looks: while this sleeps, what is queued is started, and what has come is noted.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Looks in a row that have to find the device idle.
const IDLE_POLLS: u32 = 2;

/// The device that a file lies on.
#[derive(Debug)]
pub(crate) struct DeviceReads {
    stat: PathBuf,
}

/// What a device has done and does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeviceStat {
    sectors_read: u64,
    in_flight: u64,
}

impl DeviceReads {
    /// The device of `file`.
    ///
    /// # Errors
    /// A file on a filesystem without a block device of its own.
    pub(crate) fn find(file: &File) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(|error| Error::call("look at a file", error))?;
        let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
        let stat = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        if !stat.exists() {
            return Err(Error::unavailable(
                "a look at what is still being read on this filesystem",
                "use Linux 6.5 or later (cachestat), or a file on ext4 or XFS",
            ));
        }
        Ok(DeviceReads { stat })
    }

    /// Waits until nothing is being read any more, for `patience` at most.
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
            message: format!("'{}' is in an unknown form", self.stat.display()),
        })
    }
}

/// What a device's `stat` says: sectors read are its third number, requests in flight its ninth.
fn look(stat: &str) -> Option<DeviceStat> {
    let numbers: Vec<u64> = stat.split_whitespace().map_while(|word| word.parse().ok()).collect();
    Some(DeviceStat { sectors_read: *numbers.get(2)?, in_flight: *numbers.get(8)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_reads_is_found_in_its_line() {
        let line = "    4095   12  123456  900   7   1   64    3    2  880  903  0 0 0 0 0 0\n";
        assert_eq!(look(line), Some(DeviceStat { sectors_read: 123_456, in_flight: 2 }));
        assert_eq!(look("1 2 3"), None);
    }
}
