//! Setup of a test run: default signals, a mark on all processes that it starts, and cleanup after
//! killed runs.
#![allow(dead_code, reason = "each binary of tests uses a part")]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Environment variable of all processes that a run starts, with the PID of the run.
const MARK: &str = "FILEMAP_TEST_RUN";

/// Runs before `main`, in every test binary with this module.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = begin;

extern "C" fn begin() {
    catch_what_is_ignored();
    let mark = format!("{MARK}\0");
    let value = format!("{}\0", std::process::id());
    // A test that runs its own binary again belongs to the run that started it. SAFETY: both are
    // NUL-terminated strings, and no other thread runs yet.
    unsafe { libc::setenv(mark.as_ptr().cast(), value.as_ptr().cast(), 0) };
}

/// Catches the signals that are ignored when tests start, by a handler that does nothing.
///
/// Tests that run in the background of a script, or are started by nohup(1) or by Python, inherit
/// ignored signals, and would pass them on to every program that they start. A caught signal has
/// its default action in a started program, and still does not end the tests.
fn catch_what_is_ignored() {
    for signal in libc::SIGHUP..=libc::SIGSYS {
        // SAFETY: the structure is plain data, which the kernel fills or reads, and the handler
        // does nothing, which is async-signal-safe.
        unsafe {
            let mut found: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, std::ptr::null(), &raw mut found) == 0;
            if known && found.sa_sigaction == libc::SIG_IGN {
                found.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
                found.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &raw const found, std::ptr::null_mut());
            }
        }
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// The run that started a process, if it can be determined.
fn run_of(pid: &str) -> Option<u32> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mark = format!("{MARK}=");
    let value = environment.split(|&b| b == 0).find_map(|word| word.strip_prefix(mark.as_bytes()));
    std::str::from_utf8(value?).ok()?.parse().ok()
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Processes started by this run, or by runs that no longer exist.
pub fn processes(of_this_run: bool) -> Vec<u32> {
    let own: u32 = std::env::var(MARK).ok().and_then(|own| own.parse().ok()).expect("it is set");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let pids = pids.filter(|pid| {
        run_of(pid).is_some_and(|run| if of_this_run { run == own } else { !is_alive(run) })
    });
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

/// Kills the processes that killed runs have left. Only the first call does so.
pub fn end_leftovers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for pid in processes(false) {
            // SAFETY: the call takes integers only.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
        }
    });
}

/// A new directory in /var/tmp for this run. That of a killed run is passed to `undo` and removed.
/// The lock of such a directory is held by its run only.
pub fn place(name: &str, undo: impl Fn(&Path)) -> PathBuf {
    end_leftovers();
    let stem = format!("filemap-{name}-");
    for entry in fs::read_dir("/var/tmp").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&stem)
            && let Some(_locked) = locked(&entry.path())
        {
            undo(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let path = PathBuf::from(format!("/var/tmp/{stem}{}", std::process::id()));
    fs::create_dir(&path).expect("/var/tmp can be written");
    // Locked until this process exits, in any way.
    std::mem::forget(locked(&path).expect("a directory of our own"));
    path
}

/// The directory, if nobody else has locked it.
fn locked(directory: &Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    // SAFETY: the descriptor is open.
    let done = unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    (done == 0).then_some(directory)
}
