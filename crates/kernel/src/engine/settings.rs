//! Settings of the whole machine that a job may want otherwise.

use std::fs;
use std::io;

use filemap_job::Machine;

use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::mounted::KernelMount;
use crate::{Error, page_size};

/// Where the kernel tells its size of fault-around, if debugfs is mounted and open.
pub(crate) const FAULT_AROUND_FILE: &str = "/sys/kernel/debug/fault_around_bytes";

/// What it is called in debugfs.
const FAULT_AROUND_NAME: &str = "fault_around_bytes";

/// Size of fault-around that kernels have unless told otherwise, in bytes.
const FAULT_AROUND_BYTES: u64 = 65536;

/// Settings as a job wants them; restored when this drops.
#[derive(Debug)]
pub(super) struct MachineSettings {
    _fault_around: FaultAround,
}

impl MachineSettings {
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
        Ok(MachineSettings { _fault_around: FaultAround::set(wanted, journal)? })
    }
}

/// A fault-around size of the whole machine; restored when this drops.
///
/// With one page the first touch of a page by a process is a fault of its own, whatever is in the
/// page cache.
#[derive(Debug)]
pub struct FaultAround {
    wanted_bytes: u64,
    // Undone from the first to the last.
    _changed: Option<Guard>,
    debugfs: Option<KernelMount>,
}

impl FaultAround {
    /// Sets it, unless the machine has it already.
    ///
    /// # Errors
    /// Not root; a kernel without debugfs; one locked down.
    pub fn set(wanted_bytes: u64, journal: &Journal) -> Result<Self, Error> {
        if wanted_bytes == fault_around_bytes() {
            return Ok(FaultAround { wanted_bytes, _changed: None, debugfs: None });
        }
        let what = format!("a fault-around of {wanted_bytes} bytes");
        require_root("setting fault-around")?;
        let remedy = "use a kernel with debugfs that is not locked down, or leave it as it is";
        let debugfs = KernelMount::open(journal, "debugfs", remedy)?;
        let path = debugfs.root().join(FAULT_AROUND_NAME);
        let refused = |error: io::Error| Error::unavailable(format!("{what} ({error})"), remedy);
        let value = fs::read_to_string(&path).map_err(refused)?;
        let wanted = wanted_bytes.to_string();
        let mut changed = None;
        if value.trim() != wanted {
            let undo = Undo::Restore { path: path.clone(), value, set: Some(wanted.clone()) };
            let write = || fs::write(&path, &wanted).map_err(refused);
            changed = Some(journal.change(undo, write)?.1);
        }
        Ok(FaultAround { wanted_bytes, _changed: changed, debugfs: Some(debugfs) })
    }

    /// Whether it is still so: somebody else may have set it since.
    pub fn is_in_effect(&self) -> bool {
        match &self.debugfs {
            None => fault_around_bytes() == self.wanted_bytes,
            Some(debugfs) => {
                let value = fs::read_to_string(debugfs.root().join(FAULT_AROUND_NAME));
                value.is_ok_and(|value| value.trim() == self.wanted_bytes.to_string())
            }
        }
    }
}

/// Refuses other settings than the machine has.
pub(super) fn check(machine: &Machine) -> Result<(), Error> {
    let wanted = machine.fault_around.bytes(page_size());
    if wanted == fault_around_bytes() {
        return Ok(());
    }
    Err(Error::unavailable(
        format!("a fault-around of {wanted} bytes without --change-settings"),
        "give --change-settings to set it for the runs, leave out --fault-around, or use --image",
    ))
}

/// Fault-around size of the running kernel in bytes: what it tells root, or its default.
pub(super) fn fault_around_bytes() -> u64 {
    let told = fs::read_to_string(FAULT_AROUND_FILE).ok();
    told.and_then(|text| text.trim().parse().ok()).unwrap_or(FAULT_AROUND_BYTES.max(page_size()))
}
