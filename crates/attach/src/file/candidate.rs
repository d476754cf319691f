//! Ways to reach a file that another process has mapped. No path is resolved before its filesystem
//! is known to be responsive, and every candidate is verified before it is opened for reading.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};
use rustix::io::Errno;

use super::filesystem::Filesystems;
use super::mapped_id;
use crate::{MappedFile, process};

/// Maximum number of the process's open descriptors to examine.
const MAX_DESCRIPTORS: usize = 4096;

/// An `O_PATH` descriptor: opening one does not call the filesystem's `open`.
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Finds the file that process `pid` has mapped at an address.
type OpenMethod = fn(u32, u64, &MappedFile, &Filesystems) -> Option<OwnedFd>;

/// Opens `file`, which process `pid` has mapped at `address`, by the first way that leads to it.
pub fn open(pid: u32, address: u64, file: &MappedFile) -> Result<File, String> {
    let filesystems = Filesystems::for_process(pid)?;
    filesystems.check(file.id)?;
    let ways: [OpenMethod; 3] = [by_mapping, by_descriptor, by_path];
    let mut reason = "nobody has it open, and its path does not exist".to_owned();
    for way in ways {
        let Some(named) = way(pid, address, file, &filesystems) else { continue };
        if !is_candidate(&named, file, &filesystems) {
            continue;
        }
        match reopen(&named) {
            Ok(opened) if mapped_id(&opened) == Some(file.id) => return Ok(opened),
            Ok(_) => {}
            Err(error) => reason = format!("it may not be read ({error}); run this as its owner"),
        }
    }
    Err(reason)
}

/// By `/proc/PID/map_files`, which requires CAP_CHECKPOINT_RESTORE.
fn by_mapping(pid: u32, address: u64, file: &MappedFile, _: &Filesystems) -> Option<OwnedFd> {
    let vma = process::vma_at(pid, address).filter(|vma| vma.file == file.id)?;
    let path = format!("/proc/{pid}/map_files/{:x}-{:x}", vma.start, vma.end);
    openat(CWD, path, PATH_ONLY, Mode::empty()).ok()
}

/// By a descriptor that the process has open. `fdinfo` gives mount and inode without calling into
/// the filesystem.
fn by_descriptor(
    pid: u32,
    _address: u64,
    file: &MappedFile,
    filesystems: &Filesystems,
) -> Option<OwnedFd> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).ok()?;
    let is_it = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let number =
            |key| text.lines().find_map(|line: &str| line.strip_prefix(key)?.trim().parse().ok());
        let device = number("mnt_id:").and_then(|id| filesystems.device_of_mount(id));
        number("ino:").is_none_or(|inode: u64| inode == file.id.inode)
            && device == Some((file.id.major, file.id.minor))
    };
    let found = entries.flatten().take(MAX_DESCRIPTORS).map(|entry| entry.path()).find(is_it)?;
    let path = Path::new("/proc").join(pid.to_string()).join("fd").join(found.file_name()?);
    openat(CWD, path, PATH_ONLY, Mode::empty()).ok()
}

/// By the path, relative to the process's root directory. Paths in `/proc/PID/maps` are resolved,
/// so symbolic links are refused.
fn by_path(
    pid: u32,
    _address: u64,
    file: &MappedFile,
    filesystems: &Filesystems,
) -> Option<OwnedFd> {
    if !filesystems.is_safe_path(file) {
        return None;
    }
    let root =
        openat(CWD, format!("/proc/{pid}/root"), PATH_ONLY | OFlags::DIRECTORY, Mode::empty());
    let relative = file.path.as_os_str().as_bytes().strip_prefix(b"/")?;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT;
    openat2(root.ok()?, relative, PATH_ONLY | OFlags::NOFOLLOW, Mode::empty(), no_links).ok()
}

/// Whether `named` is a regular file with the expected inode, on the expected device by either its
/// `st_dev` or its mount.
fn is_candidate(named: &OwnedFd, file: &MappedFile, filesystems: &Filesystems) -> bool {
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let Ok(found) = statx(named, c"", flags, wanted) else { return false };
    let is_regular = u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    // Btrfs subvolumes have an anonymous `st_dev` each; the device in mountinfo is the
    // superblock's.
    let device = (found.stx_dev_major, found.stx_dev_minor);
    let of_mount = filesystems.device_of_mount(found.stx_mnt_id);
    let meant = (file.id.major, file.id.minor);
    is_regular && found.stx_ino == file.id.inode && (device == meant || of_mount == Some(meant))
}

/// Reopens an `O_PATH` descriptor for reading. `O_NONBLOCK` avoids waiting for the holder of a
/// lease.
fn reopen(named: &OwnedFd) -> rustix::io::Result<File> {
    let path = format!("/proc/self/fd/{}", named.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = match openat(CWD, &path, flags | OFlags::NOATIME, Mode::empty()) {
        // O_NOATIME requires ownership of the file or CAP_FOWNER.
        Err(Errno::PERM) => openat(CWD, &path, flags, Mode::empty()),
        opened => opened,
    };
    opened.map(File::from)
}
