//! Programs that do with their mappings what the memory calls can do.

use std::fs::File;
use std::io;
use std::path::Path;
use std::ptr;

use libc::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE, c_int, c_void};

use crate::support::bench::Bench;
use crate::support::draws::{Digest, Draws};
use crate::support::mapping::{Mapping, PAGE_BYTES};

pub const MIB: usize = 1 << 20;

type Program = (&'static str, fn(&Path));

/// Those that need not be governed, as they give their mapping's advice up, or change the file.
const PROGRAMS: [Program; 12] = [
    ("advises", advises),
    ("locks", locks),
    ("populates", populates),
    ("grows by mremap", grows_by_mremap),
    ("moves by mremap", moves_by_mremap),
    ("moves two mappings at once", moves_two),
    ("becomes writable", becomes_writable),
    ("is covered by another", is_covered),
    ("loses its middle", loses_its_middle),
    ("has many mappings", has_many),
    ("is mapped by mmap64", by_mmap64),
    ("fails", fails),
];

pub fn program(arguments: &[String]) {
    let [name, path] = arguments else { panic!("a name and a path are needed") };
    let (_, program) = PROGRAMS.iter().find(|(of, _)| of == name).expect("a program of that name");
    program(Path::new(path));
}

pub fn calls(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    for (name, _) in PROGRAMS {
        let command = || bench.own("memory", &[name, path]);
        bench.both(64 << 10, &[&data], command).alike().well();
    }
}

fn open(path: &Path) -> File {
    File::open(path).expect("the file can be opened")
}

/// What a call returns, and its error.
fn told(what: &str, result: c_int) {
    let error = io::Error::last_os_error().raw_os_error();
    println!("{what}: {result} {:?}", if result == 0 { None } else { error });
}

pub fn look(start: *const u8, bytes: usize, seed: u64) {
    let mut draws = Draws::new(seed);
    let mut digest = Digest::NEW;
    for _ in 0..100 {
        let page = draws.below((bytes / PAGE_BYTES) as u64) as usize;
        // SAFETY: the page is inside the mapping.
        digest.add(unsafe { start.add(page * PAGE_BYTES).cast::<u64>().read_volatile() });
    }
    println!("looked: {:x}", digest.0);
}

fn advises(path: &Path) {
    let file = open(path);
    let advice = [
        libc::MADV_NORMAL,
        libc::MADV_RANDOM,
        libc::MADV_SEQUENTIAL,
        libc::MADV_WILLNEED,
        libc::MADV_DONTNEED,
        libc::MADV_HUGEPAGE,
        libc::MADV_COLD,
        libc::MADV_PAGEOUT,
        libc::MADV_DONTFORK,
        libc::MADV_DONTDUMP,
        libc::MADV_POPULATE_READ,
        libc::MADV_FREE,
        libc::MADV_REMOVE,
        12345,
    ];
    for advice in advice {
        let mapping = Mapping::of(&file);
        look(mapping.start(), mapping.bytes(), 1);
        told("madvise", mapping.advise(advice));
        look(mapping.start(), mapping.bytes(), 2);
        let (start, part) = (mapping.start().wrapping_add(MIB), 4 * MIB);
        // SAFETY: it is a part of the mapping.
        told("madvise of a part", unsafe { libc::madvise(start.cast(), part, advice) });
        // SAFETY: the same; this address is in the middle of a page.
        told("madvise", unsafe { libc::madvise(start.add(1).cast(), part, advice) });
        look(mapping.start(), mapping.bytes(), 3);
    }
    for advice in 0..6 {
        let mapping = Mapping::of(&file);
        // SAFETY: it is the mapping.
        let result =
            unsafe { libc::posix_madvise(mapping.start().cast(), mapping.bytes(), advice) };
        println!("posix_madvise: {result}");
        look(mapping.start(), mapping.bytes(), 4);
    }
}

fn locks(path: &Path) {
    let mapping = Mapping::of(&open(path));
    let start: *const c_void = mapping.start().cast();
    look(mapping.start(), mapping.bytes(), 1);
    // SAFETY: the ranges are inside the mapping.
    unsafe {
        told("mlock", libc::mlock(start, 2 * MIB));
        told("mlock2", libc::mlock2(start.wrapping_byte_add(8 * MIB), MIB, 1));
        told("munlock", libc::munlock(start, MIB));
        told("mlockall", libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT));
        look(mapping.start(), mapping.bytes(), 2);
        told("munlockall", libc::munlockall());
    }
    look(mapping.start(), mapping.bytes(), 3);
}

