//! Thread state from `/proc`.

use std::fs;
use std::io;

/// Fields of `/proc/PID/task/TID/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatus {
    /// State letter, such as `R` for running.
    pub state: char,
    pub process: u32,
    pub parent: u32,
    pub tracer: u32,
    /// Thread ID in the innermost PID namespace.
    pub inner_tid: u32,
    /// Seccomp mode: 0 disabled, 1 strict, 2 filter.
    pub seccomp: u32,
    pub signals: SignalSets,
}

/// Signal masks; signal N is bit N - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSets {
    pub pending: u64,
    pub blocked: u64,
    pub ignored: u64,
    pub caught: u64,
}

/// What a thread is doing, by `/proc/PID/task/TID/syscall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Runnable, in user mode or briefly in the kernel.
    Running,
    /// Blocked outside of a system call: in a page fault.
    Faulting,
    /// Blocked in mmap(2), which populates the mapping: `mm_populate` ends early only if the thread
    /// is killed.
    Populating,
    InSystemCall,
}

impl ThreadStatus {
    pub fn read(pid: u32, tid: u32) -> io::Result<ThreadStatus> {
        Ok(ThreadStatus::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/status"))?))
    }

    fn parse(text: &str) -> ThreadStatus {
        let mut status = ThreadStatus::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let number = || value.parse().unwrap_or(0);
            let set = || u64::from_str_radix(value, 16).unwrap_or(0);
            match name {
                "State" => status.state = value.chars().next().unwrap_or('X'),
                "Tgid" => status.process = number(),
                "PPid" => status.parent = number(),
                "TracerPid" => status.tracer = number(),
                "NSpid" => {
                    let inner = value.split_whitespace().next_back();
                    status.inner_tid = inner.and_then(|tid| tid.parse().ok()).unwrap_or(0);
                }
                "Seccomp" => status.seccomp = number(),
                "SigPnd" | "ShdPnd" => status.signals.pending |= set(),
                "SigBlk" => status.signals.blocked = set(),
                "SigIgn" => status.signals.ignored = set(),
                "SigCgt" => status.signals.caught = set(),
                _ => {}
            }
        }
        status
    }
}

impl SignalSets {
    pub fn catches(&self, signal: i32) -> bool {
        self.caught & bit(signal) != 0
    }

    /// Whether a pending signal will interrupt the thread: not blocked, and not ignored explicitly
    /// or by default.
    pub fn has_deliverable(&self) -> bool {
        let unheard: u64 = [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH].into_iter().map(bit).sum();
        let ignored = self.ignored | (unheard & !self.caught);
        self.pending & !self.blocked & !ignored != 0
    }
}

impl Activity {
    pub fn read(pid: u32, tid: u32) -> io::Result<Activity> {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"))?;
        Ok(Activity::parse(&text))
    }

    /// Parses `running`, or the number of the system call and its arguments in hexadecimal.
    fn parse(text: &str) -> Activity {
        let mut words = text.split_whitespace();
        match words.next() {
            Some("running") => Activity::Running,
            Some("-1") => Activity::Faulting,
            Some(call) if call.parse() == Ok(libc::SYS_mmap) && populates(words.nth(3)) => {
                Activity::Populating
            }
            _ => Activity::InSystemCall,
        }
    }
}

/// Whether an argument of mmap(2) has the flags that populate a mapping.
fn populates(flags: Option<&str>) -> bool {
    let digits = flags.and_then(|flags| flags.strip_prefix("0x"));
    let flags = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or(0);
    flags & u64::from((libc::MAP_POPULATE | libc::MAP_LOCKED).cast_unsigned()) != 0
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_activity() {
        let mapping = |flags: &str| format!("9 0x0 0x20000000 0x1 {flags} 0x3 0x0 0x7ffd 0x7f11\n");
        for (text, activity) in [
            ("running\n", Activity::Running),
            ("-1 0x7ffd 0x7f11\n", Activity::Faulting),
            (&mapping("0x8001"), Activity::Populating),
            (&mapping("0x2002"), Activity::Populating),
            (&mapping("0x1"), Activity::InSystemCall),
            ("0 0x0 0x0 0x0 0x8001 0x3 0x0 0x7ffd 0x7f11\n", Activity::InSystemCall),
            ("", Activity::InSystemCall),
        ] {
            assert_eq!(Activity::parse(text), activity, "{text}");
        }
    }

    #[test]
    fn parses_status() {
        let text = "Name:\ta: b\nState:\tt (tracing stop)\nTgid:\t7\nPPid:\t1\nTracerPid:\t9\n\
            NSpid:\t7\t3\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000010000\n\
            SigBlk:\t0000000000000001\nSigIgn:\t0\nSigCgt:\t0\nSeccomp:\t2\n";
        let status = ThreadStatus::parse(text);
        assert_eq!((status.state, status.process, status.parent), ('t', 7, 1));
        assert_eq!((status.tracer, status.inner_tid, status.seccomp), (9, 3, 2));
        // SIGHUP is blocked; SIGCHLD is ignored by default unless caught.
        assert!(!status.signals.has_deliverable());
        assert!(SignalSets { caught: 0x10000, ..status.signals }.has_deliverable());
        assert!(SignalSets { blocked: 0, ..status.signals }.has_deliverable());
    }
}
