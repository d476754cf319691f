//! Signals that end the command: it kills its children and undoes its changes first.

use std::fs;
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use filemap_kernel::journal::Journal;
use filemap_kernel::shutdown;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
use signal_hook::iterator::Signals;

use crate::error::Error;
use crate::output;
use crate::print_message;
use crate::progress::CLEAR_LINE;

/// Exit code of a command killed by signal N, minus N, as in shells.
const SIGNAL_EXIT_BASE: i32 = 128;

/// Signals that are handled even if ignored at startup: shells ignore them for background commands.
const ALWAYS_HANDLED: [i32; 2] = [SIGINT, SIGQUIT];

/// Signals that stay ignored if ignored at startup, as with `nohup`.
const HANDLED_UNLESS_IGNORED: [i32; 6] = [SIGHUP, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU];

/// Changes to the machine, undone before the command exits.
static JOURNAL: Mutex<Option<Journal>> = Mutex::new(None);

/// Whether an [`InterruptCounter`] is alive.
static IS_COUNTING: AtomicBool = AtomicBool::new(false);

/// Number of SIGINTs since the counter was created.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Message printed if a signal ends the command.
static EXIT_MESSAGE: Mutex<Option<String>> = Mutex::new(None);

fn exit_message() -> MutexGuard<'static, Option<String>> {
    EXIT_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of SIGINTs that are counted; the next one ends the command.
const MAX_COUNTED: u32 = 2;

/// While it lives, the first SIGINTs are counted instead of ending the command, so that it can
/// print partial results.
pub struct InterruptCounter(());

impl InterruptCounter {
    /// Starts counting from 0.
    pub fn begin() -> Self {
        COUNT.store(0, Ordering::SeqCst);
        IS_COUNTING.store(true, Ordering::SeqCst);
        InterruptCounter(())
    }

    /// Number of SIGINTs so far.
    pub fn times(&self) -> u32 {
        COUNT.load(Ordering::SeqCst)
    }

    /// Sets the message that is printed if a signal ends the command.
    pub fn set_exit_message(&self, message: String) {
        *exit_message() = Some(message);
    }
}

impl Drop for InterruptCounter {
    fn drop(&mut self) {
        IS_COUNTING.store(false, Ordering::SeqCst);
        *exit_message() = None;
    }
}

/// Whether `signal` is only counted.
fn is_counted(signal: i32) -> bool {
    let is_counting = signal == SIGINT && IS_COUNTING.load(Ordering::SeqCst);
    is_counting && COUNT.fetch_add(1, Ordering::SeqCst) < MAX_COUNTED
}

/// Exit code after SIGINT.
pub const INTERRUPTED: u8 = (SIGNAL_EXIT_BASE + SIGINT) as u8;

/// Installs signal handlers that kill child processes and undo the journal before exiting. Further
/// signals are ignored meanwhile.
pub fn exit_on_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let handled = HANDLED_UNLESS_IGNORED.into_iter().filter(|&signal| !ignores(&status, signal));
    // Without handlers a signal kills the command, and the next command undoes its changes.
    let Ok(mut signals) = Signals::new(ALWAYS_HANDLED.into_iter().chain(handled)) else { return };
    let (began, begins) = channel();
    let spawned = Builder::new().spawn(move || {
        let _ = began.send(());
        if let Some(signal) = signals.forever().find(|&signal| !is_counted(signal)) {
            end(signal);
        }
    });
    // glibc aborts the process if a new thread cannot allocate memory, so it is started before
    // anything allocates much.
    if spawned.is_ok() {
        let _ = begins.recv();
    }
}

/// Whether `signal` is ignored, according to the SigIgn mask in /proc/PID/status.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

fn end(signal: i32) -> ! {
    // Held until exit, so that no journal is opened from now on.
    let journal = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
    shutdown::begin();
    if stderr().is_terminal() {
        let _ = stderr().write_all(CLEAR_LINE.as_bytes());
    }
    if let Some(journal) = journal.as_ref() {
        for error in journal.undo_all().failed {
            print_message(format!("{error}; the next command tries again"));
        }
        report_unrestored(journal);
    }
    if let Some(message) = exit_message().take() {
        print_message(message);
    }
    filemap_govern::remove_output_directory();
    output::abandon();
    std::process::exit(SIGNAL_EXIT_BASE + signal)
}

/// Prints the settings that were not restored because someone else has changed them meanwhile.
fn report_unrestored(journal: &Journal) {
    journal.unrestored().into_iter().for_each(print_message);
}

pub use shutdown::wait_if_begun as wait_if_ending;

/// While it lives, signals undo the journal.
pub struct Undoing(());

impl Drop for Undoing {
    fn drop(&mut self) {
        let mut journal = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that a signal finds either the journal or no journal file.
        if let Some(journal) = journal.take() {
            journal.remove_if_empty();
            report_unrestored(&journal);
        }
    }
}

/// Opens a journal that signals undo while the guard lives.
///
/// # Errors
/// If the journal cannot be created.
pub fn journal() -> Result<(Journal, Undoing), Error> {
    let mut listed = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
    let journal = Journal::open()?;
    *listed = Some(journal.clone());
    Ok((journal, Undoing(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGTERM));
        assert!(!ignores("", SIGHUP));
    }
}
