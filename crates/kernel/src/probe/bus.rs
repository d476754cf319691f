//! SIGBUS in a probe's child: what it touched there is told before it ends.

use std::io::Error as IoError;
use std::mem::zeroed;
use std::ptr::null_mut;

use super::wire::bus_message;
use crate::Error;

/// Exit code of a child that got SIGBUS and said so.
const EXIT_CODE: i32 = 1;

/// From here on, a SIGBUS of any thread is told to the parent, with its address.
pub(super) fn install_handler() -> Result<(), Error> {
    // SAFETY: the structure is plain data, for which all zeros is a value; the handler only makes
    // calls that may be made in one.
    let done = unsafe {
        let mut action: libc::sigaction = zeroed();
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &raw const action, null_mut())
    };
    match done {
        0 => Ok(()),
        _ => Err(Error::call("watch for SIGBUS", IoError::last_os_error())),
    }
}

extern "C" fn on_bus(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes the structure to a handler that was set with SA_SIGINFO; write and
    // _exit may be called in one.
    unsafe {
        let message = bus_message((*info).si_addr() as u64);
        libc::write(libc::STDOUT_FILENO, message.as_ptr().cast(), message.len());
        libc::_exit(EXIT_CODE);
    }
}
