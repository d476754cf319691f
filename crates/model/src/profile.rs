//! Machine profiles: costs of a device and of the kernel's work.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Costs of a machine's device and kernel work. Times derived from them are predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The device that files are read from.
    pub device: DeviceProfile,
    /// Processor costs.
    pub cost: CpuCosts,
    /// The instruction TLB, for workloads that call code in mapped files.
    #[serde(default = "InstructionTlb::assumed")]
    pub itlb: InstructionTlb,
    /// Whether the machine supports huge pages; without them no mapping can be advised HUGEPAGE.
    #[serde(default = "yes")]
    pub huge_pages: bool,
    /// Whether the CPUs run one at a time, as in single-threaded emulation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cpus_in_turn: bool,
    /// Whether a thread can be preempted in the kernel when it allocates a page or takes a sleeping
    /// lock (`CONFIG_PREEMPT_VOLUNTARY`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub voluntary_preemption: bool,
    /// When it was measured; absent if it was put together in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Date>,
}

/// A date in UTC, written as `2026-11-29`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> Result<Date, String> {
        let parts: Vec<&str> = text.split('-').collect();
        let date = match parts.as_slice() {
            [year, month, day] => (year.parse().ok(), month.parse().ok(), day.parse().ok()),
            _ => (None, None, None),
        };
        match date {
            (Some(year), Some(month @ 1..=12), Some(day @ 1..=31)) => Ok(Date { year, month, day }),
            _ => Err(format!("'{text}' is not a date such as 2026-11-29")),
        }
    }
}

impl From<Date> for String {
    fn from(date: Date) -> String {
        date.to_string()
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

const fn yes() -> bool {
    true
}

const fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

/// A block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Nanoseconds from a request to its first byte at queue depth 1, as seen by a sleeping thread.
    pub latency_ns: u64,
    /// Transfer rate in bytes per second: at least 1.
    pub bandwidth_bytes: u64,
    /// Requests served concurrently: at least 1. Ignored if `ring_entries` is set.
    pub queue_depth: u32,
    /// Optimal I/O size in bytes: a single `read(2)` can make readahead this large.
    pub io_bytes: u64,
    /// Nanoseconds per segment of a request; each folio is one.
    #[serde(default)]
    pub segment_ns: u64,
    /// Nanoseconds that each request keeps the device from serving others, in addition to its
    /// transfer: at most one request per this time is served, however many are in flight.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request_ns: u64,
    /// Ring entries of a device that reports completions in batches: a request takes one per
    /// segment and two more. At least 1; absent if each request completes separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring_entries: Option<u32>,
}

/// Costs of the processor's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuCosts {
    /// Nanoseconds for an access to a mapped page.
    pub touch_ns: u64,
    /// Nanoseconds per try of a fault.
    pub fault_ns: u64,
    /// Nanoseconds per page that fault-around maps.
    pub map_page_ns: u64,
    /// Nanoseconds per page added to the cache.
    pub add_page_ns: u64,
    /// Nanoseconds per folio added to the cache, regardless of its order.
    #[serde(default)]
    pub add_folio_ns: u64,
    /// Nanoseconds for which a call holds `mmap_lock` for writing: `mmap(2)`, `munmap(2)` before it
    /// downgrades, and `mprotect(2)`.
    #[serde(default = "CpuCosts::call_ns")]
    pub call_ns: u64,
    /// Nanoseconds per entry that `munmap(2)` zaps.
    #[serde(default = "CpuCosts::entry_ns")]
    pub entry_ns: u64,
    /// Nanoseconds per entry that `mprotect(2)` changes; defaults to `entry_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protect_page_ns: Option<u64>,
    /// Nanoseconds for which `fork(2)` holds `mmap_lock` for writing, and again until its child
    /// exits.
    #[serde(default = "CpuCosts::fork_ns")]
    pub fork_ns: u64,
    /// Nanoseconds per zeroed page of a hole.
    #[serde(default)]
    pub zero_page_ns: u64,
    /// Nanoseconds per `read(2)`, in addition to its pages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_ns: u64,
    /// Nanoseconds to copy a base page of 4 KiB in a `read(2)`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copy_page_ns: u64,
    /// Nanoseconds per page that reclaim evicts.
    #[serde(default)]
    pub evict_page_ns: u64,
    /// Additional nanoseconds per evicted page that was mapped.
    #[serde(default)]
    pub unmap_page_ns: u64,
    /// Nanoseconds per page that memory cgroup reclaim scans and keeps.
    #[serde(default)]
    pub keep_page_ns: u64,
    /// Nanoseconds per page that it keeps because it is still being read.
    #[serde(default)]
    pub keep_locked_ns: u64,
    /// Nanoseconds the waker spends per woken task.
    #[serde(default)]
    pub wake_ns: u64,
    /// Nanoseconds until a woken task runs on an idle CPU.
    #[serde(default)]
    pub wake_latency_ns: u64,
    /// Likewise for a task that waited for the device, in addition to the device's latency;
    /// defaults to `wake_latency_ns`. 0 if that latency was measured with a sleeping thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_wake_latency_ns: Option<u64>,
    /// Nanoseconds per context switch.
    #[serde(default)]
    pub switch_ns: u64,
}

