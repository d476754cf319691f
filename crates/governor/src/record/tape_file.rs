//! The tape of this process: a file that is mapped, in the directory that the command reads.

use std::cell::Cell;
use std::ffi::CStr;
use std::fmt::Write;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use filemap_control::layout::Reason;
use filemap_control::tape::{BYTES, Entry, Full, Kind, Tape, WORDS};
use rustix::io::Errno;

use crate::disposition::with_signals_blocked;
use crate::file::{self, ShortText};
use crate::start::{self, Run};
use crate::{shared_file, stand_down, standard_error};

type Words = [AtomicU64; WORDS];

static TAPE: AtomicPtr<Words> = AtomicPtr::new(ptr::null_mut());

/// Making one was tried.
static IS_TRIED: AtomicBool = AtomicBool::new(false);

/// How many programs this process was before, by exec.
static IMAGE: AtomicU64 = AtomicU64::new(0);

/// Forks of this process so far.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// How long is waited for the command to make room, and how long between two tries.
const PATIENCE_NS: u64 = 1_000_000_000;
const WAIT_NS: i64 = 100_000;

thread_local! {
    /// The last fork of this thread.
    static FORK: Cell<u64> = const { Cell::new(0) };
}

/// The fork by which this process began, until that is told; 0 where there is nothing to tell.
static UNTOLD_FORK: AtomicU64 = AtomicU64::new(0);

fn tape() -> Option<Tape<'static>> {
    let words = TAPE.load(Ordering::Acquire);
    // SAFETY: it was mapped with that many words and is never unmapped.
    unsafe { words.as_ref() }.map(Tape::new)
}

/// How many programs this process was before.
pub fn image() -> u64 {
    IMAGE.load(Ordering::Relaxed)
}

/// The number of the next fork, which this thread makes.
pub fn next_fork() -> u64 {
    FORK.set(FORKS.fetch_add(1, Ordering::Relaxed) + 1);
    FORK.get()
}

/// In the child of a fork: the tape is its parent's. It gets its own when it has something to tell.
pub fn after_fork() {
    let had_tape = !TAPE.swap(ptr::null_mut(), Ordering::AcqRel).is_null();
    // A child that has told nothing has what its parent had.
    if had_tape {
        UNTOLD_FORK.store(FORK.get(), Ordering::Relaxed);
    }
    IS_TRIED.store(false, Ordering::Relaxed);
    IMAGE.store(0, Ordering::Relaxed);
}

/// Makes the tape, if there is none and it was not tried, and tells that this process begins: by
/// the `fork`th fork of its parent, or by exec where that is 0. Without room for it nothing is
/// recorded, which one line says.
pub fn begin(run: &Run, fork: u64) {
    let Some(directory) = run.tapes() else { return };
    if IS_TRIED.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Err(error) = open(directory) {
        // Where the directory is gone the command has ended, and nobody wants to know.
        if error != Errno::NOENT {
            let mut line = ShortText::new();
            let (pid, error) = (rustix::process::getpid().as_raw_pid(), error.raw_os_error());
            let _ = writeln!(
                line,
                "filemap: nothing is recorded of process {pid}: its tape cannot be made in the \
                 directory of FILEMAP_RECORD (error {error}); make room there"
            );
            standard_error::write(str::from_utf8(line.as_bytes()).unwrap_or_default());
        }
        stand_down::now(Reason::None);
        return;
    }
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_pid());
    let mut program = ShortText::new();
    let read =
        |room: &mut [u8]| rustix::fs::readlinkat_raw(rustix::fs::CWD, c"/proc/self/exe", room).ok();
    let _ = program.refill(read);
    tell_text(Kind::Begin, [parent as u64, fork, 0, 0], program.as_bytes());
}

fn open(directory: &CStr) -> Result<(), Errno> {
    let (mapped, image) = shared_file::make(directory, BYTES)?;
    IMAGE.store(image.into(), Ordering::Relaxed);
    TAPE.store(mapped.cast(), Ordering::Release);
    if let Some(tape) = tape() {
        let pid = rustix::process::getpid().as_raw_pid();
        tape.begin(pid.cast_unsigned(), file::start_ticks().unwrap_or(0));
    }
    Ok(())
}

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is there to be filled.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// User time of this thread: what its faults take in the kernel is not in it.
fn user_ns() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills it, and zeroes are one too.
    let time = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_utime
    };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000
}

/// Tells something.
pub fn tell(kind: Kind, values: [u64; 4]) {
    tell_text(kind, values, b"");
}

/// Counts something that is lost.
pub fn lose() {
    if let Some(tape) = tape() {
        tape.lose();
    }
}

/// Tells something that has a text.
pub fn tell_text(kind: Kind, values: [u64; 4], text: &[u8]) {
    // A handler that left by siglongjmp in between would leave a hole in the tape.
    tell_by(kind, values, |tape, entry| with_signals_blocked(|| tape.write(entry, text)));
}

/// Tells something in the handler, in which all signals are blocked.
pub fn tell_in_handler(kind: Kind, values: [u64; 4]) {
    tell_by(kind, values, |tape, entry| tape.write(entry, b""));
}

/// Tells something by `write`. Where the command does not keep up it waits. After a second the
/// command is taken for dead, and nothing is recorded any more.
fn tell_by(kind: Kind, values: [u64; 4], write: impl Fn(&Tape<'_>, &Entry) -> Result<(), Full>) {
    let fork = UNTOLD_FORK.swap(0, Ordering::Relaxed);
    if let Some(run) = start::observing().filter(|_| fork != 0) {
        begin(run, fork);
    }
    let Some(tape) = tape() else { return };
    let time_ns = now_ns();
    let thread = rustix::thread::gettid().as_raw_pid().cast_unsigned();
    let entry = Entry { kind, thread, time_ns, user_ns: user_ns(), values };
    while !tape.is_closed() {
        if write(&tape, &entry).is_ok() {
            return;
        }
        if now_ns().saturating_sub(time_ns) > PATIENCE_NS {
            tape.close();
        }
        let wait = rustix::thread::Timespec { tv_sec: 0, tv_nsec: WAIT_NS };
        let _ = rustix::thread::nanosleep(&wait);
    }
    tape.lose();
    stand_down::now(Reason::None);
}
