//! Loop devices: a file as a block device.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::journal::{Guard, Journal, Undo};
use crate::loop_control::{configure, free_number, open, queue_setting};

/// A loop device that detaches itself when its last user closes it.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    path: PathBuf,
    backing: PathBuf,
    // Keeps the device attached until it is mounted; has to close before the guard checks.
    open: Option<File>,
    _guard: Guard,
}

impl LoopDevice {
    /// Attaches `file` to a free device.
    pub(crate) fn attach(journal: &Journal, file: &File) -> Result<Self, Error> {
        let control_path = Path::new("/dev/loop-control");
        let missing = |error: io::Error| {
            Error::unavailable("a loop device", format!("load the module loop ({error})"))
        };
        let control = open(control_path).map_err(missing)?;
        let own_name = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        // As the kernel names it, even if the file is unlinked.
        let backing =
            fs::read_link(&own_name).map_err(|error| Error::os("read", &own_name, error))?;
        // Another process may take the free device first.
        for _ in 0..16 {
            let number = free_number(&control).map_err(missing)?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path).map_err(|error| {
                Error::unavailable(
                    path.display().to_string(),
                    format!("create the device node ({error})"),
                )
            })?;
            let undo = Undo::DetachLoop { device: path.clone(), backing: backing.clone() };
            let configure = || {
                configure(&device, file)
                    .map_err(|error| Error::os("attach a file to", &path, error))
            };
            match journal.change(undo, configure) {
                Ok(((), guard)) => {
                    return Ok(LoopDevice { path, backing, open: Some(device), _guard: guard });
                }
                Err(Error::Os { source, .. }) if source.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::unavailable("a free loop device", "detach those that are not needed"))
    }

    /// Records that it is mounted, which keeps it attached.
    pub(crate) fn is_mounted(&mut self) {
        self.open = None;
    }

    /// The backing file, as the kernel names it.
    pub(crate) fn backing(&self) -> &Path {
        &self.backing
    }

    /// Path of the block device.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a queue attribute of the device in sysfs.
    pub(crate) fn queue_setting(&self, name: &str) -> PathBuf {
        queue_setting(&self.path, name)
    }
}
