//! Registers and machine code of x86-64.

use libc::user_regs_struct;

/// Size of a stub, as built by [`stub`] and [`CallRemainder::stub`].
pub const STUB_BYTES: usize = 88;

/// Magic number in the last four bytes of a stub, by which stubs left behind are recognised.
const MARK: u32 = 0x6676_6461;

/// Code segment selector of 64-bit user mode.
const USER_CS: u64 = 0x33;

const TRAP_FLAG: u64 = 1 << 8;
const NO_CALL: u64 = u64::MAX;

/// The kernel's MAX_RW_COUNT: no call transfers more bytes.
const MAX_RW_COUNT: u64 = 0x7fff_f000;

const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// AUDIT_ARCH_X86_64, as in `struct seccomp_data`.
pub const AUDIT_ARCH: u32 = 0xc000_003e;

pub type Registers = user_regs_struct;

/// Where a thread was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPlace {
    /// In user mode, or at the exit of a completed system call.
    Program,
    /// In a system call that the kernel restarts, provided that the registers are unchanged.
    Restart,
    /// At the exit of a system call that failed with EINTR.
    Interrupted { call: i64 },
    /// An io_uring worker, which never returns to user mode.
    IoWorker,
    /// In 32-bit code.
    OtherCode,
    /// The trap flag is set: the program single-steps itself.
    Stepping,
}

pub fn stop_place(registers: &Registers) -> StopPlace {
    /// ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, and ERESTART_RESTARTBLOCK.
    const RESTART: [i64; 4] = [-512, -513, -514, -516];
    let (call, result) = (registers.orig_rax as i64, registers.rax as i64);
    if registers.rip == 0 {
        StopPlace::IoWorker
    } else if registers.cs != USER_CS {
        StopPlace::OtherCode
    } else if registers.eflags & TRAP_FLAG != 0 {
        StopPlace::Stepping
    } else if call >= 0 && RESTART.contains(&result) {
        StopPlace::Restart
    } else if call >= 0 && result == -i64::from(libc::EINTR) {
        StopPlace::Interrupted { call }
    } else {
        StopPlace::Program
    }
}

/// Whether a system call may fail with EINTR although no handler ran: calls that the kernel never
/// restarts, and socket calls, which it does not restart if the socket has a timeout.
pub fn fails_when_interrupted(call: i64) -> bool {
    [
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_msgrcv,
        libc::SYS_msgsnd,
        libc::SYS_io_getevents,
        libc::SYS_io_uring_enter,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_recvmmsg,
        libc::SYS_sendmmsg,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
    ]
    .contains(&call)
}

/// Registers that repeat a failed system call, with the address and the bytes of its `syscall`
/// instruction.
pub fn restarted(original: &Registers) -> (Registers, u64, [u8; 2]) {
    let mut registers = *original;
    registers.rip = original.rip.wrapping_sub(SYSCALL.len() as u64);
    registers.rax = original.orig_rax;
    registers.orig_rax = NO_CALL;
    (registers, registers.rip, SYSCALL)
}

/// The original registers with orig_rax set to -1, so that the kernel does not apply system call
/// restart to them.
pub fn without_restart(original: &Registers) -> Registers {
    Registers { orig_rax: NO_CALL, ..*original }
}

/// Registers that make a system call by the stub.
pub fn for_call(original: &Registers, stub: u64, call: i64, arguments: [u64; 3]) -> Registers {
    Registers {
        rip: stub,
        rax: call as u64,
        rdi: arguments[0],
        rsi: arguments[1],
        rdx: arguments[2],
        orig_rax: NO_CALL,
        ..*original
    }
}

/// Instruction pointer during the stub's system call.
pub fn address_after_call(stub: u64) -> u64 {
    stub + SYSCALL.len() as u64
}

/// Address of the stub whose system call `instruction` follows, if it follows one.
pub fn stub_before(instruction: u64) -> u64 {
    instruction.wrapping_sub(SYSCALL.len() as u64)
}

/// The result of mmap(2), if the thread has stopped at its return from that call.
pub fn mmap_result(registers: &Registers) -> Option<u64> {
    (registers.orig_rax as i64 == libc::SYS_mmap).then_some(registers.rax)
}

pub fn result(registers: &Registers) -> i64 {
    registers.rax as i64
}

/// Machine code that makes one system call, reloads each register that it changed, and jumps back
/// to where the thread was. It uses no stack, and changes no flags: the kernel restores them on
/// return from the call.
pub fn stub(original: &Registers, thread: u32) -> [u64; STUB_BYTES / 8] {
    let mut bytes = SYSCALL.to_vec();
    load_arguments(&mut bytes, original);
    load(&mut bytes, [0x48, 0xb9], original.rcx);
    load(&mut bytes, [0x49, 0xbb], original.r11);
    load(&mut bytes, [0x48, 0xb8], original.rax);
    assemble(bytes, original, thread)
}

/// The remainder of a partially completed transfer.
#[derive(Clone, Copy, Debug)]
pub struct CallRemainder {
    /// File descriptor of the transfer, if it has one.
    pub descriptor: Option<u64>,
    /// Bytes transferred so far; below 2^31, as MAX_RW_COUNT is.
    done_bytes: u32,
    /// Registers that transfer the remainder.
    registers: Registers,
}

