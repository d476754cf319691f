//! `filemap govern` exits with its program, and its program with it.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::governed::{Place, sleeping};
use crate::running::{Running, signal};
use crate::stderr;

/// Signals with a fatal default action: errors, limits, and rare ones. The last one is a real-time
/// signal.
const ENDING: [(&str, i32); 18] = [
    ("ABRT", libc::SIGABRT),
    ("TRAP", libc::SIGTRAP),
    ("SEGV", libc::SIGSEGV),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("ILL", libc::SIGILL),
    ("SYS", libc::SIGSYS),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("PWR", libc::SIGPWR),
    ("USR1", libc::SIGUSR1),
    ("QUIT", libc::SIGQUIT),
    ("TERM", libc::SIGTERM),
    ("40", 40),
];

/// The process that sleeps for so many seconds, once it is there.
fn sleeper(running: &mut Running, seconds: u32) -> u32 {
    assert!(running.reaches(|| !sleeping(seconds).is_empty()));
    sleeping(seconds)[0]
}

#[test]
fn every_signal_that_ends_the_command_ends_the_program_first() {
    let place = Place::new("govern_every_signal");
    let path = place.scratch.path("report");
    for (name, number) in ENDING {
        let mut command = place.script(&format!("--json {path}"), "ulimit -c 0; exec sleep 1012");
        let mut running = Running::start(&mut command);
        sleeper(&mut running, 1012);
        running.signal(name);
        let output = running.output();
        assert_eq!(output.status.signal(), Some(number), "{name}: {output:?}");
        assert_eq!(sleeping(1012), [0; 0], "{name}");
        let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(report["ended"]["signal"], number, "{name}");
    }
    assert!(place.statistics().is_empty());
}

/// SIGKILL cannot be forwarded, and the program survives the governor.
#[test]
fn killed_command_leaves_program_running() {
    let place = Place::new("govern_killed");
    let mut running = Running::start(&mut place.filemap("--json /dev/null -- sleep 1013"));
    sleeper(&mut running, 1013);
    running.signal("KILL");
    running.until_end(|| {});
    sleep(Duration::from_millis(100));
    let left = sleeping(1013);
    assert_eq!(left.len(), 1);
    // The program keeps the output pipe open until it exits.
    assert!(signal("KILL", left[0]), "it is gone");
    assert_eq!(running.output().status.signal(), Some(9));
}

/// Compared programs end with the command, in any session; no other process does.
#[test]
fn interrupted_comparison_leaves_nothing_running() {
    let place = Place::new("govern_compare_ends");
    let mut foreign = Running::start(Command::new("setsid").args(["sleep", "1014"]));
    let stubborn = "setsid sh -c 'trap \"\" TERM HUP INT; sleep 1015; sleep 1015' &
                    (setsid setsid sleep 1016 &)
                    sleep 1017";
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        let mut command = place.script("--compare", stubborn);
        let mut running = Running::start(&mut command);
        for seconds in [1015, 1016, 1017] {
            sleeper(&mut running, seconds);
        }
        running.signal(name);
        let output = running.output();
        assert_eq!(output.status.code(), Some(128 + number), "{name}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
        for seconds in [1015, 1016, 1017] {
            assert_eq!(sleeping(seconds), [0; 0], "{name}");
        }
    }
    // A child that the shell started before it exec'ed the command.
    let filemap = place.scratch.path("filemap");
    let script = format!(
        "trap '' CHLD; sleep 1018 > /dev/null 2>&1 &
         exec {filemap} govern --compare --runs 1 -- true"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("XDG_RUNTIME_DIR", place.scratch.path("run"));
    let output = shell.env("FILEMAP_STATE", place.scratch.path("state")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let [before] = sleeping(1018)[..] else { panic!("the shell's own is gone") };
    assert!(signal("KILL", before));
    assert!(!foreign.has_ended(), "it was not started by the command");
    assert!(place.statistics().is_empty());
}

/// A terminated program may clean up, and so may children that left its session.
#[test]
fn a_program_that_is_compared_may_clean_up() {
    let place = Place::new("govern_cleans");
    let [first, second] = ["first", "second"].map(|name| place.scratch.path(name));
    let cleans = |path: &str| format!("trap 'rm -f {path}; exit' TERM; : > {path}");
    let script = format!(
        "setsid sh -c \"{}; while :; do sleep 0.05; done\" &
         {}; while :; do sleep 0.05; done",
        cleans(&second),
        cleans(&first)
    );
    let mut running = Running::start(&mut place.script("--compare", &script));
    let is_there = |path: &String| fs::exists(path).unwrap();
    assert!(running.reaches(|| is_there(&first) && is_there(&second)));
    running.signal("TERM");
    assert_eq!(running.output().status.code(), Some(143));
    assert!(!is_there(&first) && !is_there(&second));
}
