//! A scratch filesystem with a readahead size of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mount::{MountFlags, mount};

use crate::Error;
use crate::error::require_root;
use crate::journal::{Guard, Journal, Undo};
use crate::loop_device::LoopDevice;

/// Which filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filesystem {
    /// ext4, without a journal.
    Ext4,
    /// XFS; not below 300 MiB.
    Xfs,
}

/// Smallest XFS filesystem that mkfs.xfs makes.
const XFS_MIN_BYTES: u64 = 320 << 20;

impl Filesystem {
    /// The name that mount takes.
    pub const fn name(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "ext4",
            Filesystem::Xfs => "xfs",
        }
    }

    const fn tool(self) -> &'static str {
        match self {
            Filesystem::Ext4 => "mkfs.ext4",
            Filesystem::Xfs => "mkfs.xfs",
        }
    }

    fn format(self) -> Command {
        let mut command = Command::new(self.tool());
        match self {
            Filesystem::Ext4 => {
                // Nothing may write in the background, and all the space is for the file: by
                // default small filesystems keep one byte in sixteen for inodes.
                let options =
                    ["-q", "-F", "-m", "0", "-b", "4096", "-N", "64", "-O", "^has_journal"];
                command.args(options).args(["-E", "lazy_itable_init=0,nodiscard"])
            }
            Filesystem::Xfs => command.args(["-q", "-f", "-K"]),
        };
        command
    }
}

/// A mounted scratch filesystem on a loop device; all of it goes when this drops.
#[derive(Debug)]
pub struct Scratch {
    // Undone from the first to the last.
    _mount: Guard,
    _mount_point: Guard,
    _read_ahead: Guard,
    device: LoopDevice,
    _backing: Guard,
    root: PathBuf,
}

impl Scratch {
    /// Makes a filesystem with room for a file of `bytes`, whose files read ahead
    /// `read_ahead_kib` KiB. The backing file is sparse and lies beside the journal.
    ///
    /// # Errors
    /// Not root; no loop device; mkfs missing or failed; no space.
    pub fn create(
        journal: &Journal,
        filesystem: Filesystem,
        bytes: u64,
        read_ahead_kib: u64,
    ) -> Result<Self, Error> {
        require_root("a scratch filesystem")?;
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let stem = format!("scratch-{}-{number}", std::process::id());
        let image = journal.directory().join(&stem).with_extension("img");
        let image = std::path::absolute(&image).map_err(|e| Error::os("find", &image, e))?;

        let backing = journal.guard(Undo::RemoveFile(image.clone()))?;
        File::create(&image)
            .and_then(|file| file.set_len(image_bytes(filesystem, bytes)))
            .map_err(|error| Error::os("create", &image, error))?;
        format(filesystem, &image)?;
        let device = LoopDevice::attach(journal, &image)?;
        let read_ahead = set_read_ahead(journal, &device, read_ahead_kib)?;

        let root = image.with_extension("mnt");
        let mount_point = journal.guard(Undo::RemoveDir(root.clone()))?;
        fs::create_dir(&root).map_err(|error| Error::os("create", &root, error))?;
        let mounted = journal.guard(Undo::Unmount(root.clone()))?;
        mount(device.path(), &root, filesystem.name(), MountFlags::NOATIME, None).map_err(|e| {
            match e {
                rustix::io::Errno::NODEV => Error::unavailable(
                    format!("the filesystem {}", filesystem.name()),
                    "load its module, or choose another with --fs",
                ),
                errno => Error::os("mount", &root, errno),
            }
        })?;
        Ok(Scratch {
            _mount: mounted,
            _mount_point: mount_point,
            _read_ahead: read_ahead,
            device,
            _backing: backing,
            root,
        })
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Gives the files that are opened from now on another readahead size.
    ///
    /// # Errors
    /// When the kernel makes another size of it.
    pub fn set_read_ahead(&self, kib: u64) -> Result<(), Error> {
        write_read_ahead(&self.device, kib)
    }

    /// Its block device.
    pub fn device(&self) -> &Path {
        self.device.path()
    }
}

/// Room for metadata beside the data.
fn image_bytes(filesystem: Filesystem, bytes: u64) -> u64 {
    let image = bytes.saturating_add(bytes / 32).saturating_add(16 << 20);
    match filesystem {
        Filesystem::Ext4 => image,
        Filesystem::Xfs => image.saturating_add(128 << 20).max(XFS_MIN_BYTES),
    }
}

fn format(filesystem: Filesystem, image: &Path) -> Result<(), Error> {
    let output = filesystem.format().arg(image).output().map_err(|error| {
        Error::unavailable(filesystem.tool(), format!("install the package that has it ({error})"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(Error::Tool {
        tool: filesystem.tool(),
        path: image.to_owned(),
        message: text.lines().next().unwrap_or("no message").to_owned(),
    })
}

fn set_read_ahead(journal: &Journal, device: &LoopDevice, kib: u64) -> Result<Guard, Error> {
    let path = device.queue_setting("read_ahead_kb");
    let value = fs::read_to_string(&path).map_err(|error| Error::os("read", &path, error))?;
    let guard = journal.guard(Undo::Restore { path: path.clone(), value })?;
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
