//! The fork that runs no handlers of pthread_atfork(3).

use libc::pid_t;

use crate::next::next;
use crate::start;

/// _Fork(3).
///
/// # Safety
/// That of _Fork(3).
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the C library's name")]
pub unsafe extern "C-unwind" fn _Fork() -> pid_t {
    let has_begun = start::started().is_some();
    if has_begun {
        start::before_fork();
    }
    let child = next!(c"_Fork", unsafe extern "C-unwind" fn() -> pid_t;);
    if child == 0 && has_begun {
        start::after_fork();
    } else if has_begun {
        start::fork_is_over();
    }
    child
}
