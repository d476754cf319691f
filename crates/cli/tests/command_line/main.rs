//! The command as scripts see it: exit codes, one-line errors, and output.

mod advise;
mod bad_input;
mod calibrate;
mod checked;
mod compare;
mod conform;
mod containers;
mod determinism;
mod device_profile;
mod endings;
mod explain;
mod exports;
mod flags;
mod folio_ops;
mod govern;
mod govern_endings;
mod govern_failures;
mod govern_memory;
mod govern_reports;
mod govern_running;
mod governed;
mod guests;
mod kernel;
mod kills;
mod lacking;
mod letters;
mod live;
mod live_programs;
mod losses;
mod one_meaning;
mod outputs;
mod own_memory;
mod pages;
mod phases;
mod programs;
mod published;
mod random_flags;
mod recorded;
mod recordings;
mod reference;
mod run;
mod running;
mod schema;
mod search;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;
mod thrash;
mod traces;
mod warm;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use filemap_kernel::storage::Storage;
use serde_json::Value;

use skip::skip;

/// The command with space-separated `args`, isolated from the user's machine profile.
fn filemap(args: &str) -> Command {
    let mut command = without_profile(env!("CARGO_BIN_EXE_filemap"));
    command.args(args.split_whitespace()).stdin(Stdio::null());
    command
}

/// `program`, isolated from the user's machine profile.
fn without_profile(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("XDG_STATE_HOME", "/dev/null/no-state");
    command
}

/// stdout of a command that must succeed.
fn stdout(args: &str) -> String {
    let output = filemap(args).output().expect("the command starts");
    assert!(output.status.success(), "{args}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("reports are text")
}

fn json(args: &str) -> Value {
    serde_json::from_str(&stdout(args)).expect("one JSON object")
}

/// JSON output of a command without the date, the only part that differs between runs.
fn undated(args: &str) -> Value {
    let mut report = json(&format!("{args} --json -"));
    report["environment"]["date"].take();
    report
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The Python with the packages of other tools: what .ci/run installs, or the one in PATH.
fn test_python() -> String {
    std::env::var("FILEMAP_TEST_PYTHON").unwrap_or("python3".to_string())
}

/// Whether jobs on the running kernel find a disk with a readahead size here, where tests put their
/// files and where commands do by themselves; says that the test is skipped where not.
fn has_disk() -> bool {
    let own = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let usual = filemap_kernel::engine::temporary_directory();
    let on_disk = |directory: &PathBuf| {
        let place = Storage::find(directory);
        place
            .is_ok_and(|place| place.unsuitable_reason().is_none() && place.read_ahead_kb.is_some())
    };
    let found = usual.is_ok_and(|usual| [own, usual].iter().all(on_disk));
    if !found {
        skip("no disk of which the readahead size is known");
    }
    found
}

/// Whether mounts can be made that nobody else sees; says that the test is skipped where not.
fn can_change_mounts() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]);
    let can = command.output().is_ok_and(|output| output.status.success());
    if !can {
        skip("it needs root and unshare");
    }
    can
}

/// Removes the directory of a killed test, and undoes its changes.
fn left_by_a_killed_run(directory: &Path) {
    match filemap_kernel::journal::recover(&directory.join("state")) {
        Ok(recovery) if recovery.failed.is_empty() => {}
        failed => println!("{}: {failed:?}", directory.display()),
    }
    if std::fs::remove_dir_all(directory).is_err() {
        let _ = Command::new("chattr").args(["-R", "-i"]).arg(directory).status();
        std::fs::remove_dir_all(directory).expect("what a killed run left can be removed");
    }
}

/// A directory for the files of one test, removed with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        session::end_leftovers();
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        if path.exists() {
            left_by_a_killed_run(&path);
        }
        std::fs::create_dir_all(&path).expect("the target directory can be written");
        Scratch(path)
    }

    /// Writes a file and returns its path.
    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("the target directory can be written");
        path
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the target directory's path is text").to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
