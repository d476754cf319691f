//! Settings of the whole machine that a job may want otherwise.

use std::fs;
use std::io;
use std::path::Path;

use filemap_job::Machine;

use crate::journal::{Guard, Journal, Undo};
use crate::{Error, page_size};

/// Where the kernel tells its size of fault-around, if debugfs is mounted and open.
pub(crate) const FAULT_AROUND_FILE: &str = "/sys/kernel/debug/fault_around_bytes";

/// Size of fault-around that kernels have unless told otherwise, in bytes.
const FAULT_AROUND_BYTES: u64 = 65536;

/// Settings as a job wants them; restored when this drops.
#[derive(Debug)]
pub(super) struct Settings {
    _fault_around: FaultAround,
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
        Ok(Settings { _fault_around: FaultAround::set(wanted, journal)? })
    }
}

/// A fault-around size of the whole machine; restored when this drops.
#[derive(Debug)]
pub struct FaultAround {
    _changed: Option<Guard>,
}

impl FaultAround {
    /// Sets it to `wanted` bytes, unless the machine has that already.
    ///
    /// # Errors
    /// Not root; debugfs that is not mounted, or a kernel that is locked down.
    pub fn set(wanted: u64, journal: &Journal) -> Result<Self, Error> {
        let path = Path::new(FAULT_AROUND_FILE);
        if wanted == fault_around_bytes() {
            return Ok(FaultAround { _changed: None });
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
        Ok(FaultAround { _changed: Some(guard) })
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
