//! A thread of the guest that shows the host that the kernel lives, and says which task waits in
//! it for ever.
//!
//! No timeout of a kernel tells the second. Its detector of hung tasks passes over those that a
//! signal may kill, as a fault is that waits for a page, and takes a slow disk for a hang. Here a
//! task hangs that sleeps uninterruptibly, and has not run, in [`STUCK_LOOKS`] looks between which
//! no disk had anything to do.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use super::console::{HANGS, JOB_BEGINS};
use super::watch::{BEAT, BEAT_EVERY};

/// Where a line goes that comes out on the console in its order among those of the kernel.
const KERNEL_LOG: &str = "/dev/kmsg";

/// What the kernel keeps on its console by default goes up to this level of importance.
const LEVEL: &str = "<4>";

/// In so many looks, two a second, a task has not run that waits for ever; where it waits for RCU,
/// which has a detector of its own and can take long.
const STUCK_LOOKS: u32 = 10;
const STUCK_LOOKS_RCU: u32 = 120;

/// How many CPUs have to be idle for a look at the tasks, in parts of one.
const IDLE_PART: f64 = 0.5;

/// Where `/proc/stat` has that, followed by the time that tasks wait for disks; and its unit.
const IDLE_FIELD: usize = 4;
const TICKS_A_SECOND: f64 = 100.0;

/// So many functions are told of a task.
const FRAMES: usize = 8;

/// Times of detectors of the kernel, in seconds: a CPU loops which has scheduled nothing in twice
/// the first, or which in the second has not let RCU go on.
const DETECTORS: [(&str, &str); 2] = [
    ("/proc/sys/kernel/watchdog_thresh", "2"),
    ("/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout", "5"),
];

/// Writes on the console that job number `task` begins.
pub(super) fn mark(task: usize) {
    say(&format!("{JOB_BEGINS}{task}"));
}

/// Begins to show that the kernel lives.
///
/// # Errors
/// When the port cannot be opened.
pub(super) fn begin(port: File) {
    for (path, seconds) in DETECTORS {
        // A kernel that lacks the detector has no such file.
        let _ = fs::write(path, seconds);
    }
    let beat = move || beat(port);
    thread::Builder::new().spawn(beat).expect("a guest has room for a thread");
}

fn say(text: &str) {
    // The console only helps to explain.
    let _ = fs::write(KERNEL_LOG, format!("{LEVEL}{text}\n"));
}

fn beat(mut port: File) {
    run_before_others();
    let mut waiting = Waiting::default();
    let mut idle = 0.0;
    loop {
        let _ = port.write_all(&[BEAT]);
        let before = std::mem::replace(&mut idle, idle_seconds());
        if idle - before < IDLE_PART * BEAT_EVERY.as_secs_f64() || is_disk_busy() {
            waiting = Waiting::default();
        } else if let Some(told) = waiting.look(sleepers()) {
            say(&format!("{HANGS}{told}"));
        }
        thread::sleep(BEAT_EVERY);
    }
}

/// No other thread of the guest keeps this one from running.
fn run_before_others() {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads the parameter, which outlives the call. A kernel that refuses leaves
    // the thread as it was.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) };
}

/// How long CPUs were idle since the boot, all of them together, also where a task of them waits as
/// if for a disk.
fn idle_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = text.lines().next().unwrap_or_default().split_whitespace();
    let ticks = all.skip(IDLE_FIELD).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_A_SECOND
}

/// Whether a disk works on a request.
fn is_disk_busy() -> bool {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut requests =
        disks.filter_map(|disk| fs::read_to_string(disk.path().join("inflight")).ok());
    requests.any(|text| text.split_whitespace().any(|number| number != "0"))
}

/// A task that sleeps uninterruptibly.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sleeper {
    /// Its files in `/proc`.
    path: PathBuf,
    name: String,
    /// How often it has slept.
    switches: u64,
}

/// Those of all tasks but the kernel's own threads.
fn sleepers() -> Vec<Sleeper> {
    let tasks =
        |process: PathBuf| fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let has_memory = |process: &PathBuf| {
        fs::read_to_string(process.join("statm")).is_ok_and(|pages| !pages.starts_with("0 "))
    };
    let processes = processes.map(|process| process.path()).filter(has_memory);
    processes.flat_map(tasks).filter_map(|task| sleeper(&task.path())).collect()
}

fn sleeper(path: &Path) -> Option<Sleeper> {
    let status = fs::read_to_string(path.join("status")).ok()?;
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    field("State").filter(|state| state.starts_with('D'))?;
    Some(Sleeper {
        path: path.to_owned(),
        name: field("Name")?.to_owned(),
        switches: number("voluntary_ctxt_switches") + number("nonvoluntary_ctxt_switches"),
    })
}

/// Tasks that have slept since they were first seen, and in how many looks.
#[derive(Debug, Default)]
struct Waiting {
    looks: BTreeMap<PathBuf, (Sleeper, u32)>,
    is_told: bool,
}

impl Waiting {
    /// Takes those that sleep now. Says, once, which of them waits for ever.
    fn look(&mut self, sleepers: Vec<Sleeper>) -> Option<String> {
        let before = std::mem::take(&mut self.looks);
        let looks = |own: &Sleeper| match before.get(&own.path) {
            Some((seen, looks)) if seen == own => looks + 1,
            _ => 1,
        };
        let all = sleepers.into_iter().map(|own| (own.path.clone(), (own.clone(), looks(&own))));
        self.looks = all.collect();
        if self.is_told {
            return None;
        }
        let told = self.looks.values().filter(|(_, looks)| *looks >= STUCK_LOOKS);
        let told = told.filter_map(|(own, looks)| {
            let trace = trace(&own.path);
            let waits_for_rcu = trace.iter().any(|function| function.contains("rcu"));
            let most = if waits_for_rcu { STUCK_LOOKS_RCU } else { STUCK_LOOKS };
            (*looks >= most).then(|| {
                let id = own.path.file_name().unwrap_or_default().to_string_lossy();
                let trace = trace.join(" < ");
                let seconds = (BEAT_EVERY * *looks).as_secs();
                format!("{}:{id} has slept {seconds} s, and no disk works: {trace}", own.name)
            })
        });
        let told = told.collect::<Vec<_>>();
        self.is_told = !told.is_empty();
        self.is_told.then(|| told.join("; "))
    }
}

/// The functions in which a task sleeps, the last one first.
fn trace(task: &Path) -> Vec<String> {
    let text = fs::read_to_string(task.join("stack")).unwrap_or_default();
    let functions = text.lines().filter_map(|line| line.split_once("] "));
    let functions = functions.map(|(_, place)| place.split('/').next().unwrap_or_default());
    functions.take(FRAMES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(switches: u64) -> Sleeper {
        Sleeper { path: "/nowhere/17".into(), name: "probe".into(), switches }
    }

    #[test]
    fn who_has_not_run_in_all_looks_is_told_once() {
        let mut waiting = Waiting::default();
        for _ in 1..STUCK_LOOKS {
            assert_eq!(waiting.look(vec![sleeper(1)]), None);
        }
        // It ran for a moment.
        for _ in 1..STUCK_LOOKS {
            assert_eq!(waiting.look(vec![sleeper(2)]), None);
        }
        assert_eq!(waiting.look(Vec::new()), None);
        for _ in 1..STUCK_LOOKS {
            assert_eq!(waiting.look(vec![sleeper(2)]), None);
        }
        let told = waiting.look(vec![sleeper(2)]).unwrap();
        assert!(told.starts_with("probe:17 has slept 5 s"), "{told}");
        assert_eq!(waiting.look(vec![sleeper(2)]), None);
    }
}