impl CpuCosts {
    /// Nanoseconds per entry whose protection changes.
    pub fn protect_page_ns(&self) -> u64 {
        self.protect_page_ns.unwrap_or(self.entry_ns)
    }

    /// Nanoseconds until a task whose page has arrived runs on an idle CPU.
    pub fn page_wake_latency_ns(&self) -> u64 {
        self.page_wake_latency_ns.unwrap_or(self.wake_latency_ns)
    }

    /// Every cost with its key. A value that defaults to another one is skipped.
    pub fn named_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut u64)> {
        let protect = self.protect_page_ns.as_mut().map(|ns| ("protect_page_ns", ns));
        let wake = self.page_wake_latency_ns.as_mut().map(|ns| ("page_wake_latency_ns", ns));
        let costs = [
            ("touch_ns", &mut self.touch_ns),
            ("fault_ns", &mut self.fault_ns),
            ("map_page_ns", &mut self.map_page_ns),
            ("add_page_ns", &mut self.add_page_ns),
            ("add_folio_ns", &mut self.add_folio_ns),
            ("call_ns", &mut self.call_ns),
            ("entry_ns", &mut self.entry_ns),
            ("fork_ns", &mut self.fork_ns),
            ("zero_page_ns", &mut self.zero_page_ns),
            ("read_ns", &mut self.read_ns),
            ("copy_page_ns", &mut self.copy_page_ns),
            ("evict_page_ns", &mut self.evict_page_ns),
            ("unmap_page_ns", &mut self.unmap_page_ns),
            ("keep_page_ns", &mut self.keep_page_ns),
            ("keep_locked_ns", &mut self.keep_locked_ns),
            ("wake_ns", &mut self.wake_ns),
            ("wake_latency_ns", &mut self.wake_latency_ns),
            ("switch_ns", &mut self.switch_ns),
        ];
        costs.into_iter().chain(protect).chain(wake)
    }

    const fn call_ns() -> u64 {
        850
    }

    const fn entry_ns() -> u64 {
        12
    }

    const fn fork_ns() -> u64 {
        31_000
    }
}

/// Geometry of the instruction TLB and the cost of missing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionTlb {
    /// Nanoseconds per call that hits the first level.
    pub call_ns: u64,
    /// Nanoseconds per page-table walk.
    pub walk_ns: u64,
    /// The level private to instructions.
    pub first: TlbLevel,
    /// The next level.
    pub second: TlbLevel,
}

/// One level of a TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbLevel {
    /// Entries: a multiple of `ways`.
    pub entries: u32,
    /// Entries per set; equal to `entries` if fully associative.
    pub ways: u32,
    /// Nanoseconds per hit in this level.
    pub hit_ns: u64,
    /// Bytes of the largest translation that one entry holds; larger ones are split.
    pub largest_bytes: u64,
}

