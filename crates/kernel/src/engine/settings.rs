//! Settings of the whole machine that a job may want otherwise.

use std::fs;
use std::io;
use std::path::Path;

use filemap_job::Machine;

use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::mounted::Mounted;
use crate::{Error, page_size};

/// Where the kernel tells its size of fault-around, if debugfs is mounted and open.
pub(crate) const FAULT_AROUND_FILE: &str = "/sys/kernel/debug/fault_around_bytes";

/// What it is called in debugfs.
const FAULT_AROUND_NAME: &str = "fault_around_bytes";

/// Size of fault-around that kernels have unless told otherwise, in bytes.
const FAULT_AROUND_BYTES: u64 = 65536;

/// Settings as a job wants them; restored when this drops.
#[derive(Debug)]
pub(super) struct Settings {
    _fault_around: Option<Guard>,
}

impl Settings {
    /// Changes what `machine` has otherwise, if that is allowed.
    pub(super) fn apply(
        machine: &Machine,
        journal: &Journal,
        allowed: bool,
    ) -> Result<Self, Error> {
        if !allowed {
            check(machine)?;
        }
        let wanted = machine.fault_around.bytes(page_size());
        let path = Path::new(FAULT_AROUND_FILE);
        if wanted == fault_around_bytes() {
            return Ok(Settings { _fault_around: None });
        }
        let locked = |error: io::Error| {
            Error::unavailable(
                format!("a fault-around of {wanted} bytes ({}: {error})", path.display()),
                "mount debugfs as root on a kernel that is not locked down, or use --image",
            )
        };
        let value = fs::read_to_string(path).map_err(locked)?;
        let undo = Undo::Restore { path: path.to_owned(), value, set: Some(wanted.to_string()) };
        let write = || fs::write(path, wanted.to_string()).map_err(locked);
        let ((), guard) = journal.change(undo, write)?;
        Ok(Settings { _fault_around: Some(guard) })
    }
}

/// Fault-around of one page on the whole machine, as long as it lives: the first touch of a page by
/// a process is a fault of its own, whatever is in the page cache.
#[derive(Debug)]
pub struct SinglePages {
    // Undone from the first to the last.
    _fault_around: Option<Guard>,
    debugfs: Mounted,
}

impl SinglePages {
    /// Sets it, unless the machine has it already.
    ///
    /// # Errors
    /// Not root; a kernel without debugfs; one locked down.
    pub fn set(journal: &Journal) -> Result<Self, Error> {
        require_root("setting fault-around to one page")?;
        let remedy = "leave out --apply, or use a kernel with debugfs that is not locked down";
        let debugfs = Mounted::open(journal, "debugfs", remedy)?;
        let path = debugfs.root().join(FAULT_AROUND_NAME);
        let refused = |error: io::Error| {
            Error::unavailable(format!("fault-around of one page ({error})"), remedy)
        };
        let value = fs::read_to_string(&path).map_err(refused)?;
        let wanted = page_size().to_string();
        let mut changed = None;
        if value.trim() != wanted {
            let undo = Undo::Restore { path: path.clone(), value, set: Some(wanted.clone()) };
            let write = || fs::write(&path, &wanted).map_err(refused);
            changed = Some(journal.change(undo, write)?.1);
        }
        Ok(SinglePages { _fault_around: changed, debugfs })
    }

    /// Whether it is still so: somebody else may have set it since.
    pub fn holds(&self) -> bool {
        let value = fs::read_to_string(self.debugfs.root().join(FAULT_AROUND_NAME));
        value.is_ok_and(|value| value.trim() == page_size().to_string())
    }
}

/// Refuses other settings than the machine has.
pub(super) fn check(machine: &Machine) -> Result<(), Error> {
    let wanted = machine.fault_around.bytes(page_size());
    if wanted == fault_around_bytes() {
        return Ok(());
    }
    Err(Error::unavailable(
        format!("a fault-around of {wanted} bytes without --apply"),
        "give --apply to set it for the runs, leave out --fault-around, or use --image",
    ))
}

/// Fault-around size of the running kernel in bytes: what it tells root, or its default.
pub(super) fn fault_around_bytes() -> u64 {
    let told = fs::read_to_string(FAULT_AROUND_FILE).ok();
    told.and_then(|text| text.trim().parse().ok()).unwrap_or(FAULT_AROUND_BYTES.max(page_size()))
}
