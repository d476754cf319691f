//! Programs that handle a signal, ignore it, or let it end them.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use libc::{SIG_DFL, SIG_IGN, SIGUSR1};

use super::Looks;
use super::calls::{
    COUNT, STACK, STACK_BYTES, act, breakpoint, disposition, handler_address, handler_of_three,
    handler_that_raises, kill, mask_text, raise, seen, signal, used,
};

pub fn with_sigaction(looks: &mut Looks) {
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

pub fn with_signal(looks: &mut Looks) {
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

pub fn ignored(looks: &mut Looks) {
    signal(SIG_IGN);
    raise();
    kill();
    looks.look();
    println!("{}", disposition());
}

pub fn ignored_instruction(looks: &mut Looks) {
    signal(SIG_IGN);
    looks.look();
    breakpoint();
}

pub fn default(_: &mut Looks) {
    raise();
}

pub fn default_instruction(_: &mut Looks) {
    breakpoint();
}

pub fn handled_once(looks: &mut Looks) {
    act(handler_address(), libc::SA_RESETHAND, &[]);
    raise();
    seen();
    println!("{}", disposition());
    looks.look();
    raise();
}

pub fn nested(_: &mut Looks) {
    act(handler_that_raises as *const () as usize, libc::SA_NODEFER, &[]);
    raise();
    seen();
}

pub fn not_nested(_: &mut Looks) {
    act(handler_that_raises as *const () as usize, 0, &[]);
    raise();
    seen();
}

/// Gives the thread a stack for handlers.
pub fn with_a_stack() {
    let stack = Box::leak(vec![0_u8; STACK_BYTES].into_boxed_slice());
    STACK.store(stack.as_ptr().addr(), Ordering::SeqCst);
    let stack =
        libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK_BYTES };
    // SAFETY: the stack is never freed.
    println!("sigaltstack: {}", unsafe { libc::sigaltstack(&stack, ptr::null_mut()) });
}

pub fn on_its_stack(looks: &mut Looks) {
    with_a_stack();
    act(handler_address(), libc::SA_ONSTACK, &[]);
    looks.look();
    raise();
    seen();
}

pub fn not_on_its_stack(looks: &mut Looks) {
    with_a_stack();
    act(handler_address(), 0, &[]);
    looks.look();
    raise();
    seen();
}

pub fn masks_of_a_handler(looks: &mut Looks) {
    for (flags, masked) in [
        (0, &[][..]),
        (libc::SA_NODEFER, &[]),
        (libc::SA_NODEFER, &[used()]),
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

pub fn from_a_timer(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART, &[]);
    // SAFETY: all of it may be zero.
    let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = used();
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
