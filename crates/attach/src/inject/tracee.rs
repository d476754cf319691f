//! A thread traced by ptrace(2).

use std::mem::{size_of, zeroed};
use std::ptr::null_mut;
use std::thread::sleep;
use std::time::{Duration, Instant};

use libc::{c_int, c_void};
use rustix::io::Errno;

/// Time to spin for a stop: a thread running on another CPU stops within it.
const SPIN_TIME: Duration = Duration::from_micros(30);

/// Bounds of the poll interval after spinning.
const MAX_POLL_INTERVAL: Duration = Duration::from_micros(200);
const MIN_POLL_INTERVAL: Duration = Duration::from_micros(10);

/// `PTRACE_SECCOMP_GET_FILTER`.
const GET_FILTER: libc::c_uint = 0x420c;

/// A thread traced by the calling thread. The kernel detaches it when the calling thread ends for
/// any reason.
pub struct Tracee {
    tid: u32,
}

/// Reason for a ptrace stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Stopped by [`Tracee::interrupt`].
    Interrupt,
    /// Group stop: SIGSTOP, Ctrl-Z and the like.
    JobControl,
    /// Signal-delivery stop before this signal.
    Signal(i32),
    /// System call entry or exit.
    SystemCall,
    /// A ptrace event that was not requested.
    Other,
}

/// Result of waiting for a stop.
pub enum WaitResult {
    /// `running_at` is the last time at which the thread was seen not to have stopped.
    Stopped {
        stop: Stop,
        running_at: Instant,
    },
    Ended,
    TimedOut,
}

/// `struct ptrace_rseq_configuration`: the thread's registration by rseq(2).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RseqConfiguration {
    pub address: u64,
    size: u32,
    signature: u32,
    flags: u32,
    pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct UserDispatch {
    mode: u64,
    selector: u64,
    offset: u64,
    length: u64,
}

impl Tracee {
    /// Attaches by PTRACE_SEIZE, which does not stop the thread.
    pub fn seize(tid: u32) -> Result<Tracee, Errno> {
        let tracee = Tracee { tid };
        tracee.request(libc::PTRACE_SEIZE, 0, libc::PTRACE_O_TRACESYSGOOD as usize)?;
        Ok(tracee)
    }

    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// Stops the thread before it next returns to user mode.
    pub fn interrupt(&self) -> Result<(), Errno> {
        self.request(libc::PTRACE_INTERRUPT, 0, 0).map(|_| ())
    }

    /// Resumes the thread up to the next system call entry or exit.
    pub fn resume_to_system_call(&self) -> Result<(), Errno> {
        self.request(libc::PTRACE_SYSCALL, 0, 0).map(|_| ())
    }

    /// Detaches a stopped thread, delivering `signal` unless it is 0.
    pub fn detach(self, signal: i32) {
        // Fails only if the thread was killed, and thus is no longer traced.
        let _ = self.request(libc::PTRACE_DETACH, 0, signal as usize);
    }

