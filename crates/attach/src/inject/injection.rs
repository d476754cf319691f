//! Injects madvise(2) calls into a thread of another process.

use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::areas::{MappedArea, VmaSource};
use super::machine::{self, CallRemainder, Registers, StopPlace};
use super::padding::{HeldThread, StubSlot};
use super::seccomp::FilteredCall;
use super::status::{Activity, ThreadStatus};
use super::tracee::{Stop, Tracee, WaitResult};
use super::{InjectionReport, MemoryAdvice, Refusal};
use crate::mapped_range::MappedRange;

/// How long to wait for another injector to release the process.
const LOCK_TIMEOUT: Duration = Duration::from_millis(20);

/// How long a thread may take to stop, while it runs or waits for a page. Generous, because a
/// thread abandoned before its stop may see a system call interrupted.
const STOP_TIMEOUT: Duration = Duration::from_millis(100);

/// How long a thread in mmap(2) may take to populate the mapping.
const POPULATE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the thread may take to reach the system call entry, waiting for a CPU.
const CALL_TIMEOUT: Duration = Duration::from_millis(100);

/// How long the system call itself may take.
const RESULT_TIMEOUT: Duration = Duration::from_secs(1);

/// The same for a mapping that is fully populated, all of whose pages may have to be unmapped.
const POPULATED_RESULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Type of the entry of `/proc/PID/auxv` that holds the address of the vDSO.
const AT_SYSINFO_EHDR: u64 = 33;

/// Advice on a range, to be given by one thread.
#[derive(Clone, Debug)]
pub struct Injection {
    pub pid: u32,
    pub tid: u32,
    pub range: MappedRange,
    /// Calls to make in order, until one fails.
    pub advice: Vec<MemoryAdvice>,
    /// Run after each successful call, while the thread is held.
    pub after_call: Option<AfterCall>,
    /// Waits for the return of a thread that populates a mapping in mmap(2), until this is set.
    pub populate: Option<Arc<AtomicBool>>,
}

/// Callback run while a thread is held.
#[derive(Clone)]
pub struct AfterCall(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for AfterCall {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Then")
    }
}

/// State of a held thread that passed all checks.
struct PreparedCall {
    original: Registers,
    slot: StubSlot,
    inner_tid: u32,
}

