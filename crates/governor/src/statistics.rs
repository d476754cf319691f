//! What is told of a process: numbers in a file that is mapped, so that they can be read at any
//! time (`filemap_control::layout`). Without a file they are counted all the same.

use std::ffi::CStr;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use filemap_control::layout::{
    HEADER_WORDS, MAGIC_WORD, MAPPING_WORDS, Observer, Reason, State, UNKNOWN, WORDS, header,
    mapping,
};
use filemap_control::{Unkept, socket_name};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::file::{ShortText, start_ticks};
use crate::shared_file;
use crate::table::Mapping;

type Words = [AtomicU64; WORDS];

/// Where numbers go while there is no file.
static WITHOUT_FILE: Words = [const { AtomicU64::new(0) }; WORDS];

/// The file's words; null while there is none.
static FILE: AtomicPtr<Words> = AtomicPtr::new(ptr::null_mut());

/// The number in the name of the file, plus one; 0 while there is none.
static IMAGE: AtomicU32 = AtomicU32::new(0);

/// Making a file was tried.
static IS_TRIED: AtomicBool = AtomicBool::new(false);

fn words() -> &'static Words {
    let file = FILE.load(Ordering::Acquire);
    // SAFETY: it was mapped with that many words and is never unmapped.
    unsafe { file.as_ref() }.unwrap_or(&WITHOUT_FILE)
}

fn word(index: usize) -> &'static AtomicU64 {
    static NOWHERE: AtomicU64 = AtomicU64::new(0);
    words().get(index).unwrap_or(&NOWHERE)
}

fn of_mapping(slot: usize, index: usize) -> &'static AtomicU64 {
    word(HEADER_WORDS + slot * MAPPING_WORDS + index)
}

/// Adds to a number of the process.
pub fn count(index: usize, more: u64) {
    word(index).fetch_add(more, Ordering::Relaxed);
}

/// Adds to a number of the mapping in slot `slot`.
pub fn count_of(slot: usize, index: usize, more: u64) {
    of_mapping(slot, index).fetch_add(more, Ordering::Relaxed);
}

pub fn observer(observer: Observer) {
    word(header::OBSERVER).store(observer as u64, Ordering::Relaxed);
}

pub fn reason(reason: Reason) {
    word(header::REASON).store(reason as u64, Ordering::Relaxed);
}

/// Whether the record of a slot was never used.
pub fn is_fresh(slot: usize) -> bool {
    of_mapping(slot, mapping::STATE).load(Ordering::Relaxed) == State::Free as u64
}

/// Begins the record of a mapping. What the slot's record said before is added to the others.
pub fn begin(slot: usize, of: &Mapping, page_size: usize, path: &[u8]) {
    if !is_fresh(slot) {
        make_room(slot);
    }
    let set = |index, value| of_mapping(slot, index).store(value, Ordering::Relaxed);
    for index in [mapping::FAULTS, mapping::ADVISED_PAGES, mapping::CALLS, mapping::STREAMS] {
        set(index, 0);
    }
    set(mapping::TOUCHED_PAGES, UNKNOWN);
    set(mapping::START, of.range.start as u64);
    set(mapping::BYTES, of.range.len() as u64);
    set(mapping::OFFSET_BYTES, of.first_page.saturating_mul(page_size as u64));
    let from = path.len().saturating_sub(mapping::PATH_BYTES);
    let path = path.get(from..).unwrap_or_default();
    set(mapping::PATH_LENGTH, path.len() as u64);
    for (index, bytes) in path.chunks(8).enumerate() {
        let mut whole = [0; 8];
        whole.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        set(mapping::PATH + index, u64::from_ne_bytes(whole));
    }
    of_mapping(slot, mapping::STATE).store(State::Governed as u64, Ordering::Release);
}

fn make_room(slot: usize) {
    let get = |index| of_mapping(slot, index).load(Ordering::Relaxed);
    count(header::OTHERS, 1);
    count(header::OTHERS_FAULTS, get(mapping::FAULTS));
    count(header::OTHERS_ADVISED_PAGES, get(mapping::ADVISED_PAGES));
    let touched = get(mapping::TOUCHED_PAGES);
    count(header::OTHERS_TOUCHED_PAGES, if touched == UNKNOWN { 0 } else { touched });
}

/// A mapping has another range now.
pub fn reshape(slot: usize, range: &Range<usize>) {
    of_mapping(slot, mapping::START).store(range.start as u64, Ordering::Relaxed);
    of_mapping(slot, mapping::BYTES).store(range.len() as u64, Ordering::Relaxed);
}

