//! The memory limits of a job, and whether the kernel can enforce them.

use std::fs;

use filemap_job::Machine;

use super::needs::JobNeeds;
use crate::cgroup::{self, CgroupLimits, MemoryCgroup};
use crate::journal::Journal;
use crate::{Error, page_size};

/// File that controls the multi-generational LRU, and the value that turns it off.
const LRU_GEN: (&str, u64) = ("/sys/kernel/mm/lru_gen/enabled", 0);

/// The kernel's overhead per page is below 1/16 of the page.
const KEEPING_PART: u64 = 16;

/// Limits of the memory cgroup that a job's runs are put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryLimits(Option<CgroupLimits>);

impl MemoryLimits {
    pub(super) fn from_machine(machine: &Machine) -> Self {
        let limits = CgroupLimits {
            max_bytes: machine.memory_max_bytes,
            high_bytes: machine.memory_high_bytes,
        };
        MemoryLimits((limits != CgroupLimits::default()).then_some(limits))
    }

    /// A new cgroup for one run; `None` for a job without limits.
    pub(super) fn cgroup(&self, journal: &Journal) -> Result<Option<MemoryCgroup>, Error> {
        self.0.map(|limits| MemoryCgroup::create(journal, limits)).transpose()
    }

    /// Refuses anonymous memory that the machine has no room for, since the OOM killer would kill
    /// other programs; also refuses files that do not fit under the multi-generational LRU, which
    /// is not modelled.
    pub(super) fn check(&self, needs: &JobNeeds) -> Result<(), Error> {
        let held = needs.anonymous.0.saturating_mul(page_size());
        if available_bytes().is_some_and(|available| !self.has_room(held, available)) {
            return Err(Error::unavailable(
                format!("{} MiB of memory not backed by files", held >> 20),
                "give fewer accesses that write or less 'anonymous', or a smaller memory_max",
            ));
        }
        if self.fits(needs) || lru_gen() == LruGen::Off {
            return Ok(());
        }
        Err(Error::unavailable(
            "files larger than their memory on the multi-generational LRU",
            format!("echo 0 > {}, give more memory, or --image (there it is off)", LRU_GEN.0),
        ))
    }

    /// Whether all files of a job, with the kernel's overhead, fit into its memory.
    pub(super) fn fits(&self, needs: &JobNeeds) -> bool {
        let limits = self.0.unwrap_or_default();
        let memory = [limits.max_bytes, limits.high_bytes, available_bytes()];
        let bytes = needs.file_bytes();
        let needed = bytes.saturating_add(bytes / KEEPING_PART);
        let needed = needed.saturating_add(needs.anonymous.0.saturating_mul(page_size()));
        memory.into_iter().flatten().min().is_none_or(|memory| needed <= memory)
    }

    /// Whether `available` bytes have room for `held` bytes of unevictable memory, capped by the
    /// cgroup limit, with the kernel's overhead.
    fn has_room(&self, held: u64, available: u64) -> bool {
        let most = self.0.and_then(|limits| limits.max_bytes).unwrap_or(u64::MAX);
        let held = held.min(most);
        held.saturating_add(held / KEEPING_PART) <= available
    }

    /// The error for a process that was killed at the hard limit.
    pub(super) fn oom_error(&self) -> Option<Error> {
        self.0?.max_bytes.map(|limit_bytes| Error::OutOfMemory { limit_bytes })
    }

    /// Whether there is any limit.
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

/// Which LRU the kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LruGen {
    /// The classic active and inactive lists.
    Off,
    /// The multi-generational LRU.
    On,
}

impl LruGen {
    pub(crate) fn name(self) -> &'static str {
        match self {
            LruGen::Off => "off",
            LruGen::On => "on",
        }
    }
}

/// The LRU in use. A kernel without the file has only the classic one.
pub(crate) fn lru_gen() -> LruGen {
    let value = fs::read_to_string(LRU_GEN.0).ok();
    let value =
        value.and_then(|text| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok());
    if value.unwrap_or(LRU_GEN.1) == LRU_GEN.1 { LruGen::Off } else { LruGen::On }
}

/// Available memory in bytes, within the limits of this process's memory cgroups; `None` if
/// unknown.
pub fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let available = line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10;
    Some(cgroup::room_bytes().map_or(available, |room| room.min(available)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_memory_needs_room() {
        let with_max = |max_bytes| MemoryLimits(Some(CgroupLimits { max_bytes, high_bytes: None }));
        let cases = [(MemoryLimits(None), 160, true), (MemoryLimits(None), 161, false)];
        let limited = [(with_max(Some(160)), u64::MAX, true), (with_max(None), u64::MAX, false)];
        for (limits, held, has_room) in cases.into_iter().chain(limited) {
            assert_eq!(limits.has_room(held, 170), has_room, "{limits:?} {held}");
        }
    }
}