impl Injection {
    /// Runs the injection. The calling thread must end afterwards: that is what detaches a tracee
    /// that has not stopped.
    pub fn run(&self) -> Result<InjectionReport, Refusal> {
        self.check_thread()?;
        let (_lock, vdso) = self.lock()?;
        let tracee = Tracee::seize(self.tid).map_err(|errno| self.seize_refusal(errno))?;
        // Only between this check and the interrupt can the thread enter a system call that is then
        // interrupted.
        self.check_activity()?;
        tracee.interrupt().map_err(|_| self.gone())?;
        let limit = if self.populate.is_some() { POPULATE_TIMEOUT } else { STOP_TIMEOUT };
        let is_cancelled =
            || self.populate.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Acquire));
        let (stop, held_at) = self.wait(&tracee, limit, is_cancelled)?;
        let (signal, refusal) = match stop {
            Stop::Interrupt => match self.prepare(&tracee, vdso) {
                Ok(prepared) => return self.call(tracee, &prepared, held_at),
                Err(refusal) => (0, refusal),
            },
            Stop::JobControl => (0, Refusal::Stopped { tid: self.tid }),
            Stop::Signal(signal) => (signal, self.busy("a signal is delivered to it")),
            Stop::SystemCall | Stop::Other => (0, self.busy("it stopped for another reason")),
        };
        tracee.detach(signal);
        Err(refusal)
    }

    /// Checks that need no access to the thread itself.
    fn check_thread(&self) -> Result<(), Refusal> {
        let status = self.status()?;
        if status.process != self.pid {
            return Err(self.gone());
        }
        if status.tracer != 0 {
            return Err(Refusal::Traced { tid: self.tid });
        }
        match status.state {
            'T' => return Err(Refusal::Stopped { tid: self.tid }),
            't' => return Err(Refusal::Traced { tid: self.tid }),
            'Z' | 'X' => return Err(self.gone()),
            _ => {}
        }
        if shares_memory(self.pid, status.parent) {
            return Err(self.busy("it shares its memory with its parent, as after vfork(2)"));
        }
        self.check_activity()
    }

    fn check_activity(&self) -> Result<(), Refusal> {
        match self.activity()? {
            Activity::Populating if self.populate.is_some() => Ok(()),
            Activity::InSystemCall | Activity::Populating => {
                Err(Refusal::InSystemCall { tid: self.tid })
            }
            Activity::Running | Activity::Faulting => Ok(()),
        }
    }

    /// Locks the process against other injectors by flock(2) on its `auxv`, and finds its vDSO.
    fn lock(&self) -> Result<(File, u64), Refusal> {
        let read_failed = |error| self.read_refusal("reading auxv", error);
        let path = format!("/proc/{}/auxv", self.pid);
        let lock = File::open(&path).map_err(read_failed)?;
        let begin = Instant::now();
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if begin.elapsed() > LOCK_TIMEOUT {
                return Err(self.busy("another thread of its process is advising"));
            }
            sleep(Duration::from_micros(200));
        }
        let auxv = fs::read(&path).map_err(read_failed)?;
        let words: Vec<u64> = auxv
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("a chunk of eight bytes")))
            .collect();
        if words.is_empty() {
            // `auxv` is empty once the `mm_struct` is gone: the process is exiting.
            return Err(self.gone());
        }
        let vdso = words.chunks_exact(2).find(|pair| pair[0] == AT_SYSINFO_EHDR);
        Ok((lock, vdso.map(|pair| pair[1]).ok_or_else(|| self.no_room())?))
    }

    /// Repeats all checks on the held thread, whose state can no longer change.
    fn prepare(&self, tracee: &Tracee, vdso: u64) -> Result<PreparedCall, Refusal> {
        let original = tracee.registers().map_err(|_| self.gone())?;
        let status = self.status()?;
        if status.process != self.pid {
            return Err(self.gone());
        }
        match machine::stop_place(&original) {
            StopPlace::IoWorker => return Err(self.busy("it never leaves the kernel (io_uring)")),
            StopPlace::Program => {}
            StopPlace::Restart => return Err(Refusal::InSystemCall { tid: self.tid }),
            StopPlace::Interrupted { call } => {
                if machine::fails_when_interrupted(call) && !status.signals.has_deliverable() {
                    self.restart_call(tracee, &original);
                }
                return Err(Refusal::InSystemCall { tid: self.tid });
            }
            StopPlace::Stepping => return Err(self.busy("its program steps through it")),
            StopPlace::OtherCode => return Err(Refusal::Unsupported { what: "32-bit code" }),
        }
        self.check_rseq(tracee, &original)?;
        self.check_dispatch(tracee, &status)?;
        let areas = VmaSource::open_for_held_thread(self.pid, self.tid)
            .map_err(|error| self.read_refusal("reading maps", error))?;
        let vdso = areas.at(vdso).filter(|area| area.is_vdso && area.begin == vdso);
        let vdso = vdso.ok_or_else(|| self.no_room());
        let held = HeldThread {
            tracee,
            pid: self.pid,
            inner_tid: status.inner_tid,
            instruction: original.rip,
            stack: original.rsp,
        };
        if let Some(rest) = CallRemainder::from_registers(&original)
            .filter(|rest| self.was_cut_short(rest, &status))
        {
            self.finish_call(&held, &original, rest, &vdso?)?;
            return Err(Refusal::InSystemCall { tid: self.tid });
        }
        if !areas.has_range(&self.range) {
            return Err(Refusal::Changed { address: self.range.address });
        }
        let slot = StubSlot::find(&held, &vdso?)?;
        self.check_seccomp(tracee, &status, &slot)?;
        Ok(PreparedCall { original, slot, inner_tid: status.inner_tid })
    }

    /// Repeats a call that only our interrupt can have made fail, so that the program does not see
    /// EINTR.
    fn restart_call(&self, tracee: &Tracee, original: &Registers) {
        let (registers, address, instruction) = machine::restarted(original);
        let mut found = [0; 2];
        if tracee.read(address, &mut found).is_ok() && found == instruction {
            // Fails only if the thread was killed.
            let _ = tracee.set_registers(&registers);
        }
    }

    /// Whether only our interrupt can have cut a transfer short. Not under seccomp, whose filter
    /// would have to allow the call for the remainder, too.
    fn was_cut_short(&self, rest: &CallRemainder, status: &ThreadStatus) -> bool {
        const STREAM_PATHS: [&str; 4] = ["pipe:[", "socket:[", "/dev/pts/", "/dev/tty"];
        let is_endless = |descriptor: u64| {
            fs::read_link(format!("/proc/{}/task/{}/fd/{descriptor}", self.pid, self.tid))
                .is_ok_and(|path| {
                    let path = path.to_string_lossy();
                    STREAM_PATHS.iter().any(|kind| path.starts_with(kind))
                })
        };
        status.seccomp == 0
            && !status.signals.has_deliverable()
            && rest.descriptor.is_none_or(is_endless)
    }

    /// Has the held thread transfer the remainder by a stub, unattended and without a time limit;
    /// the stub is left in place. The program sees one complete call, even if this process is
    /// killed.
    fn finish_call(
        &self,
        held: &HeldThread<'_>,
        original: &Registers,
        rest: CallRemainder,
        vdso: &MappedArea,
    ) -> Result<(), Refusal> {
        let gone = |_| self.gone();
        let slot = StubSlot::find(held, vdso)?;
        let last = StubSlot { address: machine::stub_before(original.rip) };
        let joined = last.stub(held, vdso).and_then(|stub| rest.join_previous(original, &stub));
        let (rest, first) = joined.unwrap_or((rest, *original));
        slot.write(held.tracee, &rest.stub(&first, held.inner_tid)).map_err(gone)?;
        held.tracee.set_registers(&rest.registers_at(slot.address)).map_err(gone)?;
        if joined.is_some() {
            last.clear(held.tracee).map_err(gone)?;
        }
        Ok(())
    }

    /// Refuses a thread inside a restartable sequence: on resumption the kernel compares its
    /// instruction pointer with the sequence to decide on the abort, so the pointer must not
    /// change.
    fn check_rseq(&self, tracee: &Tracee, original: &Registers) -> Result<(), Refusal> {
        const SEQUENCE_OFFSET: u64 = 8;
        let rseq = match tracee.rseq() {
            Ok(rseq) if rseq.address == 0 => return Ok(()),
            Ok(rseq) => rseq,
            Err(Errno::IO) if !kernel_has_rseq() => return Ok(()),
            Err(Errno::IO) => return Err(Refusal::Unsupported { what: "a kernel before 5.13" }),
            Err(_) => return Err(self.gone()),
        };
        let busy = || self.busy("it is in a restartable sequence");
        let mut pointer = [0; 8];
        tracee.read(rseq.address + SEQUENCE_OFFSET, &mut pointer).map_err(|_| busy())?;
        let sequence = u64::from_le_bytes(pointer);
        if sequence == 0 {
            return Ok(());
        }
        let mut bounds = [0; 16];
        tracee.read(sequence.wrapping_add(8), &mut bounds).map_err(|_| busy())?;
        let (begin, length) = bounds.split_at(8);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let is_inside = original.rip.wrapping_sub(word(begin)) < word(length);
        if is_inside { Err(busy()) } else { Ok(()) }
    }

    fn check_dispatch(&self, tracee: &Tracee, status: &ThreadStatus) -> Result<(), Refusal> {
        let dispatches = match tracee.dispatches_own_calls() {
            Ok(dispatches) => dispatches,
            // Before 6.4 the configuration is not readable. Dispatched calls raise SIGSYS, which
            // the program would have to catch.
            Err(Errno::IO) => status.signals.catches(libc::SIGSYS),
            Err(_) => return Err(self.gone()),
        };
        if dispatches { Err(self.filtered("by syscall user dispatch")) } else { Ok(()) }
    }

    fn check_seccomp(
        &self,
        tracee: &Tracee,
        status: &ThreadStatus,
        slot: &StubSlot,
    ) -> Result<(), Refusal> {
        let call = |advice: &MemoryAdvice| FilteredCall {
            number: libc::SYS_madvise as u32,
            architecture: machine::AUDIT_ARCH,
            instruction: machine::address_after_call(slot.address),
            arguments: self.arguments(*advice),
        };
        match status.seccomp {
            0 => Ok(()),
            1 => Err(self.filtered("with seccomp in strict mode")),
            _ => {
                let mut calls = self.advice.iter().map(call);
                calls
                    .try_for_each(|call| call.passes(tracee))
                    .map_err(|filter| self.filtered(filter))
            }
        }
    }

    /// Has the held thread make the calls, then restores its registers and detaches.
    fn call(
        &self,
        tracee: Tracee,
        prepared: &PreparedCall,
        held_at: Instant,
    ) -> Result<InjectionReport, Refusal> {
        let PreparedCall { original, slot, inner_tid } = prepared;
        let gone = |_| self.gone();
        slot.write(&tracee, &machine::stub(original, *inner_tid)).map_err(gone)?;
        let mut result = Ok(0);
        for advice in &self.advice {
            let arguments = self.arguments(*advice);
            let calling = machine::for_call(original, slot.address, libc::SYS_madvise, arguments);
            tracee.set_registers(&calling).map_err(gone)?;
            result = self.wait_for_result(&tracee, slot);
            match (&result, &self.after_call) {
                (Ok(0), Some(AfterCall(then))) => then(),
                (Ok(0), None) => {}
                _ => break,
            }
        }
        if let Err((_, None)) = result {
            // The thread still runs, or has exited. If it runs, it is in the stub, which restores
            // its state.
            return result.map(|_| unreachable!()).map_err(|(refusal, _)| refusal);
        }
        tracee.set_registers(&machine::without_restart(original)).map_err(gone)?;
        slot.clear(&tracee).map_err(gone)?;
        let signal = result.as_ref().err().and_then(|(_, signal)| *signal).unwrap_or(0);
        tracee.detach(signal);
        let advised = InjectionReport {
            stopped_ns: held_at.elapsed().as_nanos() as u64,
            is_at_mmap_return: machine::mmap_result(original)
                .is_some_and(|address| self.range.contains(address)),
        };
        match result {
            Ok(0) => Ok(advised),
            Ok(negative) => {
                let errno = Errno::from_raw_os_error(-negative as i32);
                Err(Refusal::Failed { pid: self.pid, errno })
            }
            Err((refusal, _)) => Err(refusal),
        }
    }

    /// Returns the result of the call. On failure, also returns the signal to deliver on detach (0
    /// for none), or `None` if the thread has not stopped.
    fn wait_for_result(
        &self,
        tracee: &Tracee,
        slot: &StubSlot,
    ) -> Result<i64, (Refusal, Option<i32>)> {
        let result_timeout =
            if self.populate.is_some() { POPULATED_RESULT_TIMEOUT } else { RESULT_TIMEOUT };
        for limit in [CALL_TIMEOUT, result_timeout] {
            tracee.resume_to_system_call().map_err(|_| (self.gone(), None))?;
            let (stop, _) =
                self.wait(tracee, limit, || false).map_err(|refusal| match refusal {
                    Refusal::Slow { tid, milliseconds } => {
                        (Refusal::Unfinished { tid, milliseconds }, None)
                    }
                    refusal => (refusal, None),
                })?;
            let refusal = match stop {
                Stop::SystemCall => continue,
                Stop::JobControl => (Refusal::Stopped { tid: self.tid }, Some(0)),
                Stop::Signal(signal) => (self.busy("a signal is delivered to it"), Some(signal)),
                Stop::Interrupt | Stop::Other => {
                    (self.busy("it stopped for another reason"), Some(0))
                }
            };
            return Err(refusal);
        }
        let registers = tracee.registers().map_err(|_| (self.gone(), None))?;
        debug_assert_eq!(registers.rip, machine::address_after_call(slot.address));
        Ok(machine::result(&registers))
    }

    fn arguments(&self, advice: MemoryAdvice) -> [u64; 3] {
        [self.range.address, self.range.length_bytes, advice.number() as u64]
    }

    fn wait(
        &self,
        tracee: &Tracee,
        limit: Duration,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<(Stop, Instant), Refusal> {
        match tracee.wait(limit, is_cancelled) {
            WaitResult::Stopped { stop, running_at } => Ok((stop, running_at)),
            WaitResult::Ended => Err(self.gone()),
            WaitResult::TimedOut => {
                Err(Refusal::Slow { tid: self.tid, milliseconds: limit.as_millis() as u64 })
            }
        }
    }

    fn status(&self) -> Result<ThreadStatus, Refusal> {
        ThreadStatus::read(self.pid, self.tid)
            .map_err(|error| self.read_refusal("its status", error))
    }

    fn activity(&self) -> Result<Activity, Refusal> {
        Activity::read(self.pid, self.tid)
            .map_err(|error| self.read_refusal("reading its system call", error))
    }

    fn read_refusal(&self, action: &'static str, error: io::Error) -> Refusal {
        match Errno::from_io_error(&error) {
            Some(errno @ (Errno::ACCESS | Errno::PERM)) => self.forbidden(action, errno),
            _ => self.gone(),
        }
    }

    fn seize_refusal(&self, errno: Errno) -> Refusal {
        match ThreadStatus::read(self.pid, self.tid) {
            Err(_) => self.gone(),
            Ok(status) if status.tracer != 0 => Refusal::Traced { tid: self.tid },
            Ok(status) if matches!(status.state, 'Z' | 'X') => self.gone(),
            Ok(_) if errno == Errno::SRCH => self.gone(),
            Ok(_) => self.forbidden("tracing", errno),
        }
    }

    fn forbidden(&self, action: &'static str, errno: Errno) -> Refusal {
        let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
        let remedy = if matches!(scope.trim(), "" | "0") {
            "run as the program's user, or as root; a container needs the capability SYS_PTRACE"
        } else {
            "run as root, or set the sysctl kernel.yama.ptrace_scope to 0"
        };
        Refusal::Forbidden { tid: self.tid, what: action, errno, remedy }
    }

    fn gone(&self) -> Refusal {
        Refusal::Gone { pid: self.pid, tid: self.tid }
    }

    fn busy(&self, place: &'static str) -> Refusal {
        Refusal::Busy { tid: self.tid, place }
    }

    fn filtered(&self, filter: &'static str) -> Refusal {
        Refusal::Filtered { pid: self.pid, filter }
    }

    fn no_room(&self) -> Refusal {
        Refusal::NoRoom { pid: self.pid, needed_bytes: machine::STUB_BYTES }
    }
}

/// Whether two processes share an address space; false if kcmp(2) is not permitted.
fn shares_memory(pid: u32, other: u32) -> bool {
    const KCMP_VM: i32 = 1;
    // SAFETY: kcmp takes integers only.
    let answer =
        unsafe { libc::syscall(libc::SYS_kcmp, pid as i32, other as i32, KCMP_VM, 0_u64, 0_u64) };
    other != 0 && answer == 0
}

fn kernel_has_rseq() -> bool {
    // SAFETY: the kernel rejects a null structure of size zero.
    let answer = unsafe { libc::syscall(libc::SYS_rseq, 0_usize, 0_u32, 0_i32, 0_u32) };
    answer == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS)
}
