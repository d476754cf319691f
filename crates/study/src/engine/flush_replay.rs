//! Replays the kernel's memcg statistics flushes in the model.
//!
//! The kernel flushes a cgroup's statistics every two seconds, and reclaim depends on the access at
//! which that happens. No profile predicts this on an emulated machine, so the model uses the
//! positions observed on the kernel.

use filemap_job::{Job, JobRuns, Machine, ReadyJob, flushes};
use filemap_model::Profile;

use super::{Engines, RunsOn, prepare};
use crate::error::Error;
use crate::provenance;

/// Reruns the model's jobs with the flushes of a kernel that ran the same accesses under the same
/// rules and limits; returns all results in order.
pub fn with_flushes(
    engines: &impl Engines,
    jobs: &[Job],
    profiles: &[Profile],
    mut ran: Vec<JobRuns>,
) -> Result<Vec<JobRuns>, Error> {
    for number in 0..jobs.len() {
        let job = &jobs[number];
        if RunsOn::from_job(job) != RunsOn::Model {
            continue;
        }
        let beside = jobs.iter().zip(&ran).filter(|(other, _)| {
            RunsOn::from_job(other) != RunsOn::Model
                && other.rules.kernel == job.rules.kernel
                && limits(&other.machine) == limits(&job.machine)
        });
        let mut noted = beside.filter_map(|(_, ran)| flushes::read_flushes(&ran.environment));
        let Some(runs) = noted.next() else { continue };
        let model = engines.model(profiles[number]);
        let mut ready = prepare(&model, &[job])?.pop().expect("one job is made ready");
        ready.flush_as(&runs);
        let runs = ready.take_turn(job.seed).map_err(Into::into)?;
        ran[number] = provenance::stamped(ready.into_job_runs(runs));
    }
    Ok(ran)
}

/// The limits that have to be equal for the same accesses to evict the same pages.
fn limits(machine: &Machine) -> impl PartialEq {
    let Machine { memory_max_bytes, memory_high_bytes, .. } = *machine;
    let limits = (memory_max_bytes, memory_high_bytes);
    let Machine { read_ahead, fault_around, fs, block_bytes, .. } = *machine;
    (limits, read_ahead, fault_around, fs, block_bytes)
}