    /// Waits until the thread stops, the time is up, or `is_cancelled`. Uses WNOWAIT and never
    /// consumes the stop: after a consumed signal-delivery stop, the signal would be lost if this
    /// process were killed.
    pub fn wait(&self, limit: Duration, is_cancelled: impl Fn() -> bool) -> WaitResult {
        let begin = Instant::now();
        let mut running_at = begin;
        loop {
            let looked_at = Instant::now();
            match self.poll_stop() {
                Err(_) => return WaitResult::Ended,
                Ok(Some(Some(stop))) => return WaitResult::Stopped { stop, running_at },
                Ok(Some(None)) => return WaitResult::Ended,
                Ok(None) => running_at = looked_at,
            }
            let elapsed = begin.elapsed();
            if elapsed >= limit || is_cancelled() {
                return WaitResult::TimedOut;
            }
            if elapsed > SPIN_TIME {
                sleep((elapsed / 4).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL));
            }
        }
    }

    /// `None` while the thread runs, `Some(None)` once it has exited.
    fn poll_stop(&self) -> Result<Option<Option<Stop>>, Errno> {
        let options = libc::WEXITED
            | libc::WSTOPPED
            | libc::WNOHANG
            | libc::WNOWAIT
            | libc::__WALL
            | libc::__WNOTHREAD;
        // SAFETY: siginfo_t may be all zero; `info` outlives the call.
        let (info, answer) = unsafe {
            let mut info: libc::siginfo_t = zeroed();
            let answer = libc::waitid(libc::P_PID, self.tid, &raw mut info, options);
            (info, answer)
        };
        if answer < 0 {
            return Err(last_errno());
        }
        // SAFETY: waitid filled in the members for a child, or left them zero.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        if pid == 0 {
            return Ok(None);
        }
        Ok(Some(match info.si_code {
            libc::CLD_TRAPPED | libc::CLD_STOPPED => Some(Stop::from_status(status)),
            _ => None,
        }))
    }

    #[cfg(target_arch = "x86_64")]
    pub fn registers(&self) -> Result<libc::user_regs_struct, Errno> {
        // SAFETY: user_regs_struct may be all zero.
        let mut registers: libc::user_regs_struct = unsafe { zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, &raw mut registers as usize)?;
        Ok(registers)
    }

    #[cfg(target_arch = "x86_64")]
    pub fn set_registers(&self, registers: &libc::user_regs_struct) -> Result<(), Errno> {
        self.request(libc::PTRACE_SETREGS, 0, &raw const *registers as usize).map(|_| ())
    }

    /// Writes one word to the thread's memory, regardless of page protection.
    pub fn write_word(&self, address: u64, word: u64) -> Result<(), Errno> {
        self.request(libc::PTRACE_POKEDATA, address as usize, word as usize).map(|_| ())
    }

    /// Fills `bytes` from the thread's memory; a partial read is an error.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: address as *mut c_void, iov_len: bytes.len() };
        // SAFETY: `local` describes `bytes`; the remote address is in another process.
        let read = unsafe {
            libc::process_vm_readv(self.tid as i32, &raw const local, 1, &raw const remote, 1, 0)
        };
        match read {
            -1 => Err(last_errno()),
            read if read as usize == bytes.len() => Ok(()),
            _ => Err(Errno::FAULT),
        }
    }

    /// Fails with EIO before Linux 5.13 or without rseq support.
    pub fn rseq(&self) -> Result<RseqConfiguration, Errno> {
        let mut configuration = RseqConfiguration::default();
        let data = &raw mut configuration as usize;
        let size = size_of::<RseqConfiguration>();
        self.request(libc::PTRACE_GET_RSEQ_CONFIGURATION, size, data)?;
        Ok(configuration)
    }

    /// Whether syscall user dispatch redirects the thread's system calls to SIGSYS. Fails with EIO
    /// before Linux 6.4.
    pub fn dispatches_own_calls(&self) -> Result<bool, Errno> {
        let mut dispatch = UserDispatch::default();
        let data = &raw mut dispatch as usize;
        let size = size_of::<UserDispatch>();
        self.request(libc::PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, size, data)?;
        Ok(dispatch.mode != 0)
    }

    /// Returns the thread's seccomp filter at `index`; `None` past the last.
    pub fn seccomp_filter(&self, index: usize) -> Result<Option<Vec<libc::sock_filter>>, Errno> {
        let count = match self.request(GET_FILTER, index, 0) {
            Err(Errno::NOENT) => return Ok(None),
            count => count?,
        };
        let empty = libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 };
        let mut filter = vec![empty; count as usize];
        self.request(GET_FILTER, index, filter.as_mut_ptr() as usize)?;
        Ok(Some(filter))
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> Result<i64, Errno> {
        // SAFETY: `data` is an integer or points to a live object of the size that the request
        // expects; `address` is an address in the other process, a size or an index.
        let answer = unsafe {
            libc::ptrace(
                request as _,
                self.tid as libc::pid_t,
                null_mut::<c_void>().wrapping_byte_add(address),
                null_mut::<c_void>().wrapping_byte_add(data),
            )
        };
        if answer == -1 { Err(last_errno()) } else { Ok(answer) }
    }
}

impl Stop {
    fn from_status(status: c_int) -> Stop {
        let (signal, event) = (status & 0xff, status >> 8);
        if event == libc::PTRACE_EVENT_STOP {
            return if signal == libc::SIGTRAP { Stop::Interrupt } else { Stop::JobControl };
        }
        match (event, signal) {
            (0, signal) if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
            (0, signal) => Stop::Signal(signal),
            _ => Stop::Other,
        }
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
