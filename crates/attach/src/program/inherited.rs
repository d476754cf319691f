//! Inherited process state that Rust's runtime or this program changes: signal dispositions, signal
//! mask, closed standard files, RLIMIT_NOFILE. It is saved at startup and restored before exec, so
//! that this process is transparent to the executed program.

use std::os::fd::BorrowedFd;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};

use super::signal_set;

/// Highest signal number; the lowest is 1.
const SIGNALS: i32 = 64;

/// Signals reserved by the C library for its threads: its functions neither change nor report their
/// dispositions.
const LIBC_SIGNALS: [i32; 2] = [32, 33];

/// Number of standard files, descriptors 0 to 2.
const STANDARD_FILES: i32 = 3;

/// Signals ignored at startup; signal N is bit N - 1.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Signals blocked at startup; signal N is bit N - 1.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Standard files closed at startup; descriptor N is bit N.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Soft and hard RLIMIT_NOFILE at startup; the soft limit is raised for perf events.
static OPEN_FILES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether `signal` was ignored at startup.
pub fn was_ignored(signal: i32) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Whether the standard `file` was open at startup.
pub fn was_open(file: i32) -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << file == 0
}

/// Restores signals, standard files and RLIMIT_NOFILE to their state at startup, before exec. Does
/// not allocate, so that a child may call it between fork and exec.
pub fn restore() {
    let closed = CLOSED.load(Ordering::Relaxed);
    for file in (0..STANDARD_FILES).filter(|file| closed & 1 << file != 0) {
        // SAFETY: this is the /dev/null that the runtime opened in place of the closed file; the
        // program executed next does not use it.
        unsafe { libc::close(file) };
    }
    restore_open_files();
    restore_signals();
}

fn restore_open_files() {
    let [soft, hard] = OPEN_FILES.each_ref().map(|limit| limit.load(Ordering::Relaxed));
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: the call only reads the limit, which outlives it.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

/// [`restore`] for signals only, for a program that is given other standard files.
pub fn restore_signals() {
    for signal in 1..=SIGNALS {
        let handler = if was_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: neither disposition runs code of ours; signals that cannot be changed are
        // refused.
        unsafe { libc::signal(signal, handler) };
    }
    LIBC_SIGNALS.into_iter().filter(|signal| was_ignored(*signal)).for_each(ignore);
    let blocked = BLOCKED.load(Ordering::Relaxed);
    let set = signal_set::from_signals((1..=SIGNALS).filter(|&signal| blocked & bit(signal) != 0));
    signal_set::change_mask(libc::SIG_SETMASK, &set);
}

/// `struct kernel_sigaction`, as in rt_sigaction(2): the handler comes first.
type Disposition = [usize; 4];

/// Size of the kernel's `sigset_t`.
const SET_BYTES: usize = SIGNALS as usize / 8;

/// Ignores a signal reserved by the C library, by the raw system call.
fn ignore(signal: i32) {
    let action: Disposition = [libc::SIG_IGN, 0, 0, 0];
    // SAFETY: the action outlives the call, and runs no code of ours.
    unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, &action, null::<Disposition>(), SET_BYTES);
    }
}

/// Whether `signal` is currently ignored.
fn is_ignored(signal: i32) -> bool {
    let mut action: Disposition = [0; 4];
    // SAFETY: the call fills `action` and changes nothing.
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
        // SAFETY: F_GETFD only queries the descriptor, which may be closed.
        let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
        if rustix::io::fcntl_getfd(borrowed).is_err() {
            closed |= 1 << file;
        }
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the limit, which outlives it.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    OPEN_FILES[0].store(limit.rlim_cur, Ordering::Relaxed);
    OPEN_FILES[1].store(limit.rlim_max, Ordering::Relaxed);
    IGNORED.store(ignored, Ordering::Relaxed);
    BLOCKED.store(blocked, Ordering::Relaxed);
    CLOSED.store(closed, Ordering::Relaxed);
}

// Runs before Rust's runtime, which ignores SIGPIPE and opens /dev/null for closed standard files.
// SAFETY: functions in this section are called once; `save_state` ignores the arguments and needs
// nothing that is initialised later.
#[used]
#[unsafe(link_section = ".init_array")]
static SAVE_STATE: extern "C" fn() = save_state;
