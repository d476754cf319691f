//! The heartbeat of a guest: a thread that shows the host that the kernel schedules, and reports
//! permanently blocked tasks.
//!
//! khungtaskd is unsuitable: it skips killable sleeps, such as a fault waiting for a folio, and
//! mistakes a slow disk for a hang. Here a task is permanently blocked when it has been in state D
//! without a context switch for [`BLOCKED_BEATS`] beats, during which the CPUs were mostly idle and
//! no disk had a request.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use super::console::{BLOCKED_MARK, JOB_MARK};
use super::watch::{BEAT, BEAT_INTERVAL};

/// Number of beats without running after which a task is permanently blocked: 5 s.
const BLOCKED_BEATS: u32 = 10;

/// Maximum number of stack functions reported for a blocked task.
const MAX_FRAMES: usize = 8;

/// `watchdog_thresh`, which is half the time after which a CPU is reported as locked up, and the
/// timeout of RCU stalls, in seconds.
const DETECTOR_TIMEOUTS: [(&str, &str); 2] = [
    ("/proc/sys/kernel/watchdog_thresh", "2"),
    ("/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout", "5"),
];

/// Writes to the console that job number `job` begins.
pub(super) fn mark_job(job: usize) {
    log_to_console(&format!("{JOB_MARK}{job}"));
}

/// Starts the thread, which writes to `port`.
pub(super) fn start(port: File) {
    for (path, seconds) in DETECTOR_TIMEOUTS {
        // A kernel without the detector lacks the file.
        let _ = fs::write(path, seconds);
    }
    thread::Builder::new().spawn(move || beat(port)).expect("a guest has memory for a thread");
}

/// Writes a line through the kernel log, in order with the kernel's own messages. The level is
/// KERN_WARNING, which the console prints.
fn log_to_console(text: &str) {
    let _ = fs::write("/dev/kmsg", format!("<4>{text}\n"));
}

fn beat(mut port: File) {
    // The highest priority. If the kernel refuses, the thread keeps the default policy.
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads the parameter, which outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) };
    let mut blocked: BTreeMap<BlockedTask, u32> = BTreeMap::new();
    let mut idle = 0.0;
    loop {
        let _ = port.write_all(&[BEAT]);
        let idle_before = std::mem::replace(&mut idle, idle_seconds());
        if idle - idle_before < BEAT_INTERVAL.as_secs_f64() / 2.0 || is_disk_busy() {
            blocked.clear();
        } else {
            let now = blocked_tasks().into_iter();
            blocked =
                now.map(|task| (task.clone(), blocked.get(&task).map_or(1, |n| n + 1))).collect();
        }
        for (task, _) in blocked.iter().filter(|(_, beats)| **beats == BLOCKED_BEATS) {
            report(task);
        }
        thread::sleep(BEAT_INTERVAL);
    }
}

/// A task in state D.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BlockedTask {
    /// Its directory in `/proc`.
    path: PathBuf,
    name: String,
    /// Its context switches, as in `status`.
    switches: Vec<String>,
}

/// The tasks in state D, without kernel threads (which have no mm).
fn blocked_tasks() -> Vec<BlockedTask> {
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let processes = entries("/proc".into()).map(|process| process.path()).filter(|process| {
        fs::read_to_string(process.join("statm")).is_ok_and(|pages| !pages.starts_with("0 "))
    });
    let tasks = processes.flat_map(|process| entries(process.join("task")));
    let tasks = tasks.filter_map(|task| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        BlockedTask::from_status(&task.path(), &status)
    });
    tasks.collect()
}

impl BlockedTask {
    fn from_status(path: &Path, status: &str) -> Option<BlockedTask> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        field("State:\tD")?;
        let switches = status.lines().filter(|line| line.contains("_ctxt_switches:"));
        Some(BlockedTask {
            path: path.to_owned(),
            name: field("Name:\t")?.to_owned(),
            switches: switches.map(str::to_owned).collect(),
        })
    }
}

/// Reports a blocked task with its stack. Waits for RCU are left to the RCU stall detector, because
/// a grace period of RCU-tasks takes seconds.
fn report(task: &BlockedTask) {
    let stack = fs::read_to_string(task.path.join("stack")).unwrap_or_default();
    let functions = stack.lines().filter_map(|line| line.split_once("] ")?.1.split('/').next());
    let functions: Vec<&str> = functions.take(MAX_FRAMES).collect();
    if functions.iter().any(|function| function.contains("rcu")) {
        return;
    }
    let id = task.path.file_name().unwrap_or_default().display();
    let seconds = (BEAT_INTERVAL * BLOCKED_BEATS).as_secs();
    log_to_console(&format!(
        "{BLOCKED_MARK}{}:{id} has been blocked for {seconds} s with no disk request pending: {}",
        task.name,
        functions.join(" < ")
    ));
}

/// Idle and iowait time of all CPUs since boot, from `/proc/stat`, which has it in ticks.
fn idle_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(4).take(2);
    let ticks: u64 = fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Whether a disk has a request in flight.
fn is_disk_busy() -> bool {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut requests =
        disks.filter_map(|disk| fs::read_to_string(disk.path().join("inflight")).ok());
    requests.any(|text| text.split_whitespace().any(|number| number != "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_state_d_is_blocked() {
        let status = "Name:\texe\nState:\tD (disk sleep)\nvoluntary_ctxt_switches:\t7\n\
                      nonvoluntary_ctxt_switches:\t1\n";
        let path = Path::new("/proc/1/task/17");
        let task = BlockedTask::from_status(path, status).unwrap();
        assert_eq!((task.name.as_str(), task.switches.len()), ("exe", 2));
        assert_eq!(BlockedTask::from_status(path, &status.replace("D (disk", "S (")), None);
    }
}
