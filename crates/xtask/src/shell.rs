//! Runs shell commands in process groups of their own, with a time limit and cleanup on signals.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Signals that end a command, each with its grace period. Tests wait less for the first one, since
/// background jobs of a shell ignore it.
const SIGNALS: [(&str, Duration); 2] = [
    ("INT", Duration::from_secs(if cfg!(test) { 2 } else { 30 })),
    ("KILL", Duration::from_secs(30)),
];

/// Interval at which a command's end is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Exit codes above this stand for the signal that ended a process, as shells have it.
const SIGNALLED: i32 = 128;

/// Lines of output printed of a failed command.
const TAIL_LINES: usize = 40;

/// What to clean up on a signal.
#[derive(Debug, Default)]
pub struct Cleanup {
    /// Process group of the running command.
    group: Option<u32>,
    /// Directory to remove.
    pub directory: Option<PathBuf>,
}

static CLEANUP: Mutex<Cleanup> = Mutex::new(Cleanup { group: None, directory: None });

/// What to clean up on a signal. Signals are held off while the guard lives.
pub fn cleanup() -> MutexGuard<'static, Cleanup> {
    CLEANUP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on SIGHUP, SIGINT and SIGTERM end the running command, clean up, and end this program.
pub fn end_on_signals() {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Held until exit, so that no new command starts.
            let cleanup = cleanup();
            if let Some(group) = cleanup.group {
                end(group, || !group_exists(group));
            }
            if let Some(directory) = &cleanup.directory {
                let _ = fs::remove_dir_all(directory);
            }
            std::process::exit(SIGNALLED + signal);
        }
    });
}

/// Runs `shell` in a process group of its own. `None` if it was ended after `timeout`.
///
/// # Errors
/// When it does not start, or cannot be killed.
pub fn wait(shell: &mut Command, timeout: Duration) -> Result<Option<ExitStatus>> {
    let mut guard = cleanup();
    let mut child = shell.process_group(0).spawn().context("sh does not start")?;
    guard.group = Some(child.id());
    drop(guard);
    let status = wait_timeout(&mut child, timeout)?;
    if status.is_none() && !end(child.id(), || child.try_wait().is_ok_and(|ended| ended.is_some()))
    {
        bail!("process {} cannot be killed", child.id());
    }
    cleanup().group = None;
    Ok(status)
}

/// Ends a process group: SIGINT, so that it can undo its changes, then SIGKILL. Returns whether
/// `has_ended` became true.
fn end(group: u32, mut has_ended: impl FnMut() -> bool) -> bool {
    for (signal, grace) in SIGNALS {
        send(signal, group);
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            if has_ended() {
                return true;
            }
            sleep(POLL_INTERVAL);
        }
    }
    false
}

fn group_exists(group: u32) -> bool {
    send("0", group)
}

/// Sends `signal` to a process group. Returns whether it has any process left.
fn send(signal: &str, group: u32) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-s", signal, "--", &format!("-{group}")]);
    kill.output().is_ok_and(|output| output.status.success())
}

fn wait_timeout(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + timeout;
    loop {
        let status = child.try_wait().context("a child cannot be waited for")?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        sleep(POLL_INTERVAL);
    }
}

/// Prints the last lines of the file at `path`, indented.
pub fn print_tail(path: &Path) {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(TAIL_LINES)..] {
        println!("    {line}");
    }
}
