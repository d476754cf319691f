//! Who called to make a mapping: the return addresses on the stack of the thread.
//!
//! The unwinder of the C compiler's library walks the stack, by the tables that exceptions use. It
//! asks the loader which file an address lies in. Since 2.35 the GNU C library answers that without
//! a lock and without memory (`_dl_find_object`), also in a signal handler. The unwinder itself may
//! take a lock, and memory, where a program has registered tables of its own
//! (`__register_frame`), as some that make code do. Where the loader does not answer, or does not
//! know the direct caller, no callers are told, and neither are they on a stack for signals, which
//! may be small.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use filemap_control::tape::Kind;

use super::tape_file::tell_text;
use crate::disposition::with_signals_blocked;
use crate::file;

/// The most callers that are told. The outermost of more are left out.
const MOST: usize = 32;

/// The most modules that are known to be told. Further ones are told again and again.
const MOST_MODULES: usize = 64;

/// Addresses, from the inside to the outside.
pub struct Callers {
    addresses: [u64; MOST],
    count: usize,
}

/// What the loader says of an address; the first members of its `struct dl_find_object`, and room
/// for the others.
#[repr(C)]
struct Object {
    flags: u64,
    start: usize,
    end: usize,
    /// The beginning of its `struct link_map` is public.
    link_map: *const LinkMap,
    rest: [u64; 28],
}

#[repr(C)]
struct LinkMap {
    /// What is added to the addresses in its headers.
    address: usize,
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Object) -> c_int;

/// The address of `_dl_find_object`; 0 where there is none.
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// What tells modules that were told from each other; 0 is free.
static TOLD: [AtomicU64; MOST_MODULES] = [const { AtomicU64::new(0) }; MOST_MODULES];

/// Looks up what is needed, before the program begins.
pub fn look_up() {
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    FIND_OBJECT.store(found.expose_provenance(), Ordering::Relaxed);
    // SAFETY: the call takes nothing. What this C library lacks is no error of the program's.
    unsafe { libc::dlerror() };
}

/// In the child of a fork: it tells of its modules by itself.
pub fn after_fork() {
    TOLD.iter().for_each(|told| told.store(0, Ordering::Relaxed));
}

/// What `address` lies in: the addresses, and what is added to those in its headers.
fn object(address: usize) -> Option<(Range<usize>, usize)> {
    let find = ptr::with_exposed_provenance::<c_void>(FIND_OBJECT.load(Ordering::Relaxed));
    if find.is_null() {
        return None;
    }
    // SAFETY: a function of that name has that signature.
    let find = unsafe { std::mem::transmute::<*const c_void, FindObject>(find) };
    let mut object = Object { flags: 0, start: 0, end: 0, link_map: ptr::null(), rest: [0; 28] };
    // SAFETY: there is room for all members, and any address may be asked for.
    let found = unsafe { find(ptr::without_provenance_mut(address), &mut object) };
    if found != 0 || object.link_map.is_null() {
        return None;
    }
    // SAFETY: the loader keeps it as long as the module is loaded, and code of it is running.
    let base = unsafe { (*object.link_map).address };
    Some((object.start..object.end, base))
}

/// Whether this thread is on a stack for signals.
fn is_on_other_stack() -> bool {
    let mut stack =
        libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_ONSTACK, ss_size: 0 };
    // SAFETY: the call fills it.
    let asked = unsafe { libc::sigaltstack(ptr::null(), &mut stack) };
    asked != 0 || stack.ss_flags & libc::SS_ONSTACK != 0
}

/// The state of a walk.
struct Walk {
    callers: Callers,
    /// This library, whose functions are left out.
    own: Range<usize>,
}

#[repr(C)]
struct Context {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(context: *mut Context, is_before: *mut c_int) -> usize;
}

/// `_URC_NO_REASON` and `_URC_NORMAL_STOP`.
const GO_ON: c_int = 0;
const STOP: c_int = 4;

extern "C" fn each(context: *mut Context, walk: *mut c_void) -> c_int {
    // SAFETY: it is the one of `callers`, which nobody else uses meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    let mut is_before = 0;
    // SAFETY: the unwinder gives its context.
    let address = unsafe { _Unwind_GetIPInfo(context, &mut is_before) };
    // The outermost function has no caller.
    if address == 0 {
        return STOP;
    }
    // A return address is behind the call, which may be the last instruction of its function.
    let address = if is_before == 0 { address - 1 } else { address };
    if walk.own.contains(&address) {
        return GO_ON;
    }
    // Code that the program has made: its tables, if it has any, are the program's.
    if walk.callers.count == 0 && object(address).is_none() {
        return STOP;
    }
    match walk.callers.addresses.get_mut(walk.callers.count) {
        Some(place) => {
            *place = address as u64;
            walk.callers.count += 1;
            GO_ON
        }
        None => STOP,
    }
}

/// Who called the library, from the inside to the outside. Tells of the modules that they lie in.
/// Nobody where that cannot be found out safely.
pub fn callers() -> Callers {
    let nobody = Callers { addresses: [0; MOST], count: 0 };
    let Some((own, _)) = object(each as *const () as usize) else { return nobody };
    if is_on_other_stack() {
        return nobody;
    }
    let mut walk = Walk { callers: nobody, own };
    // SAFETY: the function takes the argument for what it is, and does not unwind.
    unsafe { _Unwind_Backtrace(each, (&raw mut walk).cast()) };
    let mut last = 0..0;
    for address in walk.callers.addresses() {
        let address = *address as usize;
        if !last.contains(&address)
            && let Some((range, base)) = object(address)
        {
            tell_module(&range, base);
            last = range;
        }
    }
    walk.callers
}

impl Callers {
    fn addresses(&self) -> &[u64] {
        self.addresses.get(..self.count).unwrap_or_default()
    }

    /// As the text of an entry.
    pub fn with_bytes<R>(&self, work: impl FnOnce(&[u8]) -> R) -> R {
        let mut bytes = [0; MOST * size_of::<u64>()];
        let places = bytes.chunks_exact_mut(size_of::<u64>());
        let length = self.count * size_of::<u64>();
        for (place, address) in places.zip(self.addresses()) {
            place.copy_from_slice(&address.to_ne_bytes());
        }
        work(bytes.get(..length).unwrap_or_default())
    }
}

/// Tells of a module, if it was not told yet.
fn tell_module(range: &Range<usize>, base: usize) {
    let key = (range.start as u64).rotate_left(20) ^ range.end as u64 ^ base as u64 | 1;
    for told in &TOLD {
        match told.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => break,
            Err(known) if known == key => return,
            Err(_) => {}
        }
    }
    let length = range.end.saturating_sub(base) as u64;
    with_signals_blocked(|| {
        file::with_path_mapped_at(range.start, |path| {
            // What is no file has no symbols.
            if path.as_bytes().starts_with(b"/") {
                tell_text(Kind::Module, [base as u64, length, 0, 0], path.as_bytes());
            }
        });
    });
}
