//! What the governor's library needs to learn of faults: each thing is tried as the library does.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use filemap_control::request::event;
use filemap_control::request::scan::{PAGEMAP_SCAN, Scan};

use super::{Check, check};
use crate::{Error, governor, page_size};

/// The commands that load the library into a program.
const PRELOADS: &str = "govern, record, record --apply, advise --check";

/// Those of them that have to learn of faults.
const SEES_FAULTS: &str = "govern, record, record --apply";

/// The command that can do with less.
const SCANS: &str = "govern";

/// The library's file.
pub(super) fn library() -> Check {
    let found = governor::library();
    let name = |path: std::path::PathBuf| {
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    };
    let check = check("governor library", PRELOADS, found.map(name));
    // Where it was looked for would be too long for a line; `govern` says it.
    Check {
        state: check.state.map_err(|_| "not found, or where it cannot be used".into()),
        ..check
    }
}

/// Where the kernel says who may use perf events.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The highest level at which ordinary users may count events of their own programs.
const HIGHEST_LEVEL: i64 = 2;

/// The event by which the library learns of major faults.
pub(super) fn perf_events() -> Check {
    let level = fs::read_to_string(PARANOID).ok().and_then(|text| text.trim().parse().ok());
    perf_events_of(open_event(), level)
}

/// What is to be said where the kernel answered so, at this level.
fn perf_events_of(opened: Result<OwnedFd, io::Error>, level: Option<i64>) -> Check {
    let known = level.map_or("unknown".to_owned(), |level| level.to_string());
    let found = match &opened {
        Ok(_) => Ok(format!("permitted; kernel.perf_event_paranoid is {known}")),
        Err(error) => Err(refusal(error, &known)),
    };
    let others = "kernels of some distributions refuse them to ordinary users at this level: \
                  sysctl kernel.perf_event_paranoid=2 permits them";
    let for_root = opened.is_ok() && level.is_some_and(|level| level > HIGHEST_LEVEL);
    let check = check("perf events", SEES_FAULTS, found);
    Check { note: check.note.or(for_root.then(|| others.to_owned())), ..check }
}

fn refusal(error: &io::Error, level: &str) -> Error {
    let weaker = "without them govern scans page tables, which sees less, and record needs \
                  --changes or --without-library";
    match error.raw_os_error() {
        Some(libc::EACCES) => Error::unavailable(
            format!("perf events for this user (level {level})"),
            format!("sysctl kernel.perf_event_paranoid=2 as root permits them; {weaker}"),
        ),
        Some(libc::EPERM | libc::ENOSYS) => Error::unavailable(
            "perf events: a filter refuses the call",
            format!("let the container's filter of system calls pass perf_event_open; {weaker}"),
        ),
        Some(libc::EINVAL | libc::E2BIG) => {
            let remedy = format!("use Linux 5.13 or newer; {weaker}");
            Error::unavailable("perf events that send signals", remedy)
        }
        _ => Error::unavailable(format!("perf events: {error}"), weaker),
    }
}

/// Opens the event for this thread, switched off.
fn open_event() -> io::Result<OwnedFd> {
    let attributes = event::attributes(event::Faults::Major);
    let (own_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the kernel reads as many bytes as the attributes say that they have. The event
    // reports nothing, so that no signal comes.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            own_thread,
            any_cpu,
            no_group,
            event::FLAG_CLOEXEC,
        )
    };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
}

/// The call by which the library looks at page tables where it may not use perf events.
pub(super) fn page_table_scan() -> Check {
    let page = page_size();
    let on_stack = (&raw const page).addr() as u64 / page * page;
    let mut scan = Scan::mapped(on_stack, on_stack + page, 0, 0);
    let scanned = fs::File::open("/proc/self/pagemap").and_then(|pagemap| {
        // SAFETY: the structure is laid out as the kernel expects, and asks for no ranges.
        match unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) } {
            0.. => Ok("permitted".to_owned()),
            _ => Err(io::Error::last_os_error()),
        }
    });
    let found = scanned.map_err(|error| {
        let remedy = "use Linux 6.7 or newer; govern needs it only where perf events are refused";
        match error.raw_os_error() {
            Some(libc::ENOTTY | libc::EINVAL) => Error::unavailable("PAGEMAP_SCAN", remedy),
            _ => Error::unavailable(format!("PAGEMAP_SCAN: {error}"), remedy),
        }
    });
    check("page table scan", SCANS, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::COMMANDS;

    #[test]
    fn each_refusal_has_its_remedy() {
        let of = |errno, level| perf_events_of(Err(io::Error::from_raw_os_error(errno)), level);
        for (errno, level, words) in [
            (libc::EACCES, Some(4), ["level 4", "kernel.perf_event_paranoid=2"]),
            (libc::EPERM, Some(2), ["filter", "container"]),
            (libc::ENOSYS, None, ["filter", "container"]),
            (libc::EINVAL, Some(2), ["signals", "5.13"]),
            (libc::EMFILE, Some(2), ["open files", "scans page tables"]),
        ] {
            let check = of(errno, level);
            let text = format!("{:?} {:?}", check.state, check.note);
            assert!(check.state.is_err() && words.iter().all(|word| text.contains(word)), "{text}");
        }
        let open = || Ok(fs::File::open("/dev/null").unwrap().into());
        let permitted = perf_events_of(open(), Some(2));
        assert!(permitted.state.is_ok() && permitted.note.is_none(), "{permitted:?}");
        let for_root = perf_events_of(open(), Some(4));
        assert!(for_root.note.unwrap().contains("ordinary users"));
    }

    #[test]
    fn what_is_tried_is_there_or_has_a_remedy() {
        for commands in [PRELOADS, SEES_FAULTS, SCANS] {
            assert!(commands.split(", ").all(|name| COMMANDS.contains(&name)), "{commands}");
        }
        for check in [library(), perf_events(), page_table_scan()] {
            assert!(check.state.is_ok() || check.note.is_some(), "{check:?}");
        }
        let answer = open_event().map_err(|error| error.raw_os_error());
        let known = [libc::EACCES, libc::EPERM, libc::ENOSYS, libc::EINVAL, libc::E2BIG].map(Some);
        assert!(answer.is_ok() || known.contains(&answer.unwrap_err()));
    }
}
