//! The functions behind those that are interposed: the C library's, or those of another library
//! that is preloaded too.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function that is interposed here.
pub struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Its address; null where there is no such function. The first call looks it up.
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the name ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

// The ends of the section into which the macro below puts a reference to each of them.
unsafe extern "C" {
    #[link_name = "__start_filemap_next"]
    static FIRST: u8;
    #[link_name = "__stop_filemap_next"]
    static BEHIND_LAST: u8;
}

/// Looks all of them up, before the program begins. Later a look-up would take the program's word
/// of what went wrong in the loader (dlerror(3)), and could wait for the loader in a handler.
pub fn look_up_all() {
    let first = (&raw const FIRST).cast::<&'static Next>();
    let behind = (&raw const BEHIND_LAST).cast::<&'static Next>();
    // SAFETY: the linker puts nothing but these into the section, and names its ends.
    let all = unsafe { std::slice::from_raw_parts(first, behind.offset_from_unsigned(first)) };
    all.iter().for_each(|next| {
        next.address();
    });
    // What this C library lacks is no error of the program's.
    // SAFETY: the call takes nothing.
    unsafe { libc::dlerror() };
}

/// Calls the function that is interposed: `next!(c"close", fn(c_int) -> c_int; descriptor)`. Where
/// there is none the program could not have called it: then it is aborted.
macro_rules! next {
    ($name:literal, $signature:ty; $($argument:expr),*) => {{
        static NEXT: $crate::next::Next = $crate::next::Next::new($name);
        #[used]
        #[unsafe(link_section = "filemap_next")]
        static LISTED: &$crate::next::Next = &NEXT;
        let address = NEXT.address();
        if address.is_null() {
            std::process::abort();
        }
        // SAFETY: a function of that name has that signature; its caller keeps its contract.
        unsafe {
            let function: $signature = std::mem::transmute(address);
            function($($argument),*)
        }
    }};
}

pub(crate) use next;
