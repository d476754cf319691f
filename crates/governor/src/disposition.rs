//! The signal that the program and the library share: SIGTRAP, by which an observer reports faults,
//! or SIGSEGV, by which the kernel says that protected memory was touched. The handler is installed
//! here. What the program wants done with the signal is kept, and done with those that are its own.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use filemap_control::layout::Reason;
use libc::{sigaction, siginfo_t, sigset_t, ucontext_t};

use crate::access::Access;
use crate::hooks::mask::{believed, is_marked, marked};
use crate::lock::Lock;
use crate::next::next;
use crate::{observer, purpose, stand_down, start};

/// What the program wants done with the signal.
struct Wanted {
    lock: Lock,
    action: UnsafeCell<MaybeUninit<sigaction>>,
}

// SAFETY: `action` is only reached with the lock.
unsafe impl Sync for Wanted {}

static WANTED: Wanted =
    Wanted { lock: Lock::new(), action: UnsafeCell::new(MaybeUninit::zeroed()) };

static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Which signal is shared.
static SIGNAL: AtomicI32 = AtomicI32::new(libc::SIGTRAP);

/// The signal that is shared.
pub fn signal() -> c_int {
    SIGNAL.load(Ordering::Relaxed)
}

/// Whether the kernel itself sends the signal for what an instruction does. Blocked truly it would
/// end the process then, so that no thread may block it.
pub fn is_forced() -> bool {
    signal() == libc::SIGSEGV
}

type Handler = extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void);

/// Handlers of the program: with three arguments where it says SA_SIGINFO, else with one.
type OneArgument = extern "C-unwind" fn(c_int);

