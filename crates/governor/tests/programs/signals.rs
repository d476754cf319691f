//! Programs that use SIGTRAP themselves, in each way that there is.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use libc::{SIG_BLOCK, SIG_DFL, SIG_IGN, SIG_SETMASK, SIG_UNBLOCK, SIGTRAP, SIGUSR1};
use libc::{c_int, c_void, siginfo_t, sigset_t};

use crate::support::bench::{AS, Bench};
use crate::support::draws::{Digest, Draws};
use crate::support::mapping::Mapping;

type Program = (&'static str, fn(&mut Looks));

const PROGRAMS: [Program; 31] = [
    ("sigaction", with_sigaction),
    ("signal", with_signal),
    ("ignored", ignored),
    ("ignored, then an instruction", ignored_instruction),
    ("ignored while it waits", ignored_while_it_waits),
    ("default", default),
    ("default, by an instruction", default_instruction),
    ("blocked and taken", blocked_and_taken),
    ("waited for", waited_for),
    ("read from a descriptor", from_a_descriptor),
    ("blocked, then not", blocked_then_not),
    ("blocked, with a handler", blocked_with_a_handler),
    ("blocked, then an instruction", blocked_instruction),
    ("handled once", handled_once),
    ("nested", nested),
    ("not nested", not_nested),
    ("on a stack of its own", on_its_stack),
    ("not on a stack of its own", not_on_its_stack),
    ("masks", masks),
    ("masks of a handler", masks_of_a_handler),
    ("with a value", with_a_value),
    ("suspended", suspended),
    ("polled", polled),
    ("from a timer", from_a_timer),
    ("in another thread", in_another_thread),
    ("blocked for a thread that begins", blocked_for_a_thread),
    ("interrupts a call", interrupts_a_call),
    ("restarts a call", restarts_a_call),
    ("in a child", in_a_child),
    ("left to the next program, ignored", exec_ignored),
    ("left to the next program, blocked", exec_blocked),
];

pub fn own_signals(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    for (name, _) in PROGRAMS {
        let both = bench.both(1 << 20, &[&data], || bench.own("signals", &[name, path]));
        both.alike().governs(&data);
    }
}

/// The mapping that each program looks at, between what it does.
struct Looks {
    mapping: Mapping,
    draws: Draws,
    path: String,
}

impl Looks {
    fn look(&mut self) {
        let mut digest = Digest::NEW;
        for _ in 0..50 {
            digest.add(self.mapping.word(self.draws.below(self.mapping.pages())));
        }
        println!("looked: {:x}", digest.0);
    }
}

/// The program itself.
pub fn program(arguments: &[String]) {
    let [name, path] = arguments else { panic!("a name and a path are needed") };
    if name == "what is left" {
        println!("{} {}", disposition(), mask_text());
        return;
    }
    let (_, program) = PROGRAMS.iter().find(|(of, _)| of == name).expect("a program of that name");
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    let mut looks = Looks { mapping, draws: Draws::new(3), path: path.clone() };
    looks.look();
    program(&mut looks);
    looks.look();
}

static COUNT: AtomicU32 = AtomicU32::new(0);
static DEPTH: AtomicU32 = AtomicU32::new(0);
static DEEPEST: AtomicU32 = AtomicU32::new(0);
static CODE: AtomicI32 = AtomicI32::new(0);
static VALUE: AtomicUsize = AtomicUsize::new(0);
/// What is blocked in the handler: SIGTRAP and SIGUSR1.
static BLOCKS: AtomicU32 = AtomicU32::new(0);
static STACK: AtomicUsize = AtomicUsize::new(0);
static IS_ON_STACK: AtomicBool = AtomicBool::new(false);

const STACK_BYTES: usize = 256 << 10;

extern "C" fn handler(_: c_int) {
    COUNT.fetch_add(1, Ordering::SeqCst);
    let place = ptr::from_ref(&0_u8).addr();
    let stack = STACK.load(Ordering::SeqCst);
    IS_ON_STACK.store((stack..stack + STACK_BYTES).contains(&place), Ordering::SeqCst);
    let mask = blocked();
    BLOCKS.store(
        u32::from(has(&mask, SIGTRAP)) | u32::from(has(&mask, SIGUSR1)) << 1,
        Ordering::SeqCst,
    );
}

extern "C" fn handler_of_three(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid pointer.
    let info = unsafe { &*info };
    CODE.store(info.si_code, Ordering::SeqCst);
    if info.si_code == libc::SI_QUEUE {
        // SAFETY: it has a value.
        VALUE.store(unsafe { info.si_value() }.sival_ptr.addr(), Ordering::SeqCst);
    }
    handler(signal);
}

extern "C" fn handler_that_raises(_: c_int) {
    let depth = DEPTH.fetch_add(1, Ordering::SeqCst) + 1;
    DEEPEST.fetch_max(depth, Ordering::SeqCst);
    if COUNT.fetch_add(1, Ordering::SeqCst) < 3 {
        raise();
    }
    DEPTH.fetch_sub(1, Ordering::SeqCst);
}

fn seen() {
    let [count, deepest, blocks] = [&COUNT, &DEEPEST, &BLOCKS].map(|of| of.load(Ordering::SeqCst));
    let (code, value) = (CODE.load(Ordering::SeqCst), VALUE.load(Ordering::SeqCst));
    let on_stack = IS_ON_STACK.load(Ordering::SeqCst);
    println!("{count} signals, code {code}, value {value}, depth {deepest}, blocks {blocks}");
    println!("on a stack of its own: {on_stack}");
}

fn set_of(signals: &[c_int]) -> sigset_t {
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

fn has(set: &sigset_t, signal: c_int) -> bool {
    // SAFETY: the set is initialised.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Changes the thread's mask, and returns what it was.
fn mask(how: c_int, signals: &[c_int]) -> sigset_t {
    let mut old = set_of(&[]);
    // SAFETY: both sets are initialised.
    let failed = unsafe { libc::pthread_sigmask(how, &set_of(signals), &mut old) };
    println!("masked: {failed}");
    old
}

fn blocked() -> sigset_t {
    let mut now = set_of(&[]);
    // SAFETY: a null pointer asks what is blocked.
    unsafe { libc::pthread_sigmask(SIG_BLOCK, ptr::null(), &mut now) };
    now
}

fn mask_text() -> String {
    let now = blocked();
    let blocked: Vec<c_int> = (1..32).filter(|&signal| has(&now, signal)).collect();
    format!("blocked: {blocked:?}")
}

fn act(handler: usize, flags: c_int, masked: &[c_int]) {
    let action = libc::sigaction {
        sa_sigaction: handler,
        sa_mask: set_of(masked),
        sa_flags: flags,
        sa_restorer: None,
    };
    // SAFETY: the action is valid.
    let failed = unsafe { libc::sigaction(SIGTRAP, &action, ptr::null_mut()) };
    println!("sigaction: {failed}; {}", disposition());
}

fn kind(handler: usize) -> &'static str {
    match handler {
        SIG_DFL => "default",
        SIG_IGN => "ignored",
        of if of == handler_address() => "a handler",
        of if of == handler_of_three as *const () as usize => "a handler of three",
        of if of == handler_that_raises as *const () as usize => "a handler that raises",
        _ => "another handler",
    }
}

fn handler_address() -> usize {
    handler as *const () as usize
}

/// What the program wants done with SIGTRAP, as it is told.
fn disposition() -> String {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null pointer asks.
    let failed = unsafe { libc::sigaction(SIGTRAP, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all of it may be zero.
    let action = unsafe { action.assume_init() };
    let masked: Vec<c_int> = (1..32).filter(|&signal| has(&action.sa_mask, signal)).collect();
    // The C library adds SA_RESTORER.
    let flags = action.sa_flags & !0x0400_0000;
    format!("{failed} {} {flags:x} {masked:?}", kind(action.sa_sigaction))
}

fn signal(handler: usize) {
    // SAFETY: the handler is one of ours.
    let before = unsafe { libc::signal(SIGTRAP, handler) };
    println!("signal: it was {}", kind(before));
}

fn raise() {
    // SAFETY: the signal exists.
    unsafe { libc::raise(SIGTRAP) };
}

fn kill() {
    // SAFETY: the signal exists, and the process is ours.
    unsafe { libc::kill(libc::getpid(), SIGTRAP) };
}

/// The instruction of a breakpoint.
fn breakpoint() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it has no effect but the signal.
    unsafe {
        std::arch::asm!("int3");
    }
    #[cfg(not(target_arch = "x86_64"))]
    raise();
}

fn with_sigaction(looks: &mut Looks) {
    let three = handler_of_three as *const () as usize;
    act(three, libc::SA_SIGINFO | libc::SA_RESTART, &[SIGUSR1]);
    raise();
    seen();
    looks.look();
    breakpoint();
    seen();
    kill();
    seen();
    act(SIG_DFL, 0, &[]);
}

fn with_signal(looks: &mut Looks) {
    signal(handler_address());
    raise();
    seen();
    looks.look();
    breakpoint();
    seen();
    signal(SIG_IGN);
    raise();
    signal(SIG_DFL);
    looks.look();
    raise();
}

fn ignored(looks: &mut Looks) {
    signal(SIG_IGN);
    raise();
    kill();
    looks.look();
    println!("{}", disposition());
}

fn ignored_instruction(looks: &mut Looks) {
    signal(SIG_IGN);
    looks.look();
    breakpoint();
}

/// Has another thread send SIGTRAP to this one and then write to a pipe, while `wait` waits for
/// the pipe's end.
fn while_waiting(wait: impl FnOnce(c_int)) {
    let mut pipe = [0; 2];
    // SAFETY: there is room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: it asks who we are.
    let waiting = unsafe { libc::pthread_self() };
    let sender = thread::spawn(move || {
        thread::sleep(Duration::from_millis(60));
        // SAFETY: the thread waits for this one to end.
        unsafe { libc::pthread_kill(waiting, SIGTRAP) };
        thread::sleep(Duration::from_millis(60));
        // SAFETY: one byte is written.
        unsafe { libc::write(pipe[1], b"x".as_ptr().cast(), 1) };
    });
    wait(pipe[0]);
    sender.join().expect("the sender ends");
}

fn read_one(descriptor: c_int) {
    let mut byte = 0_u8;
    // SAFETY: there is room for a byte.
    let result = unsafe { libc::read(descriptor, ptr::from_mut(&mut byte).cast(), 1) };
    let error = io::Error::last_os_error().raw_os_error();
    println!("read: {result} {:?}", if result < 0 { error } else { None });
}

fn poll_one(descriptor: c_int, mask: Option<&sigset_t>) {
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec { tv_sec: 2, tv_nsec: 0 };
    let mask = mask.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: there is one descriptor, and the mask is null or initialised.
    let result = unsafe { libc::ppoll(&mut poll, 1, &limit, mask) };
    let error = io::Error::last_os_error().raw_os_error();
    println!("poll: {result} {:?}", if result < 0 { error } else { None });
}

fn ignored_while_it_waits(_: &mut Looks) {
    signal(SIG_IGN);
    while_waiting(|pipe| poll_one(pipe, None));
}

fn default(_: &mut Looks) {
    raise();
}

fn default_instruction(_: &mut Looks) {
    breakpoint();
}

/// Takes a SIGTRAP that is blocked, by sigtimedwait(2).
fn take() {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    let limit = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    // SAFETY: the places are valid, and all of the information may be zero.
    let (signal, info) = unsafe {
        let signal = libc::sigtimedwait(&set_of(&[SIGTRAP]), info.as_mut_ptr(), &limit);
        (signal, info.assume_init())
    };
    let error = io::Error::last_os_error().raw_os_error();
    println!("took {signal} {} {:?}", info.si_code, if signal < 0 { error } else { None });
}

fn pending() {
    let mut set = set_of(&[]);
    // SAFETY: the set is initialised.
    unsafe { libc::sigpending(&mut set) };
    println!("pending: {}", has(&set, SIGTRAP));
}

fn blocked_and_taken(looks: &mut Looks) {
    mask(SIG_BLOCK, &[SIGTRAP]);
    raise();
    pending();
    looks.look();
    take();
    pending();
    take();
    kill();
    take();
    mask(SIG_UNBLOCK, &[SIGTRAP]);
}

fn waited_for(looks: &mut Looks) {
    mask(SIG_BLOCK, &[SIGTRAP]);
    kill();
    looks.look();
    let mut signal = 0;
    // SAFETY: the places are valid.
    let failed = unsafe { libc::sigwait(&set_of(&[SIGTRAP]), &mut signal) };
    println!("waited: {failed} {signal}");
}

fn from_a_descriptor(looks: &mut Looks) {
    mask(SIG_BLOCK, &[SIGTRAP]);
    // SAFETY: the set is initialised.
    let descriptor = unsafe { libc::signalfd(-1, &set_of(&[SIGTRAP]), libc::SFD_NONBLOCK) };
    raise();
    looks.look();
    for _ in 0..2 {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let bytes = size_of::<libc::signalfd_siginfo>();
        // SAFETY: there is room, and all of it may be zero.
        let (result, info) = unsafe {
            let result = libc::read(descriptor, info.as_mut_ptr().cast(), bytes);
            (result, info.assume_init())
        };
        println!("read {result} {} {}", info.ssi_signo, info.ssi_code);
    }
}

fn blocked_then_not(looks: &mut Looks) {
    mask(SIG_BLOCK, &[SIGTRAP]);
    raise();
    looks.look();
    mask(SIG_UNBLOCK, &[SIGTRAP]);
}

fn blocked_with_a_handler(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    mask(SIG_BLOCK, &[SIGTRAP]);
    raise();
    raise();
    seen();
    looks.look();
    pending();
    mask(SIG_UNBLOCK, &[SIGTRAP]);
    seen();
    pending();
}

fn blocked_instruction(looks: &mut Looks) {
    signal(handler_address());
    mask(SIG_BLOCK, &[SIGTRAP]);
    looks.look();
    breakpoint();
}

fn handled_once(looks: &mut Looks) {
    act(handler_address(), libc::SA_RESETHAND, &[]);
    raise();
    seen();
    println!("{}", disposition());
    looks.look();
    raise();
}

fn nested(_: &mut Looks) {
    act(handler_that_raises as *const () as usize, libc::SA_NODEFER, &[]);
    raise();
    seen();
}

fn not_nested(_: &mut Looks) {
    act(handler_that_raises as *const () as usize, 0, &[]);
    raise();
    seen();
}

/// Gives the thread a stack for handlers.
fn with_a_stack() {
    let stack = Box::leak(vec![0_u8; STACK_BYTES].into_boxed_slice());
    STACK.store(stack.as_ptr().addr(), Ordering::SeqCst);
    let stack =
        libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK_BYTES };
    // SAFETY: the stack is never freed.
    println!("sigaltstack: {}", unsafe { libc::sigaltstack(&stack, ptr::null_mut()) });
}

fn on_its_stack(looks: &mut Looks) {
    with_a_stack();
    act(handler_address(), libc::SA_ONSTACK, &[]);
    looks.look();
    raise();
    seen();
}

fn not_on_its_stack(looks: &mut Looks) {
    with_a_stack();
    act(handler_address(), 0, &[]);
    looks.look();
    raise();
    seen();
}

fn masks(looks: &mut Looks) {
    println!("{}", mask_text());
    let old = mask(SIG_BLOCK, &[SIGTRAP, SIGUSR1]);
    println!("{} {}", has(&old, SIGTRAP), mask_text());
    looks.look();
    let old = mask(SIG_UNBLOCK, &[SIGTRAP]);
    println!("{} {}", has(&old, SIGTRAP), mask_text());
    let all: Vec<c_int> = (1..32).collect();
    mask(SIG_SETMASK, &all);
    println!("{}", mask_text());
    looks.look();
    let mut old = set_of(&[]);
    // SAFETY: the sets are initialised.
    let failed = unsafe { libc::sigprocmask(SIG_SETMASK, &set_of(&[]), &mut old) };
    println!("{failed} {} {}", has(&old, SIGTRAP), mask_text());
    // SAFETY: the set is initialised; the way to change is none.
    println!("{}", unsafe { libc::pthread_sigmask(77, &set_of(&[SIGTRAP]), ptr::null_mut()) });
}

fn masks_of_a_handler(looks: &mut Looks) {
    for (flags, masked) in [
        (0, &[][..]),
        (libc::SA_NODEFER, &[]),
        (libc::SA_NODEFER, &[SIGTRAP]),
        (libc::SA_NODEFER, &[SIGUSR1]),
        (0, &[SIGUSR1]),
    ] {
        act(handler_address(), flags, masked);
        raise();
        seen();
        println!("{}", mask_text());
        looks.look();
    }
}

fn with_a_value(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    let value = libc::sigval { sival_ptr: ptr::without_provenance_mut(42) };
    for blocked in [false, true] {
        if blocked {
            mask(SIG_BLOCK, &[SIGTRAP]);
        }
        // SAFETY: the process is ours.
        let failed = unsafe { libc::sigqueue(libc::getpid(), SIGTRAP, value) };
        println!("sigqueue: {failed}");
        seen();
        looks.look();
    }
    mask(SIG_UNBLOCK, &[SIGTRAP]);
    seen();
}

fn suspended(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    mask(SIG_BLOCK, &[SIGTRAP]);
    raise();
    looks.look();
    // SAFETY: the set is initialised.
    let result = unsafe { libc::sigsuspend(&set_of(&[])) };
    println!("sigsuspend: {result} {:?}", io::Error::last_os_error().raw_os_error());
    seen();
    println!("{}", mask_text());
}

fn polled(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    mask(SIG_BLOCK, &[SIGTRAP]);
    while_waiting(|pipe| poll_one(pipe, Some(&set_of(&[]))));
    seen();
    looks.look();
    while_waiting(|pipe| poll_one(pipe, Some(&set_of(&[SIGTRAP]))));
    seen();
    println!("{}", mask_text());
}

fn from_a_timer(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART, &[]);
    // SAFETY: all of it may be zero.
    let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = SIGTRAP;
    let mut timer = ptr::null_mut();
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let once = libc::itimerspec {
        it_interval: zero,
        it_value: libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 },
    };
    // SAFETY: the places are valid.
    unsafe {
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        libc::timer_settime(timer, 0, &once, ptr::null_mut());
    }
    while COUNT.load(Ordering::SeqCst) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    seen();
    looks.look();
}

