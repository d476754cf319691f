//! Records of governed processes and their mappings.

use filemap_attach::FollowMethod;
use filemap_attach::process::Smaps;
use filemap_govern::{GovernStatistics, MappingState, MappingStatistics, ProcessStatistics};
use filemap_kernel::page_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of fault reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "their names say it")]
pub enum Observer {
    PerfEvent,
    /// Polls page tables through `/proc/PID/pagemap`.
    Pagemap,
}

/// One image of a process; each exec begins a new one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "their names say it")]
#[schemars(rename = "Process")]
pub struct ProcessRecord {
    /// Process ID.
    pub pid: u64,
    /// Index of the image, from 0, counting only images with something to report.
    pub image: u32,
    /// Whether the process still ran this image at the end of observation.
    pub running: bool,
    pub observer: Observer,
    /// The last reason why one of its mappings is not governed.
    pub reason: Option<String>,
    /// Major faults reported, in any mapping.
    pub faults_reported: u64,
    /// Major faults in governed mappings before they were governed.
    pub faults_missed: u64,
    /// Mappings left ungoverned because the limit on governed mappings was reached.
    pub mappings_left_alone: u64,
    /// Its mappings: governed ones first, then by descending size.
    pub mappings: Vec<MappingRecord>,
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mapping")]
pub struct MappingRecord {
    /// The governor's own statistics.
    #[serde(flatten)]
    pub own: MappingStatistics,
    /// Bytes with page-table entries, at the end of the mapping if it has ended; null if unknown.
    pub mapped_bytes: Option<u64>,
    /// Bytes that the governor requested and that are not mapped.
    pub wasted_bytes: Option<u64>,
}

/// Totals over several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Totals")]
pub struct ProcessTotals {
    /// Mappings that were governed for at least some time.
    pub mappings: u64,
    /// Major faults in governed mappings.
    pub faults: u64,
    /// Bytes that the governor had the kernel read in addition to the faulting pages.
    pub advised_bytes: u64,
    /// Time that threads were stopped, in nanoseconds.
    pub stopped_ns: u64,
    /// Bytes requested and not mapped, over the mappings for which that is known.
    pub wasted_bytes: u64,
    /// Major faults in these mappings before they were governed.
    pub faults_missed: u64,
}

impl MappingRecord {
    /// The record of a mapping. Wasted bytes are derived from `mapped_bytes` and from one page of
    /// `page_bytes` bytes for each fault, which needed no advice.
    pub fn new(own: MappingStatistics, mapped_bytes: Option<u64>, page_bytes: u64) -> Self {
        let asked = own.asked_bytes.saturating_add(own.major_faults.saturating_mul(page_bytes));
        let wasted_bytes = mapped_bytes.map(|mapped| asked.saturating_sub(mapped));
        MappingRecord { own, mapped_bytes, wasted_bytes }
    }
}

impl ProcessRecord {
    /// Sorts mappings: governed ones first, then by descending size.
    pub fn sort(&mut self) {
        self.mappings.sort_by_key(|MappingRecord { own, .. }| {
            let ended = own.state != MappingState::Governed;
            (own.path.is_none(), ended, u64::MAX - own.length_bytes, own.address)
        });
    }
}

impl ProcessTotals {
    /// The totals over `processes`.
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

/// The record of each process in `statistics`; `way` is how processes were followed.
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
        mappings: own.mappings.iter().map(|own| mapping(own, smaps.as_ref())).collect(),
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
    fn reports_requests_for_unmapped_pages() {
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
        let record =
            |path, state, bytes| MappingRecord::new(mapping(path, state, bytes), Some(4096), 4096);
        let mut others = record("", MappingState::Ended, 0);
        others.own.path = None;
        let mut process = process(vec![
            others,
            record("ended", MappingState::Ended, 9 << 20),
            record("small", MappingState::Governed, 1 << 20),
            record("large", MappingState::Governed, 2 << 20),
        ]);
        process.sort();
        let paths: Vec<_> =
            process.mappings.iter().map(|mapping| mapping.own.path.as_ref()?.to_str()).collect();
        assert_eq!(paths, [Some("large"), Some("small"), Some("ended"), None]);
        let totals = ProcessTotals::new(&[process.clone(), process]);
        assert_eq!((totals.mappings, totals.faults, totals.faults_missed), (8, 24, 2));
        assert_eq!((totals.advised_bytes, totals.wasted_bytes), (8 * 40960, 8 * 12 * 4096));
    }
}
