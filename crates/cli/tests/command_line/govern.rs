//! `filemap govern -- PROGRAM` is as good as the program alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::governed::{Place, with_usual_signals};
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

/// What was ignored stays so, what was closed is closed, and the rest is as a shell has it.
#[test]
fn programs_inherit_what_the_command_did() {
    let place = Place::new("govern_inherits");
    // Files of the library have larger numbers than those that are inherited.
    let shown = "grep -E 'Sig(Blk|Ign)' /proc/self/status
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
fn signals_come_through() {
    let place = Place::new("govern_signals");
    let script =
        "trap 'echo got; exit 5' INT TERM USR1 TSTP; echo ready; while :; do sleep 0.05; done";
    for way in WAYS {
        for (name, to_group) in [("INT", true), ("TERM", false), ("USR1", false), ("TSTP", false)] {
            let mut command = place.script(way, script);
            let mut running = Running::start(with_usual_signals(&mut command).process_group(0));
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

/// The command stops and goes on with the program, and not without it.
#[test]
fn the_command_stops_where_the_program_does() {
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

/// What a program sends to its own group has reached it already; what a script of the same group
/// sends to the command alone has not.
#[test]
fn signals_from_the_same_group_come_once() {
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
fn what_cannot_be_run_is_named() {
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
        ("--include a:b -- true", 2, ["'a:b'", "colon"]),
        ("--format json -- true", 2, ["--format json", "--status"]),
        ("--runs 3 -- true", 2, ["--compare", "--help"]),
        ("--status 0", 2, ["'0'", "process"]),
        ("--status 1 -- true", 2, ["--status", "PROGRAM"]),
        ("--status 2147483647", 2, ["2147483647", "no such process"]),
        ("--off --compare -- true", 2, ["--off", "--compare"]),
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
    let wrong = place.filemap("-- true").env("FILEMAP_GOVERN_MIN_SIZE", "zz").output().unwrap();
    assert_one_line(&wrong, 2, &["FILEMAP_GOVERN_MIN_SIZE", "zz"]);
    let place = Place::without_library("govern_no_library");
    let lacking = place.filemap("-- true").output().unwrap();
    assert_one_line(&lacking, 4, &["libfilemap_governor.so", "cargo xtask install"]);
    assert!(place.filemap("--off -- true").output().unwrap().status.success());
}

#[test]
fn flags_become_variables_and_others_stay() {
    let place = Place::new("govern_variables");
    let shown = |args: &str, name: &str, value: &str| {
        let script = "env | grep -E '^(FILEMAP_GOVERN|LD_PRELOAD)' | sort";
        let output = place.script(args, script).env(name, value).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", stderr(&output));
        text(&output.stdout)
    };
    let lines = shown("--min-size 1m --include *.db --include x", "FILEMAP_GOVERN_EXCLUDE", "y");
    for line in [
        "FILEMAP_GOVERN_MIN_SIZE=1048576\n",
        "FILEMAP_GOVERN_INCLUDE=*.db:x\n",
        "FILEMAP_GOVERN_EXCLUDE=y\n",
        "libfilemap_governor.so\n",
        "/run/filemap-govern\n",
    ] {
        assert!(lines.contains(line), "{lines}");
    }
    let lines = shown("", "FILEMAP_GOVERN_STATISTICS", "/nowhere");
    assert!(lines.contains("STATISTICS=/nowhere\n") && !lines.contains("MIN_SIZE"), "{lines}");
    assert_eq!(shown("--off", "X", "y"), "FILEMAP_GOVERN=off\n");
    let output = place.filemap("-- printf %s --on a, b --json").output().unwrap();
    assert_eq!(text(&output.stdout), "--ona,b--json", "a program's words are its own");
}

#[test]
fn what_cannot_be_governed_runs_all_the_same() {
    let place = Place::new("govern_cannot");
    let says = |args: &str, code: i32, words: &[&str]| {
        let output = place.filemap(args).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.starts_with("filemap: '") && message.lines().count() == 1, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!text(&output.stdout).contains("LD_PRELOAD"), "{args}");
    };
    let source = place.scratch.file("static.c", "int main(void) { return 6; }\n");
    let fixed = place.scratch.path("static");
    let compiled = Command::new("cc").args(["-static", "-o", &fixed, &source]).status();
    if compiled.is_ok_and(|status| status.success()) {
        says(&format!("-- {fixed}"), 6, &["runs ungoverned: it is statically linked"]);
        let script = place.scratch.file("script", format!("#!{fixed}\n"));
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        says(&format!("-- {script}"), 6, &["its interpreter", "statically linked"]);
    } else {
        skip("no static C library");
    }
    let checked = place.scratch.path("checked");
    let sanitized = ["-fsanitize=address", "-o", &checked, &source];
    let compiled = Command::new("gcc").args(sanitized).status();
    if compiled.is_ok_and(|status| status.success()) {
        says(&format!("-- {checked}"), 6, &["runs ungoverned: it needs 'libasan.so"]);
    } else {
        skip("no AddressSanitizer");
    }
    let other = place.scratch.path("other");
    fs::copy("/usr/bin/env", &other).unwrap();
    if chown(&other, Some(65534), None).is_ok() {
        fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
        says(&format!("-- {other}"), 0, &["set-user-ID"]);
    } else {
        skip("only root gives files away");
    }
}
