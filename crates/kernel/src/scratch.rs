//! A scratch filesystem with its own readahead size.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, mount};

use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::loop_device::LoopDevice;
use crate::temporary_file::require_space;
use crate::{Error, child, temporary_file};

/// Type of a scratch filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScratchFilesystem {
    /// ext4, without a journal.
    Ext4,
    /// XFS; at least 300 MiB.
    Xfs {
        /// Block size in bytes.
        block_bytes: u64,
    },
}

/// Space that a scratch filesystem needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchSize {
    /// Number of files.
    pub files: u64,
    /// Total length in bytes.
    pub bytes: u64,
    /// Bytes that will be written to disk.
    pub disk_bytes: u64,
}

/// Maximum size of an inode.
const INODE_BYTES: u64 = 512;

/// Inodes in addition to those of files.
const OWN_INODES: u64 = 63;

/// Minimum size that mkfs.xfs accepts.
const XFS_MIN_BYTES: u64 = 320 << 20;

impl ScratchFilesystem {
    /// The name used by mount.
    pub const fn name(self) -> &'static str {
        match self {
            ScratchFilesystem::Ext4 => "ext4",
            ScratchFilesystem::Xfs { .. } => "xfs",
        }
    }

    /// The mkfs program.
    pub const fn tool(self) -> &'static str {
        match self {
            ScratchFilesystem::Ext4 => "mkfs.ext4",
            ScratchFilesystem::Xfs { .. } => "mkfs.xfs",
        }
    }

    /// The Debian package that contains it.
    pub const fn package(self) -> &'static str {
        match self {
            ScratchFilesystem::Ext4 => "e2fsprogs",
            ScratchFilesystem::Xfs { .. } => "xfsprogs",
        }
    }

    fn format(self, files: u64) -> Command {
        let mut command = Command::new(self.tool());
        match self {
            ScratchFilesystem::Ext4 => {
                // Nothing may write in the background, and all space is for the files: by default a
                // small filesystem spends one byte in sixteen on inodes.
                let inodes = files.saturating_add(OWN_INODES).to_string();
                let options =
                    ["-q", "-F", "-m", "0", "-b", "4096", "-N", &inodes, "-O", "^has_journal"];
                command.args(options).args(["-E", "lazy_itable_init=0,nodiscard"])
            }
            ScratchFilesystem::Xfs { block_bytes } => {
                command.args(["-q", "-f", "-K", "-b", &format!("size={block_bytes}")])
            }
        };
        command
    }
}

/// A mounted scratch filesystem on a loop device; removed on drop.
#[derive(Debug)]
pub struct Scratch {
    // Fields drop in order: settings first, the backing file last.
    _read_ahead: Guard,
    _mount: Guard,
    _mount_point: Guard,
    device: LoopDevice,
    // Unnamed, so that it disappears with the device.
    _backing: File,
    directory: PathBuf,
    root: PathBuf,
}

impl Scratch {
    /// Creates a filesystem with space `room` and a readahead of `read_ahead_kib` KiB. The sparse
    /// file that backs it is in `directory`.
    ///
    /// # Errors
    /// Not root; no loop device; mkfs missing or failed; no space.
    pub fn create(
        journal: &Journal,
        directory: &Path,
        filesystem: ScratchFilesystem,
        room: ScratchSize,
        read_ahead_kib: u64,
    ) -> Result<Self, Error> {
        require_root("a scratch filesystem")?;
        let image_bytes = image_bytes(filesystem, room);
        require_space(directory, image_bytes - room.bytes + room.disk_bytes)?;
        let backing = temporary_file::unnamed(directory)?;
        backing
            .set_len(image_bytes)
            .map_err(|error| Error::os("create a temporary file in", directory, error))?;
        format(filesystem, room.files, &backing, directory)?;
        let mut device = LoopDevice::attach(journal, &backing)?;
        let (root, mount_point) =
            journal.directory_in(journal.directory(), "scratch", Undo::RemoveDir)?;
        let ((), mounted) = journal.change(Undo::Unmount(root.clone()), || {
            mount(device.path(), &root, filesystem.name(), MountFlags::NOATIME, None).map_err(
                |errno| match errno {
                    rustix::io::Errno::NODEV => Error::unavailable(
                        format!("the filesystem {}", filesystem.name()),
                        "load its module, or choose another with --fs",
                    ),
                    errno => Error::os("mount", &root, errno),
                },
            )
        })?;
        device.is_mounted();
        // Last, so that it is undone before the device is detached.
        let read_ahead = set_read_ahead(journal, &device, read_ahead_kib)?;
        Ok(Scratch {
            _read_ahead: read_ahead,
            _mount: mounted,
            _mount_point: mount_point,
            device,
            _backing: backing,
            directory: directory.to_owned(),
            root,
        })
    }

