//! The model beside a kernel whose memory is short: it has the kernel's flushes.
//!
//! A memory cgroup's statistics are flushed every two seconds, and what reclaim evicts depends on
//! at which access that is. A machine that is emulated takes longer for it than any that a profile
//! describes, so the model takes from the kernel where its runs had them.

use filemap_job::{Job, Machine, Ran, Ready, flushes};
use filemap_model::Profile;

use super::{Engines, RunsOn, prepare};
use crate::error::Error;
use crate::provenance;

/// What `ran` of `jobs`, that of the model made again with the flushes of a kernel's runs that were
/// recorded beside them, by the same rules and under the same limit.
pub fn with_flushes(
    engines: &impl Engines,
    jobs: &[Job],
    profiles: &[Profile],
    mut ran: Vec<Ran>,
) -> Result<Vec<Ran>, Error> {
    for number in 0..jobs.len() {
        let job = &jobs[number];
        if RunsOn::of(job) != RunsOn::Model {
            continue;
        }
        let beside = jobs.iter().zip(&ran).filter(|(other, _)| {
            RunsOn::of(other) != RunsOn::Model
                && other.rules.kernel == job.rules.kernel
                && limits(&other.machine) == limits(&job.machine)
        });
        let mut noted = beside.filter_map(|(_, ran)| flushes::noted(&ran.environment));
        let Some(runs) = noted.next() else { continue };
        let model = engines.model(profiles[number]);
        let mut ready = prepare(&model, &[job])?.pop().expect("one job is made ready");
        ready.flush_as(&runs);
        let runs = ready.take_turn(job.seed).map_err(Into::into)?;
        ran[number] = provenance::stamped(ready.ran(runs));
    }
    Ok(ran)
}

/// What has to be alike for the same accesses to evict alike.
fn limits(machine: &Machine) -> impl PartialEq {
    let Machine { memory_max_bytes, memory_high_bytes, .. } = *machine;
    let limits = (memory_max_bytes, memory_high_bytes);
    let Machine { read_ahead, fault_around, fs, block_bytes, .. } = *machine;
    (limits, read_ahead, fault_around, fs, block_bytes)
}
