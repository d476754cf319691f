//! Governors and recorders that are killed at any moment: their program continues, with correct
//! results.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::harm::Harm;

/// Time limit for a program to exit after its governor was killed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A governor is killed within this time of its start.
const KILLED_WITHIN_US: u64 = 250_000;

/// Random numbers of a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// How the command follows a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// `govern -- PROGRAM`.
    Started,
    /// `govern --pid`.
    Running,
    /// `record -- PROGRAM`.
    Recorded,
}

impl Follows {
    pub const ALL: [Follows; 3] = [Follows::Started, Follows::Running, Follows::Recorded];
}

/// Kills `count` commands that follow a program as `follows` says. The moments are drawn from
/// `seed`.
pub fn kill(follows: Follows, count: u64, seed: u64, command: &Path, program: &Path, place: &Path) {
    let mut draws = Draws(seed);
    for number in 0..count {
        let delay = Duration::from_micros(draws.below(KILLED_WITHIN_US));
        let context = format!("{follows:?}, seed {seed}, kill {number} after {delay:?}");
        let _ = fs::remove_file(place.join("result"));
        let _ = fs::remove_file(place.join("pid"));
        let words =
            [program.as_os_str(), "harm".as_ref(), Harm::Checks.name().as_ref(), place.as_ref()];
        let of_command = |name: &str| {
            let mut command = Command::new(command);
            command.arg(name).stdin(Stdio::null()).stderr(Stdio::null());
            command.env("XDG_RUNTIME_DIR", place).env("FILEMAP_STATE", place.join("state"));
            // A stop of the terminal's process group does not reach it.
            command.process_group(0);
            command
        };
        let (mut killed, started) = match follows {
            Follows::Started => (of_command("govern").arg("--").args(words).spawn(), None),
            Follows::Running => {
                let started = Command::new(words[0]).args(&words[1..]).spawn().expect("a program");
                let pid = started.id().to_string();
                (of_command("govern").args(["--pid", &pid]).spawn(), Some(started))
            }
            Follows::Recorded => {
                let out = place.join(format!("{number}.recording"));
                let mut record = of_command("record");
                record.args(["--cold", "--output"]).arg(out).arg("--").args(words);
                (record.spawn(), None)
            }
        };
        thread::sleep(delay);
        let command = killed.as_mut().expect("the command can be started");
        // It may have exited already.
        let _ = command.kill();
        command.wait().expect("it is a child");
        if let Some(mut started) = started {
            assert!(started.wait().expect("it is a child").success(), "{context}");
        }
        await_result(place, &context);
    }
}

/// Waits until the program that was started in `place`, if any, has reported that all data it read
/// was right.
fn await_result(place: &Path, context: &str) {
    let start = Instant::now();
    let text = |name: &str| fs::read_to_string(place.join(name)).ok();
    loop {
        if let Some(result) = text("result") {
            assert_eq!(result, "right", "{context}");
            return;
        }
        // It first writes its PID. Without one the command was killed before the program started.
        let Some(pid) = text("pid").filter(|pid| !pid.is_empty()) else {
            if start.elapsed() > Duration::from_millis(300) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let process = PathBuf::from("/proc").join(pid.trim());
        let is_there = process.exists();
        assert!(is_there || text("result").is_some(), "{context}: the program is gone");
        assert!(start.elapsed() < PATIENCE, "{context}: {}", states(&process));
        thread::sleep(Duration::from_millis(5));
    }
}

/// The states of the threads of a process, for a message.
fn states(process: &Path) -> String {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let state = |path: PathBuf| {
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        status.lines().find(|line| line.starts_with("State")).unwrap_or_default().to_string()
    };
    threads.map(|thread| state(thread.path())).collect::<Vec<_>>().join(", ")
}
