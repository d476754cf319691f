//! Detects memory pressure, system-wide and at the limits of a process's cgroups.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Mount point of the cgroup hierarchies.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Memory is short if less than this share is available, in percent of the total or of the limit.
const MIN_FREE_PERCENT: u64 = 5;

/// Memory is short if tasks stalled on it for more than this share of the last ten seconds (PSI
/// `some avg10`), in percent.
const MAX_PRESSURE_PERCENT: f64 = 10.0;

/// Polled state.
#[derive(Debug, Default)]
pub struct MemoryPressure {
    /// Limit hits of each cgroup at the last poll; a rise means pressure.
    limit_hits: HashMap<PathBuf, u64>,
}

impl MemoryPressure {
    /// The processes among `pids` that are under memory pressure now.
    pub fn processes_under_pressure(&mut self, pids: &[u32]) -> Vec<u32> {
        if is_system_short() {
            return pids.to_vec();
        }
        let mut known: HashMap<PathBuf, bool> = HashMap::new();
        let mut reached = HashMap::new();
        let mut is_short = |pid: u32| {
            cgroups(pid).into_iter().any(|group| {
                let before = self.limit_hits.get(&group).copied();
                *known.entry(group.clone()).or_insert_with(|| {
                    let times = limit_hit_count(&group);
                    let is_rising = before.is_some_and(|before| before < times);
                    reached.insert(group.clone(), times);
                    is_rising || is_full(&group)
                })
            })
        };
        let short = pids.iter().copied().filter(|pid| is_short(*pid)).collect();
        self.limit_hits = reached;
        short
    }
}

/// The system's memory that can be used without swapping, in bytes; 0 if unknown.
pub fn available_bytes() -> u64 {
    meminfo_kib("MemAvailable:").unwrap_or(0).saturating_mul(1 << 10)
}

/// A value of `/proc/meminfo`.
fn meminfo_kib(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

fn is_system_short() -> bool {
    let is_little = match (meminfo_kib("MemAvailable:"), meminfo_kib("MemTotal:")) {
        (Some(available), Some(total)) => available < total / 100 * MIN_FREE_PERCENT,
        _ => false,
    };
    let pressure = fs::read_to_string("/proc/pressure/memory").unwrap_or_default();
    is_little || pressure_percent(&pressure) > MAX_PRESSURE_PERCENT
}

/// `some avg10` of a PSI file, in percent; 0 if it is missing.
fn pressure_percent(text: &str) -> f64 {
    let some = text.lines().find_map(|line| line.strip_prefix("some avg10="));
    let percent = some.and_then(|rest| rest.split(' ').next()?.parse().ok());
    percent.unwrap_or(0.0)
}

/// The cgroups whose memory limits apply to a process: its own and their ancestors, of v2 or of the
/// v1 memory controller.
fn cgroups(pid: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let bytes = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let root = match controllers {
            "" => PathBuf::from(CGROUPS),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Path::new(CGROUPS).join("memory")
            }
            _ => return None,
        };
        // A cgroup outside the cgroup namespace of this process is shown as `/../...`.
        let path = path.trim_start_matches('/');
        if path.split('/').any(|part| part == "..") {
            return None;
        }
        let own = root.join(path);
        let around = own.ancestors().take_while(|at| at.starts_with(&root));
        Some(around.map(Path::to_path_buf).collect::<Vec<_>>())
    };
    text.lines().filter_map(bytes).flatten().collect()
}

/// How often a cgroup has reached a limit: `memory.failcnt` in v1; `max` and `high` events in v2.
fn limit_hit_count(group: &Path) -> u64 {
    if let Some(times) = read_number(&group.join("memory.failcnt")) {
        return times;
    }
    let events = fs::read_to_string(group.join("memory.events.local"))
        .or_else(|_| fs::read_to_string(group.join("memory.events")))
        .unwrap_or_default();
    let times = |key: &str| {
        let line = events.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    times("max ") + times("high ")
}

/// Whether a cgroup uses more than 95 % of its lowest limit.
fn is_full(group: &Path) -> bool {
    let is_over = |usage: &str, limits: &[&str]| {
        let usage = read_number(&group.join(usage))?;
        let limit = limits.iter().filter_map(|name| read_number(&group.join(name))).min()?;
        Some(usage > limit - limit / (100 / MIN_FREE_PERCENT))
    };
    let of_v2 = is_over("memory.current", &["memory.max", "memory.high"]);
    of_v2.or_else(|| is_over("memory.usage_in_bytes", &["memory.limit_in_bytes"])).unwrap_or(false)
}

/// The number in a file; `None` if it holds a word such as `max`.
fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_cgroup_is_under_pressure() {
        let scratch = tempfile::tempdir().unwrap();
        for (files, short) in [
            (&[("memory.current", "96"), ("memory.max", "100"), ("memory.high", "max")][..], true),
            (&[("memory.current", "90"), ("memory.max", "100"), ("memory.high", "max")], false),
            (&[("memory.current", "90"), ("memory.max", "1000"), ("memory.high", "90")], true),
            (&[("memory.current", "90"), ("memory.max", "max")], false),
            (&[("memory.usage_in_bytes", "99"), ("memory.limit_in_bytes", "100")], true),
            (
                &[
                    ("memory.usage_in_bytes", "99"),
                    ("memory.limit_in_bytes", "9223372036854771712"),
                ],
                false,
            ),
            (&[], false),
        ] {
            let group = tempfile::tempdir_in(scratch.path()).unwrap();
            for (name, text) in files {
                fs::write(group.path().join(name), format!("{text}\n")).unwrap();
            }
            assert_eq!(is_full(group.path()), short, "{files:?}");
        }
        fs::write(scratch.path().join("memory.events"), "low 0\nhigh 2\nmax 3\noom 0\n").unwrap();
        assert_eq!(limit_hit_count(scratch.path()), 5);
        assert_eq!(pressure_percent("some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n"), 12.5);
        assert_eq!(pressure_percent(""), 0.0);
    }
}
