//! Closed pipes, full disks and Ctrl-C.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{filemap, stderr};

/// Would run for days.
const ENDLESS: &str = "run --workload first --file-size 1m --accesses 1099511627776";

#[test]
fn a_closed_pipe_is_quiet() {
    for args in [
        "published --seeds 1",
        "run --workload random --file-size 1m",
        "run --workload sequential --file-size 64m --accesses 16384 --log -",
        "--help",
    ] {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        let output = filemap(args).stdout(writer).output().expect("the command starts");
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{args}");
    }
}

#[test]
fn a_log_ends_with_its_reader() {
    let evicting = ENDLESS.replace("first", "sequential --cache-limit 512k");
    let args = format!("{evicting} --log -");
    let mut child = filemap(&args).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut reader = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("the log begins at once");
    drop(reader);
    assert!(line.starts_with("{\"decision\":"), "{line}");
    assert_eq!(exit_code(child), Some(0));
}

#[test]
fn a_full_disk_is_told() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        eprintln!("a_full_disk_is_told: skipped, there is no /dev/full");
        return;
    };
    let job = "run --workload random --file-size 1m";
    let to_stdout = filemap(job).stdout(full).output().unwrap();
    for output in [
        to_stdout,
        filemap(&format!("{job} --json /dev/full")).output().unwrap(),
        filemap(&format!("{job} --log /dev/full")).output().unwrap(),
    ] {
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(stderr(&output).contains("no space left"), "{}", stderr(&output));
        assert_eq!(stderr(&output).matches('\n').count(), 1);
    }
}

#[test]
fn an_interrupted_command_ends_with_130() {
    let child = filemap(ENDLESS).stdout(Stdio::null()).spawn().expect("it starts");
    sleep(Duration::from_millis(300));
    let kill = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(kill.expect("there is a shell").success());
    assert_eq!(exit_code(child), Some(130));
}

/// Waits for `child`, but not for long.
fn exit_code(mut child: std::process::Child) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            return status.code();
        }
        if start.elapsed() > Duration::from_secs(20) {
            child.kill().expect("the child is ours");
            child.wait().expect("the child is ours");
            panic!("the command did not end");
        }
        sleep(Duration::from_millis(10));
    }
}
