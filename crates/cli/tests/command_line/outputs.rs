//! Output files: pipes, devices, links, modes, and obstacles.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Output;

use serde_json::Value;

use crate::running::Running;
use crate::{Scratch, filemap, stderr, without_profile};

const JOB: &str = "run --workload random --file-size 1m --accesses 20";

/// Runs a shell script in `scratch`; `$0` is the command.
fn shell(scratch: &Scratch, script: &str) -> Output {
    let mut shell = without_profile("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_filemap")]).current_dir(scratch.path(""));
    Running::start(&mut shell).output()
}

#[track_caller]
fn fails(output: &Output, code: i32, words: &[&str]) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(words.iter().all(|word| message.contains(word)), "{message}");
}

/// The runs of each record in `text`.
fn runs(text: &[u8]) -> Vec<Value> {
    let records = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let runs = |record: serde_json::Result<Value>| record.expect("an object")["runs"].clone();
    records.map(runs).inspect(|runs| assert!(runs.is_array())).collect()
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

fn names(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path("")).expect("it is there").flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn replacement_keeps_path_and_mode() {
    let scratch = Scratch::new("outputs-replaced");
    let old = scratch.file("record.json", "old");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(&old, scratch.path("other-name")).unwrap();
    symlink("record.json", scratch.path("link")).unwrap();
    succeeds(&shell(&scratch, &format!("$0 {JOB} --json link")));
    let record = fs::read_to_string(&old).unwrap();
    assert!(record.ends_with("}\n"), "{record}");
    assert_eq!(fs::metadata(&old).unwrap().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(scratch.path("link")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(scratch.path("other-name")).unwrap(), "old");
    succeeds(&shell(&scratch, &format!("umask 027; $0 {JOB} --json new.json")));
    assert_eq!(fs::metadata(scratch.path("new.json")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(names(&scratch), ["link", "new.json", "other-name", "record.json"]);
}

#[test]
fn refuses_output_paths_before_running() {
    let scratch = Scratch::new("outputs-refused");
    // It would run for days.
    let endless = "run --workload first --file-size 1m --accesses 1099511627776";
    for (prepare, output, words) in [
        ("mkdir directory", "directory", &["'directory'", "is a directory"] as &[&str]),
        ("mkdir -p directory", "directory/", &["is a directory"]),
        ("", "missing/record", &["missing/record", "no such file"]),
        ("", "missing/", &["no such file"]),
        ("ln -s circle circle", "circle", &["'circle'", "symbolic links"]),
        ("ln -s nothing link", "link", &["'link'", "a link to a missing file"]),
        ("", "/dev/fd/77", &["/dev/fd/77"]),
        ("", "/proc/filemap", &["/proc/filemap"]),
        ("", "''", &["no such file"]),
    ] {
        for flag in ["--json", "--log"] {
            let prepare = if flag == "--json" { prepare } else { "" };
            let output = shell(&scratch, &format!("{prepare}\n$0 {endless} {flag} {output}"));
            fails(&output, 2, words);
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn writes_to_pipes_and_devices() {
    let scratch = Scratch::new("outputs-streams");
    let alone = runs(&filemap(&format!("{JOB} --json -")).output().unwrap().stdout);
    assert_eq!(alone.len(), 1);
    let read = |name: &str| fs::read(scratch.path(name)).unwrap();
    for script in [
        "mkfifo pipe; cat pipe > got & $0 JOB --json pipe > report; wait",
        "$0 JOB --json /dev/fd/3 3> got > report",
        "$0 JOB --json /proc/self/fd/3 3> got > report",
        "{ $0 JOB --json /dev/fd/3 3>&1 > report; } | cat > got",
        "$0 JOB --json /dev/stderr 2> got > report",
        "$0 JOB --json /dev/stdout > got; echo > report",
        "$0 JOB --json /dev/stdout | cat > got; echo > report",
    ] {
        let output = shell(&scratch, &script.replace("JOB", JOB));
        assert!(output.status.success(), "{script}: {}", stderr(&output));
        assert_eq!(runs(&read("got")), alone, "{script}");
        assert!(!read("report").is_empty(), "{script}");
    }
    let twice = "for i in 1 2; do $0 JOB --json /dev/fd/3 3>> both > report; done";
    succeeds(&shell(&scratch, &twice.replace("JOB", JOB)));
    assert_eq!(runs(&read("both")), [alone.clone(), alone].concat());
    let null = filemap(&format!("{JOB} --json /dev/null --log /dev/null")).output().unwrap();
    succeeds(&null);
    assert!(!null.stdout.is_empty());
}

#[test]
fn a_closed_stdout_is_reported() {
    let scratch = Scratch::new("outputs-stdout");
    for command in [&format!("{JOB} --json record"), JOB, "--help", "--version", "doctor"] {
        let output = shell(&scratch, &format!("$0 {command} >&-"));
        fails(&output, 1, &["stdout", "closed"]);
    }
    assert_eq!(names(&scratch), [""; 0]);
}

#[test]
fn reads_pipes_and_refuses_fifo_without_writer() {
    let scratch = Scratch::new("outputs-pipes");
    let job = "printf 'workload = \"first\"\\n'; sleep 0.3; printf 'file_size = \"1m\"\\n'";
    succeeds(&shell(&scratch, &format!("{{ {job}; }} | $0 run /dev/stdin --accesses 3")));
    succeeds(&shell(&scratch, &format!("mkfifo pipe; {{ {job}; }} > pipe & $0 run pipe")));
    for (args, what) in [
        ("run pipe", "job file"),
        ("run --file-size 1m --accesses-file pipe", "accesses file"),
        ("run --workload first --file-size 1m --machine pipe", "machine profile"),
        ("run --workload first --file pipe", "no regular file"),
        ("run --workload elf --file pipe", "no regular file"),
        ("run --workload first --on kernel --file pipe", "no regular file"),
        ("run --workload first --file /dev/null", "no regular file"),
    ] {
        fails(&shell(&scratch, &format!("$0 {args}")), 2, &[what, "cannot be read"]);
    }
}

#[test]
fn refuses_an_output_that_is_an_input_or_another_output() {
    let scratch = Scratch::new("outputs-inputs");
    scratch.file("data", vec![7; 1 << 20]);
    scratch.file("machine.toml", "old");
    scratch.file("list", "1\n2\n");
    scratch.file("job.toml", "workload = \"random\"\nfile = \"data\"\n");
    fs::hard_link(scratch.path("data"), scratch.path("hard")).unwrap();
    symlink("data", scratch.path("link")).unwrap();
    let compare = "compare --workload random --file-size 1m --variants";
    for (command, other) in [
        ("run --workload random --file data --json ./data", "--file 'data'"),
        ("run --workload random --file data --html hard", "--file 'data'"),
        ("run job.toml --log link", "--file 'data'"),
        ("run job.toml --json job.toml", "the job file 'job.toml'"),
        ("run --file-size 1m --accesses-file list --json list", "--accesses-file 'list'"),
        (&format!("{compare} p1,p2+machine=machine.toml --json machine.toml"), "machine"),
        (&format!("{compare} p1,p2 --image list --json list"), "--image 'list'"),
        ("run --workload random --file-size 1m --json new --log new", "--json 'new'"),
        ("run --workload random --file-size 1m --json data --log hard", "--json 'data'"),
    ] {
        let output = shell(&scratch, &format!("$0 {command}"));
        fails(&output, 2, &["is the same file as", other]);
        assert!(output.stdout.is_empty());
    }
    assert_eq!(fs::read(scratch.path("data")).unwrap(), vec![7; 1 << 20]);
    assert_eq!(fs::read_to_string(scratch.path("machine.toml")).unwrap(), "old");
}
