//! What is asked of a file when it is mapped. Nothing here allocates: the program may map a file
//! where it could not allocate.

use std::ffi::CStr;
use std::fmt::{self, Write};
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Mode, OFlags};

/// The most bytes of a path, the zero at its end included.
const MOST: usize = 4096;

/// Text of a path, or of a small file.
pub struct PathText {
    bytes: [u8; MOST],
    length: usize,
    is_cut: bool,
}

impl PathText {
    pub const fn new() -> PathText {
        PathText { bytes: [0; MOST], length: 0, is_cut: false }
    }

    pub fn push(&mut self, more: &[u8]) {
        let room = self.bytes.get_mut(self.length..MOST - 1).unwrap_or_default();
        self.is_cut |= room.len() < more.len();
        room.iter_mut().zip(more).for_each(|(to, from)| *to = *from);
        self.length += room.len().min(more.len());
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The text for a system call; `None` where it was cut.
    pub fn as_c_str(&self) -> Option<&CStr> {
        let is_whole = !self.is_cut;
        CStr::from_bytes_until_nul(&self.bytes).ok().filter(|_| is_whole)
    }
}

impl Write for PathText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The beginning of a small file.
pub fn text(path: &CStr) -> Option<PathText> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = PathText::new();
    let room = text.bytes.get_mut(..MOST - 1)?;
    text.length = rustix::io::read(&file, room).ok()?;
    Some(text)
}

/// The number behind `key` in the lines of a file such as /proc/self/status.
pub fn number(text: &PathText, key: &str) -> Option<u64> {
    let text = text.as_bytes();
    let places = 0..=text.len().checked_sub(key.len())?;
    let mut behind = places.filter_map(|at| text.get(at..)?.strip_prefix(key.as_bytes()));
    let behind = behind.next()?.trim_ascii_start();
    let digits = behind.split(|byte| !byte.is_ascii_digit()).next()?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether a debugger or tracer is attached to this process.
pub fn is_traced() -> bool {
    let status = text(c"/proc/self/status");
    status.and_then(|status| number(&status, "TracerPid:")).is_some_and(|tracer| tracer != 0)
}

/// When this process was started, in clock ticks since boot.
pub fn start_ticks() -> Option<u64> {
    let stat = text(c"/proc/self/stat")?;
    let bytes = stat.as_bytes();
    // The name of the program is in brackets and may contain anything.
    let behind = bytes.iter().rposition(|&byte| byte == b')')?;
    let field = bytes.get(behind..)?.split(|&byte| byte == b' ').nth(20)?;
    str::from_utf8(field).ok()?.parse().ok()
}

/// A regular file whose pages come from a device or a server.
pub struct Stored {
    pub bytes: u64,
    device: u64,
}

/// Filesystems without a device behind them: nothing is read ahead there.
const IN_MEMORY: [i64; 3] = [libc::TMPFS_MAGIC, 0x8584_58f6, libc::HUGETLBFS_MAGIC];

/// What `descriptor` is, where it is such a file.
pub fn stored(descriptor: BorrowedFd<'_>) -> Option<Stored> {
    let stat = rustix::fs::fstat(descriptor).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let filesystem = rustix::fs::fstatfs(descriptor).ok()?;
    if IN_MEMORY.contains(&filesystem.f_type) {
        return None;
    }
    Some(Stored { bytes: u64::try_from(stat.st_size).ok()?, device: stat.st_dev })
}

/// The path of a file that is open.
pub fn path(descriptor: BorrowedFd<'_>) -> PathText {
    use std::os::fd::AsRawFd;
    let mut link = PathText::new();
    let _ = write!(link, "/proc/self/fd/{}", descriptor.as_raw_fd());
    let mut path = PathText::new();
    if let Some(link) = link.as_c_str()
        && let Some(room) = path.bytes.get_mut(..MOST - 1)
        && let Ok(length) = rustix::fs::readlinkat_raw(rustix::fs::CWD, link, room)
    {
        path.length = length;
    }
    path
}

/// The most bytes that are asked for with one call.
const MOST_CALL_BYTES: u64 = 512 << 10;

/// What the kernel reads at least for a call, where the device does not say.
const LEAST_CALL_BYTES: u64 = 128 << 10;

impl Stored {
    /// The most bytes that the kernel reads for one call: the device's readahead size or its
    /// largest request, whichever is larger.
    pub fn call_bytes(&self) -> u64 {
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        let kib = |arguments: fmt::Arguments<'_>| {
            let mut path = PathText::new();
            path.write_fmt(arguments).ok()?;
            number(&text(path.as_c_str()?)?, "")
        };
        let readahead = kib(format_args!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"));
        let request = kib(format_args!("/sys/dev/block/{major}:{minor}/queue/max_sectors_kb"))
            .or_else(|| {
                kib(format_args!("/sys/dev/block/{major}:{minor}/../queue/max_sectors_kb"))
            });
        let bytes = readahead.unwrap_or(0).max(request.unwrap_or(0)).saturating_mul(1 << 10);
        bytes.clamp(LEAST_CALL_BYTES, MOST_CALL_BYTES)
    }
}