pub fn empty_set() -> sigset_t {
    let mut set = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: sigemptyset initialises what it is given.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn full_set() -> sigset_t {
    let mut set = empty_set();
    // SAFETY: the set is initialised.
    unsafe { libc::sigfillset(&mut set) };
    set
}

pub fn only_shared() -> sigset_t {
    let mut set = empty_set();
    // SAFETY: the set is initialised and the signal exists.
    unsafe { libc::sigaddset(&mut set, signal()) };
    set
}

/// Changes the thread's mask, and returns what it was. An error leaves it as it is.
fn mask(how: c_int, set: &sigset_t) -> sigset_t {
    let mut old = empty_set();
    next!(
        c"pthread_sigmask",
        unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
        how, set, &mut old
    );
    old
}

/// Runs `work` with all signals blocked in this thread.
pub fn with_signals_blocked<R>(work: impl FnOnce() -> R) -> R {
    let old = mask(libc::SIG_SETMASK, &full_set());
    let result = work();
    mask(libc::SIG_SETMASK, &old);
    result
}

/// Blocks all signals in this thread. Returns what it blocked before.
pub fn block_all() -> sigset_t {
    mask(libc::SIG_SETMASK, &full_set())
}

/// Has this thread block `before` again.
pub fn unblock(before: &sigset_t) {
    mask(libc::SIG_SETMASK, before);
}

/// The C library's sigaction(2).
fn kernels(signal: c_int, new: *const sigaction, old: *mut sigaction) -> c_int {
    next!(
        c"sigaction",
        unsafe extern "C" fn(c_int, *const sigaction, *mut sigaction) -> c_int;
        signal, new, old
    )
}

fn current(signal: c_int) -> sigaction {
    let mut action = MaybeUninit::<sigaction>::zeroed();
    kernels(signal, ptr::null(), action.as_mut_ptr());
    // SAFETY: all of its fields may be zero.
    unsafe { action.assume_init() }
}

/// The flags of the handler, where the program has `flags`.
fn own_flags(wanted: &sigaction) -> c_int {
    let has_handler = !matches!(wanted.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
    // Where the program wants system calls to fail when its handler has run, they have to. Its
    // handler runs on the stack that it chose: the other one may have no room for it.
    let chosen = libc::SA_RESTART | libc::SA_ONSTACK;
    libc::SA_SIGINFO | if has_handler { wanted.sa_flags & chosen } else { chosen }
}

fn own(wanted: &sigaction) -> sigaction {
    let handler: Handler = on_signal;
    sigaction {
        sa_sigaction: handler as usize,
        // Another signal's handler could miss a page, whose report would take the place of one
        // of the program's that is sent again, or never return, with a lock held.
        sa_mask: full_set(),
        sa_flags: own_flags(wanted),
        sa_restorer: None,
    }
}

/// Runs `call` with the mask that the program believes to have: a call that waits with another
/// mask, or by which the mask is left to another program.
pub fn with_true_mask<R>(call: impl FnOnce() -> R) -> R {
    if !is_installed() || start::is_silent() {
        return call();
    }
    let before = mask(libc::SIG_BLOCK, &empty_set());
    if !is_marked(&before) {
        return call();
    }
    mask(libc::SIG_SETMASK, &believed(&before));
    // A thread that is cancelled within the call keeps the mask that the call has, as without the
    // library, until it has ended.
    let result = call();
    // SAFETY: errno belongs to this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the same.
    let told = unsafe { *errno };
    // A signal that has come meanwhile is held back by the handler.
    mask(libc::SIG_SETMASK, &before);
    // SAFETY: the same.
    unsafe { *errno = told };
    result
}

/// Whether the program was started with `signal` ignored or blocked.
pub fn is_taken(signal: c_int) -> bool {
    let blocked = mask(libc::SIG_BLOCK, &empty_set());
    // SAFETY: the set is initialised.
    let is_blocked = unsafe { libc::sigismember(&blocked, signal) } == 1;
    is_blocked || current(signal).sa_sigaction == libc::SIG_IGN
}

/// Shares `signal`, and installs its handler.
pub fn install(signal: c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
    let before = current(signal);
    if is_forced() {
        unblock_in_handlers();
    }
    let _held = WANTED.lock.hold();
    // SAFETY: the lock is held.
    unsafe { (*WANTED.action.get()).write(before) };
    if kernels(signal, &own(&before), ptr::null_mut()) == 0 {
        IS_INSTALLED.store(true, Ordering::Release);
    }
}

/// Whether the handler was installed, so that the program's own is kept here.
pub fn is_installed() -> bool {
    IS_INSTALLED.load(Ordering::Acquire)
}

/// Whether the handler was installed and is no more, as the program went around the C library.
pub fn is_lost() -> bool {
    let handler: Handler = on_signal;
    is_installed() && current(signal()).sa_sigaction != handler as usize
}

/// Has handlers that were there before the library run with the signal unblocked.
fn unblock_in_handlers() {
    for other in (1..=libc::SIGRTMAX()).filter(|other| *other != signal()) {
        let mut action = current(other);
        let has_handler = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
        // SAFETY: the set is initialised.
        if has_handler && unsafe { libc::sigismember(&action.sa_mask, signal()) } == 1 {
            action.sa_mask = marked(libc::SIG_SETMASK, &action.sa_mask);
            kernels(other, &action, ptr::null_mut());
        }
    }
}

/// Frees the lock in the child of a fork.
pub fn release_after_fork() {
    WANTED.lock.release_after_fork();
}

/// The program ignores the signal. A handler cannot do that for it, as it would interrupt calls,
/// and the next program would not ignore it. So the library stands down, and the signal is the
/// program's alone.
pub fn leave_to_program() {
    stand_down::now(Reason::HandlerLost);
    IS_INSTALLED.store(false, Ordering::Release);
    unmark();
}

/// Gives this thread the mask that the program believes it to have.
pub fn unmark() {
    let before = mask(libc::SIG_BLOCK, &empty_set());
    if is_marked(&before) {
        mask(libc::SIG_SETMASK, &believed(&before));
    }
}

/// sigaction(2) of the signal, for the program.
///
/// # Safety
/// The pointers are null or valid, as sigaction(2) wants them.
pub unsafe fn exchange(new: *const sigaction, old: *mut sigaction) -> c_int {
    // SAFETY: the caller's pointer is null or valid.
    let new = unsafe { new.as_ref() };
    if start::is_borrowed() {
        // SAFETY: the caller's contract.
        return unsafe { exchange_borrowed(new, old) };
    }
    let is_left = new.is_some_and(|new| new.sa_sigaction == libc::SIG_IGN);
    if is_left && !start::is_silent() {
        leave_to_program();
    }
    let exchange = || {
        let _held = WANTED.lock.hold();
        // SAFETY: the lock is held, and `install` has initialised it.
        let wanted = unsafe { (*WANTED.action.get()).assume_init_mut() };
        let before = *wanted;
        if let Some(new) = new {
            *wanted = *new;
            let action = if is_left { *new } else { own(new) };
            kernels(signal(), &action, ptr::null_mut());
        }
        // SAFETY: the same.
        if let Some(old) = unsafe { old.as_mut() } {
            *old = before;
        }
        0
    };
    if start::is_silent() { exchange() } else { with_signals_blocked(exchange) }
}

/// The same in a child that shares its parent's memory, but not what is done with signals: what is
/// kept here stays the parent's.
///
/// # Safety
/// `old` is null or valid.
unsafe fn exchange_borrowed(new: Option<&sigaction>, old: *mut sigaction) -> c_int {
    let handler: Handler = on_signal;
    let result = kernels(signal(), new.map_or(ptr::null(), ptr::from_ref), old);
    // SAFETY: the caller's contract.
    let ours = unsafe { old.as_mut() }.filter(|old| old.sa_sigaction == handler as usize);
    if let Some(old) = ours {
        // SAFETY: `install` has initialised it, and the parent waits or does as it likes.
        *old = unsafe { (*WANTED.action.get()).assume_init() };
    }
    result
}

/// Takes what the program wants done with a signal that has come, and resets it where that is
/// wanted.
fn take() -> sigaction {
    let _held = WANTED.lock.hold();
    // SAFETY: the lock is held, and `install` has initialised it before there was a handler.
    let wanted = unsafe { (*WANTED.action.get()).assume_init_mut() };
    let action = *wanted;
    if action.sa_flags & libc::SA_RESETHAND != 0 {
        wanted.sa_sigaction = libc::SIG_DFL;
        wanted.sa_flags &= !libc::SA_SIGINFO;
    }
    action
}

/// The code of a SIGTRAP that a perf event sends.
const TRAP_PERF: c_int = 6;

/// The code of a SIGSEGV for memory that may not be touched in this way.
const SEGV_ACCERR: c_int = 2;

extern "C-unwind" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: errno belongs to this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the same.
    let before = unsafe { *errno };
    let wanted = receive(info, context);
    // SAFETY: the same. What the program's handler makes of it is the program's.
    unsafe { *errno = before };
    if let Some(wanted) = wanted {
        call(&wanted, signal, info, context);
    }
}

/// Does what is to be done with a signal, but for the program's own handler, which is returned
/// where it is to be called.
fn receive(info: *mut siginfo_t, context: *mut c_void) -> Option<sigaction> {
    // SAFETY: the kernel passes a valid pointer.
    let of = unsafe { &*info };
    if is_forced() {
        // SAFETY: si_addr is there for this code, and the kernel passes the thread's context.
        let access = || unsafe { Access::of(of.si_addr(), context.cast()) };
        if of.si_code == SEGV_ACCERR && purpose::touched(&access()) {
            return None;
        }
    } else if of.si_code == TRAP_PERF && observer::perf::sent(info) {
        // SAFETY: si_addr is there for this code.
        purpose::fault(unsafe { of.si_addr() }.expose_provenance());
        return None;
    }
    if hold_back(of, context) {
        return None;
    }
    let wanted = take();
    match wanted.sa_sigaction {
        // What an instruction has caused is not ignored, but kills.
        libc::SIG_IGN if of.si_code <= 0 => return None,
        libc::SIG_IGN | libc::SIG_DFL => {
            die(of, context);
            return None;
        }
        _ => {}
    }
    // SAFETY: the kernel passes the context of the interrupted thread, with its mask.
    let interrupted = unsafe { (*context.cast::<ucontext_t>()).uc_sigmask };
    mask(libc::SIG_SETMASK, &mask_of_handler(&wanted, interrupted));
    Some(wanted)
}

/// A signal that the program blocks in this thread, as far as it knows: it is blocked truly from
/// here on, and sent again. So the library stands down. Returns whether that was so.
fn hold_back(info: &siginfo_t, context: *mut c_void) -> bool {
    let interrupted = context.cast::<ucontext_t>();
    // Blocked truly it only comes to a call that waits with another mask.
    // SAFETY: the kernel passes the context of the interrupted thread, with its mask.
    if !is_marked(unsafe { &(*interrupted).uc_sigmask }) {
        return false;
    }
    // What an instruction has caused cannot wait, and kills.
    if info.si_code > 0 {
        die(info, context);
        return true;
    }
    // Blocked truly, those of the event would wait for the program to take them.
    stand_down::now(Reason::HandlerLost);
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(&mut (*interrupted).uc_sigmask, signal()) };
    if info.si_code == libc::SI_TKILL {
        send_to_thread(info);
        return true;
    }
    let pid = rustix::process::getpid().as_raw_pid();
    // SAFETY: the calls only read `info`. The signal is blocked while this handler runs.
    unsafe {
        let information = ptr::from_ref(info);
        if libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal(), information) != 0 {
            // Only the first thread may send what seems to come from another process.
            libc::kill(pid, signal());
        }
    }
    true
}

