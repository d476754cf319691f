//! A filesystem whose server answers until it is told to stop, and then never again.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::exit;

/// Opcodes of the protocol, `linux/fuse.h`.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;

/// Header sizes of a request and of an answer, in bytes.
const REQUEST_HEAD: usize = 40;
const ANSWER_HEAD: usize = 16;

/// The inodes of the root directory and of the file.
const ROOT: u64 = 1;
const FILE: u64 = 2;

/// How long the kernel may cache an answer, in seconds.
const VALID_S: u64 = 1;

/// Maximum size of a request: the kernel requires room for the largest write.
const MOST_BYTES: usize = (1 << 20) + 4096;

/// A server in its own process.
pub struct Fuse {
    server: i32,
    directory: CString,
}

impl Fuse {
    /// Mounts a filesystem on `directory` that has a file `data` of `bytes` bytes; `None` if that
    /// is not permitted.
    pub fn mount(directory: &Path, bytes: u64) -> Option<Fuse> {
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        fs::create_dir_all(directory).ok()?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let options = CString::new(options).expect("it has no NUL");
        let path = CString::new(directory.as_os_str().as_bytes()).expect("it has no NUL");
        // SAFETY: all strings end with a NUL and outlive the call.
        let mounted = unsafe {
            libc::mount(
                c"filemap-test".as_ptr(),
                path.as_ptr(),
                c"fuse".as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        if mounted != 0 {
            return None;
        }
        // SAFETY: this process has one thread at this point.
        match unsafe { libc::fork() } {
            0 => {
                serve(device, bytes);
                exit(0)
            }
            server => Some(Fuse { server, directory: path }),
        }
    }

    /// From now on no request is answered.
    pub fn fall_silent(&self) {
        // SAFETY: the server is a child that has not been reaped.
        unsafe { libc::kill(self.server, libc::SIGSTOP) };
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // SAFETY: the server is a child that has not been reaped; the path ends with a NUL.
        unsafe {
            libc::kill(self.server, libc::SIGKILL);
            libc::waitpid(self.server, std::ptr::null_mut(), 0);
            libc::umount2(self.directory.as_ptr(), libc::MNT_DETACH);
        }
    }
}

fn serve(mut device: File, bytes: u64) {
    let mut request = vec![0; MOST_BYTES];
    while let Ok(length) = device.read(&mut request) {
        let request = &request[..length];
        if length < REQUEST_HEAD {
            return;
        }
        let (operation, unique, node) = (word(request, 4), long(request, 8), long(request, 16));
        let answer = match operation {
            INIT => init(request),
            LOOKUP => entry(bytes),
            GETATTR => [vec![VALID_S, 0], attributes(node, bytes)].concat(),
            OPEN => vec![0, 0],
            READ => vec![0; word(request, REQUEST_HEAD + 16) as usize / 8],
            FORGET | BATCH_FORGET | INTERRUPT => continue,
            _ => {
                let _ = device.write(&head(0, -libc::ENOSYS, unique));
                continue;
            }
        };
        let mut all = head(answer.len() * 8, 0, unique);
        all.extend(answer.iter().flat_map(|word| word.to_ne_bytes()));
        let _ = device.write(&all);
    }
}

fn head(body: usize, error: i32, unique: u64) -> Vec<u8> {
    let mut bytes = ((ANSWER_HEAD + body) as u32).to_ne_bytes().to_vec();
    bytes.extend(error.to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes
}

/// The protocol version of the kernel, up to 7.31, and its readahead.
fn init(request: &[u8]) -> Vec<u64> {
    let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let minor = word(request, REQUEST_HEAD + 4).min(31);
    let read_ahead = word(request, REQUEST_HEAD + 8);
    // 12 background requests, congested from 9 on; writes of 1 MiB; times in ns; 256 pages per
    // request.
    vec![two(7, minor), two(read_ahead, 0), two(12 | 9 << 16, 1 << 20), two(1, 256), 0, 0, 0, 0]
}

fn entry(bytes: u64) -> Vec<u64> {
    [vec![FILE, 0, VALID_S, VALID_S, 0], attributes(FILE, bytes)].concat()
}

/// The result of stat(2), 88 bytes.
fn attributes(node: u64, bytes: u64) -> Vec<u64> {
    let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let mode = if node == ROOT { libc::S_IFDIR | 0o755 } else { libc::S_IFREG | 0o644 };
    vec![node, bytes, bytes / 512, 0, 0, 0, 0, two(0, mode), two(1, 0), 0, two(4096, 0)]
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("it is four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("it is eight bytes"))
}
