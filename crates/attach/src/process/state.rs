//! What a process and its threads are and do.

use std::fs;
use std::str;

use super::{read, unreadable};
use crate::Error;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It runs or could, in user mode or in the kernel.
    Running,
    /// It waits in this system call; in some one where the kernel does not tell which.
    InCall {
        number: Option<i64>,
    },
    /// It waits in the kernel, but in no system call: in a fault.
    InFault,
    /// It is stopped, or held by a tracer.
    Stopped,
    Ended,
}

/// Refuses the number of a thread that is not its process' first.
pub fn check_is_process(pid: u32) -> Result<(), Error> {
    match status_word(pid, "Tgid:", 0)? {
        Some(process) if process != pid => Err(Error::Thread { tid: pid, pid: process }),
        _ => Ok(()),
    }
}

/// The threads of a process.
pub fn threads(pid: u32) -> Result<Vec<u32>, Error> {
    let unreadable = |cause| unreadable(pid, "task", cause);
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(found)
}

pub fn thread_state(pid: u32, tid: u32) -> Result<ThreadState, Error> {
    let stat = read(pid, &format!("task/{tid}/stat"))?;
    match fields_behind_name(&stat).and_then(|fields| fields.split(' ').next()) {
        Some("R") => Ok(ThreadState::Running),
        Some("T" | "t") => Ok(ThreadState::Stopped),
        Some("Z" | "X" | "x") => Ok(ThreadState::Ended),
        _ => match read(pid, &format!("task/{tid}/syscall")) {
            Ok(call) => Ok(waiting(&call)),
            Err(Error::Gone { .. }) => Err(Error::Gone { pid }),
            Err(_) => Ok(ThreadState::InCall { number: None }),
        },
    }
}

/// What `/proc/PID/task/TID/syscall` says of a thread that does not run: the number of a call and
/// its arguments, -1 where it is in none, or that it runs again.
fn waiting(call: &[u8]) -> ThreadState {
    let first = call.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    match str::from_utf8(first).ok().and_then(|number| number.parse().ok()) {
        Some(-1) => ThreadState::InFault,
        Some(number) => ThreadState::InCall { number: Some(number) },
        None => ThreadState::Running,
    }
}

/// Whether it is a 32-bit program.
pub fn is_32_bit(pid: u32) -> Result<bool, Error> {
    let auxiliary = read(pid, "auxv")?;
    // The first word is a small number; of a 32-bit program its value is in the same eight bytes.
    let first = auxiliary.first_chunk().ok_or(Error::Gone { pid })?;
    Ok(u64::from_ne_bytes(*first) > u64::from(u16::MAX))
}

/// The seccomp mode of a process: 0 none, 1 strict, 2 filter.
pub fn seccomp_mode(pid: u32) -> Result<u32, Error> {
    // A kernel without seccomp says nothing of it.
    Ok(status_word(pid, "Seccomp:", 0)?.unwrap_or(0))
}

/// The user that a process runs as.
pub fn user(pid: u32) -> Result<u32, Error> {
    const EFFECTIVE: usize = 1;
    status_word(pid, "Uid:", EFFECTIVE)?.ok_or(Error::Gone { pid })
}

/// A number in the line of `/proc/PID/status` that begins with `key`, counted from 0.
fn status_word(pid: u32, key: &str, word: usize) -> Result<Option<u32>, Error> {
    let status = read(pid, "status")?;
    // The name of a process may have any bytes.
    let mut lines = status.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(key.as_bytes()));
    let line = line.and_then(|line| str::from_utf8(line).ok());
    Ok(line.and_then(|line| line.split_whitespace().nth(word)?.parse().ok()))
}

