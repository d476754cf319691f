//! Commands killed at random moments leave nothing in state and temporary directories or in kernel
//! settings; after SIGKILL, the next command cleans up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use crate::running::{Running, signal};
use crate::skip::skip;
use crate::{Scratch, can_change_mounts, filemap, has_disk, stderr};

/// Time for a command to install its signal handlers, even on a busy machine.
const BEGINNING: Duration = Duration::from_millis(50);

/// Together they make every kind of change that commands make. FILE is a user's file.
const COMMANDS: [&str; 12] = [
    "run --on kernel --workload random --file-size 8m --accesses 100 --runs 900 \
     --read-ahead-kb 512",
    "run --on kernel --workload stride:7 --file-size 32m --accesses 9000 --runs 900 \
     --memory-max 16m",
    "compare --on model,kernel --workload random --file-size 16m --runs 900 --read-ahead-kb 512",
    "conform --fuzz 900 --seed 3",
    "explain --on kernel --workload random --file-size 64m --accesses 3000 --read-ahead-kb 512",
    "calibrate --file-size 64m --runs 90 --output /dev/null",
    "run --on kernel --workload sequential --file-size 8m --accesses 2048 --runs 900 \
     --read-ahead-kb 512 --memory-max 64m",
    "conform",
    "run --on kernel --workload random --accesses 100 --runs 900 --cold --file FILE",
    "doctor",
    "run --on kernel --workload thrash --threads 8 --file-size 1m --sparse --memory-max 4m \
     --read-ahead-kb 512 --writers 1 --duration 1s --runs 900",
    "search --variants baseline,vma-bound --worse majors --jobs 1000000",
];

/// Signals by name and number. The last one cannot be handled.
const SIGNALS: [(&str, i32); 4] = [("INT", 2), ("TERM", 15), ("HUP", 1), ("KILL", 9)];

/// Maximum delay before a kill, in milliseconds.
const LATEST_MS: u64 = 2500;

const SEED: u64 = 20;

#[test]
#[ignore = "kills 12 commands: half a minute"]
fn a_few_killed_commands_leave_nothing() {
    killed_at_random(12);
}

