//! Signals that the program sends itself, and that come to it.

use std::fs::File;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use libc::{SIGALRM, SIGBUS, SIGCHLD, SIGTRAP, SIGUSR1, c_int, c_void, siginfo_t, sigset_t};

use crate::program::{FILE_BYTES, Program};
use crate::support::mapping::{Mapping, PAGE_BYTES};

/// How often each of these came. Alarms of a storm are not counted.
static COUNTS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
const COUNTED: [c_int; 4] = [SIGTRAP, SIGUSR1, SIGBUS, SIGCHLD];

/// A mapping at which handlers look.
static LOOKED_AT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static LOOKS: AtomicU64 = AtomicU64::new(0);

/// What has come so far.
pub fn seen() -> u64 {
    counts().into_iter().fold(0, |sum, count| sum * 1009 + count)
}

/// How often each signal came that is counted.
pub fn counts() -> [u64; 4] {
    COUNTS.each_ref().map(|count| count.load(Ordering::SeqCst))
}

fn count(signal: c_int) {
    if let Some(index) = COUNTED.iter().position(|&counted| counted == signal) {
        COUNTS[index].fetch_add(1, Ordering::SeqCst);
    }
}

/// Looks at a page that was perhaps not read yet.
extern "C" fn looks(signal: c_int) {
    count(signal);
    let start = LOOKED_AT.load(Ordering::SeqCst);
    let page = LOOKS.fetch_add(389, Ordering::SeqCst) as usize % (FILE_BYTES as usize / PAGE_BYTES);
    // SAFETY: the page is inside the mapping, which stays, of a file that stays.
    unsafe { start.add(page * PAGE_BYTES).read_volatile() };
}

/// Puts an empty page where a file has ended.
extern "C" fn replaces(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    count(signal);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the kernel passes the address of a page of the program's.
    unsafe {
        let page = (*info).si_addr().addr() & !(PAGE_BYTES - 1);
        let place = ptr::without_provenance_mut(page);
        libc::mmap(place, PAGE_BYTES, libc::PROT_READ, flags, -1, 0);
    }
}

fn handle(signal: c_int, handler: usize, flags: c_int) {
    // SAFETY: all of it may be zero, and the handler is one of ours.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler;
        action.sa_flags = flags | libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, ptr::null_mut()), 0);
    }
}

/// Installs the handlers, which look at a mapping of `kept`.
pub fn install(kept: &File) {
    let (start, _) = Mapping::of(kept).into_raw();
    LOOKED_AT.store(start, Ordering::SeqCst);
    for signal in [SIGTRAP, SIGUSR1, SIGCHLD, SIGALRM] {
        handle(signal, looks as *const () as usize, 0);
    }
    handle(SIGBUS, replaces as *const () as usize, libc::SA_SIGINFO);
}

pub fn set_of(signals: &[c_int]) -> sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: sigemptyset initialises the set, and the signals exist.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

fn set_timer(micros: i64) {
    let time = libc::timeval { tv_sec: 0, tv_usec: micros };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the timer is valid.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, ptr::null_mut()) };
}

/// Has alarms come all the time. Each is handled.
pub fn begin_storm() {
    set_timer(700);
}

pub fn end_storm() {
    set_timer(0);
}

impl Program {
    pub fn raise(&mut self) {
        let signal = [SIGTRAP, SIGUSR1][self.below(2)];
        // SAFETY: the signal is handled.
        let result = match self.below(2) {
            0 => unsafe { libc::raise(signal) },
            _ => unsafe { libc::kill(libc::getpid(), signal) },
        };
        self.told(result.into());
    }

    /// Blocks a signal, sends it, looks around, and takes it or lets it come.
    pub fn block_and_raise(&mut self) {
        let signal = [SIGTRAP, SIGUSR1][self.below(2)];
        let mut old = set_of(&[]);
        // SAFETY: the sets are initialised.
        let result = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(&[signal]), &mut old);
            libc::raise(signal);
            let mut pending = set_of(&[]);
            libc::sigpending(&mut pending);
            libc::sigismember(&pending, signal)
        };
        self.told(result.into());
        self.digest.add(seen());
        self.step_looking();
        if self.below(2) == 0 {
            let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the set is initialised.
            let took = unsafe { libc::sigtimedwait(&set_of(&[signal]), ptr::null_mut(), &none) };
            self.told(took.into());
        }
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut()) };
    }

    fn step_looking(&mut self) {
        let Some(area) = self.any_area().map(|number| self.areas[number]) else { return };
        let page = self.below(area.pages);
        if area.is_readable {
            self.read(area, page);
        }
    }

    /// Changes what is done with a signal, and changes it back.
    pub fn set_handler(&mut self) {
        let signal = [SIGTRAP, SIGUSR1][self.below(2)];
        // A program that ignores SIGTRAP is governed no more, so that few do.
        let ignores = signal != SIGTRAP || self.draws.below(40) == 0;
        let between = if ignores { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: the handlers are ours.
        let was = unsafe { libc::signal(signal, between) };
        if ignores {
            // SAFETY: the signal is ignored.
            unsafe { libc::raise(signal) };
        }
        self.digest.add(u64::from(was == looks as *const () as usize));
        self.step_looking();
        handle(signal, looks as *const () as usize, [0, libc::SA_NODEFER][self.below(2)]);
        // SAFETY: the signal is handled.
        unsafe { libc::raise(signal) };
    }

    /// Waits until an alarm has come.
    pub fn alarm(&mut self) {
        let mut old = set_of(&[]);
        // SAFETY: the sets are initialised, and the alarm is handled.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(&[SIGALRM]), &mut old);
            let time = |micros| libc::timeval { tv_sec: 0, tv_usec: micros };
            let once = libc::itimerval { it_interval: time(0), it_value: time(1000) };
            let mut was = MaybeUninit::<libc::itimerval>::zeroed();
            libc::setitimer(libc::ITIMER_REAL, &once, was.as_mut_ptr());
            libc::sigsuspend(&old);
            libc::setitimer(libc::ITIMER_REAL, was.as_ptr(), ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut());
        }
    }
}
