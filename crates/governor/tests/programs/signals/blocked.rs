//! Programs that block a signal.

use std::mem::MaybeUninit;
use std::ptr;

use libc::{SIG_BLOCK, SIG_SETMASK, SIG_UNBLOCK, SIGUSR1, c_int};

use super::Looks;
use super::calls::{
    act, breakpoint, handler_address, handler_of_three, has, kill, mask, mask_text, pending, raise,
    seen, set_of, signal, take, used,
};

pub fn blocked_and_taken(looks: &mut Looks) {
    mask(SIG_BLOCK, &[used()]);
    raise();
    pending();
    looks.look();
    take();
    pending();
    take();
    kill();
    take();
    mask(SIG_UNBLOCK, &[used()]);
}

pub fn waited_for(looks: &mut Looks) {
    mask(SIG_BLOCK, &[used()]);
    kill();
    looks.look();
    let mut signal = 0;
    // SAFETY: the places are valid.
    let failed = unsafe { libc::sigwait(&set_of(&[used()]), &mut signal) };
    println!("waited: {failed} {signal}");
}

pub fn from_a_descriptor(looks: &mut Looks) {
    mask(SIG_BLOCK, &[used()]);
    // SAFETY: the set is initialised.
    let descriptor = unsafe { libc::signalfd(-1, &set_of(&[used()]), libc::SFD_NONBLOCK) };
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

pub fn blocked_then_not(looks: &mut Looks) {
    mask(SIG_BLOCK, &[used()]);
    raise();
    looks.look();
    mask(SIG_UNBLOCK, &[used()]);
}

pub fn blocked_with_a_handler(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    mask(SIG_BLOCK, &[used()]);
    raise();
    raise();
    seen();
    looks.look();
    pending();
    mask(SIG_UNBLOCK, &[used()]);
    seen();
    pending();
}

pub fn blocked_instruction(looks: &mut Looks) {
    signal(handler_address());
    mask(SIG_BLOCK, &[used()]);
    looks.look();
    breakpoint();
}

pub fn masks(looks: &mut Looks) {
    println!("{}", mask_text());
    let old = mask(SIG_BLOCK, &[used(), SIGUSR1]);
    println!("{} {}", has(&old, used()), mask_text());
    looks.look();
    let old = mask(SIG_UNBLOCK, &[used()]);
    println!("{} {}", has(&old, used()), mask_text());
    let all: Vec<c_int> = (1..32).collect();
    mask(SIG_SETMASK, &all);
    println!("{}", mask_text());
    looks.look();
    let mut old = set_of(&[]);
    // SAFETY: the sets are initialised.
    let failed = unsafe { libc::sigprocmask(SIG_SETMASK, &set_of(&[]), &mut old) };
    println!("{failed} {} {}", has(&old, used()), mask_text());
    // SAFETY: the set is initialised; the way to change is none.
    println!("{}", unsafe { libc::pthread_sigmask(77, &set_of(&[used()]), ptr::null_mut()) });
}

pub fn with_a_value(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    let value = libc::sigval { sival_ptr: ptr::without_provenance_mut(42) };
    for blocked in [false, true] {
        if blocked {
            mask(SIG_BLOCK, &[used()]);
        }
        // SAFETY: the process is ours.
        let failed = unsafe { libc::sigqueue(libc::getpid(), used(), value) };
        println!("sigqueue: {failed}");
        seen();
        looks.look();
    }
    mask(SIG_UNBLOCK, &[used()]);
    seen();
}