/// Sends a signal to this thread again, as it came.
fn send_to_thread(info: &siginfo_t) {
    let pid = rustix::process::getpid().as_raw_pid();
    let thread = rustix::thread::gettid().as_raw_pid();
    let call = libc::SYS_rt_tgsigqueueinfo;
    // SAFETY: the call only reads `info`.
    unsafe { libc::syscall(call, pid, thread, signal(), ptr::from_ref(info)) };
}

/// Calls the program's handler.
fn call(wanted: &sigaction, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let handler = wanted.sa_sigaction;
    if wanted.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the program has given this address for a function of that kind.
        let handler: Handler = unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: the same.
        let handler: OneArgument = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

/// What is blocked while the program's handler runs, as in the kernel.
fn mask_of_handler(wanted: &sigaction, interrupted: sigset_t) -> sigset_t {
    let mut mask = interrupted;
    // SAFETY: the sets are initialised.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            if libc::sigismember(&wanted.sa_mask, signal) == 1 {
                libc::sigaddset(&mut mask, signal);
            }
        }
        if wanted.sa_flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut mask, signal());
        }
    }
    // The handler may touch what is protected.
    if is_forced() { marked(libc::SIG_SETMASK, &mask) } else { mask }
}

/// Ends the process by the signal, as would have happened without a handler.
fn die(info: &siginfo_t, context: *mut c_void) {
    if is_forced() {
        // A core has the memory as it would be without the library.
        stand_down::now(Reason::None);
    }
    let default = sigaction {
        sa_sigaction: libc::SIG_DFL,
        sa_mask: empty_set(),
        sa_flags: 0,
        sa_restorer: None,
    };
    kernels(signal(), &default, ptr::null_mut());
    if is_forced() {
        // It arrives at the instruction that is to be blamed, when the handler returns.
        send_to_thread(info);
        // SAFETY: the kernel passes the context of the interrupted thread, with its mask.
        unsafe { libc::sigdelset(&mut (*context.cast::<ucontext_t>()).uc_sigmask, signal()) };
        return;
    }
    // It arrives when the handler returns, which blocks it.
    // SAFETY: the signal exists.
    unsafe { libc::raise(signal()) };
    mask(libc::SIG_UNBLOCK, &only_shared());
}
