//! What was done for one process, and for several.

use filemap_govern::{MappingState, MappingStatistics};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What tells of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "their names say it")]
pub enum Observer {
    PerfEvent,
    /// Looks at the page tables.
    Pagemap,
}

/// What was done for one image of a process: each exec begins another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Process {
    /// Its number.
    pub pid: u64,
    /// Which of its images, from 0 on: those that had something to tell.
    pub image: u32,
    /// Whether it still ran this image when it was looked at.
    pub running: bool,
    pub observer: Observer,
    /// Why a mapping of it is not governed; the last reason.
    pub reason: Option<String>,
    /// Major faults that were told, in whatever mapping.
    pub faults_reported: u64,
    /// Major faults in governed mappings before they were governed.
    pub faults_missed: u64,
    /// Mappings that were left alone, since more are governed than there is room for.
    pub mappings_left_alone: u64,
    /// Its mappings, the governed ones and the largest first.
    pub mappings: Vec<Mapping>,
}

/// What was done for one mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mapping {
    /// What the governor tells of it.
    #[serde(flatten)]
    pub own: MappingStatistics,
    /// Bytes of it that are mapped, or were when it ended; null where nobody could look.
    pub mapped_bytes: Option<u64>,
    /// Bytes that were asked for and are not mapped.
    pub wasted_bytes: Option<u64>,
}

/// What was done for several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Mappings that were governed, for some time at least.
    pub mappings: u64,
    /// Major faults in them.
    pub faults: u64,
    /// Bytes that the kernel was asked for beside the pages that faulted.
    pub advised_bytes: u64,
    /// How long threads were stopped.
    pub stopped_ns: u64,
    /// Bytes that were asked for and not mapped, of those mappings of which it is known.
    pub wasted_bytes: u64,
    /// Major faults in them before they were governed.
    pub faults_missed: u64,
}

impl Mapping {
    /// One of which so much is mapped, and with that what was asked for in vain, for pages of
    /// `page_bytes`: each fault brought one page beside the advice.
    pub fn of(own: MappingStatistics, mapped_bytes: Option<u64>, page_bytes: u64) -> Self {
        let asked = own.asked_bytes.saturating_add(own.major_faults.saturating_mul(page_bytes));
        let wasted_bytes = mapped_bytes.map(|mapped| asked.saturating_sub(mapped));
        Mapping { own, mapped_bytes, wasted_bytes }
    }
}

impl Process {
    /// Puts the governed mappings first, and the larger before the smaller.
    pub fn sort(&mut self) {
        self.mappings.sort_by_key(|Mapping { own, .. }| {
            let ended = own.state != MappingState::Governed;
            (own.path.is_none(), ended, u64::MAX - own.length_bytes, own.address)
        });
    }
}

impl Totals {
    /// Those of `processes`.
    pub fn of(processes: &[Process]) -> Totals {
        let mut totals = Totals::default();
        for process in processes {
            totals.faults_missed += process.faults_missed;
            for Mapping { own, wasted_bytes, .. } in &process.mappings {
                totals.mappings += own.mappings;
                totals.faults += own.major_faults;
                totals.stopped_ns += own.stopped_ns;
                totals.advised_bytes += own.asked_bytes;
                totals.wasted_bytes += wasted_bytes.unwrap_or(0);
            }
        }
        totals
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn mapping(path: &str, state: MappingState, length_bytes: u64) -> MappingStatistics {
        MappingStatistics {
            path: Some(path.into()),
            mappings: 1,
            state,
            address: 0x7f00_0000_0000,
            length_bytes,
            offset_bytes: 0,
            major_faults: 3,
            early_faults: 0,
            asked_bytes: 40960,
            calls: 2,
            stopped_ns: 1,
        }
    }

    pub fn process(mappings: Vec<Mapping>) -> Process {
        Process {
            pid: 7,
            image: 0,
            running: true,
            observer: Observer::PerfEvent,
            reason: None,
            faults_reported: 9,
            faults_missed: 1,
            mappings_left_alone: 0,
            mappings,
        }
    }

    #[test]
    fn what_is_not_mapped_was_asked_for_in_vain() {
        let wasted = |mapped| {
            Mapping::of(mapping("a", MappingState::Ended, 1 << 24), mapped, 4096).wasted_bytes
        };
        assert_eq!(wasted(None), None);
        assert_eq!(wasted(Some(0)), Some(13 * 4096));
        assert_eq!(wasted(Some(12 * 4096)), Some(4096));
        assert_eq!(wasted(Some(1 << 24)), Some(0), "faults map pages around them too");
    }

    #[test]
    fn large_governed_mappings_come_first() {
        let of = |path, state, bytes| Mapping::of(mapping(path, state, bytes), Some(4096), 4096);
        let mut others = of("", MappingState::Ended, 0);
        others.own.path = None;
        let mut process = process(vec![
            others,
            of("ended", MappingState::Ended, 9 << 20),
            of("small", MappingState::Governed, 1 << 20),
            of("large", MappingState::Governed, 2 << 20),
        ]);
        process.sort();
        let paths: Vec<_> =
            process.mappings.iter().map(|of| of.own.path.as_ref()?.to_str()).collect();
        assert_eq!(paths, [Some("large"), Some("small"), Some("ended"), None]);
        let totals = Totals::of(&[process.clone(), process]);
        assert_eq!((totals.mappings, totals.faults, totals.faults_missed), (8, 24, 2));
        assert_eq!((totals.advised_bytes, totals.wasted_bytes), (8 * 40960, 8 * 12 * 4096));
    }
}
