//! `filemap govern -- PROGRAM` behaves like the program alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::governed::Place;
use crate::running::{Running, signal};
use crate::{skip, stderr};

/// Without and with a parent that stays.
const WAYS: [&str; 2] = ["", "--json /dev/null"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn programs_end_as_they_do_alone() {
    let place = Place::new("govern_ends");
    for script in [
        "exit 0",
        "exit 3",
        "echo a; echo b >&2; exit 255",
        "kill -TERM $$",
        "kill -KILL $$",
        "ulimit -c 0; kill -QUIT $$",
        "cat; printf 'x\\0y' | cat -",
        "grep -E 'Sig(Blk|Ign)' /proc/self/status",
        "for file in 0 1 2 3 4; do [ -e /proc/$$/fd/$file ] && echo $file; done",
        "exec grep -E 'Sig(Blk|Ign)' /proc/self/status",
        "echo a; exec sh -c 'exit 9'",
    ] {
        let alone = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
        for way in WAYS {
            let governed = place.script(way, script).output().unwrap();
            assert_eq!(governed, alone, "{way} {script}");
        }
    }
    assert!(place.statistics().is_empty());
}

/// Ignored signals stay ignored, closed descriptors closed, and the rest is as under a shell.
#[test]
fn programs_inherit_descriptors_and_signals() {
    let place = Place::new("govern_inherits");
    let shown = "ulimit -Sn; ulimit -Hn; grep -E 'Sig(Blk|Ign)' /proc/self/status
                 for file in 0 1 2 3 4; do [ -e /proc/$$/fd/$file ] && echo $file; done";
    let filemap = place.scratch.path("filemap");
    let run = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, shown]).env("XDG_RUNTIME_DIR", place.scratch.path("run"));
        shell.output().unwrap()
    };
    for before in ["", "trap '' HUP PIPE CHLD;", "exec <&-;"] {
        let alone = run(&format!("{before} exec sh -c \"$0\""));
        for way in WAYS {
            let governed = run(&format!("{before} exec {filemap} govern {way} -- sh -c \"$0\""));
            assert_eq!(text(&governed.stdout), text(&alone.stdout), "{before} {way}");
            assert_eq!(governed.status, alone.status, "{before} {way}");
        }
    }
}

#[test]
fn forwards_signals() {
    let place = Place::new("govern_signals");
    let script =
        "trap 'echo got; exit 5' INT TERM USR1 TSTP; echo ready; while :; do sleep 0.05; done";
    for way in WAYS {
        for (name, to_group) in [("INT", true), ("TERM", false), ("USR1", false), ("TSTP", false)] {
            let mut command = place.script(way, script);
            let mut running = Running::start(command.process_group(0));
            let mut stdout = std::io::BufReader::new(running.stdout());
            let mut line = String::new();
            std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
            assert_eq!(line, "ready\n");
            let pid = running.id();
            let target = if to_group { format!("-{pid}") } else { pid.to_string() };
            assert!(signal(name, target));
            line.clear();
            std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
            assert_eq!(line, "got\n", "{way} {name}");
            assert_eq!(running.output().status.code(), Some(5), "{way} {name}");
        }
        let running = Running::start(&mut place.script(way, "exec sleep 1000"));
        sleep(Duration::from_millis(300));
        running.signal("HUP");
        assert_eq!(running.output().status.signal(), Some(1), "{way}");
    }
    assert!(place.statistics().is_empty());
}

/// The command stops and continues together with the program.
#[test]
fn command_stops_with_program() {
    let place = Place::new("govern_stops");
    for way in WAYS {
        let mut command = place.script(way, "kill -STOP $$; exit 5");
        let running = Running::start(command.process_group(0));
        let stat = format!("/proc/{}/stat", running.id());
        let state = || fs::read_to_string(&stat).unwrap_or_default();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !state().contains(") T ") {
            assert!(Instant::now() < deadline, "{way}: {}", state());
            sleep(Duration::from_millis(10));
        }
        running.signal("CONT");
        assert_eq!(running.output().status.code(), Some(5), "{way}");
    }
}

/// A signal that the program sends to its own group has reached it already and is not forwarded; a
/// signal that a script of the group sends to the command alone is.
#[test]
fn group_signals_are_delivered_once() {
    let place = Place::new("govern_group");
    let script = "trap 'echo got' USR1; kill -USR1 0; sleep 0.5; exit 3";
    for way in WAYS {
        let output = place.script(way, script).process_group(0).output().unwrap();
        assert_eq!(text(&output.stdout), "got\n", "{way}");
        assert_eq!(output.status.code(), Some(3), "{way}");
        let filemap = place.scratch.path("filemap");
        let kills = format!("{filemap} govern {way} -- sleep 1000 & sleep 0.5; kill $!; wait $!");
        let mut shell = Command::new("sh");
        shell.args(["-c", &kills]).env("XDG_RUNTIME_DIR", place.scratch.path("run"));
        assert_eq!(shell.status().unwrap().code(), Some(128 + 15), "{way}");
    }
}

