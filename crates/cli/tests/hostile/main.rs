//! Programs that try to harm a governor: it keeps running, opens only their regular files, and
//! releases them.
//!
//! `cargo test -p filemap-cli --test hostile -- --ignored` governs this program once for each kind
//! in [`harm`]. Then it kills commands at moments that follow from `FILEMAP_SEED`, a thousand of
//! them with `FILEMAP_FULL=1`.

mod fuse;
mod harm;
#[path = "../../../kernel/tests/support/harness.rs"]
mod harness;
mod kills;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harm::Harm;
use kills::Follows;
use skip::skip;

/// The first argument that tells this program to do harm.
const DOES_HARM: &str = "harm";

/// Time limit for a governed program: each exits by itself in a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for a governor to release a running process.
const LETS_GO_WITHIN: Duration = Duration::from_secs(10);

/// Number of commands killed in each way, and with `FILEMAP_FULL`.
const USUAL_KILLS: u64 = 10;
const KILLS: u64 = 350;

/// An ordinary user.
const NOBODY: u32 = 65534;

const TESTS: &[harness::Test<Bench>] = harness::tests![
    #[ignore = "governs a program by each harm: a minute"]
    governs_harmful_programs,
    #[ignore = "kills 30 commands, 1,050 with FILEMAP_FULL=1: half a minute or more"]
    programs_survive_killed_commands,
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(DOES_HARM) {
        let (kind, directory) = (words.next(), words.next());
        let kind = kind.as_deref().and_then(Harm::named).expect("a kind of harm");
        kind.done_in(Path::new(&directory.expect("a directory")));
        return ExitCode::SUCCESS;
    }
    harness::run(TESTS, || Ok(Bench::new()))
}

fn governs_harmful_programs(bench: &Bench) {
    let is_root = rustix::process::geteuid().is_root();
    for harm in Harm::ALL {
        if harm.needs_root() && !is_root {
            skip(format!("{}: it needs root", harm.name()));
            continue;
        }
        bench.started(harm, None);
        bench.running(harm);
        if is_root && !harm.needs_root() {
            bench.started(harm, Some(NOBODY));
        }
        println!("{}: ok", harm.name());
    }
}

fn programs_survive_killed_commands(bench: &Bench) {
    let seed = std::env::var("FILEMAP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let count = if std::env::var_os("FILEMAP_FULL").is_some() { KILLS } else { USUAL_KILLS };
    for follows in Follows::ALL {
        let (command, program) = (bench.directory.join("filemap"), bench.directory.join("harm"));
        kills::kill(follows, count, seed, &command, &program, &bench.place(Harm::Checks));
        println!("{follows:?}: {count} were killed, seed {seed}: ok");
    }
}

/// A directory in which harm is done.
struct Bench {
    directory: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Bench {
    fn new() -> Bench {
        let directory = session::place("hostile", |_| {});
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let own = std::env::current_exe().expect("it has a path");
        // Another user may not have access to the build directory.
        for (from, name) in
            [(own.as_path(), "harm"), (env!("CARGO_BIN_EXE_filemap").as_ref(), "filemap")]
        {
            fs::copy(from, directory.join(name)).expect("there is room");
        }
        Bench { directory }
    }

    /// A directory for one program.
    fn place(&self, harm: Harm) -> PathBuf {
        let place = self.directory.join(format!("in-{}", harm.name()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir(&place).expect("the directory is ours");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).expect("it is ours");
        place
    }

    fn program(&self, harm: Harm, place: &Path) -> Vec<String> {
        let program = self.directory.join("harm").display().to_string();
        vec![program, DOES_HARM.into(), harm.name().into(), place.display().to_string()]
    }

    fn govern(&self, place: &Path) -> Command {
        let mut command = Command::new(self.directory.join("filemap"));
        command.arg("govern").stdin(Stdio::null()).stdout(Stdio::null());
        command.env("XDG_RUNTIME_DIR", place).env("FILEMAP_STATE", place.join("state"));
        command
    }

    /// A governor starts the program, as `user` if that is not this one.
    fn started(&self, harm: Harm, user: Option<u32>) {
        let place = self.place(harm);
        let mut command = self.govern(&place);
        command.arg("--").args(self.program(harm, &place));
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let governor = command.spawn().expect("the command can be started");
        let status = watched(governor, &place, harm);
        assert!(status.success(), "{}: governed, it ended with {status}", harm.name());
    }

    /// A governor attaches to the running program, and is terminated before it.
    fn running(&self, harm: Harm) {
        let place = self.place(harm);
        let words = self.program(harm, &place);
        let mut program = Command::new(&words[0]).args(&words[1..]).spawn().expect("it was copied");
        let mut command = self.govern(&place);
        let mut governor =
            command.args(["--pid", &program.id().to_string()]).spawn().expect("it can be started");
        thread::sleep(Duration::from_secs(1));
        check_files(&governor, &place, harm);
        // SAFETY: it has not been reaped, so the PID is its own.
        unsafe { libc::kill(governor.id().cast_signed(), libc::SIGTERM) };
        let start = Instant::now();
        while governor.try_wait().expect("it is a child").is_none() {
            if start.elapsed() > LETS_GO_WITHIN {
                governor.kill().expect("it runs");
                program.kill().expect("it is a child");
                panic!("{}: the governor does not let go", harm.name());
            }
            thread::sleep(Duration::from_millis(5));
        }
        let status = watched(program, &place, harm);
        assert!(status.success(), "{}: let go, it ended with {status}", harm.name());
    }
}

/// Waits for `child` and returns how it exits. Meanwhile checks its open files in `place`.
fn watched(mut child: Child, place: &Path, harm: Harm) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().expect("it runs");
            panic!("{}: it hangs", harm.name());
        }
        check_files(&child, place, harm);
        thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that the governor has only regular files open in `place`, for reading.
fn check_files(governor: &Child, place: &Path, harm: Harm) {
    let process = PathBuf::from(format!("/proc/{}", governor.id()));
    if fs::read_link(process.join("exe")).is_ok_and(|exe| exe.ends_with("harm")) {
        return;
    }
    for entry in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
        // Held open here, the file stays the same: the governor may close it at any time.
        let Ok(held) = fs::File::options().read(true).custom_flags(libc::O_PATH).open(entry.path())
        else {
            continue;
        };
        let own = format!("/proc/self/fd/{}", held.as_raw_fd());
        let target = fs::read_link(own).expect("it is open");
        if target.starts_with(place) {
            // A look at a file of the silent server would hang.
            let is_in_silence = target.starts_with(place.join(harm::SILENT));
            let is_harmless = || held.metadata().is_ok_and(|data| data.is_file() || data.is_dir());
            assert!(
                !is_in_silence && is_harmless(),
                "{}: the governor has opened {}",
                harm.name(),
                target.display()
            );
        }
    }
}
