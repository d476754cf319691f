//! Samples the memory of recorded processes besides the pages of files.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use filemap_recording::assembly::{Action, Observation, ProcessImage};

/// Minimum change that is recorded, in bytes, and as a part of the size before.
const MIN_CHANGE_BYTES: u64 = 64 << 10;
const MIN_CHANGE_PART: u64 = 100;

/// Reading takes at most one part in this many of the time: the interval grows with its cost.
const MAX_COST_PART: u32 = 50;

/// The interval doubles after this many changes, so that their number is bounded.
const CHANGES_PER_INTERVAL: u32 = 1000;

/// The last recorded memory of each process.
pub struct MemorySampler {
    last: HashMap<ProcessImage, u64>,
    /// Time of the next sample.
    next: Instant,
    /// Minimum interval between samples.
    interval: Duration,
    changes: u32,
}

impl MemorySampler {
    /// Samples `interval` apart or more.
    pub fn new(interval: Duration) -> MemorySampler {
        MemorySampler { last: HashMap::new(), next: Instant::now(), interval, changes: 0 }
    }

    /// Observations of the memory of `processes` that has changed. If the next sample is not due,
    /// only processes without any are sampled.
    pub fn sample(&mut self, processes: &[ProcessImage]) -> Vec<Observation> {
        let began = Instant::now();
        let is_due = began >= self.next;
        let mut observations = Vec::new();
        for &process in processes {
            let before = self.last.get(&process).copied();
            if !is_due && before.is_some() {
                continue;
            }
            let Some(memory) = ProcessMemory::read(process.0, processes.len() > 1) else {
                continue;
            };
            let ProcessMemory { anonymous_bytes, peak_bytes } = memory;
            let is_changed = before.is_none_or(|before| {
                let change = before.abs_diff(anonymous_bytes);
                change >= MIN_CHANGE_BYTES && change >= before / MIN_CHANGE_PART
            });
            if is_changed {
                self.last.insert(process, anonymous_bytes);
                let action = Action::Memory { anonymous_bytes, peak_bytes };
                observations.push(Observation { process, thread: process.0, user_ns: 0, action });
            }
        }
        self.changes += observations.len() as u32;
        if self.changes >= CHANGES_PER_INTERVAL {
            self.changes = 0;
            self.interval *= 2;
        }
        if is_due {
            self.next = began + self.interval.max(began.elapsed() * MAX_COST_PART);
        }
        observations
    }
}

/// The memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessMemory {
    anonymous_bytes: u64,
    peak_bytes: u64,
}

impl ProcessMemory {
    /// The memory of process `pid`; `None` if it has exited. If it may share memory with others, it
    /// has its part of that, which takes a look at all of its page tables.
    fn read(pid: u32, shares: bool) -> Option<ProcessMemory> {
        let text = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
        let status = text("status")?;
        let peak_bytes = size_of_line(&status, "VmHWM:")?;
        let rollup = shares.then(|| text("smaps_rollup")).flatten();
        let parts = rollup.as_ref().and_then(|rollup| {
            Some(size_of_line(rollup, "Pss_Anon:")? + size_of_line(rollup, "Pss_Shmem:")?)
        });
        let own = size_of_line(&status, "RssAnon:")? + size_of_line(&status, "RssShmem:")?;
        Some(ProcessMemory { anonymous_bytes: parts.unwrap_or(own), peak_bytes })
    }
}

/// The size in bytes of the line of `text` that begins with `label`, as in `RssAnon:  8400 kB`.
fn size_of_line(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_memory_are_observed() {
        let own = (std::process::id(), 0);
        let mut sampler = MemorySampler::new(Duration::ZERO);
        let size = |observations: &[Observation]| match observations {
            [Observation { action: Action::Memory { anonymous_bytes, .. }, .. }] => {
                *anonymous_bytes
            }
            other => panic!("{other:?}"),
        };
        let before = size(&sampler.sample(&[own]));
        let held = vec![1u8; 32 << 20];
        std::thread::sleep(Duration::from_millis(1));
        let grown = size(&sampler.sample(&[own])) - before;
        assert!((32 << 20..40 << 20).contains(&grown), "{grown}");
        drop(held);
        // A process that is gone has none.
        assert!(sampler.sample(&[(u32::MAX - 1, 0)]).is_empty());
    }
}
