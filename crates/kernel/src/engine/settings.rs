//! Machine-wide settings that a job requires: fault-around, and switches of patch series.
//!
//! A kernel with a series may have a switch for it, so that one build measures both variants: a
//! file in `/proc/sys/vm` named after the series, with underscores, which contains 0 or 1.

use std::path::{Path, PathBuf};
use std::{fs, io};

use filemap_core::series::{Series, Switch};
use filemap_job::Machine;
use serde_json::{Map, Value};

use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::kernel_mount::KernelMount;
use crate::{Error, page_size};

/// The debugfs file with the fault-around size.
pub(crate) const FAULT_AROUND_FILE: &str = "/sys/kernel/debug/fault_around_bytes";

/// Its name in debugfs.
const FAULT_AROUND_NAME: &str = "fault_around_bytes";

/// Default size of fault-around in bytes.
const FAULT_AROUND_BYTES: u64 = 65536;

/// Settings of a job; restored on drop.
#[derive(Debug)]
pub(super) struct MachineSettings {
    _fault_around: FaultAround,
}

impl MachineSettings {
    /// Applies the settings of `machine` that differ from the current ones, if allowed.
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

/// The machine-wide fault-around size; restored on drop.
///
/// With one page, the first touch of a page by a process is always a fault, whatever is in the page
/// cache.
#[derive(Debug)]
pub struct FaultAround {
    wanted_bytes: u64,
    // Fields drop in order: the setting is restored before debugfs is unmounted.
    _changed: Option<Guard>,
    debugfs: Option<KernelMount>,
}

impl FaultAround {
    /// Sets the size, unless it is already in effect.
    ///
    /// # Errors
    /// Not root; a kernel without debugfs; kernel lockdown.
    pub fn set(wanted_bytes: u64, journal: &Journal) -> Result<Self, Error> {
        if wanted_bytes == fault_around_bytes() {
            return Ok(FaultAround { wanted_bytes, _changed: None, debugfs: None });
        }
        let setting = format!("a fault-around of {wanted_bytes} bytes");
        require_root("setting fault-around")?;
        let remedy = "use a kernel with debugfs that is not locked down, or leave it as it is";
        let debugfs = KernelMount::open(journal, "debugfs", remedy)?;
        let path = debugfs.root().join(FAULT_AROUND_NAME);
        let refused = |error: io::Error| Error::unavailable(format!("{setting} ({error})"), remedy);
        let value = fs::read_to_string(&path).map_err(refused)?;
        let wanted = wanted_bytes.to_string();
        let mut changed = None;
        if value.trim() != wanted {
            let undo = Undo::Restore { path: path.clone(), value, set: wanted.clone() };
            let write = || fs::write(&path, &wanted).map_err(refused);
            changed = Some(journal.change(undo, write)?.1);
        }
        Ok(FaultAround { wanted_bytes, _changed: changed, debugfs: Some(debugfs) })
    }

    /// Whether the setting is unchanged: another process may have set it since.
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

/// Refuses settings that differ from the machine's.
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

/// Fault-around size of the running kernel in bytes; the default if it cannot be read.
pub(super) fn fault_around_bytes() -> u64 {
    let text = fs::read_to_string(FAULT_AROUND_FILE).ok();
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(FAULT_AROUND_BYTES.max(page_size()))
}

/// Directory of the switches.
const DIRECTORY: &str = "/proc/sys/vm";

/// Changed switches; restored on drop.
#[derive(Debug)]
pub(super) struct SwitchGuard {
    /// The previous values.
    before: Vec<(PathBuf, String)>,
}

impl SwitchGuard {
    /// Turns each switch of `named` on if it is in `on`, and off if not.
    ///
    /// # Errors
    /// The kernel lacks a switch or rejects the value.
    pub(super) fn set(named: Series, on: Series) -> Result<Self, Error> {
        Self::set_in(Path::new(DIRECTORY), named, on)
    }

    fn set_in(directory: &Path, named: Series, on: Series) -> Result<Self, Error> {
        let mut switched = SwitchGuard { before: Vec::new() };
        for switch in named.switches() {
            let path = directory.join(switch_file(switch));
            let Ok(before) = fs::read_to_string(&path) else {
                return Err(Error::unavailable(
                    format!("a switch for {} in this kernel ({})", switch.name(), path.display()),
                    "leave the series out and boot a kernel that was built with it, or give --on \
                     model",
                ));
            };
            let value = if on.has(switch) { "1" } else { "0" };
            fs::write(&path, value).map_err(|error| Error::os("write", &path, error))?;
            switched.before.push((path, before));
        }
        Ok(switched)
    }
}

impl Drop for SwitchGuard {
    fn drop(&mut self) {
        for (path, before) in &self.before {
            // Cannot fail: the kernel accepted a value of the same kind.
            let _ = fs::write(path, before.trim());
        }
    }
}

/// The switches of `series` that this kernel has.
pub(super) fn supported_switches(series: Series) -> Series {
    let here = |switch: &Switch| Path::new(DIRECTORY).join(switch_file(*switch)).exists();
    series.switches().filter(here).fold(Series::BASELINE, Series::with)
}

/// The values of the kernel's switches, by file name.
pub(super) fn switch_state() -> Map<String, Value> {
    state_in(Path::new(DIRECTORY))
}

fn state_in(directory: &Path) -> Map<String, Value> {
    let held = |switch: Switch| {
        let file = switch_file(switch);
        let text = fs::read_to_string(directory.join(&file)).ok()?;
        Some((file.display().to_string(), text.trim().into()))
    };
    Switch::ALL.into_iter().filter_map(held).collect()
}

/// The file of `switch`.
fn switch_file(switch: Switch) -> PathBuf {
    switch.name().replace('-', "_").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_restores_switches() {
        let directory =
            std::env::temp_dir().join(format!("filemap-switches-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        for file in ["vma_retry", "vma_bound"] {
            fs::write(directory.join(file), "1\n").unwrap();
        }
        let retry = Series::BASELINE.with(Switch::VmaRetry);
        let both = retry.with(Switch::VmaBound);
        let held = || {
            let state = state_in(&directory);
            assert_eq!(state.len(), 2);
            ["vma_retry", "vma_bound"].map(|name| state[name].as_str().unwrap().to_owned())
        };
        assert_eq!(held(), ["1", "1"]);
        let set = |named, on| SwitchGuard::set_in(&directory, named, on);
        let none = set(Series::BASELINE, both).unwrap();
        assert_eq!(held(), ["1", "1"], "what is not named stays");
        let one = set(both, retry).unwrap();
        assert_eq!(held(), ["1", "0"]);
        let off = set(retry, Series::BASELINE).unwrap();
        assert_eq!(held(), ["0", "0"]);
        drop(off);
        assert_eq!(held(), ["1", "0"]);
        drop((one, none));
        assert_eq!(held(), ["1", "1"]);
        let none = set(both.with(Switch::ExecUnify), Series::BASELINE).unwrap_err();
        assert!(none.cannot_run_here() && none.to_string().contains("exec_unify"), "{none}");
        assert_eq!(held(), ["1", "1"], "nothing is switched halfway");
        fs::remove_dir_all(&directory).unwrap();
    }
}
