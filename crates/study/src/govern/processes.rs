//! What the governor did for processes, as records have it.

use filemap_attach::FollowMethod;
use filemap_attach::process::Smaps;
use filemap_govern::{GovernStatistics, MappingState, MappingStatistics, ProcessStatistics};
use filemap_kernel::page_size;
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
#[schemars(rename = "Process")]
pub struct ProcessRecord {
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
    pub mappings: Vec<MappingRecord>,
}

/// What was done for one mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mapping")]
pub struct MappingRecord {
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
#[schemars(rename = "Totals")]
pub struct ProcessTotals {
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

impl MappingRecord {
    /// One of which so much is mapped, and with that what was asked for in vain, for pages of
    /// `page_bytes`: each fault brought one page beside the advice.
    pub fn new(own: MappingStatistics, mapped_bytes: Option<u64>, page_bytes: u64) -> Self {
        let asked = own.asked_bytes.saturating_add(own.major_faults.saturating_mul(page_bytes));
        let wasted_bytes = mapped_bytes.map(|mapped| asked.saturating_sub(mapped));
        MappingRecord { own, mapped_bytes, wasted_bytes }
    }
}

impl ProcessRecord {
    /// Puts the governed mappings first, and the larger before the smaller.
    pub fn sort(&mut self) {
        self.mappings.sort_by_key(|MappingRecord { own, .. }| {
            let ended = own.state != MappingState::Governed;
            (own.path.is_none(), ended, u64::MAX - own.length_bytes, own.address)
        });
    }
}

impl ProcessTotals {
    /// Those of `processes`.
    pub fn new(processes: &[ProcessRecord]) -> ProcessTotals {
        let mut totals = ProcessTotals::default();
        for process in processes {
            totals.faults_missed += process.faults_missed;
            for MappingRecord { own, wasted_bytes, .. } in &process.mappings {
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

/// What `statistics` say of each process that was followed in this `way`.
pub fn process_records(statistics: &GovernStatistics, way: FollowMethod) -> Vec<ProcessRecord> {
    statistics.processes.iter().map(|own| process(own, way)).collect()
}

fn process(own: &ProcessStatistics, way: FollowMethod) -> ProcessRecord {
    let smaps = if own.is_running { Smaps::read(own.pid) } else { None };
    let mut process = ProcessRecord {
        pid: own.pid.into(),
        image: own.image,
        running: own.is_running,
        observer: match way {
            FollowMethod::PerfEvents => Observer::PerfEvent,
            FollowMethod::PageTables => Observer::Pagemap,
        },
        reason: own.reason.clone(),
        faults_reported: own.major_faults,
        faults_missed: own.mappings.iter().map(|mapping| mapping.early_faults).sum(),
        mappings_left_alone: own.mappings_left_alone,
        mappings: own.mappings.iter().map(|of| mapping(of, smaps.as_ref())).collect(),
    };
    process.sort();
    process
}

fn mapping(own: &MappingStatistics, smaps: Option<&Smaps>) -> MappingRecord {
    let mapped = smaps.filter(|_| own.state != MappingState::Ended);
    let mapped =
        mapped.map(|smaps| smaps.mapped_bytes(own.address, own.length_bytes, own.offset_bytes));
    MappingRecord::new(own.clone(), mapped, page_size())
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

    pub fn process(mappings: Vec<MappingRecord>) -> ProcessRecord {
        ProcessRecord {
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
            MappingRecord::new(mapping("a", MappingState::Ended, 1 << 24), mapped, 4096)
                .wasted_bytes
        };
        assert_eq!(wasted(None), None);
        assert_eq!(wasted(Some(0)), Some(13 * 4096));
        assert_eq!(wasted(Some(12 * 4096)), Some(4096));
        assert_eq!(wasted(Some(1 << 24)), Some(0), "faults map pages around them too");
    }

    #[test]
    fn large_governed_mappings_come_first() {
        let of =
            |path, state, bytes| MappingRecord::new(mapping(path, state, bytes), Some(4096), 4096);
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
        let totals = ProcessTotals::new(&[process.clone(), process]);
        assert_eq!((totals.mappings, totals.faults, totals.faults_missed), (8, 24, 2));
        assert_eq!((totals.advised_bytes, totals.wasted_bytes), (8 * 40960, 8 * 12 * 4096));
    }
}
