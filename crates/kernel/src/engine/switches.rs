//! Patch series that the running kernel can switch on and off.
//!
//! A kernel with a series may have a switch for it, so that one build measures both variants: the
//! file of its name, with underscores, in `/proc/sys/vm`, which holds 0 or 1.

use std::fs;
use std::path::{Path, PathBuf};

use filemap_core::series::{Series, Switch};
use serde_json::{Map, Value};

use crate::Error;

/// Where they are.
const DIRECTORY: &str = "/proc/sys/vm";

/// Switches that were set; they are set back when this drops.
#[derive(Debug)]
pub(super) struct SwitchGuard {
    /// What each held.
    before: Vec<(PathBuf, String)>,
}

impl SwitchGuard {
    /// Switches each of `named` on if it is one of `on`, and off if not.
    ///
    /// # Errors
    /// When the kernel has no such switch, or does not take the value.
    pub(super) fn set(named: Series, on: Series) -> Result<Self, Error> {
        Self::set_in(Path::new(DIRECTORY), named, on)
    }

    fn set_in(directory: &Path, named: Series, on: Series) -> Result<Self, Error> {
        let mut switched = SwitchGuard { before: Vec::new() };
        for switch in named.switches() {
            let path = directory.join(file(switch));
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
            // The kernel took another value of the same kind.
            let _ = fs::write(path, before.trim());
        }
    }
}

/// Those of `series` that this kernel has a switch for.
pub(super) fn supported(series: Series) -> Series {
    let here = |switch: &Switch| Path::new(DIRECTORY).join(file(*switch)).exists();
    series.switches().filter(here).fold(Series::BASELINE, Series::with)
}

/// What the switches hold that the kernel has, each under its name there.
pub(super) fn state() -> Map<String, Value> {
    state_in(Path::new(DIRECTORY))
}

fn state_in(directory: &Path) -> Map<String, Value> {
    let held = |switch: Switch| {
        let file = file(switch);
        let text = fs::read_to_string(directory.join(&file)).ok()?;
        Some((file.display().to_string(), text.trim().into()))
    };
    Switch::ALL.into_iter().filter_map(held).collect()
}

/// The file of `switch`.
fn file(switch: Switch) -> PathBuf {
    switch.name().replace('-', "_").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_set_as_the_series_are() {
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
