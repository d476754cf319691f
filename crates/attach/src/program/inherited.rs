//! What this process inherited and Rust's runtime or this program changes: a program that takes
//! the place of this process finds it as if nothing had stood between.

use std::os::fd::BorrowedFd;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};

use super::signal_set;

/// Signals, of which the first is 1.
const SIGNALS: i32 = 64;

/// Signals that the C library keeps for its threads, and of which it changes and tells nothing.
const LIBC_SIGNALS: [i32; 2] = [32, 33];

/// Standard files, of which the first is 0.
const STANDARD_FILES: i32 = 3;

/// Signals that were ignored, one bit each, from 1.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Signals that were blocked.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Standard files that were closed, one bit each.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// How many files may be open, which is raised for perf events.
static OPEN_FILES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether `signal` was ignored when this process began.
pub fn was_ignored(signal: i32) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Whether the standard `file` was open when this process began.
pub fn was_open(file: i32) -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << file == 0
}

/// Makes signals and standard files what they were when this process began, for the program that
/// it becomes. Nothing here allocates, so that a child may call it between fork and exec.
pub fn restore() {
    let closed = CLOSED.load(Ordering::Relaxed);
    for file in (0..STANDARD_FILES).filter(|file| closed & 1 << file != 0) {
        // SAFETY: the file is the one that the runtime opened in place of none; the program that
        // follows does not know of it.
        unsafe { libc::close(file) };
    }
    restore_open_files();
    restore_signals();
}

fn restore_open_files() {
    let [soft, hard] = OPEN_FILES.each_ref().map(|limit| limit.load(Ordering::Relaxed));
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the limit lives, and is only looked at.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

/// The same of signals alone, for a program that has other standard files.
pub fn restore_signals() {
    for signal in 1..=SIGNALS {
        let handler = if was_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: neither disposition runs code of ours. What cannot be changed is refused.
        unsafe { libc::signal(signal, handler) };
    }
    LIBC_SIGNALS.into_iter().filter(|signal| was_ignored(*signal)).for_each(ignore);
    let blocked = BLOCKED.load(Ordering::Relaxed);
    let set = signal_set::from_signals((1..=SIGNALS).filter(|&signal| blocked & bit(signal) != 0));
    signal_set::change_mask(libc::SIG_SETMASK, &set);
}

/// What the kernel keeps of a signal, as rt_sigaction(2) takes it: the handler stands first.
type Disposition = [usize; 4];

/// Bytes of a set of signals of the kernel.
const SET_BYTES: usize = SIGNALS as usize / 8;

/// Ignores a signal that the C library keeps for itself.
fn ignore(signal: i32) {
    let action: Disposition = [libc::SIG_IGN, 0, 0, 0];
    // SAFETY: what is read lives, and it runs no code.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, &action, null::<Disposition>(), SET_BYTES);
    }
}

/// Whether `signal` is ignored now.
fn is_ignored(signal: i32) -> bool {
    let mut action: Disposition = [0; 4];
    // SAFETY: what is filled lives; nothing is changed.
    let answer = unsafe {
        let none = null::<Disposition>();
        libc::syscall(libc::SYS_rt_sigaction, signal, none, &mut action, SET_BYTES)
    };
    answer == 0 && action[0] == libc::SIG_IGN
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

extern "C" fn save_state() {
    let (mut ignored, mut blocked, mut closed) = (0, 0, 0);
    let set = signal_set::blocked();
    for signal in 1..=SIGNALS {
        if is_ignored(signal) {
            ignored |= bit(signal);
        }
        if signal_set::contains(&set, signal) {
            blocked |= bit(signal);
        }
    }
    for file in 0..STANDARD_FILES {
        // SAFETY: the number is only asked about, and it may be that of no file.
        let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
        if rustix::io::fcntl_getfd(borrowed).is_err() {
            closed |= 1 << file;
        }
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives, and is filled by the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    OPEN_FILES[0].store(limit.rlim_cur, Ordering::Relaxed);
    OPEN_FILES[1].store(limit.rlim_max, Ordering::Relaxed);
    IGNORED.store(ignored, Ordering::Relaxed);
    BLOCKED.store(blocked, Ordering::Relaxed);
    CLOSED.store(closed, Ordering::Relaxed);
}

// Before Rust's runtime begins, which ignores SIGPIPE and opens /dev/null in place of standard
// files that are closed.
// SAFETY: entries of this section are called once, without arguments that matter, and `look`
// needs nothing that is not there yet.
#[used]
#[unsafe(link_section = ".init_array")]
static SAVE_STATE: extern "C" fn() = save_state;
