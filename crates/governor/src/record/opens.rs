//! Which open file a descriptor stands for. Children of a fork have the numbers of their parent,
//! as they have its open files.

use std::ffi::c_int;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use filemap_control::tape::Kind;
use rustix::fs::FileType;

use super::tape_file::{self, tell_text};
use crate::disposition::with_signals_blocked;
use crate::file;
use crate::start::{self, Run};

/// Descriptors that are known by their numbers. Others get a new open file each time.
const MOST: usize = 4096;

/// Nobody has looked.
const UNKNOWN: u64 = 0;
/// It is not to be recorded.
const NOT_RECORDED: u64 = 1;

/// What is known of a descriptor.
struct Place {
    number: AtomicU64,
    /// Of the file it stood for. The C library closes some descriptors without a hook.
    identity: AtomicU64,
    /// The size of the file that was told last.
    bytes: AtomicU64,
}

impl Place {
    const fn empty() -> Place {
        let (identity, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Place { number: AtomicU64::new(UNKNOWN), identity, bytes }
    }
}

static OPENS: [Place; MOST] = [const { Place::empty() }; MOST];

/// Open files so far.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn place(descriptor: c_int) -> Option<&'static Place> {
    OPENS.get(usize::try_from(descriptor).ok()?)
}

/// The number of the open file of a descriptor that is mapped; `None` where it is not to be
/// recorded.
pub fn number_mapped(run: &Run, descriptor: c_int) -> Option<u64> {
    number(run, descriptor, run.settings.min_bytes)
}

/// The same of a descriptor that is read. A file that is mapped already may be smaller.
pub fn number_read(run: &Run, descriptor: c_int) -> Option<u64> {
    number(run, descriptor, run.settings.min_read_bytes)
}

/// The number where it is known, or the file has `least_bytes` or more.
fn number(run: &Run, descriptor: c_int, least_bytes: u64) -> Option<u64> {
    // SAFETY: it is only asked for; where it is not open the kernel says so.
    let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let stat = rustix::fs::fstat(file).ok()?;
    let bytes = u64::try_from(stat.st_size).unwrap_or(0);
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        || bytes < run.settings.min_bytes
    {
        return None;
    }
    let identity = stat.st_ino ^ stat.st_dev.rotate_left(32);
    let place = place(descriptor);
    let known = place.filter(|place| place.identity.load(Ordering::Relaxed) == identity);
    let number = match known.map_or(UNKNOWN, |place| place.number.load(Ordering::Relaxed)) {
        UNKNOWN if bytes < least_bytes => return None,
        UNKNOWN => {
            let number = seen(run, file).unwrap_or(NOT_RECORDED);
            if let Some(place) = place {
                place.number.store(number, Ordering::Relaxed);
                place.identity.store(identity, Ordering::Relaxed);
                place.bytes.store(bytes, Ordering::Relaxed);
            }
            number
        }
        number => number,
    };
    if number != NOT_RECORDED
        && place.is_some_and(|place| place.bytes.swap(bytes, Ordering::Relaxed) != bytes)
    {
        tape_file::tell(Kind::Size, [number, bytes, 0, 0]);
    }
    (number != NOT_RECORDED).then_some(number)
}

/// Tells of an open file if it is to be recorded, and returns its number.
fn seen(run: &Run, file: BorrowedFd<'_>) -> Option<u64> {
    let stored = file::stored(file)?;
    let (mut is_wanted, mut number) = (false, 0);
    with_signals_blocked(|| {
        file::with_path(file, |path| {
            is_wanted = run.is_wanted(path.as_c_str());
            if is_wanted {
                tape_file::begin(run, 0);
                number = new_number();
                let values = [number, stored.device, stored.inode, stored.bytes];
                tell_text(Kind::Open, values, path.as_bytes());
            }
        });
    });
    // Without a tape nothing is told of it.
    (is_wanted && start::running().is_some()).then_some(number)
}

/// A number that no other open file has in all processes that are recorded: which program the
/// process is by exec, the process, and a count.
fn new_number() -> u64 {
    let pid = u64::from(rustix::process::getpid().as_raw_pid().cast_unsigned());
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + NOT_RECORDED + 1;
    tape_file::image() << 56 | pid << 24 | count & 0xff_ffff
}

/// Descriptors are closed.
pub fn forget(descriptors: RangeInclusive<c_int>) {
    let last = usize::try_from(*descriptors.end()).unwrap_or(0).min(MOST - 1);
    let first = usize::try_from(*descriptors.start()).unwrap_or(0);
    let closed = OPENS.get(first..=last.max(first)).unwrap_or_default();
    closed.iter().for_each(|place| place.number.store(UNKNOWN, Ordering::Relaxed));
}

/// `to` stands for the same open file as `from`.
pub fn copy(from: c_int, to: c_int) {
    let Some(to) = place(to) else { return };
    let of = |word: fn(&Place) -> &AtomicU64| {
        place(from).map_or(UNKNOWN, |from| word(from).load(Ordering::Relaxed))
    };
    to.identity.store(of(|place| &place.identity), Ordering::Relaxed);
    to.bytes.store(of(|place| &place.bytes), Ordering::Relaxed);
    to.number.store(of(|place| &place.number), Ordering::Relaxed);
}
