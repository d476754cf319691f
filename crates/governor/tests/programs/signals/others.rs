//! Programs with other threads, children, and programs that take their place.

use std::ffi::CString;
use std::io;
use std::ptr;
use std::thread;

use libc::{SIG_BLOCK, SIG_DFL, SIG_IGN, SIG_SETMASK, c_int};

use super::Looks;
use super::calls::{
    act, breakpoint, handler_address, handler_of_three, kill, mask, mask_text, pending, raise,
    seen, signal, take, used,
};
use crate::support::bench::AS;

pub fn in_another_thread(looks: &mut Looks) {
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
pub fn blocked_for_a_thread(looks: &mut Looks) {
    mask(SIG_BLOCK, &[used()]);
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

pub fn in_a_child(looks: &mut Looks) {
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
pub fn exec(looks: &Looks) {
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

pub fn exec_ignored(looks: &mut Looks) {
    signal(SIG_IGN);
    looks.look();
    exec(looks);
}

pub fn exec_blocked(looks: &mut Looks) {
    signal(handler_address());
    mask(SIG_BLOCK, &[used()]);
    looks.look();
    exec(looks);
}

/// The command by which a shell runs the program that says what it finds.
fn command(looks: &Looks) -> CString {
    let program = std::env::current_exe().expect("the test has a path");
    let program = program.to_str().expect("a plain name");
    // A shell may wait with another mask than it was given.
    let text = format!("exec '{program}' {AS} signals 'what is left' '{}'", looks.path);
    CString::new(text).expect("a plain command")
}

pub fn system_blocked(looks: &mut Looks) {
    mask(SIG_BLOCK, &[used()]);
    looks.look();
    // SAFETY: the command ends with a zero.
    println!("system: {}", unsafe { libc::system(command(looks).as_ptr()) });
    println!("{}", mask_text());
}

pub fn popen_blocked(looks: &mut Looks) {
    mask(SIG_BLOCK, &[used()]);
    looks.look();
    let mut said = [0_u8; 4096];
    // SAFETY: the words end with zeros, and there is as much room as is said.
    unsafe {
        let pipe = libc::popen(command(looks).as_ptr(), c"r".as_ptr());
        let bytes = libc::fread(said.as_mut_ptr().cast(), 1, said.len(), pipe);
        println!("it said: {}", String::from_utf8_lossy(&said[..bytes]));
        println!("popen: {}", libc::pclose(pipe));
    }
    println!("{}", mask_text());
}