fn in_another_thread(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART, &[]);
    thread::scope(|scope| {
        scope.spawn(|| {
            let all: Vec<c_int> = (1..32).collect();
            mask(SIG_SETMASK, &all);
            looks.look();
            println!("{}", mask_text());
            raise();
            pending();
            looks.look();
            take();
        });
    });
    seen();
    raise();
    seen();
}

/// The mask goes to new threads, one of which waits for the signal.
fn blocked_for_a_thread(looks: &mut Looks) {
    mask(SIG_BLOCK, &[SIGTRAP]);
    thread::scope(|scope| {
        scope.spawn(|| {
            println!("{}", mask_text());
            looks.look();
            kill();
            // Not asked whether it is pending: another thread may be holding it back just now.
            take();
            println!("{}", mask_text());
        });
    });
    pending();
}

fn interrupts_a_call(_: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    while_waiting(read_one);
    seen();
}

fn restarts_a_call(_: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART, &[]);
    while_waiting(read_one);
    seen();
}

fn in_a_child(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    // SAFETY: this program has one thread.
    let child = unsafe { libc::fork() };
    raise();
    if child == 0 {
        looks.look();
        seen();
        breakpoint();
        seen();
        signal(SIG_DFL);
        raise();
    }
    let mut status = 0;
    // SAFETY: it is our child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    println!("the child: {status:x}");
    seen();
}

/// Replaces this program by one that says what it finds.
fn exec(looks: &Looks) {
    let program = std::env::current_exe().expect("the test has a path");
    let program = program.to_str().expect("a plain name");
    let arguments = [program, AS, "signals", "what is left", &looks.path];
    let arguments = arguments.map(|argument| CString::new(argument).expect("a plain argument"));
    let mut pointers: Vec<_> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    pointers.push(ptr::null());
    // The standard library's way changes the mask.
    // SAFETY: the list ends with a null pointer.
    unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
    panic!("{}", io::Error::last_os_error());
}

fn exec_ignored(looks: &mut Looks) {
    signal(SIG_IGN);
    looks.look();
    exec(looks);
}

fn exec_blocked(looks: &mut Looks) {
    signal(handler_address());
    mask(SIG_BLOCK, &[SIGTRAP]);
    looks.look();
    exec(looks);
}
