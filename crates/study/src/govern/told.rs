//! What the governor did, as reports have it.

use filemap_attach::Way;
use filemap_attach::process::Smaps;
use filemap_govern::{MappingState, MappingStatistics, ProcessStatistics, Statistics};
use filemap_kernel::page_size;

use super::process::{Mapping, Observer, Process};

/// What `statistics` say of each process that was followed in this `way`.
pub fn processes(statistics: &Statistics, way: Way) -> Vec<Process> {
    statistics.processes.iter().map(|own| process(own, way)).collect()
}

fn process(own: &ProcessStatistics, way: Way) -> Process {
    let smaps = if own.is_running { Smaps::of(own.pid) } else { None };
    let mut process = Process {
        pid: own.pid.into(),
        image: own.image,
        running: own.is_running,
        observer: match way {
            Way::PerfEvents => Observer::PerfEvent,
            Way::PageTables => Observer::Pagemap,
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

fn mapping(own: &MappingStatistics, smaps: Option<&Smaps>) -> Mapping {
    let mapped = smaps.filter(|_| own.state != MappingState::Ended);
    let mapped =
        mapped.map(|smaps| smaps.mapped_bytes(own.address, own.length_bytes, own.offset_bytes));
    Mapping::of(own.clone(), mapped, page_size())
}
