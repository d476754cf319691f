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
    /// The instruction TLB, for workloads that call what they map.
    #[serde(default = "InstructionTlb::assumed")]
    pub itlb: InstructionTlb,
    /// Whether the machine has huge pages: without them no mapping can be advised HUGEPAGE.
    #[serde(default = "yes")]
    pub huge_pages: bool,
    /// Whether its CPUs run in turn, one at a time, as those of an emulator in one thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cpus_in_turn: bool,
    /// Whether a thread can lose its CPU in the kernel where it allocates a page or takes a lock
    /// that it may have to wait for (`CONFIG_PREEMPT_VOLUNTARY`). Otherwise it keeps it there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub voluntary_preemption: bool,
}

const fn yes() -> bool {
    true
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
    /// Requests served at the same time: at least 1. What a ring holds takes its place where there
    /// is one.
    pub queue_depth: u32,
    /// Optimal I/O size in bytes: a single `read(2)` may read as much at once.
    pub io_bytes: u64,
    /// Nanoseconds for each segment of a request: each folio is one.
    #[serde(default)]
    pub segment_ns: u64,
    /// Entries of the ring through which requests are given to a device that says of them only
    /// together that they are complete: a request takes one for each segment and two more. At least
    /// 1; none for a device that says it of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring_entries: Option<u32>,
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
    /// Nanoseconds for each folio added to the cache, however many pages it has.
    #[serde(default)]
    pub add_folio_ns: u64,
    /// Nanoseconds that a call takes `mmap_lock` to write: `mmap(2)`, `munmap(2)` before it
    /// downgrades, and `mprotect(2)`.
    #[serde(default = "Cost::call_ns")]
    pub call_ns: u64,
    /// Nanoseconds for each entry that `munmap(2)` takes away.
    #[serde(default = "Cost::entry_ns")]
    pub entry_ns: u64,
    /// Nanoseconds for each entry that `mprotect(2)` changes; as `entry_ns` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protect_page_ns: Option<u64>,
    /// Nanoseconds that `fork(2)` takes `mmap_lock` to write, and that a child takes to end.
    #[serde(default = "Cost::fork_ns")]
    pub fork_ns: u64,
    /// Nanoseconds for each page of a hole that is filled with zeros.
    #[serde(default)]
    pub zero_page_ns: u64,
    /// Nanoseconds for each page that reclaim evicts.
    #[serde(default)]
    pub evict_page_ns: u64,
    /// Nanoseconds for each of those pages whose entries it takes away, besides.
    #[serde(default)]
    pub unmap_page_ns: u64,
    /// Nanoseconds for each page that reclaim in a memory cgroup looks at and keeps.
    #[serde(default)]
    pub keep_page_ns: u64,
    /// The same for a page that it keeps as that is being read.
    #[serde(default)]
    pub keep_locked_ns: u64,
    /// Nanoseconds for each task that is woken, of the one that wakes it.
    #[serde(default)]
    pub wake_ns: u64,
    /// Nanoseconds until a task that was woken runs on a CPU that was idle.
    #[serde(default)]
    pub wake_latency_ns: u64,
    /// Nanoseconds for a change from one task to another.
    #[serde(default)]
    pub switch_ns: u64,
}

impl Cost {
    /// Nanoseconds for each entry whose protection changes.
    pub fn protect_page_ns(&self) -> u64 {
        self.protect_page_ns.unwrap_or(self.entry_ns)
    }

    /// Each of them with its name. What follows another one is left out.
    pub fn named(&mut self) -> impl Iterator<Item = (&'static str, &mut u64)> {
        let own = self.protect_page_ns.as_mut().map(|ns| ("protect_page_ns", ns));
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
            ("evict_page_ns", &mut self.evict_page_ns),
            ("unmap_page_ns", &mut self.unmap_page_ns),
            ("keep_page_ns", &mut self.keep_page_ns),
            ("keep_locked_ns", &mut self.keep_locked_ns),
            ("wake_ns", &mut self.wake_ns),
            ("wake_latency_ns", &mut self.wake_latency_ns),
            ("switch_ns", &mut self.switch_ns),
        ];
        costs.into_iter().chain(own)
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

/// What an instruction TLB holds, and what a call costs that misses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionTlb {
    /// Nanoseconds for a call that finds its translation in the first level.
    pub call_ns: u64,
    /// Nanoseconds for a walk of the page tables.
    pub walk_ns: u64,
    /// The level that instructions have for themselves.
    pub first: TlbLevel,
    /// The level after it.
    pub second: TlbLevel,
}

/// One level of a TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbLevel {
    /// Entries: a multiple of `ways`.
    pub entries: u32,
    /// Entries of one set; as many as entries where it is fully associative.
    pub ways: u32,
    /// Nanoseconds for a translation found here.
    pub hit_ns: u64,
    /// Bytes of the largest translation that one entry holds; larger ones are held in pieces.
    pub largest_bytes: u64,
}

impl InstructionTlb {
    /// Assumed where no profile says otherwise: the sizes that Arm gives for the Neoverse V2, and
    /// times that are assumed.
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
            if !whole || entries > MAX_ENTRIES || largest_bytes == 0 {
                return Err(Error::ProfileTlb { level: name, entries, ways });
            }
        }
        Ok(())
    }
}

/// Most entries of one level of a TLB.
const MAX_ENTRIES: u32 = 1 << 20;

impl Profile {
    /// Assumed where no profile is given: a virtio disk of 57 us a 4 KiB read and 1.3 GB/s.
    pub const DEFAULT: Profile = Profile {
        device: Device {
            latency_ns: 54_000,
            bandwidth_bytes: 1_300_000_000,
            queue_depth: 32,
            io_bytes: 1 << 20,
            segment_ns: 0,
            ring_entries: None,
        },
        cost: Cost {
            touch_ns: 5,
            fault_ns: 700,
            map_page_ns: 25,
            add_page_ns: 60,
            add_folio_ns: 0,
            call_ns: Cost::call_ns(),
            entry_ns: Cost::entry_ns(),
            protect_page_ns: None,
            fork_ns: Cost::fork_ns(),
            zero_page_ns: 0,
            evict_page_ns: 0,
            unmap_page_ns: 0,
            keep_page_ns: 0,
            keep_locked_ns: 0,
            wake_ns: 0,
            wake_latency_ns: 0,
            switch_ns: 0,
        },
        itlb: InstructionTlb::assumed(),
        huge_pages: true,
        cpus_in_turn: false,
        voluntary_preemption: false,
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
            ("ring_entries", device.ring_entries.map_or(1, u64::from)),
        ] {
            if value == 0 {
                return Err(Error::ProfileZero { key });
            }
        }
        let times = [
            ("latency_ns", device.latency_ns),
            ("segment_ns", device.segment_ns),
            ("itlb.call_ns", profile.itlb.call_ns),
            ("walk_ns", profile.itlb.walk_ns),
            ("first.hit_ns", profile.itlb.first.hit_ns),
            ("second.hit_ns", profile.itlb.second.hit_ns),
        ];
        let mut costs = profile.cost;
        let costs: Vec<_> = costs.named().map(|(key, ns)| (key, *ns)).collect();
        for (key, value) in times.into_iter().chain(costs) {
            if value > MAX_NS {
                return Err(Error::ProfileTime { key, value });
            }
        }
        profile.itlb.check()?;
        Ok(profile)
    }
}

/// Longest time in a profile: 1000 s.
const MAX_NS: u64 = 1_000_000_000_000;