fn populates(path: &Path) {
    for flags in [MAP_SHARED, MAP_PRIVATE] {
        let flags = flags | libc::MAP_POPULATE;
        let mapping = Mapping::with(&open(path), 0, 16 * MIB, flags).expect("it can be mapped");
        println!("{:x}", mapping.digest());
    }
}

fn mremap(start: *mut u8, old: usize, new: usize, flags: c_int) -> *mut u8 {
    // SAFETY: the range is a mapping of the caller, which goes on with what is returned.
    let moved = unsafe { libc::mremap(start.cast(), old, new, flags) };
    let error = io::Error::last_os_error().raw_os_error();
    let has_failed = moved == libc::MAP_FAILED;
    println!("mremap: {:?}", if has_failed { error } else { None });
    if has_failed { start } else { moved.cast() }
}

fn grows_by_mremap(path: &Path) {
    let file = open(path);
    let small = Mapping::with(&file, 0, 8 * MIB, MAP_SHARED).expect("it can be mapped");
    look(small.start(), small.bytes(), 1);
    let (start, bytes) = small.into_raw();
    let start = mremap(start, bytes, 40 * MIB, libc::MREMAP_MAYMOVE);
    look(start, 40 * MIB, 2);
    let start = mremap(start, 40 * MIB, 4 * MIB, 0);
    look(start, 4 * MIB, 3);
    let start = mremap(start, 4 * MIB, 64 * MIB, libc::MREMAP_MAYMOVE);
    look(start, 64 * MIB, 4);
}

