//! What the programs do with their signal, and what can be seen of it.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

use libc::{SIG_BLOCK, SIG_DFL, SIG_IGN, SIGUSR1, c_int, c_void, siginfo_t, sigset_t};

/// The signal that the programs use.
static USED: AtomicI32 = AtomicI32::new(libc::SIGTRAP);

/// The signal that the programs use.
pub fn used() -> c_int {
    USED.load(Ordering::SeqCst)
}

/// Has the programs use SIGSEGV.
pub fn use_segv() {
    USED.store(libc::SIGSEGV, Ordering::SeqCst);
}

/// A page that cannot be touched until a handler makes it one that can.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

pub static COUNT: AtomicU32 = AtomicU32::new(0);
pub static DEPTH: AtomicU32 = AtomicU32::new(0);
pub static DEEPEST: AtomicU32 = AtomicU32::new(0);
pub static CODE: AtomicI32 = AtomicI32::new(0);
pub static VALUE: AtomicUsize = AtomicUsize::new(0);
/// What is blocked in the handler: the signal and SIGUSR1.
pub static BLOCKS: AtomicU32 = AtomicU32::new(0);
pub static STACK: AtomicUsize = AtomicUsize::new(0);
pub static IS_ON_STACK: AtomicBool = AtomicBool::new(false);

pub const STACK_BYTES: usize = 256 << 10;

/// Has the instruction that was refused go on.
fn open_refused() {
    let page = REFUSED.swap(0, Ordering::SeqCst);
    if page != 0 {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the page is ours.
        unsafe { libc::mprotect(ptr::with_exposed_provenance_mut(page), 4096, rights) };
    }
}

pub extern "C" fn handler(_: c_int) {
    open_refused();
    COUNT.fetch_add(1, Ordering::SeqCst);
    let place = ptr::from_ref(&0_u8).addr();
    let stack = STACK.load(Ordering::SeqCst);
    IS_ON_STACK.store((stack..stack + STACK_BYTES).contains(&place), Ordering::SeqCst);
    let mask = blocked();
    BLOCKS.store(
        u32::from(has(&mask, used())) | u32::from(has(&mask, SIGUSR1)) << 1,
        Ordering::SeqCst,
    );
}

pub extern "C" fn handler_of_three(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid pointer.
    let info = unsafe { &*info };
    CODE.store(info.si_code, Ordering::SeqCst);
    if info.si_code == libc::SI_QUEUE {
        // SAFETY: it has a value.
        VALUE.store(unsafe { info.si_value() }.sival_ptr.addr(), Ordering::SeqCst);
    }
    handler(signal);
}

pub extern "C" fn handler_that_raises(_: c_int) {
    let depth = DEPTH.fetch_add(1, Ordering::SeqCst) + 1;
    DEEPEST.fetch_max(depth, Ordering::SeqCst);
    if COUNT.fetch_add(1, Ordering::SeqCst) < 3 {
        raise();
    }
    DEPTH.fetch_sub(1, Ordering::SeqCst);
}

pub fn seen() {
    let [count, deepest, blocks] = [&COUNT, &DEEPEST, &BLOCKS].map(|of| of.load(Ordering::SeqCst));
    let (code, value) = (CODE.load(Ordering::SeqCst), VALUE.load(Ordering::SeqCst));
    let on_stack = IS_ON_STACK.load(Ordering::SeqCst);
    println!("{count} signals, code {code}, value {value}, depth {deepest}, blocks {blocks}");
    println!("on a stack of its own: {on_stack}");
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

pub fn has(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: the set is initialised.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Changes the thread's mask, and returns what it was.
pub fn mask(how: c_int, signals: &[c_int]) -> sigset_t {
    let mut old = set_of(&[]);
    // SAFETY: both sets are initialised.
    let failed = unsafe { libc::pthread_sigmask(how, &set_of(signals), &mut old) };
    println!("masked: {failed}");
    old
}

pub fn blocked() -> sigset_t {
    let mut now = set_of(&[]);
    // SAFETY: a null pointer asks what is blocked.
    unsafe { libc::pthread_sigmask(SIG_BLOCK, ptr::null(), &mut now) };
    now
}

pub fn mask_text() -> String {
    let now = blocked();
    let blocked: Vec<c_int> = (1..32).filter(|&signal| has(&now, signal)).collect();
    format!("blocked: {blocked:?}")
}

pub fn act(handler: usize, flags: c_int, masked: &[c_int]) {
    let action = libc::sigaction {
        sa_sigaction: handler,
        sa_mask: set_of(masked),
        sa_flags: flags,
        sa_restorer: None,
    };
    // SAFETY: the action is valid.
    let failed = unsafe { libc::sigaction(used(), &action, ptr::null_mut()) };
    println!("sigaction: {failed}; {}", disposition());
}

pub fn kind(handler: usize) -> &'static str {
    match handler {
        SIG_DFL => "default",
        SIG_IGN => "ignored",
        of if of == handler_address() => "a handler",
        of if of == handler_of_three as *const () as usize => "a handler of three",
        of if of == handler_that_raises as *const () as usize => "a handler that raises",
        _ => "another handler",
    }
}

pub fn handler_address() -> usize {
    handler as *const () as usize
}

/// What the program wants done with the signal, as it is told.
pub fn disposition() -> String {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null pointer asks.
    let failed = unsafe { libc::sigaction(used(), ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all of it may be zero.
    let action = unsafe { action.assume_init() };
    let masked: Vec<c_int> = (1..32).filter(|&signal| has(&action.sa_mask, signal)).collect();
    // The C library adds SA_RESTORER.
    let flags = action.sa_flags & !0x0400_0000;
    format!("{failed} {} {flags:x} {masked:?}", kind(action.sa_sigaction))
}

pub fn signal(handler: usize) {
    // SAFETY: the handler is one of ours.
    let before = unsafe { libc::signal(used(), handler) };
    println!("signal: it was {}", kind(before));
}

pub fn raise() {
    // SAFETY: the signal exists.
    unsafe { libc::raise(used()) };
}

pub fn kill() {
    // SAFETY: the signal exists, and the process is ours.
    unsafe { libc::kill(libc::getpid(), used()) };
}

/// An instruction that causes the signal: a breakpoint, or a write where nobody may write.
pub fn breakpoint() {
    if used() == libc::SIGSEGV {
        // SAFETY: the page is a new one, which the handler opens if there is one.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let page = libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0);
            REFUSED.store(page.expose_provenance(), Ordering::SeqCst);
            page.cast::<u8>().write_volatile(1);
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it has no effect but the signal.
    unsafe {
        std::arch::asm!("int3");
    }
    #[cfg(not(target_arch = "x86_64"))]
    raise();
}

/// Takes a signal that is blocked, by sigtimedwait(2).
pub fn take() {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    let limit = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    // SAFETY: the places are valid, and all of the information may be zero.
    let (signal, info) = unsafe {
        let signal = libc::sigtimedwait(&set_of(&[used()]), info.as_mut_ptr(), &limit);
        (signal, info.assume_init())
    };
    let error = io::Error::last_os_error().raw_os_error();
    println!("took {signal} {} {:?}", info.si_code, if signal < 0 { error } else { None });
}

pub fn pending() {
    let mut set = set_of(&[]);
    // SAFETY: the set is initialised.
    unsafe { libc::sigpending(&mut set) };
    println!("pending: {}", has(&set, used()));
}
