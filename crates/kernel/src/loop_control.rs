//! Loop device requests: attach, detach, and the name of the backing file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::raw::c_ulong;
use std::path::{Path, PathBuf};

use crate::Error;

/// Path of a queue attribute of `device` in sysfs.
pub(crate) fn queue_setting(device: &Path, name: &str) -> PathBuf {
    sysfs(device).join("queue").join(name)
}

/// The backing file of `device` as the kernel names it; `None` if it is not attached.
pub(crate) fn backing(device: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(sysfs(device).join("loop/backing_file")).ok()?;
    Some(text.trim_end_matches('\n').into())
}

/// Detaches `device` if `backing_file` backs it. Returns whether it is detached, or will be when
/// its last user closes it.
pub(crate) fn detach(device: &Path, backing_file: &Path) -> Result<bool, Error> {
    if backing(device).as_deref() != Some(backing_file) {
        return Ok(true);
    }
    let file = match open(device) {
        Ok(file) => file,
        // It was detached meanwhile.
        Err(_) if backing(device).as_deref() != Some(backing_file) => return Ok(true),
        Err(error) => return Err(Error::os("open", device, error)),
    };
    match call(&file, CLEAR, 0) {
        Ok(_) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENXIO) => Ok(true),
            Some(libc::EBUSY) => Ok(false),
            _ => Err(Error::os("detach", device, error)),
        },
    }
}

fn sysfs(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default())
}

/// Opens a device for ioctls.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Number of a free device, from the control device.
pub(crate) fn free_number(control: &File) -> io::Result<i32> {
    call(control, GET_FREE, 0)
}

const GET_FREE: c_ulong = 0x4c82;
const CONFIGURE: c_ulong = 0x4c0a;
const CLEAR: c_ulong = 0x4c01;
const AUTOCLEAR: u32 = 4;
const DIRECT_IO: u32 = 16;

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of `linux/loop.h`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Attaches `backing` to `device` until its last user closes it. Reads bypass the backing file's
/// page cache (direct I/O) if its filesystem supports it: otherwise each page would be cached
/// twice, and charged to a memory cgroup under test.
pub(crate) fn configure(device: &File, backing: &File) -> io::Result<()> {
    // SAFETY: both structures are plain integers, for which all zeros is a value.
    let mut config: LoopConfig = unsafe { std::mem::zeroed() };
    config.fd = backing.as_raw_fd() as u32;
    config.info.flags = AUTOCLEAR | DIRECT_IO;
    call(device, CONFIGURE, &raw const config as c_ulong).map(drop)
}

fn call(file: &File, request: c_ulong, argument: c_ulong) -> io::Result<i32> {
    // SAFETY: the requests of this file take an integer or a pointer to `LoopConfig`, which is
    // live.
    match unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) } {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}
