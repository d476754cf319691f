//! What is asked of a file when it is mapped. Nothing here allocates: the program may map a file
//! where it could not allocate.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::fmt::{self, Write};
use std::os::fd::BorrowedFd;

use filemap_control::IN_MEMORY;
use rustix::fs::{FileType, Mode, OFlags};

use crate::lock::Lock;

/// Text of at most `MOST` bytes, the zero at its end included.
pub struct Text<const MOST: usize> {
    bytes: [u8; MOST],
    length: usize,
    is_cut: bool,
}

/// What is on the stack of whoever calls, which may be small.
pub type ShortText = Text<512>;

/// A path of any length.
pub type PathText = Text<4096>;

impl<const MOST: usize> Text<MOST> {
    pub const fn new() -> Text<MOST> {
        Text { bytes: [0; MOST], length: 0, is_cut: false }
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

    /// Takes what `fill` writes in place of what there was.
    pub fn refill(&mut self, fill: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<()> {
        self.bytes.fill(0);
        (self.length, self.is_cut) = (0, false);
        self.length = fill(self.bytes.get_mut(..MOST - 1)?)?;
        Some(())
    }
}

impl<const MOST: usize> Write for Text<MOST> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The beginning of a small file.
pub fn text(path: &CStr) -> Option<ShortText> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = ShortText::new();
    text.refill(|room| rustix::io::read(&file, room).ok())?;
    Some(text)
}

/// The number behind `key` in the lines of a file such as /proc/self/status.
pub fn number(text: &ShortText, key: &str) -> Option<u64> {
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
    filemap_control::start_ticks(text(c"/proc/self/stat")?.as_bytes())
}

/// A regular file whose pages come from a device or a server.
pub struct Stored {
    pub bytes: u64,
    pub device: u64,
    pub inode: u64,
}

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
    Some(Stored {
        bytes: u64::try_from(stat.st_size).ok()?,
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

/// Room for a path, which would be much for a small stack.
struct Room {
    lock: Lock,
    path: UnsafeCell<PathText>,
}

// SAFETY: `path` is only reached with the lock.
unsafe impl Sync for Room {}

static ROOM: Room = Room { lock: Lock::new(), path: UnsafeCell::new(PathText::new()) };

/// Tells `work` the path of a file that is open; it is empty where it is not known. Signals are
/// blocked in this thread.
pub fn with_path(descriptor: BorrowedFd<'_>, work: impl FnOnce(&PathText)) {
    use std::os::fd::AsRawFd;
    let mut link = ShortText::new();
    let _ = write!(link, "/proc/self/fd/{}", descriptor.as_raw_fd());
    let read =
        |room: &mut [u8]| rustix::fs::readlinkat_raw(rustix::fs::CWD, link.as_c_str()?, room).ok();
    let _held = ROOM.lock.hold();
    // SAFETY: the lock is held.
    let path = unsafe { &mut *ROOM.path.get() };
    let _ = path.refill(read);
    work(path);
}

/// Tells `work` the path of what is mapped at `address`, as the kernel names it; it is empty where
/// nothing is. Signals are blocked in this thread.
pub fn with_path_mapped_at(address: usize, work: impl FnOnce(&PathText)) {
    let _held = ROOM.lock.hold();
    // SAFETY: the lock is held.
    let path = unsafe { &mut *ROOM.path.get() };
    let _ = path.refill(|_| Some(0));
    let maps =
        rustix::fs::open(c"/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    if let Ok(maps) = maps {
        let mut line = MapsLine::default();
        let mut room = [0; 512];
        'read: while let Ok(count) = rustix::io::read(&maps, &mut room) {
            if count == 0 {
                break;
            }
            for byte in room.get(..count).unwrap_or_default() {
                if line.take(*byte, address, path) {
                    break 'read;
                }
            }
        }
    }
    work(path);
}

/// A line of /proc/self/maps while it is read: `start-end rights offset device inode path`.
#[derive(Default)]
struct MapsLine {
    /// The number at hand, in hexadecimal digits.
    number: usize,
    start: usize,
    has_address: bool,
    /// Blanks so far, of which several in a row are one.
    fields: usize,
    is_blank: bool,
    has_path: bool,
}

impl MapsLine {
    /// Takes the next byte; what belongs to the path of the line with `address` goes to `path`.
    /// Returns whether that line has ended.
    fn take(&mut self, byte: u8, address: usize, path: &mut PathText) -> bool {
        const PATH: usize = 5;
        match byte {
            b'\n' => {
                let is_it = self.has_address;
                *self = MapsLine::default();
                return is_it;
            }
            _ if self.has_path => {
                if self.has_address {
                    path.push(&[byte]);
                }
            }
            b' ' => {
                if self.fields == 0 {
                    self.has_address = (self.start..self.number).contains(&address);
                }
                self.fields += usize::from(!self.is_blank);
                self.is_blank = true;
            }
            b'-' if self.fields == 0 => self.start = std::mem::take(&mut self.number),
            _ if self.fields >= PATH => {
                self.has_path = true;
                if self.has_address {
                    path.push(&[byte]);
                }
            }
            _ => {
                self.is_blank = false;
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                if self.fields == 0 {
                    self.number = self.number << 4 | digit as usize;
                }
            }
        }
        false
    }
}

/// Frees the lock in the child of a fork.
pub fn release_after_fork() {
    ROOM.lock.release_after_fork();
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
            let mut path = ShortText::new();
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