impl InstructionTlb {
    /// Default geometry: the sizes published by Arm for the Neoverse V2, with assumed times.
    pub const fn assumed() -> InstructionTlb {
        InstructionTlb {
            call_ns: 40,
            walk_ns: 30,
            first: TlbLevel { entries: 48, ways: 48, hit_ns: 0, largest_bytes: 2 << 20 },
            second: TlbLevel { entries: 2048, ways: 8, hit_ns: 3, largest_bytes: 512 << 20 },
        }
    }

    fn check(&self) -> Result<(), Error> {
        for (level, name) in [(self.first, "itlb.first"), (self.second, "itlb.second")] {
            let TlbLevel { entries, ways, largest_bytes, .. } = level;
            let whole = ways > 0 && entries > 0 && entries.is_multiple_of(ways);
            if !whole || entries > MAX_TLB_ENTRIES || largest_bytes == 0 {
                return Err(Error::ProfileTlb { level: name, entries, ways });
            }
        }
        Ok(())
    }
}

/// Maximum number of entries per TLB level.
const MAX_TLB_ENTRIES: u32 = 1 << 20;

impl Profile {
    /// Default machine: a virtio disk with 57 us per 4 KiB read and 1.3 GB/s.
    pub const DEFAULT: Profile = Profile {
        device: DeviceProfile {
            latency_ns: 54_000,
            bandwidth_bytes: 1_300_000_000,
            queue_depth: 32,
            io_bytes: 1 << 20,
            segment_ns: 0,
            request_ns: 0,
            ring_entries: None,
        },
        cost: CpuCosts {
            touch_ns: 5,
            fault_ns: 700,
            map_page_ns: 25,
            add_page_ns: 60,
            add_folio_ns: 0,
            call_ns: CpuCosts::call_ns(),
            entry_ns: CpuCosts::entry_ns(),
            protect_page_ns: None,
            fork_ns: CpuCosts::fork_ns(),
            zero_page_ns: 0,
            read_ns: 0,
            copy_page_ns: 0,
            evict_page_ns: 0,
            unmap_page_ns: 0,
            keep_page_ns: 0,
            keep_locked_ns: 0,
            wake_ns: 0,
            wake_latency_ns: 0,
            page_wake_latency_ns: None,
            switch_ns: 0,
        },
        itlb: InstructionTlb::assumed(),
        huge_pages: true,
        cpus_in_turn: false,
        voluntary_preemption: false,
        measured: None,
    };

    /// Reads a profile from TOML.
    ///
    /// # Errors
    /// For invalid TOML, unknown keys, and values out of range.
    pub fn parse(text: &str) -> Result<Profile, Error> {
        let profile: Profile = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            Error::Profile { line, reason: error.message().replace('\n', " ") }
        })?;
        let device = profile.device;
        for (key, value) in [
            ("bandwidth_bytes", device.bandwidth_bytes),
            ("queue_depth", device.queue_depth.into()),
            ("ring_entries", device.ring_entries.map_or(1, u64::from)),
        ] {
            if value == 0 {
                return Err(Error::ProfileZero { key });
            }
        }
        let times = [
            ("latency_ns", device.latency_ns),
            ("segment_ns", device.segment_ns),
            ("request_ns", device.request_ns),
            ("itlb.call_ns", profile.itlb.call_ns),
            ("walk_ns", profile.itlb.walk_ns),
            ("first.hit_ns", profile.itlb.first.hit_ns),
            ("second.hit_ns", profile.itlb.second.hit_ns),
        ];
        let mut costs = profile.cost;
        let costs: Vec<_> = costs.named_mut().map(|(key, ns)| (key, *ns)).collect();
        for (key, value) in times.into_iter().chain(costs) {
            if value > MAX_TIME_NS {
                return Err(Error::ProfileTime { key, value });
            }
        }
        profile.itlb.check()?;
        Ok(profile)
    }
}

/// Maximum time in a profile: 1000 s.
const MAX_TIME_NS: u64 = 1_000_000_000_000;