impl CallRemainder {
    /// Code after the `syscall` of a remainder stub, which adds the bytes transferred before to the
    /// result. `syscall` clobbers rcx, so rcx is free to use, and no flags change: rcx becomes the
    /// top byte of the result, which is 0 unless the call failed; if nonzero, rax becomes 0; rax is
    /// increased by the 32-bit displacement that follows.
    const SUM: [u8; 19] = [
        0x48, 0x89, 0xc1, 0x48, 0x0f, 0xc9, 0x0f, 0xb6, 0xc9, 0xe3, 0x05, 0xb8, 0x00, 0x00, 0x00,
        0x00, 0x48, 0x8d, 0x80,
    ];

    /// Recognises a call that returned a partial count, of the kinds that do so only if a signal
    /// arrives; `None` for any other.
    pub fn from_registers(original: &Registers) -> Option<CallRemainder> {
        let call = original.orig_rax as i64;
        let flags = original.r10 as i32;
        let receives_all =
            flags & libc::MSG_WAITALL != 0 && flags & (libc::MSG_PEEK | libc::MSG_TRUNC) == 0;
        let mut registers = Registers { rax: original.orig_rax, orig_rax: NO_CALL, ..*original };
        let (address, length_bytes, descriptor) = match call {
            libc::SYS_getrandom => (&mut registers.rdi, &mut registers.rsi, None),
            libc::SYS_recvfrom if !receives_all => return None,
            libc::SYS_write | libc::SYS_sendto | libc::SYS_recvfrom => {
                (&mut registers.rsi, &mut registers.rdx, Some(original.rdi))
            }
            _ => return None,
        };
        let done_bytes = i32::try_from(original.rax).ok()?.cast_unsigned();
        if done_bytes == 0 || u64::from(done_bytes) >= *length_bytes || *length_bytes > MAX_RW_COUNT
        {
            return None;
        }
        *address = address.wrapping_add(done_bytes.into());
        *length_bytes -= u64::from(done_bytes);
        Some(CallRemainder { descriptor, done_bytes, registers })
    }

    /// Registers that start the stub at address `stub`.
    pub fn registers_at(&self, stub: u64) -> Registers {
        Registers { rip: stub, ..self.registers }
    }

    /// If the partial call was itself made by the remainder stub `stub`, returns the remainder with
    /// the total of both counts, and the registers of the program's original call.
    pub fn join_previous(
        self,
        original: &Registers,
        stub: &[u8],
    ) -> Option<(CallRemainder, Registers)> {
        let code = stub.strip_prefix(&SYSCALL)?.strip_prefix(&CallRemainder::SUM)?;
        let (done, code) = code.split_first_chunk()?;
        let done_bytes = u32::from_le_bytes(*done).checked_add(self.done_bytes)?;
        let word = |at: usize| {
            Some(u64::from_le_bytes(code.get(at..at + 8)?.try_into().expect("eight bytes")))
        };
        let first = Registers {
            rdi: word(LOAD_CODE_BYTES)?,
            rsi: word(LOAD_BYTES + LOAD_CODE_BYTES)?,
            rdx: word(2 * LOAD_BYTES + LOAD_CODE_BYTES)?,
            rip: word(3 * LOAD_BYTES + JUMP.len())?,
            ..*original
        };
        Some((CallRemainder { done_bytes, ..self }, first))
    }

    /// Machine code that transfers the remainder and returns to the program as if from a single
    /// call: with the sum, or with the first count if the second call fails.
    pub fn stub(&self, original: &Registers, thread: u32) -> [u64; STUB_BYTES / 8] {
        let mut bytes = SYSCALL.to_vec();
        bytes.extend(CallRemainder::SUM);
        bytes.extend(self.done_bytes.to_le_bytes());
        load_arguments(&mut bytes, original);
        assemble(bytes, original, thread)
    }
}

/// Size of one `mov r64, imm64` in [`load_arguments`], and of its opcode.
const LOAD_BYTES: usize = 10;
const LOAD_CODE_BYTES: usize = 2;

fn load_arguments(bytes: &mut Vec<u8>, original: &Registers) {
    load(bytes, [0x48, 0xbf], original.rdi);
    load(bytes, [0x48, 0xbe], original.rsi);
    load(bytes, [0x48, 0xba], original.rdx);
}

fn load(bytes: &mut Vec<u8>, instruction: [u8; 2], value: u64) {
    bytes.extend(instruction);
    bytes.extend(value.to_le_bytes());
}

/// `jmp [rip+0]`: jumps to the address stored after it.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];

/// Completes a stub: `bytes`, a jump to the original instruction pointer, then the owner and the
/// mark.
fn assemble(mut bytes: Vec<u8>, original: &Registers, thread: u32) -> [u64; STUB_BYTES / 8] {
    bytes.extend(JUMP);
    bytes.extend(original.rip.to_le_bytes());
    debug_assert!(bytes.len() <= STUB_BYTES - 8);
    bytes.resize(STUB_BYTES - 8, 0);
    bytes.extend(thread.to_le_bytes());
    bytes.extend(MARK.to_le_bytes());
    let mut words = [0; STUB_BYTES / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("a chunk of eight bytes"));
    }
    words
}

/// ID of the thread that a stub was written for; the stub may be only partially written.
pub fn thread_of_stub(bytes: &[u8]) -> Option<u32> {
    let (thread, mark) = bytes.last_chunk::<8>()?.split_at(4);
    let mark = u32::from_le_bytes(mark.try_into().ok()?);
    (mark == MARK).then_some(u32::from_le_bytes(thread.try_into().ok()?))
}
