//! Machine profiles: what a device and a fault cost.

use serde::{Deserialize, Serialize};

use crate::Error;

/// What a machine's device and faults cost. Times that follow from it are predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The device that files are read from.
    pub device: Device,
    /// The processor's part.
    pub cost: Cost,
}

/// A block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Nanoseconds from a request to its first byte, at queue depth 1, as a thread sees it that
    /// sleeps for it.
    pub latency_ns: u64,
    /// Bytes a second once a request is being served: at least 1.
    pub bandwidth_bytes: u64,
    /// Requests served at the same time: at least 1.
    pub queue_depth: u32,
    /// Optimal I/O size in bytes: a single `read(2)` may read as much at once.
    pub io_bytes: u64,
}

/// What the processor spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Nanoseconds for an access to a mapped page.
    pub touch_ns: u64,
    /// Nanoseconds for one try of a fault.
    pub fault_ns: u64,
    /// Nanoseconds for each page that fault-around maps.
    pub map_page_ns: u64,
    /// Nanoseconds for each page added to the cache.
    pub add_page_ns: u64,
}

impl Profile {
    /// Assumed where no profile is given: a virtio disk of 57 us a 4 KiB read and 1.3 GB/s.
    pub const DEFAULT: Profile = Profile {
        device: Device {
            latency_ns: 54_000,
            bandwidth_bytes: 1_300_000_000,
            queue_depth: 32,
            io_bytes: 1 << 20,
        },
        cost: Cost { touch_ns: 5, fault_ns: 700, map_page_ns: 25, add_page_ns: 60 },
    };

    /// Reads a profile from TOML.
    ///
    /// # Errors
    /// For text that is no profile, and values that no device has.
    pub fn parse(text: &str) -> Result<Profile, Error> {
        let profile: Profile = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            Error::Profile { line, reason: error.message().replace('\n', " ") }
        })?;
        let device = profile.device;
        for (key, value) in [
            ("bandwidth_bytes", device.bandwidth_bytes),
            ("queue_depth", device.queue_depth.into()),
        ] {
            if value == 0 {
                return Err(Error::ProfileZero { key });
            }
        }
        for (key, value) in [
            ("latency_ns", device.latency_ns),
            ("touch_ns", profile.cost.touch_ns),
            ("fault_ns", profile.cost.fault_ns),
            ("map_page_ns", profile.cost.map_page_ns),
            ("add_page_ns", profile.cost.add_page_ns),
        ] {
            if value > MAX_NS {
                return Err(Error::ProfileTime { key, value });
            }
        }
        Ok(profile)
    }
}

/// Longest time in a profile: 1000 s.
const MAX_NS: u64 = 1_000_000_000_000;
