//! Programs that get a signal while they wait.

use std::io;
use std::ptr;
use std::thread;
use std::time::Duration;

use libc::{SIG_BLOCK, SIG_IGN, c_int, sigset_t};

use super::Looks;
use super::calls::{act, handler_of_three, mask, mask_text, raise, seen, set_of, signal, used};

/// Has another thread send a signal to this one and then write to a pipe, while `wait` waits for
/// the pipe's end.
pub fn while_waiting(wait: impl FnOnce(c_int)) {
    let mut pipe = [0; 2];
    // SAFETY: there is room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: it asks who we are.
    let waiting = unsafe { libc::pthread_self() };
    let sender = thread::spawn(move || {
        thread::sleep(Duration::from_millis(60));
        // SAFETY: the thread waits for this one to end.
        unsafe { libc::pthread_kill(waiting, used()) };
        thread::sleep(Duration::from_millis(60));
        // SAFETY: one byte is written.
        unsafe { libc::write(pipe[1], b"x".as_ptr().cast(), 1) };
    });
    wait(pipe[0]);
    sender.join().expect("the sender ends");
}

pub fn read_one(descriptor: c_int) {
    let mut byte = 0_u8;
    // SAFETY: there is room for a byte.
    let result = unsafe { libc::read(descriptor, ptr::from_mut(&mut byte).cast(), 1) };
    let error = io::Error::last_os_error().raw_os_error();
    println!("read: {result} {:?}", if result < 0 { error } else { None });
}

unsafe extern "C" {
    fn __ppoll_chk(
        descriptors: *mut libc::pollfd,
        count: libc::nfds_t,
        limit: *const libc::timespec,
        mask: *const sigset_t,
        bytes: usize,
    ) -> c_int;
}

/// Calls that wait for a descriptor with another mask.
#[derive(Clone, Copy)]
enum Poll {
    Plain,
    /// As compilers call it that are asked to check sizes.
    Checked,
    Epoll,
    Epoll2,
}

fn poll_one(how: Poll, descriptor: c_int, mask: Option<&sigset_t>) {
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec { tv_sec: 2, tv_nsec: 0 };
    let mask = mask.map_or(ptr::null(), ptr::from_ref);
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
    // SAFETY: there is one descriptor, with room for one event, and the mask is null or
    // initialised.
    let result = unsafe {
        let epoll = libc::epoll_create1(0);
        libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, descriptor, &mut event);
        match how {
            Poll::Plain => libc::ppoll(&mut poll, 1, &limit, mask),
            Poll::Checked => __ppoll_chk(&mut poll, 1, &limit, mask, size_of::<libc::pollfd>()),
            Poll::Epoll => libc::epoll_pwait(epoll, &mut event, 1, 2000, mask),
            Poll::Epoll2 => libc::epoll_pwait2(epoll, &mut event, 1, &limit, mask),
        }
    };
    let error = io::Error::last_os_error().raw_os_error();
    println!("poll: {result} {:?}", if result < 0 { error } else { None });
}

pub fn ignored_while_it_waits(_: &mut Looks) {
    signal(SIG_IGN);
    while_waiting(|pipe| poll_one(Poll::Plain, pipe, None));
}

pub fn suspended(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    mask(SIG_BLOCK, &[used()]);
    raise();
    looks.look();
    // SAFETY: the set is initialised.
    let result = unsafe { libc::sigsuspend(&set_of(&[])) };
    println!("sigsuspend: {result} {:?}", io::Error::last_os_error().raw_os_error());
    seen();
    println!("{}", mask_text());
}

pub fn polled(looks: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    mask(SIG_BLOCK, &[used()]);
    for how in [Poll::Plain, Poll::Checked, Poll::Epoll, Poll::Epoll2] {
        while_waiting(|pipe| poll_one(how, pipe, Some(&set_of(&[]))));
        seen();
        looks.look();
    }
    // SIGSEGV that is sent ends such a wait: handlers that run meanwhile must be able to touch what
    // is protected, so that it is not blocked truly.
    if used() == libc::SIGTRAP {
        while_waiting(|pipe| poll_one(Poll::Plain, pipe, Some(&set_of(&[used()]))));
    }
    seen();
    println!("{}", mask_text());
}

pub fn interrupts_a_call(_: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO, &[]);
    while_waiting(read_one);
    seen();
}

pub fn restarts_a_call(_: &mut Looks) {
    act(handler_of_three as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART, &[]);
    while_waiting(read_one);
    seen();
}
