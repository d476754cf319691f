//! Registers and instructions of 64-bit x86.

use libc::user_regs_struct;

/// The size of [`stub`].
pub const STUB_BYTES: usize = 88;

/// In the last four bytes of a stub, so that one that was left is recognised.
const MARK: u32 = 0x6676_6461;

/// The selector of 64-bit code of a program.
const USER_CS: u64 = 0x33;

const TRAP_FLAG: u64 = 1 << 8;
const NO_CALL: u64 = u64::MAX;

/// No call transfers more (MAX_RW_COUNT).
const MAX_RW_COUNT: u64 = 0x7fff_f000;

const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// AUDIT_ARCH_X86_64, which a seccomp filter is given.
pub const AUDIT_ARCH: u32 = 0xc000_003e;

pub type Registers = user_regs_struct;

/// Where a thread was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPlace {
    /// In its program, or after a system call that has its result.
    Program,
    /// In a system call that the kernel begins again if nothing is changed.
    Restart,
    /// In a system call that has failed with EINTR.
    Interrupted { call: i64 },
    /// It works in the kernel for io_uring, and has no code of its program.
    IoWorker,
    /// In code that is not 64-bit.
    OtherCode,
    /// The program steps through itself.
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

/// Whether a system call fails with EINTR although no handler ran: the calls that the kernel
/// never begins again, and those that it does not with a timeout, which a socket can have.
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

/// The registers with which a failed system call is made again, and where its instruction is.
pub fn restarted(original: &Registers) -> (Registers, u64, [u8; 2]) {
    let mut registers = *original;
    registers.rip = original.rip.wrapping_sub(SYSCALL.len() as u64);
    registers.rax = original.orig_rax;
    registers.orig_rax = NO_CALL;
    (registers, registers.rip, SYSCALL)
}

/// The registers as they were, so that the kernel takes them as no system call's.
pub fn without_restart(original: &Registers) -> Registers {
    Registers { orig_rax: NO_CALL, ..*original }
}

/// The registers that make the call of the stub.
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

/// Where a thread is while it makes the call of the stub.
pub fn address_after_call(stub: u64) -> u64 {
    stub + SYSCALL.len() as u64
}

/// The stub in whose call a thread is that is at `instruction`, if it is in one.
pub fn stub_before(instruction: u64) -> u64 {
    instruction.wrapping_sub(SYSCALL.len() as u64)
}

pub fn result(registers: &Registers) -> i64 {
    registers.rax as i64
}

/// The instructions that make one system call, give each register that it changed its original
/// value, and jump to where the thread was. They use no stack and change no flag: the call itself
/// gives the flags back.
pub fn stub(original: &Registers, thread: u32) -> [u64; STUB_BYTES / 8] {
    let mut bytes = SYSCALL.to_vec();
    load_arguments(&mut bytes, original);
    load(&mut bytes, [0x48, 0xb9], original.rcx);
    load(&mut bytes, [0x49, 0xbb], original.r11);
    load(&mut bytes, [0x48, 0xb8], original.rax);
    assemble(bytes, original, thread)
}

/// What is left to do of a system call that has done a part.
#[derive(Clone, Copy, Debug)]
pub struct CallRemainder {
    /// The file that it is about, if it is about one.
    pub descriptor: Option<u64>,
    /// What was done, which is below 2^31: no call does more.
    done_bytes: u32,
    /// The registers that make the call for what is left.
    registers: Registers,
}

impl CallRemainder {
    /// What stands after the call in a stub of this kind. A call leaves rcx and r11 changed, so
    /// that rcx serves here, and no flag is changed. rcx becomes the highest byte of the result,
    /// which is 0 unless the call has failed; if it is not 0, rax becomes 0; and rax grows by what
    /// was done, which stands next.
    const SUM: [u8; 19] = [
        0x48, 0x89, 0xc1, 0x48, 0x0f, 0xc9, 0x0f, 0xb6, 0xc9, 0xe3, 0x05, 0xb8, 0x00, 0x00, 0x00,
        0x00, 0x48, 0x8d, 0x80,
    ];

    /// Of the calls that do a part where a signal comes, and all of it otherwise.
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

    /// The registers with which the thread goes on in the stub.
    pub fn registers_at(&self, stub: u64) -> Registers {
        Registers { rip: stub, ..self.registers }
    }

    /// The rest of a call of which `stub` had the thread do the rest already: what both parts have
    /// done, and the registers as they were at first.
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

    /// The instructions that do what is left, and go on as if one call had done all: with the sum,
    /// or with the first part where no more could be done.
    pub fn stub(&self, original: &Registers, thread: u32) -> [u64; STUB_BYTES / 8] {
        let mut bytes = SYSCALL.to_vec();
        bytes.extend(CallRemainder::SUM);
        bytes.extend(self.done_bytes.to_le_bytes());
        load_arguments(&mut bytes, original);
        assemble(bytes, original, thread)
    }
}

/// Bytes of an instruction of [`load_arguments`], and of its operation code.
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

/// A jump to the address that stands after it.
const JUMP: [u8; 6] = [0xff, 0x25, 0, 0, 0, 0];

/// A stub of these instructions and a jump to where the thread was.
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

/// The thread that a stub was written for, which may be half written.
pub fn thread_of_stub(bytes: &[u8]) -> Option<u32> {
    let (thread, mark) = bytes.last_chunk::<8>()?.split_at(4);
    let mark = u32::from_le_bytes(mark.try_into().ok()?);
    (mark == MARK).then_some(u32::from_le_bytes(thread.try_into().ok()?))
}