/// The processes that a process has made and that have not been waited for.
pub fn children(pid: u32) -> Result<Vec<u32>, Error> {
    let mut found = Vec::new();
    for tid in threads(pid)? {
        // A thread may have ended meanwhile.
        let Ok(listed) = read(pid, &format!("task/{tid}/children")) else { continue };
        let listed = String::from_utf8_lossy(&listed);
        found.extend(listed.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(found)
}

/// Processes that run, with all that they have started which runs too.
pub fn with_children(named: &[u32]) -> Vec<u32> {
    let mut all = named.to_vec();
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        let new = children(pid).unwrap_or_default().into_iter();
        let new: Vec<u32> = new.filter(|child| !all.contains(child)).collect();
        all.extend(new);
    }
    all
}

/// How many pages of addresses are mapped.
pub(crate) fn size_pages(pid: u32) -> Result<u64, Error> {
    let statm = read(pid, "statm")?;
    let first = str::from_utf8(&statm).ok().and_then(|text| text.split(' ').next());
    first.and_then(|pages| pages.parse().ok()).ok_or(Error::Gone { pid })
}

/// What tells one process and one program from others of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// When it began, in ticks since boot.
    pub(crate) began: u64,
    /// Where its code and its stack began when it became this program; 0 where that is not told.
    pub(crate) program: (u64, u64),
    pub(crate) major_faults: u64,
    pub(crate) has_ended: bool,
}

pub(crate) fn life(pid: u32) -> Result<Life, Error> {
    let stat = read(pid, "stat")?;
    let fields = fields_behind_name(&stat).ok_or(Error::Gone { pid })?;
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    // The first is the third that proc(5) numbers.
    let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse().ok());
    let program = (number(26).unwrap_or(0), number(28).unwrap_or(0));
    Ok(Life {
        began: number(22).unwrap_or(0),
        program,
        major_faults: number(12).unwrap_or(0),
        has_ended: matches!(fields.first(), None | Some(&("Z" | "X" | "x"))),
    })
}

/// The place of the user time after the name.
const USER_TICKS: usize = 11;

/// The user time of a thread until now, in nanoseconds; `None` where it is gone.
pub fn user_ns(pid: u32, tid: u32) -> Option<u64> {
    let stat = read(pid, &format!("task/{tid}/stat")).ok()?;
    let ticks: u64 =
        fields_behind_name(&stat)?.split_ascii_whitespace().nth(USER_TICKS)?.parse().ok()?;
    Some(ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// The fields of `stat` after the name in parentheses, which may have any bytes.
fn fields_behind_name(stat: &[u8]) -> Option<&str> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    str::from_utf8(stat.get(name_end + 2..)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_hide_fields() {
        assert_eq!(fields_behind_name(b"7 (a) R (b) S 1 2\n"), Some("S 1 2\n"));
        assert_eq!(fields_behind_name(b"7 (\xff\n) R 1"), Some("R 1"));
        assert_eq!((fields_behind_name(b"7 (a)"), fields_behind_name(b"")), (None, None));
    }

    #[test]
    fn what_a_thread_waits_in_is_read() {
        assert_eq!(waiting(b"running\n"), ThreadState::Running);
        assert_eq!(waiting(b"-1 0x7ffe 0x401\n"), ThreadState::InFault);
        let call = ThreadState::InCall { number: Some(232) };
        assert_eq!(waiting(b"232 0x4 0x7f 0x1 0x0 0x0 0x0 0x7ffe 0x401\n"), call);
    }

    #[test]
    fn this_process_is_known() {
        let pid = std::process::id();
        assert_eq!(is_32_bit(pid).ok(), Some(cfg!(target_pointer_width = "32")));
        assert!(threads(pid).expect("own threads").contains(&pid));
        assert_eq!(user(pid).ok(), Some(rustix::process::geteuid().as_raw()));
        assert!(matches!(seccomp_mode(pid), Ok(0..=2)));
        assert!(life(pid).is_ok_and(|life| life.program.1 != 0 && !life.has_ended));
        assert!(matches!(maps_of_nobody(), Err(Error::Gone { .. })));
    }

    #[test]
    fn user_time_is_the_fourteenth_field() {
        let stat = b"77 (a b) 9 ) S 1 77 77 0 -1 4194560 1 2 3 4 55 66 7 8 20 0 1 0 9 9 9";
        let mut fields = fields_behind_name(stat).unwrap().split_ascii_whitespace();
        assert_eq!(fields.nth(USER_TICKS), Some("55"));
    }

    fn maps_of_nobody() -> Result<Vec<crate::MappedRange>, Error> {
        crate::process::maps(u32::MAX / 2)
    }
}