/// Its trace instance is removed before the tracefs that it mounted.
#[test]
fn a_thrash_leaves_no_trace_instance() {
    if !has_disk() || !can_change_mounts() {
        return;
    }
    let tracefs = OwnTracefs::mount();
    let thrash = Killed::new(
        "run --on kernel --workload thrash --threads 2 --file-size 1m --sparse --duration 200ms",
    );
    let running = Running::start(&mut thrash.command(&thrash.args));
    let pid = running.id();
    let output = running.output();
    assert!(output.status.success(), "{}", stderr(&output));
    let left = thrash.left(pid, &tracefs);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
#[ignore = "kills 120 commands, or FILEMAP_KILLS of them: minutes"]
fn many_killed_commands_leave_nothing() {
    killed_at_random(number("FILEMAP_KILLS").unwrap_or(120));
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Kills `kills` commands in turn; none may leave anything behind.
fn killed_at_random(kills: u64) {
    if !has_disk() || !can_change_mounts() {
        return;
    }
    let mut state = number("FILEMAP_KILL_SEED").unwrap_or(SEED).max(1);
    let mut below = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let tracefs = OwnTracefs::mount();
    let (mut left, mut in_time, mut impossible) = (Vec::new(), 0, 0);
    for kill in 0..kills {
        let command = COMMANDS[below(COMMANDS.len() as u64) as usize];
        // Every signal is used equally often.
        let by = SIGNALS[kill as usize % SIGNALS.len()];
        let at = Duration::from_millis(below(LATEST_MS));
        let (whole_group, again) = (below(2) == 0, below(3) == 0);
        let what = format!("kill {kill}, {} after {at:?}, {command}", by.0);
        let killed = Killed::new(command);
        let (found, output) = killed.leftovers(by.0, at, whole_group, again, &tracefs);
        let (code, message) = (output.status.code(), stderr(&output));
        let ended_by_it = code.is_none() || code == Some(128 + by.1);
        in_time += u64::from(ended_by_it);
        impossible += u64::from(code == Some(4));
        // A command that had finished, or that cannot run here, exited as usual.
        let as_it_should = match code {
            Some(code) if code == 128 + by.1 => {
                message.is_empty() || command.starts_with("search") && is_of_search(&message)
            }
            // It was killed before it started any work.
            None => by.0 == "KILL" || output.status.signal() == Some(by.1) && at < BEGINNING,
            code => matches!(code, Some(0 | 1 | 4)),
        };
        if !as_it_should || !found.is_empty() {
            left.push(format!("{what}: {:?}: {message}: {found:?}", output.status));
        }
    }
    println!("{kills} kills, {in_time} before the end, {} left something", left.len());
    assert!(left.is_empty(), "{}", left.join("\n"));
    if impossible > 0 {
        skip(format!("{impossible} of {kills} commands cannot run here"));
    }
    let possible = kills - impossible;
    assert!(in_time * 4 >= possible, "most had ended: {in_time} of {possible} were killed");
}

/// Whether this is the message of an interrupted search without a state file.
fn is_of_search(message: &str) -> bool {
    let words = ["nothing is kept of this search", "interrupted before a job was tried"];
    let begins = |words: &&str| message.starts_with(&format!("filemap: {words}"));
    message.lines().count() == 1 && words.iter().any(begins)
}

/// A command to be killed, with its own directories.
struct Killed {
    scratch: Scratch,
    args: String,
}

impl Killed {
    fn new(args: &str) -> Self {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("kills").replace("::", "-");
        let scratch = Scratch::new(&name);
        for directory in ["state", "temporary"] {
            fs::create_dir_all(scratch.path(directory)).expect("the target directory is ours");
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(scratch.path(directory), private).expect("it is ours");
        }
        let args = if args.contains("FILE") {
            args.replace("FILE", &scratch.file("file", vec![1; 4 << 20]))
        } else {
            args.to_string()
        };
        Killed { scratch, args }
    }

    fn command(&self, args: &str) -> Command {
        let mut command = filemap(args);
        command.env("FILEMAP_STATE", self.scratch.path("state"));
        command.env("TMPDIR", self.scratch.path("temporary"));
        command
    }

    /// What the killed command left behind.
    fn leftovers(
        &self,
        by: &str,
        at: Duration,
        whole_group: bool,
        again: bool,
        tracefs: &OwnTracefs,
    ) -> (Vec<String>, Output) {
        let running = Running::start(self.command(&self.args).process_group(0));
        let pid = running.id();
        sleep(at);
        let read_ahead = self.read_ahead();
        let target = if whole_group { format!("-{pid}") } else { pid.to_string() };
        signal(by, &target);
        if again {
            sleep(Duration::from_millis(3));
            signal(by, &target);
        }
        let output = running.output();
        if by == "KILL" {
            let next = self.command("run --workload first --file-size 1m").output();
            let next = next.expect("the command starts");
            assert!(next.status.success() && stderr(&next).is_empty(), "{}", stderr(&next));
        }
        let mut left = self.left(pid, tracefs);
        left.extend(read_ahead.into_iter().filter_map(changed));
        (left, output)
    }

    /// Files, mounts, loop devices, cgroups, trace instances and processes.
    fn left(&self, pid: u32, tracefs: &OwnTracefs) -> Vec<String> {
        let own = self.scratch.path("");
        let mut left = Vec::new();
        for directory in ["state", "temporary"] {
            left.extend(listed(Path::new(&self.scratch.path(directory))));
        }
        let mounts = fs::read_to_string("/proc/self/mounts").expect("there is /proc");
        left.extend(mounts.lines().filter(|line| line.contains(&own)).map(str::to_string));
        for device in listed(Path::new("/sys/block")) {
            let backing = Path::new(&device).join("loop/backing_file");
            let backing = fs::read_to_string(backing).unwrap_or_default();
            left.extend(backing.contains(&own).then(|| format!("{device}: {backing}")));
        }
        let name = format!("/filemap-{pid}-");
        for parent in ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"].map(PathBuf::from) {
            left.extend(listed(&parent).into_iter().filter(|path| path.contains(&name)));
        }
        let instances = tracefs.0.join("instances");
        left.extend(listed(&instances).into_iter().filter(|path| path.contains(&name)));
        for process in listed(Path::new("/proc")) {
            let environ = fs::read(Path::new(&process).join("environ")).unwrap_or_default();
            let state = format!("FILEMAP_STATE={}", self.scratch.path("state"));
            let is_ours = environ.split(|&byte| byte == 0).any(|word| word == state.as_bytes());
            left.extend(is_ours.then_some(process));
        }
        left
    }

    /// Loop devices whose readahead size the command has changed, with the original size.
    fn read_ahead(&self) -> Vec<(String, String)> {
        let journals = listed(Path::new(&self.scratch.path("state"))).into_iter();
        let texts = journals.filter_map(|path| fs::read_to_string(path).ok());
        let text: String = texts.collect();
        let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let changed = words.filter_map(|words| match words[..] {
            ["+", _, "read-ahead", device, _, value] => {
                Some((device.to_string(), value.replace("%0a", "")))
            }
            _ => None,
        });
        changed.collect()
    }
}

/// An unused loop device whose readahead size was not restored.
fn changed((device, value): (String, String)) -> Option<String> {
    let sysfs = device.replace("/dev/", "/sys/block/");
    let now = fs::read_to_string(format!("{sysfs}/queue/read_ahead_kb")).unwrap_or_default();
    let is_free = !Path::new(&sysfs).join("loop").exists();
    (is_free && now.trim() != value).then(|| format!("{device}: {} KiB, not {value}", now.trim()))
}

fn listed(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().display().to_string()).collect()
}

/// Prefix of its directories, before the process ID of the tests.
const TRACEFS: &str = "filemap-tracefs-test-";

/// Access to the machine's trace instances. Commands leave a mount of this name alone.
struct OwnTracefs(PathBuf);

impl OwnTracefs {
    fn mount() -> Self {
        Self::of_killed_runs().for_each(drop);
        let path = std::env::temp_dir().join(format!("{TRACEFS}{}", std::process::id()));
        let path =
            path.with_extension(std::thread::current().name().unwrap_or("").replace(':', ""));
        fs::create_dir_all(&path).expect("there is a temporary directory");
        let mount = Command::new("mount").args(["-t", "tracefs", "none"]).arg(&path).output();
        // Without tracefs no command creates an instance.
        mount.expect("there is mount");
        OwnTracefs(path)
    }

    /// Mounts left by earlier killed test runs.
    fn of_killed_runs() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        let left = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let run = name.to_str().and_then(|name| name.strip_prefix(TRACEFS));
            let pid = run.and_then(|run| run.split('.').next());
            pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
        };
        entries.filter(left).map(|entry| OwnTracefs(entry.path()))
    }
}

impl Drop for OwnTracefs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
        let _ = fs::remove_dir(&self.0);
    }
}
