//! Identity and state of processes and threads.

use std::fs;
use std::str;

use super::{read, unreadable};
use crate::Error;

/// Refuses the ID of a thread that is not a thread group leader.
pub fn check_is_process(pid: u32) -> Result<(), Error> {
    match status_word(pid, "Tgid:", 0)? {
        Some(process) if process != pid => Err(Error::Thread { tid: pid, pid: process }),
        _ => Ok(()),
    }
}

/// Thread IDs of a process.
pub fn threads(pid: u32) -> Result<Vec<u32>, Error> {
    let unreadable = |cause| unreadable(pid, "task", cause);
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(found)
}

/// Effective user ID of a process.
pub fn effective_uid(pid: u32) -> Result<u32, Error> {
    const EFFECTIVE: usize = 1;
    status_word(pid, "Uid:", EFFECTIVE)?.ok_or(Error::Gone { pid })
}

/// The `word`th number, counted from 0, in the line of `/proc/PID/status` that begins with `key`.
fn status_word(pid: u32, key: &str, word: usize) -> Result<Option<u32>, Error> {
    let status = read(pid, "status")?;
    // The `Name` line need not be UTF-8.
    let mut lines = status.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(key.as_bytes()));
    let line = line.and_then(|line| str::from_utf8(line).ok());
    Ok(line.and_then(|line| line.split_whitespace().nth(word)?.parse().ok()))
}

/// Children of a process that have not been reaped.
pub fn children(pid: u32) -> Result<Vec<u32>, Error> {
    let mut found = Vec::new();
    for tid in threads(pid)? {
        // The thread may have exited meanwhile.
        let Ok(listed) = read(pid, &format!("task/{tid}/children")) else { continue };
        let listed = String::from_utf8_lossy(&listed);
        found.extend(listed.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(found)
}

/// The given processes and all their living descendants.
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

/// Size of the address space in pages: the first field of `statm`.
pub(crate) fn size_pages(pid: u32) -> Result<u64, Error> {
    let statm = read(pid, "statm")?;
    let first = str::from_utf8(&statm).ok().and_then(|text| text.split(' ').next());
    first.and_then(|pages| pages.parse().ok()).ok_or(Error::Gone { pid })
}

/// Fields of `/proc/PID/stat` that distinguish processes reusing a PID, and successive images of
/// one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// Start time in clock ticks since boot.
    pub(crate) start_ticks: u64,
    /// `startcode` and `startstack`, set by exec; 0 where access to the process is denied.
    pub(crate) image_addresses: (u64, u64),
    pub(crate) major_faults: u64,
    pub(crate) has_ended: bool,
}

pub(crate) fn process_stat(pid: u32) -> Result<ProcessStat, Error> {
    let stat = read(pid, "stat")?;
    let fields = fields_behind_name(&stat).ok_or(Error::Gone { pid })?;
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    // The fields after the name start with number 3 of proc(5).
    let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse().ok());
    let program = (number(26).unwrap_or(0), number(28).unwrap_or(0));
    Ok(ProcessStat {
        start_ticks: number(22).unwrap_or(0),
        image_addresses: program,
        major_faults: number(12).unwrap_or(0),
        has_ended: matches!(fields.first(), None | Some(&("Z" | "X" | "x"))),
    })
}

/// Index of `utime` in the fields after the name.
const USER_TICKS: usize = 11;

/// Index of the start time, in clock ticks since boot.
const START_TICKS: usize = 19;

/// Times of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Start of the thread, in clock ticks since boot.
    pub started_ticks: u64,
    /// User CPU time in nanoseconds.
    pub user_ns: u64,
}

/// Times of a thread; `None` if it is gone.
pub fn thread_times(pid: u32, tid: u32) -> Option<ThreadTimes> {
    let stat = read(pid, &format!("task/{tid}/stat")).ok()?;
    let fields: Vec<&str> = fields_behind_name(&stat)?.split_ascii_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Some(ThreadTimes { started_ticks: ticks(START_TICKS)?, user_ns: ticks(USER_TICKS)? * tick_ns })
}

/// The fields of `stat` after the parenthesised name, which may hold arbitrary bytes.
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
    fn this_process_is_known() {
        let pid = std::process::id();
        assert!(threads(pid).expect("own threads").contains(&pid));
        assert_eq!(effective_uid(pid).ok(), Some(rustix::process::geteuid().as_raw()));
        assert!(process_stat(pid).is_ok_and(|life| life.image_addresses.1 != 0 && !life.has_ended));
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
