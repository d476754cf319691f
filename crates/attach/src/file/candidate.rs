//! The ways to a file that a process has mapped. None is walked before its filesystem is known to
//! answer, and what is found is checked before it is opened.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};
use rustix::io::Errno;

use super::filesystem::Filesystems;
use super::mapped_id;
use crate::{MappedFile, process};

/// So many open files of a process are looked at.
const MAX_DESCRIPTORS: usize = 4096;

/// A descriptor that only names a file: nothing of its filesystem is called.
const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Finds a file of a process, which has it mapped at an address.
type OpenMethod = fn(u32, u64, &MappedFile, &Filesystems) -> Option<OwnedFd>;

/// Opens `file`, which process `pid` has mapped at `address`.
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

/// Through `/proc/PID/map_files`, which needs CAP_CHECKPOINT_RESTORE.
fn by_mapping(pid: u32, address: u64, file: &MappedFile, _: &Filesystems) -> Option<OwnedFd> {
    let vma = process::vma_at(pid, address).filter(|vma| vma.file == file.id)?;
    let path = format!("/proc/{pid}/map_files/{:x}-{:x}", vma.start, vma.end);
    openat(CWD, path, PATH_ONLY, Mode::empty()).ok()
}

/// Through what the process has open. The kernel tells which of that it is without asking any
/// filesystem.
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

/// Through the root directory of the process. The kernel tells paths without symbolic links, so
/// that none is followed.
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

/// Whether what was found is a regular file with the inode that was meant, on the same filesystem
/// or on a trusted one that stands for it.
fn is_candidate(named: &OwnedFd, file: &MappedFile, filesystems: &Filesystems) -> bool {
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let Ok(found) = statx(named, c"", flags, wanted) else { return false };
    let is_regular = u32::from(found.stx_mode) & libc::S_IFMT == libc::S_IFREG;
    // Btrfs has devices of its own for parts of it, so that the mount tells which it is.
    let device = (found.stx_dev_major, found.stx_dev_minor);
    let of_mount = filesystems.device_of_mount(found.stx_mnt_id);
    let meant = (file.id.major, file.id.minor);
    is_regular && found.stx_ino == file.id.inode && (device == meant || of_mount == Some(meant))
}

/// Opens what is named to be read, without waiting for who holds a lease on it.
fn reopen(named: &OwnedFd) -> rustix::io::Result<File> {
    let path = format!("/proc/self/fd/{}", named.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = match openat(CWD, &path, flags | OFlags::NOATIME, Mode::empty()) {
        // That is for its owner.
        Err(Errno::PERM) => openat(CWD, &path, flags, Mode::empty()),
        opened => opened,
    };
    opened.map(File::from)
}
