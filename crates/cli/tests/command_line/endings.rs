//! Closed pipes, full disks and Ctrl-C.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::running::Running;
use crate::skip::skip;
use crate::{filemap, stderr};

/// Would run for days.
const ENDLESS: &str = "run --workload first --file-size 1m --accesses 1099511627776";

#[test]
fn a_closed_pipe_is_quiet() {
    for args in [
        "published mmap-miss --seeds 1",
        "run --workload random --file-size 1m",
        "run --workload sequential --file-size 64m --accesses 16384 --log -",
        "--help",
    ] {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        let output = filemap(args).stdout(writer).output().expect("the command starts");
        // On a slow machine progress is shown.
        let message = stderr(&output);
        let is_quiet = message.lines().all(|line| line.contains(" jobs after "));
        assert!(output.status.code() == Some(1) && is_quiet, "{args}: {message}");
    }
}

#[test]
fn log_ends_if_reader_closes() {
    let evicting = ENDLESS.replace("first", "sequential --cache-limit 512k");
    let args = format!("{evicting} --log -");
    let mut child = Running::start(&mut filemap(&args));
    let mut reader = BufReader::new(child.stdout());
    let mut line = String::new();
    reader.read_line(&mut line).expect("the log begins at once");
    drop(reader);
    assert!(line.starts_with("{\"access\":0,\"thread\":0,\"at_ns\":"), "{line}");
    let output = child.output();
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), String::new()));
}

#[test]
fn reports_full_disk() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        skip("there is no /dev/full");
        return;
    };
    let full_again = full.try_clone().expect("a file can be opened twice");
    let job = "run --workload random --file-size 1m";
    let to_stdout = filemap(job).stdout(full).output().unwrap();
    for output in [
        to_stdout,
        filemap(&format!("{job} --json /dev/full")).output().unwrap(),
        filemap(&format!("{job} --log /dev/full")).output().unwrap(),
        filemap("--help").stdout(full_again).output().unwrap(),
    ] {
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("no space left"), "{}", stderr(&output));
        assert_eq!(stderr(&output).matches('\n').count(), 1);
    }
}

#[test]
fn reports_terminating_signal() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("USR1", 10)] {
        let child = Running::start(&mut filemap(ENDLESS));
        sleep(Duration::from_millis(300));
        child.signal(signal);
        let output = child.output();
        assert_eq!((output.status.code(), stderr(&output)), (Some(128 + number), String::new()));
    }
}

#[test]
fn ignored_hangup_stays_ignored() {
    let script = format!("trap '' HUP; exec {} {ENDLESS}", env!("CARGO_BIN_EXE_filemap"));
    let mut child = Running::start(Command::new("sh").args(["-c", &script]));
    sleep(Duration::from_millis(300));
    child.signal("HUP");
    sleep(Duration::from_millis(300));
    assert!(!child.has_ended());
    child.signal("TERM");
    assert_eq!(child.output().status.code(), Some(143));
}