fn assert_one_line(output: &Output, code: i32, words: &[&str]) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.starts_with("filemap: ") && message.lines().count() == 1, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
    assert!(output.stdout.is_empty(), "{message}");
}

#[test]
fn names_program_that_cannot_run() {
    let place = Place::new("govern_refuses");
    let plain = place.scratch.file("plain", "#!/bin/sh\n");
    let orphan = place.scratch.file("orphan", "#!/no/such/interpreter\n");
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    for (args, code, words) in [
        ("", 2, ["a program is missing", "--"]),
        ("-- no-such-program-here", 127, ["'no-such-program-here'", "PATH"]),
        ("-- ./no/such", 127, ["'./no/such'", "give"]),
        ("-- /tmp", 126, ["'/tmp'", "directory"]),
        (&format!("-- {plain}"), 126, [&plain, "executed"]),
        (&format!("-- {orphan}"), 126, [&orphan, "interpreter"]),
        ("--min-size 1x -- true", 2, ["'1x'", "16"]),
        ("--format json -- true", 2, ["--format json", "--pid"]),
        ("--runs 3 -- true", 2, ["--compare", "--help"]),
        ("--pid 0", 2, ["'0'", "process"]),
        ("--pid 1 -- true", 2, ["--pid", "PROGRAM"]),
        ("--pid 2147483647", 2, ["2147483647", "gone"]),
        ("--cgroup no/such/group", 2, ["no/such/group", "cgroup"]),
        ("--release", 2, ["--release", "--pid"]),
        ("--release --pid 1 --observe", 2, ["--release", "--observe"]),
        ("--duration 0s --pid 1", 2, ["0s", "60s"]),
        ("--compare --observe -- true", 2, ["--observe", "--compare"]),
        ("--json /no/such/file -- touch run/ran", 2, ["/no/such/file", "opened"]),
        ("--json lookups -- ./lookups", 2, ["lookups", "the program"]),
        ("--nonsense -- true", 2, ["--nonsense", "--help"]),
    ] {
        if args.contains("lookups") {
            place.lookups();
        }
        let mut command = place.filemap(args);
        let output = command.current_dir(place.scratch.path("")).output().unwrap();
        // A size names another example.
        let words = words.map(|word| if word == "16" { "size" } else { word });
        assert_one_line(&output, code, &words);
    }
    assert!(!fs::exists(place.scratch.path("run/ran")).unwrap());
}

#[test]
fn governing_is_invisible_to_program() {
    let place = Place::new("govern_unseen");
    let output = place.filemap("-- printf %s --pid a, b --json").output().unwrap();
    assert_eq!(text(&output.stdout), "--pida,b--json", "a program's words are its own");
    let shown =
        "env | sort; cat /proc/$$/status | grep -E '^(Tracer|Seccomp|NoNew)'; ls /proc/$$/fd";
    let run = |command: &mut Command| {
        let command =
            command.env("XDG_RUNTIME_DIR", place.scratch.path("run")).stdin(Stdio::null());
        text(&command.env("FILEMAP_STATE", "x").env("XDG_STATE_HOME", "x").output().unwrap().stdout)
    };
    for way in WAYS {
        let alone = run(Command::new("sh").args(["-c", shown]));
        assert_eq!(run(&mut place.script(way, shown)), alone, "{way}");
    }
}

/// Static programs are governed like any other.
#[test]
fn static_programs_are_governed() {
    let place = Place::new("govern_static");
    let [program, data] = place.lookups();
    let fixed = place.scratch.path("static");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/lookups.c");
    let compiled = Command::new("cc").args(["-static", "-o", &fixed, source]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skip("no static C library");
    }
    let path = place.scratch.path("report");
    let args = format!("--json {path} -- {fixed} {data} 50");
    let governed = place.filemap(&args).output().unwrap();
    let alone = Command::new(program).args([&data, "50"]).output().unwrap();
    assert_eq!(text(&governed.stdout), text(&alone.stdout));
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    match report["ungoverned"].as_str() {
        Some(reason) => skip(reason),
        None => assert_eq!(report["processes"][0]["mappings"][0]["path"], data.as_str()),
    }
}

/// Nobody but root may follow a program that gains another user's rights.
#[test]
fn ungovernable_program_still_runs() {
    let place = Place::new("govern_cannot");
    let other = place.scratch.path("other");
    fs::copy("/usr/bin/env", &other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
    let filemap = place.scratch.path("filemap");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &filemap, "govern", "--"]);
    let output = command.args([&other, "true"]).output().unwrap();
    let message = stderr(&output);
    if !message.contains("runs ungoverned") {
        return skip(format!("only root changes users, and others see the directory: {message}"));
    }
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.starts_with("filemap: '") && message.lines().count() == 1, "{message}");
    assert!(message.contains("set-user-ID"), "{message}");
}
