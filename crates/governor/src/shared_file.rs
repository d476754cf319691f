//! The file of a process in a directory that the command reads: `{pid}-{n}`, where `n` says how
//! many programs the process was before, by exec. It is mapped, so that writing to it is no call.

use std::ffi::{CStr, c_void};
use std::fmt::Write;
use std::ptr;

use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getpid, getrlimit};

use crate::file::ShortText;

/// The most programs that one process may be, by exec, that have a file.
const MOST_IMAGES: u32 = 100;

/// Makes and maps a file of `length` bytes, all zero. Returns where it is mapped, and its `n`.
/// Where that fails no file is left.
pub fn make(directory: &CStr, length: usize) -> Result<(*mut c_void, u32), Errno> {
    // A file beyond the process's limit is a fatal signal.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < length as u64) {
        return Err(Errno::FBIG);
    }
    let (file, image) = create(directory)?;
    // Without room on the disk a write to the mapping would be a fatal signal.
    let mapped = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length as u64);
    let mapped = mapped.and_then(|()| {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses an address where nothing is.
        unsafe { rustix::mm::mmap(ptr::null_mut(), length, protection, flags, &file, 0) }
    });
    mapped.map(|mapped| (mapped, image)).inspect_err(|_| unlink(directory, image))
}

/// The first name that no image of this process has.
fn create(directory: &CStr) -> Result<(OwnedFd, u32), Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    for image in 0..MOST_IMAGES {
        let name = name(directory, image);
        let path = name.as_c_str().ok_or(Errno::NAMETOOLONG)?;
        match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return Ok((file, image)),
            Err(Errno::EXIST) => {}
            Err(failed) => return Err(failed),
        }
    }
    Err(Errno::EXIST)
}

fn name(directory: &CStr, image: u32) -> ShortText {
    let mut name = ShortText::new();
    name.push(directory.to_bytes());
    let pid = getpid().as_raw_pid();
    // What does not fit is no path, which `as_c_str` says.
    let _ = write!(name, "/{pid}-{image}");
    name
}

/// Removes the file of one image of this process.
pub fn unlink(directory: &CStr, image: u32) {
    if let Some(path) = name(directory, image).as_c_str() {
        let _ = rustix::fs::unlink(path);
    }
}