/// A mapping ended, with `touched` pages mapped as far as is known.
pub fn end(slot: usize, state: State, touched: Option<u64>) {
    let touched = touched.unwrap_or(UNKNOWN);
    of_mapping(slot, mapping::TOUCHED_PAGES).store(touched, Ordering::Relaxed);
    of_mapping(slot, mapping::STATE).store(state as u64, Ordering::Release);
}

/// Whether there is a file.
pub fn is_kept() -> bool {
    !FILE.load(Ordering::Acquire).is_null()
}

/// Makes the file in `directory`, which ends with a zero, and goes on there with what was counted.
/// Where that fails, numbers are counted without one. Who collects the files is told then.
pub fn open(directory: &CStr, page_size: usize, is_collected: bool) {
    if IS_TRIED.swap(true, Ordering::Relaxed) {
        return;
    }
    match shared_file::make(directory, size_of::<Words>()) {
        Ok((mapped, image)) => begin_in(mapped.cast(), image, page_size),
        Err(failed) if is_collected => tell(directory, failed),
        Err(_) => {}
    }
}

/// Says to who collects the files of `directory` why this process has none. Where nobody listens,
/// or too many speak, nothing happens.
fn tell(directory: &CStr, failed: Errno) {
    let pid = rustix::process::getpid().as_raw_pid().cast_unsigned();
    let what = Unkept { pid, errno: failed.raw_os_error().cast_unsigned() };
    let (family, kind) = (AddressFamily::UNIX, SocketType::DGRAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None);
    let address = SocketAddrUnix::new_abstract_name(socket_name(directory.to_bytes()));
    if let (Ok(socket), Ok(address)) = (socket, address) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = rustix::net::sendto(&socket, &what.to_bytes(), flags, &address);
    }
}

/// Goes on in a file that is `mapped` with what was counted.
fn begin_in(mapped: *mut Words, image: u32, page_size: usize) {
    for (index, from) in WITHOUT_FILE.iter().enumerate() {
        let value = from.load(Ordering::Relaxed);
        if value != 0 {
            // SAFETY: the mapping has as many words.
            let to = unsafe { &*mapped.cast::<AtomicU64>().add(index) };
            to.store(value, Ordering::Relaxed);
        }
    }
    FILE.store(mapped, Ordering::Release);
    IMAGE.store(image + 1, Ordering::Relaxed);
    word(header::PID).store(rustix::process::getpid().as_raw_pid() as u64, Ordering::Relaxed);
    word(header::START_TICKS).store(start_ticks().unwrap_or(0), Ordering::Relaxed);
    word(header::PAGE_BYTES).store(page_size as u64, Ordering::Relaxed);
    word(header::MAGIC).store(MAGIC_WORD, Ordering::Release);
}

/// Removes the files of this process and of what it was before exec.
pub fn remove(directory: &CStr) {
    (0..IMAGE.load(Ordering::Relaxed)).for_each(|image| shared_file::unlink(directory, image));
}

/// In the child of a fork: it has mappings of its own from here on, and not its parent's numbers.
pub fn after_fork() {
    let parents = words();
    let copy = |index: usize| parents.get(index).map_or(0, |word| word.load(Ordering::Relaxed));
    for (index, to) in WITHOUT_FILE.iter().enumerate() {
        let is_counted = matches!(
            index.checked_sub(HEADER_WORDS).map(|index| index % MAPPING_WORDS),
            Some(mapping::FAULTS | mapping::ADVISED_PAGES | mapping::CALLS | mapping::STREAMS)
        ) || (header::REPORTED..HEADER_WORDS).contains(&index);
        to.store(if is_counted { 0 } else { copy(index) }, Ordering::Relaxed);
    }
    FILE.store(ptr::null_mut(), Ordering::Release);
    IMAGE.store(0, Ordering::Relaxed);
    IS_TRIED.store(false, Ordering::Relaxed);
}

/// The path of the mapping in a slot, as far as it is kept.
pub fn path_of(slot: usize) -> ShortText {
    let get = |index| of_mapping(slot, index).load(Ordering::Relaxed);
    let length = (get(mapping::PATH_LENGTH) as usize).min(mapping::PATH_BYTES);
    let mut path = ShortText::new();
    for index in 0..length.div_ceil(8) {
        let bytes = get(mapping::PATH + index).to_ne_bytes();
        path.push(bytes.get(..(length - 8 * index).min(8)).unwrap_or_default());
    }
    path
}
