//! A program that runs as a child, and to which this process is as good as not there: it has the
//! same files, terminal and process group, signals are handed on to it, and this process ends as
//! it does.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;
use std::time::Instant;

use filemap_report::govern::Ended;

use super::inherited;
use super::lookup::Program;
use super::start::refused;
use crate::error::Error;

/// Signals that a program may be waiting for, or that do something to one which is not.
const HANDED_ON: [i32; 14] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// How much shells add to a signal for the exit code of what it ended.
const SIGNALLED: i32 = 128;

/// Runs `program` to its end. The environment and the files of this process are its own too, and
/// so is what is `waited` for.
///
/// # Errors
/// When it cannot be run.
pub fn run(program: &Program, waited: &Waited) -> Result<Ended, Error> {
    let mut command = Command::new(&program.path);
    command.arg0(&program.words[0]).args(&program.words[1..]);
    // SAFETY: between fork and exec only system calls are made; nothing is allocated.
    unsafe {
        command.pre_exec(|| {
            inherited::restore();
            Ok(())
        });
    }
    let start = Instant::now();
    let child = command.spawn().map_err(|error| refused(program, &error))?;
    let pid = child.id().cast_signed();
    loop {
        let (signal, by_process) = waited.next().unwrap_or((libc::SIGCHLD, false));
        // The terminal sends its signals to the child itself.
        if by_process && signal != libc::SIGCHLD {
            // SAFETY: the child is not reaped, so that the number is its own.
            unsafe { libc::kill(pid, signal) };
        }
        if signal == libc::SIGTSTP {
            stop();
        }
        if let Some((exit_code, signal)) = reaped(pid) {
            let elapsed_ns = start.elapsed().as_nanos() as u64;
            return Ok(Ended { exit_code, signal, elapsed_ns });
        }
    }
}

/// Stops this process as the terminal does, until it is continued.
fn stop() {
    // SAFETY: the default disposition stops, and runs no code of ours.
    unsafe { libc::raise(libc::SIGTSTP) };
    mask(libc::SIG_UNBLOCK, libc::SIGTSTP);
    mask(libc::SIG_BLOCK, libc::SIGTSTP);
}

/// Blocks or unblocks `signal`.
fn mask(how: i32, signal: i32) {
    // SAFETY: the set is plain memory that the first call fills.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(how, &set, null_mut());
    }
}

/// Ends this process by `signal`, without a core of its own. It returns the code to exit with only
/// where it is not ended by that.
pub fn die_by(signal: i32) -> u8 {
    // SAFETY: none of the calls touches memory; a default disposition runs no code of ours.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    mask(libc::SIG_UNBLOCK, signal);
    u8::try_from(SIGNALLED + signal).unwrap_or(u8::MAX)
}

/// How the child `pid` ended, if it has: its exit code, or its signal.
fn reaped(pid: i32) -> Option<(Option<i32>, Option<i32>)> {
    let mut status = 0;
    // SAFETY: the status is filled by the call.
    let ended = unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } == pid;
    if !ended {
        return None;
    }
    match libc::WIFSIGNALED(status) {
        true => Some((None, Some(libc::WTERMSIG(status)))),
        false => Some((Some(libc::WEXITSTATUS(status)), None)),
    }
}

/// Signals that this process waits for as long as it has this, and that do nothing else meanwhile.
pub struct Waited {
    signals: libc::sigset_t,
    /// What was blocked before.
    before: libc::sigset_t,
}

impl Waited {
    /// Blocks those signals that were not ignored when this process began, and SIGCHLD.
    pub fn block() -> Waited {
        let own = HANDED_ON.into_iter().filter(|&signal| !inherited::ignores(signal));
        let realtime = libc::SIGRTMIN()..=libc::SIGRTMAX();
        let realtime = realtime.filter(|&signal| !inherited::ignores(signal));
        // SAFETY: the set is plain memory that the first call fills. A default disposition runs no
        // code of ours; an ignored SIGCHLD would leave no child to wait for.
        unsafe {
            let (mut set, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            for signal in own.chain(realtime).chain([libc::SIGCHLD]) {
                libc::sigaddset(&mut set, signal);
            }
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before);
            Waited { signals: set, before }
        }
    }

    /// The next signal, and whether a process sent it; `None` where waiting was interrupted, such
    /// as by a stop.
    fn next(&self) -> Option<(i32, bool)> {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the set lives, and the call fills `info` unless it fails.
        let signal = unsafe { libc::sigwaitinfo(&self.signals, info.as_mut_ptr()) };
        if signal < 0 {
            let error = io::Error::last_os_error();
            debug_assert_eq!(error.kind(), io::ErrorKind::Interrupted);
            return None;
        }
        // SAFETY: it was filled.
        let code = unsafe { info.assume_init() }.si_code;
        Some((signal, code <= 0))
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // What came while the program ended was for the program.
        // SAFETY: both sets and the time live, and nothing is to be filled.
        unsafe {
            while libc::sigtimedwait(&self.signals, null_mut(), &at_once) > 0 {}
            libc::sigprocmask(libc::SIG_SETMASK, &self.before, null_mut());
        }
    }
}
