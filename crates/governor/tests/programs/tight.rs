//! Programs that have little of something, or that watch what the library must not touch: the stack
//! of a handler, the size of files, what the loader says, and what a child that shares memory does.

use std::ffi::{CStr, c_int};
use std::fs::File;
use std::path::Path;
use std::ptr;

use crate::support::bench::Bench;
use crate::support::mapping::Mapping;

const WAYS: [&str; 5] = ["file-limit", "sigset", "small-stack", "loader", "shared-memory"];

pub fn ways(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    // Nothing can be recorded where a tape cannot be made, and that is said.
    for way in WAYS.into_iter().filter(|way| !bench.records() || *way != "file-limit") {
        let both = bench.both(1 << 20, &[&data], || bench.own("tight", &[way, path]));
        println!("programs: {way}");
        both.alike();
    }
}

pub fn program(arguments: &[String]) {
    let [way, path] = arguments else { panic!("two words") };
    let mapping = || Mapping::of(&File::open(Path::new(path)).expect("the file can be opened"));
    match way.as_str() {
        "file-limit" => file_limit(mapping),
        "sigset" => system_v(&mapping()),
        "small-stack" => small_stack(mapping()),
        "loader" => loader(mapping),
        "shared-memory" => shared_memory(&mapping()),
        _ => panic!("{way} is no way"),
    }
}

/// It may make no file of more than a page.
fn file_limit(mapping: impl Fn() -> Mapping) {
    let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
    // SAFETY: the call only reads the limit.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
    println!("{:x}", mapping().digest());
}

unsafe extern "C" {
    fn sigset(signal: c_int, handler: usize) -> usize;
    fn sighold(signal: c_int) -> c_int;
    fn sigrelse(signal: c_int) -> c_int;
    fn sigignore(signal: c_int) -> c_int;
}

/// It asks for the usual end by SIGTRAP, in the way of System V, and goes on reading.
fn system_v(mapping: &Mapping) {
    // SAFETY: the calls take numbers.
    let told = unsafe {
        let hold = 2;
        [
            sigset(libc::SIGTRAP, libc::SIG_DFL),
            sigset(libc::SIGTRAP, hold),
            sigset(libc::SIGTRAP, libc::SIG_DFL),
            sighold(libc::SIGTRAP) as usize,
            sigrelse(libc::SIGTRAP) as usize,
        ]
    };
    println!("{told:?} {:x}", mapping.digest());
}

extern "C" fn leave(_: c_int) {
    // SAFETY: it ends the process.
    unsafe { libc::_exit(10) }
}

/// It ends in a handler that has a small stack of its own.
fn small_stack(mapping: Mapping) {
    println!("{:x}", mapping.sum(7));
    let stack = vec![0_u8; 8192].leak();
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: 8192 };
    // SAFETY: the stack stays, and the handler is a function of one argument.
    unsafe {
        libc::sigaltstack(&stack, ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = leave as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut());
        libc::raise(libc::SIGUSR1);
    }
}

/// It asks what the loader has refused only when it has done something else.
fn loader(mapping: impl Fn() -> Mapping) {
    // SAFETY: the names end with zeros, and what dlerror returns is text or nothing.
    unsafe {
        assert!(libc::dlopen(c"/there/is/no.so".as_ptr(), libc::RTLD_NOW).is_null());
        println!("{:x}", mapping().digest());
        let said = libc::dlerror();
        let said = if said.is_null() { None } else { CStr::from_ptr(said).to_str().ok() };
        println!("{said:?}");
    }
}

/// Its child shares its memory, ignores SIGTRAP and ends.
fn shared_memory(mapping: &Mapping) {
    println!("{:x}", mapping.sum(7));
    // SAFETY: the child makes two calls, of which the second ends it.
    #[allow(deprecated, reason = "programs do this")]
    let child = unsafe { libc::vfork() };
    if child == 0 {
        // SAFETY: the calls take numbers.
        unsafe {
            sigignore(libc::SIGTRAP);
            libc::_exit(0);
        }
    }
    // SAFETY: the call writes nothing, and the others take numbers.
    unsafe {
        libc::waitpid(child, ptr::null_mut(), 0);
        println!("{}", libc::signal(libc::SIGTRAP, libc::SIG_DFL));
    }
    println!("{:x}", mapping.digest());
}
