//! The scratch disk of a guest: a sparse, unlinked file with a fresh filesystem.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::Command;

use super::Error;
use crate::child;

/// A filesystem for the scratch disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskFilesystem {
    /// ext4 with 4 KiB blocks.
    #[default]
    Ext4,
    /// XFS; at least 300 MiB.
    Xfs {
        /// Bytes of a block.
        block_bytes: u64,
    },
}

/// Page size of a guest (x86-64).
const PAGE_BYTES: u64 = 4096;

impl DiskFilesystem {
    /// The name used by mount(2).
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs { .. } => "xfs",
        }
    }

    /// The filesystem with this name, as mounted in a guest with any block size. The page size is a
    /// constant, since before 6.4 it is unknown until /proc is mounted.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let known = [Self::Ext4, Self::Xfs { block_bytes: PAGE_BYTES }];
        known.into_iter().find(|filesystem| filesystem.name() == name)
    }

    /// Minimum size that mkfs accepts, in bytes.
    pub fn min_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 1 << 20,
            Self::Xfs { .. } => 320 << 20,
        }
    }

    /// Modules needed for this filesystem on a virtio disk, and for the serial ports (no kernel has
    /// all of them as modules). NVMe is used only if built in. The kernel requests a crc32c
    /// implementation only at mount time, through modprobe, which the guest does not have; hence it
    /// is listed here.
    pub(super) fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["8250", "virtio_pci", "virtio_blk", "crc32c_generic", "ext4"],
            Self::Xfs { .. } => &["8250", "virtio_pci", "virtio_blk", "crc32c_generic", "xfs"],
        }
    }

    /// Modules that a guest requires unless they are built in. NVMe replaces virtio-blk.
    pub(super) fn required_modules(self, built_in: &BTreeSet<String>) -> Vec<&'static str> {
        let of_disk: &[_] =
            if built_in.contains("nvme") { &[] } else { &["virtio_pci", "virtio_blk"] };
        of_disk.iter().copied().chain([self.name()]).collect()
    }

    /// Mount options: by default, ext4 initializes inode tables in the background.
    pub(super) fn mount_options(self) -> &'static std::ffi::CStr {
        match self {
            Self::Ext4 => c"noinit_itable",
            Self::Xfs { .. } => c"",
        }
    }

    /// The mkfs program, its Debian package, and its arguments.
    fn maker(self) -> (&'static str, &'static str, [String; 4]) {
        match self {
            Self::Ext4 => ("mkfs.ext4", "e2fsprogs", ["-q", "-F", "-b", "4096"].map(Into::into)),
            Self::Xfs { block_bytes } => {
                let blocks = format!("size={block_bytes}");
                ("mkfs.xfs", "xfsprogs", ["-q".into(), "-f".into(), "-b".into(), blocks])
            }
        }
    }
}

/// Makes a disk of `bytes` bytes in `dir`.
pub(super) fn create(dir: &Path, bytes: u64, filesystem: DiskFilesystem) -> Result<File, Error> {
    let file = scratch_file(dir)?;
    file.set_len(bytes).map_err(|source| Error::scratch(dir, source))?;
    let (program, package, arguments) = filesystem.maker();
    // The directories of administration tools are often not in the PATH of other users.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let name = proc_path(&file);
    let mut command = Command::new(program);
    let output = child::output(command.env("PATH", path).args(arguments).arg(&name))
        .map_err(|source| Error::from_spawn(program, package, source))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(Error::Tool { program, line: line.trim().replace(&name, "scratch disk") });
    }
    Ok(file)
}

/// An unlinked temporary file in `dir`.
pub(super) fn scratch_file(dir: &Path) -> Result<File, Error> {
    tempfile::tempfile_in(dir).map_err(|source| Error::scratch(dir, source))
}

/// A path by which a child process can open the unnamed `file`.
pub(super) fn proc_path(file: impl AsFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd())
}