    /// The directory of its backing file.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its mount point.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Sets the readahead size of files opened from now on.
    ///
    /// # Errors
    /// The kernel rounds the size.
    pub fn set_read_ahead(&self, kib: u64) -> Result<(), Error> {
        write_read_ahead(&self.device, kib)
    }

    /// Its block device.
    pub fn device(&self) -> &Path {
        self.device.path()
    }
}

/// Adds space for metadata.
fn image_bytes(filesystem: ScratchFilesystem, room: ScratchSize) -> u64 {
    let ScratchSize { files, bytes, .. } = room;
    let of_files = files.saturating_mul(INODE_BYTES);
    let image = bytes.saturating_add(bytes / 32).saturating_add(of_files + (16 << 20));
    match filesystem {
        ScratchFilesystem::Ext4 => image,
        ScratchFilesystem::Xfs { .. } => image.saturating_add(128 << 20).max(XFS_MIN_BYTES),
    }
}

fn format(
    filesystem: ScratchFilesystem,
    files: u64,
    image: &File,
    directory: &Path,
) -> Result<(), Error> {
    let mut command = filesystem.format(files);
    let output = child::output(command.arg(temporary_file::name_for_children(image)));
    let output = output.map_err(|error| {
        let remedy = format!("install {}", filesystem.package());
        match error.kind() {
            std::io::ErrorKind::NotFound => Error::unavailable(filesystem.tool(), remedy),
            _ => Error::unavailable(filesystem.tool(), format!("{remedy} ({error})")),
        }
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(Error::Tool {
        tool: filesystem.tool(),
        path: directory.to_owned(),
        message: text.lines().next().unwrap_or("no message").to_owned(),
    })
}

fn set_read_ahead(journal: &Journal, device: &LoopDevice, kib: u64) -> Result<Guard, Error> {
    let path = device.queue_setting("read_ahead_kb");
    let value = fs::read_to_string(&path).map_err(|error| Error::os("read", &path, error))?;
    let (device_path, backing) = (device.path().to_owned(), device.backing().to_owned());
    let undo = Undo::RestoreReadAhead { device: device_path, backing, value };
    let write =
        || fs::write(&path, kib.to_string()).map_err(|error| Error::os("write", &path, error));
    let ((), guard) = journal.change(undo, write)?;
    // The kernel may have rounded it.
    write_read_ahead(device, kib)?;
    Ok(guard)
}

fn write_read_ahead(device: &LoopDevice, kib: u64) -> Result<(), Error> {
    let path = device.queue_setting("read_ahead_kb");
    fs::write(&path, kib.to_string()).map_err(|error| Error::os("write", &path, error))?;
    let set = fs::read_to_string(&path).map_err(|error| Error::os("read", &path, error))?;
    if set.trim() == kib.to_string() {
        Ok(())
    } else {
        Err(Error::unavailable(
            format!("a readahead of {kib} KiB"),
            format!("use {} KiB, which the kernel made of it", set.trim()),
        ))
    }
}
