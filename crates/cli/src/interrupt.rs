//! Signals that end the command: what it changed is undone first.

use std::fs;
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use filemap_attach::program::signal_set;
use filemap_kernel::journal::Journal;
use filemap_kernel::shutdown;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
use signal_hook::iterator::Signals;

use crate::error::Error;
use crate::output;
use crate::progress::CLEAR_LINE;
use crate::say;

/// Shells and terminals take a command that ended with this much more than a signal for one that
/// the signal ended.
const SIGNALLED: i32 = 128;

/// Signals that users and shells send to a command in the background too, where shells have it
/// ignore them.
const ALWAYS: [i32; 2] = [SIGINT, SIGQUIT];

/// Other signals that end a program which does nothing about them. One that was ignored when the
/// command was started stays ignored, as `nohup` wants it.
const UNLESS_IGNORED: [i32; 6] = [SIGHUP, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU];

/// What else ends a program that does nothing about it: errors of its own, which another process
/// may also send, and what hardly anybody uses. Of those the real-time signals are not listed.
const SELDOM: [i32; 12] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGIO,
    libc::SIGPROF,
    libc::SIGPWR,
    libc::SIGSEGV,
    libc::SIGSTKFLT,
    libc::SIGSYS,
    libc::SIGTRAP,
    libc::SIGVTALRM,
];

/// What has to be undone before the command ends.
static JOURNAL: Mutex<Option<Journal>> = Mutex::new(None);

/// Whether somebody wants to know of SIGINT before it ends the command.
static ASKED_FOR: AtomicBool = AtomicBool::new(false);

/// How often it came since.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// What is said when a signal ends the command meanwhile.
static LAST_WORD: Mutex<Option<String>> = Mutex::new(None);

fn last_word() -> MutexGuard<'static, Option<String>> {
    LAST_WORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many are told, and the next one ends the command.
const MOST_ASKED: u32 = 2;

/// As long as it lives, SIGINT asks for what there is so far, once and once more, and does not end
/// the command.
pub struct Asked(());

impl Asked {
    /// Begins to take SIGINT for a question.
    pub fn begin() -> Self {
        ASKED.store(0, Ordering::SeqCst);
        ASKED_FOR.store(true, Ordering::SeqCst);
        Asked(())
    }

    /// How often it was asked.
    pub fn times(&self) -> u32 {
        ASKED.load(Ordering::SeqCst)
    }

    /// Has `word` said, in place of what was to be said before, when a signal ends the command.
    pub fn leave_word(&self, word: String) {
        *last_word() = Some(word);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        ASKED_FOR.store(false, Ordering::SeqCst);
        *last_word() = None;
    }
}

/// Whether `signal` is no more than a question.
fn asks(signal: i32) -> bool {
    let is_asked_for = signal == SIGINT && ASKED_FOR.load(Ordering::SeqCst);
    is_asked_for && ASKED.fetch_add(1, Ordering::SeqCst) < MOST_ASKED
}

/// The exit code of a command that SIGINT has ended.
pub const INTERRUPTED: u8 = (SIGNALLED + SIGINT) as u8;

/// Makes signals end the command in order: children first, then what the journal lists is undone.
/// Signals that come meanwhile change nothing.
pub fn exit_on_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let heeded = UNLESS_IGNORED.into_iter().filter(|&signal| !ignores(&status, signal));
    // Without a handler a signal kills the command, and the next one undoes what it left.
    let Ok(mut signals) = Signals::new(ALWAYS.into_iter().chain(heeded)) else { return };
    let (began, begins) = channel();
    let spawned = Builder::new().spawn(move || {
        let _ = began.send(());
        if let Some(signal) = signals.forever().find(|&signal| !asks(signal)) {
            end(signal);
        }
    });
    // A thread that finds no memory while it starts is the end of the process (glibc). So it has
    // started before anything else asks for much.
    if spawned.is_ok() {
        let _ = begins.recv();
    }
}

/// The same for every signal that ends a program, for a command that leaves other programs running
/// otherwise. An error of the command itself ends it all the same. No other thread runs yet.
pub fn exit_on_all_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let realtime = libc::SIGRTMIN()..=libc::SIGRTMAX();
    let all = SELDOM.into_iter().chain(realtime);
    let set = signal_set::of(all.filter(|&signal| !ignores(&status, signal)));
    // What the kernel sends for an error of this process does not wait to be unblocked. A handler
    // would come back to the error again and again.
    signal_set::change_mask(libc::SIG_BLOCK, &set);
    let wait = move || {
        loop {
            if let Ok(came) = signal_set::wait(&set) {
                end(came.si_signo);
            }
        }
    };
    if Builder::new().spawn(wait).is_err() {
        signal_set::change_mask(libc::SIG_UNBLOCK, &set);
    }
    exit_on_signals();
}

/// Whether the process whose status in /proc this is ignores `signal`.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

fn end(signal: i32) -> ! {
    // Held until the process is gone: no journal is opened from now on.
    let journal = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
    shutdown::begin();
    if stderr().is_terminal() {
        let _ = stderr().write_all(CLEAR_LINE.as_bytes());
    }
    if let Some(journal) = journal.as_ref() {
        for error in journal.undo_all().failed {
            say(format!("{error}; the next command tries again"));
        }
        tell_left(journal);
    }
    if let Some(word) = last_word().take() {
        say(word);
    }
    filemap_govern::abandon();
    output::abandon();
    std::process::exit(SIGNALLED + signal)
}

/// Names the settings of the machine that are not restored, as others have changed them.
fn tell_left(journal: &Journal) {
    journal.unrestored().into_iter().for_each(say);
}

pub use shutdown::wait_if_begun as wait_if_ending;

/// As long as it lives, signals undo what the journal lists.
pub struct Undoing(());

impl Drop for Undoing {
    fn drop(&mut self) {
        let mut journal = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
        // Here, so that a signal finds either the journal or no file of it.
        if let Some(journal) = journal.take() {
            journal.remove_if_empty();
            tell_left(&journal);
        }
    }
}

/// A journal that is undone on signals too, as long as the second value lives.
///
/// # Errors
/// When there is no place for it.
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
    fn what_was_ignored_is_told_by_the_mask() {
        let status = "Name:\tx\nSigBlk:\t00000000000000ff\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGTERM));
        assert!(!ignores("", SIGHUP));
    }
}
