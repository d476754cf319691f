//! Commands of documents, which a shell runs in a process group of their own, and signals.

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

/// The signals that end a command, and how long it has to end after each. Tests need not wait that
/// long for the first: what a shell starts in the background ignores it.
const SIGNALS: [(&str, Duration); 2] = [
    ("INT", Duration::from_secs(if cfg!(test) { 2 } else { 30 })),
    ("KILL", Duration::from_secs(30)),
];

/// How often it is looked whether a command has ended.
const POLL: Duration = Duration::from_millis(20);

/// Shells take a command that ended with this much more than a signal for one that it ended.
const SIGNALLED: i32 = 128;

/// Lines of output that are shown of a command that failed.
const SHOWN_LINES: usize = 40;

/// What a signal has to end and to remove.
#[derive(Debug, Default)]
pub struct Left {
    /// The process group of the command that runs.
    group: Option<u32>,
    /// A directory that goes in the end.
    pub directory: Option<PathBuf>,
}

static LEFT: Mutex<Left> = Mutex::new(Left { group: None, directory: None });

/// What a signal has to end and to remove. While this is held, a signal waits.
pub fn left() -> MutexGuard<'static, Left> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal ends the command that runs, removes what is left, and ends this.
pub fn end_on_signals() {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Held until the process is gone: nothing is begun any more.
            let left = left();
            if let Some(group) = left.group {
                end(group, || !is_there(group));
            }
            if let Some(directory) = &left.directory {
                let _ = fs::remove_dir_all(directory);
            }
            std::process::exit(SIGNALLED + signal);
        }
    });
}

/// Runs `shell` in a process group of its own; `None` when it had to be ended at the time limit.
///
/// # Errors
/// When it does not start, or cannot be killed.
pub fn wait(shell: &mut Command, limit: Duration) -> Result<Option<ExitStatus>> {
    let mut left_now = left();
    let mut child = shell.process_group(0).spawn().context("sh does not start")?;
    left_now.group = Some(child.id());
    drop(left_now);
    let status = ended_within(&mut child, limit)?;
    if status.is_none() && !end(child.id(), || child.try_wait().is_ok_and(|ended| ended.is_some()))
    {
        bail!("process {} cannot be killed", child.id());
    }
    left().group = None;
    Ok(status)
}

/// Ends `group`, of which `has_ended` knows. The first signal so that it undoes what it changed,
/// the second in case that it does not. Returns whether it has ended.
fn end(group: u32, mut has_ended: impl FnMut() -> bool) -> bool {
    for (signal, grace) in SIGNALS {
        send(signal, group);
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            if has_ended() {
                return true;
            }
            sleep(POLL);
        }
    }
    false
}

fn is_there(group: u32) -> bool {
    send("0", group)
}

/// Sends `signal` to `group`; fails where nobody is left.
fn send(signal: &str, group: u32) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-s", signal, "--", &format!("-{group}")]);
    kill.output().is_ok_and(|output| output.status.success())
}

fn ended_within(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        let status = child.try_wait().context("a child cannot be waited for")?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        sleep(POLL);
    }
}

/// Prints the end of what a command wrote to `path`.
pub fn show_end(path: &Path) {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
        println!("    {line}");
    }
}