fn moves_by_mremap(path: &Path) {
    let (start, bytes) = Mapping::of(&open(path)).into_raw();
    look(start, bytes, 1);
    // SAFETY: the kernel chooses a place that is free.
    let place =
        unsafe { libc::mmap(ptr::null_mut(), bytes, 0, MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both ranges are ours.
    let moved = unsafe { libc::mremap(start.cast(), bytes, bytes, flags, place) };
    println!("moved to its place: {}", moved == place);
    look(moved.cast(), bytes, 2);
    // A part moves, and leaves a hole.
    // SAFETY: both ranges are ours.
    let part =
        unsafe { libc::mremap(moved.byte_add(8 * MIB), 16 * MIB, 16 * MIB, libc::MREMAP_MAYMOVE) };
    println!("a part has moved: {}", part != libc::MAP_FAILED);
    look(moved.cast(), 8 * MIB, 3);
    look(part.cast(), 16 * MIB, 4);
}

/// Two mappings of a file side by side are one to the kernel, also where one is too small to be
/// governed.
fn moves_two(path: &Path) {
    let file = open(path);
    for (first, second) in [(8 * MIB, 8 * MIB), (8 * MIB, 8 << 10), (8 << 10, 8 * MIB)] {
        let (start, bytes) = Mapping::of(&file).into_raw();
        // SAFETY: the range is ours.
        unsafe { libc::munmap(start.cast(), bytes) };
        let at = |place: *mut u8, offset: usize, bytes: usize| {
            let flags = MAP_SHARED | libc::MAP_FIXED;
            let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
            // SAFETY: the place was ours, and nobody maps anything meanwhile.
            unsafe {
                libc::mmap(place.cast(), bytes, PROT_READ, flags, descriptor, offset as libc::off_t)
            }
        };
        at(start, 0, first);
        at(start.wrapping_add(first), first, second);
        look(start, first + second, 1);
        let both = first + second;
        let moved = mremap(start, both, both + MIB, libc::MREMAP_MAYMOVE);
        look(moved, both + MIB, 2);
    }
}

fn becomes_writable(path: &Path) {
    let mapping = Mapping::with(&open(path), 0, 32 * MIB, MAP_PRIVATE).expect("it can be mapped");
    look(mapping.start(), mapping.bytes(), 1);
    let place = mapping.start().wrapping_add(MIB);
    // SAFETY: the range is inside the mapping.
    unsafe {
        told("mprotect", libc::mprotect(place.cast(), MIB, PROT_READ | PROT_WRITE));
        place.cast::<u64>().write_volatile(99);
        told("mprotect", libc::mprotect(place.cast(), MIB, libc::PROT_NONE));
        told("mprotect", libc::mprotect(place.cast(), MIB, PROT_READ));
        told("mprotect", libc::mprotect(place.cast(), MIB, PROT_READ | libc::PROT_EXEC));
    }
    println!("{:x}", mapping.digest());
    // SAFETY: it is a part of the mapping; what was written to it is lost.
    told("madvise", unsafe { libc::madvise(place.cast(), MIB, libc::MADV_DONTNEED) });
    println!("{:x}", mapping.digest());
}

fn is_covered(path: &Path) {
    let mapping = Mapping::of(&open(path));
    look(mapping.start(), mapping.bytes(), 1);
    let place = mapping.start().wrapping_add(8 * MIB);
    let flags = MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let protection = PROT_READ | PROT_WRITE;
    // SAFETY: the place is inside the mapping.
    let over = unsafe { libc::mmap(place.cast(), 16 * MIB, protection, flags, -1, 0) };
    println!("covered: {}", over == place.cast());
    // SAFETY: it is anonymous memory now.
    unsafe { place.cast::<u64>().write_volatile(5) };
    println!("{:x}", mapping.digest());
}

fn loses_its_middle(path: &Path) {
    let (start, bytes) = Mapping::of(&open(path)).into_raw();
    look(start, bytes, 1);
    // SAFETY: the ranges are inside the mapping.
    unsafe {
        told("munmap", libc::munmap(start.add(8 * MIB).cast(), 16 * MIB));
        told("munmap", libc::munmap(start.add(8 * MIB).cast(), 16 * MIB));
        told("munmap", libc::munmap(start.add(MIB + 1).cast(), MIB));
    }
    look(start, 8 * MIB, 2);
    look(start.wrapping_add(24 * MIB), bytes - 24 * MIB, 3);
}

fn has_many(path: &Path) {
    let file = open(path);
    let mut draws = Draws::new(5);
    let mut digest = Digest::NEW;
    let of = |number: usize| {
        let offset = number % 900 * (64 << 10);
        Mapping::with(&file, offset, 64 << 10, MAP_SHARED).expect("it can be mapped")
    };
    let mut mappings: Vec<Mapping> = (0..10_000).map(of).collect();
    for _ in 0..3 {
        for _ in 0..2000 {
            let mapping = draws.below(mappings.len() as u64) as usize;
            digest.add(mappings[mapping].word(draws.below(16)));
        }
        mappings.truncate(mappings.len() / 2);
    }
    println!("{} {:x}", mappings.len(), digest.0);
    mappings.clear();
    // There is room for new ones.
    let mapping = Mapping::of(&file);
    look(mapping.start(), mapping.bytes(), 6);
}

fn by_mmap64(path: &Path) {
    let file = open(path);
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: the kernel chooses a place that is free.
    let start = unsafe {
        libc::mmap64(ptr::null_mut(), 32 * MIB, PROT_READ, MAP_SHARED, descriptor, 1 << 20)
    };
    look(start.cast(), 32 * MIB, 1);
}

fn fails(path: &Path) {
    let file = open(path);
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    for (bytes, offset, flags, descriptor) in [
        (0, 0, MAP_SHARED, descriptor),
        (32 * MIB, 1, MAP_SHARED, descriptor),
        (32 * MIB, 0, 0, descriptor),
        (32 * MIB, 0, MAP_SHARED, 999),
        (1 << 60, 0, MAP_SHARED, descriptor),
    ] {
        // SAFETY: the kernel chooses a place that is free.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, PROT_READ, flags, descriptor, offset) };
        let error = io::Error::last_os_error().raw_os_error();
        println!("{} {error:?}", start == libc::MAP_FAILED);
    }
    // SAFETY: nothing is there.
    told("munmap", unsafe { libc::munmap(ptr::null_mut(), 0) });
}
