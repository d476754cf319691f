//! What an instruction wanted that was refused, as the kernel says in the context of a signal.

use std::ffi::c_void;

use libc::ucontext_t;

/// An access to memory that was refused.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub address: usize,
    /// Whether it is known to write.
    pub is_write: bool,
    /// Where the instruction is; `None` where that itself could not be read.
    instruction: Option<usize>,
}

impl Access {
    /// The access at `address` of the thread with `context`.
    ///
    /// # Safety
    /// The context is that of a signal.
    pub unsafe fn of(address: *mut c_void, context: *mut ucontext_t) -> Access {
        // SAFETY: the caller's contract.
        let (is_write, instruction) = unsafe { asked(context) };
        Access { address: address.expose_provenance(), is_write, instruction }
    }

    /// Whether it is known to fetch an instruction.
    pub fn is_fetch(&self) -> bool {
        cfg!(target_arch = "x86_64") && self.instruction.is_none()
    }

    /// Whether it is known to read, write and be seen by other threads as one, as locks are taken.
    /// `may_read` says whether the instruction at an address can be looked at.
    pub fn is_atomic(&self, may_read: impl FnOnce(usize) -> bool) -> bool {
        let instruction = self.instruction.filter(|_| self.is_write);
        instruction.is_some_and(|place| may_read(place) && is_atomic_at(place))
    }
}

/// Bits of the error code of a page fault.
#[cfg(target_arch = "x86_64")]
mod code {
    pub const WRITE: i64 = 1 << 1;
    pub const INSTRUCTION: i64 = 1 << 4;
}

/// Whether the access writes, and the instruction that asked for it.
#[cfg(target_arch = "x86_64")]
unsafe fn asked(context: *mut ucontext_t) -> (bool, Option<usize>) {
    // SAFETY: the caller passes a context.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    let register = |number: i32| {
        usize::try_from(number).ok().and_then(|number| registers.get(number)).copied().unwrap_or(0)
    };
    let asked = register(libc::REG_ERR);
    let place = register(libc::REG_RIP).cast_unsigned() as usize;
    (asked & code::WRITE != 0, (asked & code::INSTRUCTION == 0).then_some(place))
}

/// Not known here: a page that may be read is asked for again where it is written to.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn asked(_: *mut ucontext_t) -> (bool, Option<usize>) {
    (false, None)
}

/// Whether the instruction there has a lock prefix, or exchanges a register with memory.
#[cfg(target_arch = "x86_64")]
fn is_atomic_at(place: usize) -> bool {
    /// The longest instruction.
    const MOST: usize = 15;
    for index in 0..MOST {
        // SAFETY: the instruction was read by the processor, and has more bytes than prefixes.
        let byte = unsafe { std::ptr::with_exposed_provenance::<u8>(place + index).read() };
        match byte {
            // Lock.
            0xf0 => return true,
            // Other prefixes.
            0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3 => {}
            // Exchange.
            0x86 | 0x87 => return true,
            _ => return false,
        }
    }
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn is_atomic_at(_: usize) -> bool {
    false
}
