//! Which advice the kernel has for a mapping, as /proc says it, where the governor's must not stay.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::ptr;
use std::thread;

use libc::{MAP_SHARED, c_int};

use crate::support::bench::{Bench, has_observer};
use crate::support::mapping::Mapping;

const MIB: usize = 1 << 20;

/// Whether the kernel reads single pages somewhere between `start` and `bytes` bytes behind it.
fn is_random(start: *const u8, bytes: usize) -> bool {
    let smaps = fs::read_to_string("/proc/self/smaps").expect("it can be read");
    let mut is_inside = false;
    smaps.lines().any(|line| {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16).expect("an address");
            is_inside = number(from) < start.addr() + bytes && start.addr() < number(to);
        }
        is_inside && line.starts_with("VmFlags:") && line.contains(" rr")
    })
}

/// Whether this process is governed.
fn is_governed() -> bool {
    std::env::var_os("LD_PRELOAD").is_some() && has_observer()
}

type Program = (&'static str, fn(Mapping));

const PROGRAMS: [Program; 3] = [
    ("is mapped twice", is_mapped_twice),
    ("is left behind", is_left_behind),
    ("is lent twice", is_lent_twice),
];

/// The same, of which there is one test of its own.
const DESCRIPTORS: Program = ("needs all descriptors", needs_all_descriptors);

pub fn program(arguments: &[String]) {
    let [name, path] = arguments else { panic!("a name and a path are needed") };
    let mut programs = PROGRAMS.iter().chain([&DESCRIPTORS]);
    let (_, program) = programs.find(|(of, _)| of == name).expect("a program of that name");
    // Its descriptor is closed before the program, which may take the number.
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    program(mapping);
}

pub fn left(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    for (name, _) in PROGRAMS {
        let command = || bench.own("advice", &[name, path]);
        bench.both(16 << 20, &[&data], command).alike().well();
    }
}

/// Without an old length mremap(2) makes a second mapping.
fn is_mapped_twice(mapping: Mapping) {
    let whole = (0, mapping.bytes());
    for (skipped, bytes) in [whole, (8 * MIB, 16 * MIB)] {
        let from = mapping.start().wrapping_add(skipped);
        // SAFETY: the kernel chooses a place that is free.
        let copy = unsafe { libc::mremap(from.cast(), 0, bytes, libc::MREMAP_MAYMOVE) };
        assert_ne!(copy, libc::MAP_FAILED);
        println!("the copy is random: {}", is_random(copy.cast(), bytes));
        // SAFETY: both are mapped.
        println!("alike: {}", unsafe { *copy.cast::<u64>() == *from.cast::<u64>() });
    }
    // The first one stays what it was.
    println!("{:x}", mapping.digest());
    println!("kept: {}", is_random(mapping.start(), mapping.bytes()) == is_governed());
}

/// MREMAP_DONTUNMAP leaves the old mapping, empty.
fn is_left_behind(mapping: Mapping) {
    let (start, bytes) = (mapping.start(), mapping.bytes());
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
    let nowhere = ptr::null_mut::<u8>();
    // SAFETY: the kernel chooses a place that is free.
    let moved = unsafe { libc::mremap(start.cast(), bytes, bytes, flags, nowhere) };
    println!("moved: {}", moved != libc::MAP_FAILED);
    if moved != libc::MAP_FAILED {
        println!("what was left is random: {}", is_random(start, bytes));
    }
    println!("{:x}", mapping.digest());
}

/// Two threads write the same part: one is long done when the other one ends.
fn is_lent_twice(mapping: Mapping) {
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let mapping = &mapping;
    thread::scope(|scope| {
        scope.spawn(move || {
            let (place, bytes) = (mapping.start(), mapping.bytes());
            let mut done = 0;
            while done < bytes {
                let from = place.wrapping_add(done).cast();
                // SAFETY: all of it is inside the mapping.
                let written = unsafe { libc::write(writer.as_raw_fd(), from, bytes - done) };
                assert!(written > 0);
                done += written as usize;
            }
        });
        let mut first = [0; 1 << 16];
        reader.read_exact(&mut first).expect("the first bytes come");
        // SAFETY: the name ends with a zero, and the part is inside the mapping.
        unsafe {
            let target = libc::memfd_create(c"target".as_ptr(), 0);
            println!("{}", libc::write(target, mapping.start().cast(), MIB));
        }
        println!("random meanwhile: {}", is_random(mapping.start(), mapping.bytes()));
        let rest = std::io::copy(&mut reader, &mut std::io::sink()).expect("the rest comes");
        println!("{rest}");
    });
    println!("as before: {}", is_random(mapping.start(), mapping.bytes()) == is_governed());
}

/// The most descriptors that the program may have.
const LIMIT: c_int = 64;

/// A program that takes all numbers of descriptors for itself gets the event's, too.
fn needs_all_descriptors(mapping: Mapping) {
    println!("{:x}", mapping.digest());
    while let Ok(file) = File::open("/dev/null") {
        std::mem::forget(file);
    }
    // SAFETY: nobody uses the numbers.
    let copies = (3..LIMIT).filter(|&number| unsafe { libc::dup2(1, number) } == number).count();
    // SAFETY: the same.
    let closed = (3..LIMIT).filter(|&number| unsafe { libc::close(number) } == 0).count();
    println!("{copies} copies, {closed} closed");
    println!("random: {}", is_random(mapping.start(), mapping.bytes()));
    let file = File::open("/proc/self/exe").expect("there is a program");
    let more = Mapping::with(&file, 0, 1 << 12, MAP_SHARED).expect("it can be mapped");
    println!("{}", more.as_slice()[0]);
    println!("{:x}", mapping.digest());
}

pub fn all_descriptors(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let command = || {
        let mut command = bench.own("advice", &[DESCRIPTORS.0, path]);
        let limit = libc::rlimit { rlim_cur: LIMIT as u64, rlim_max: LIMIT as u64 };
        // SAFETY: setrlimit(2) may be called between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
                Ok(())
            })
        };
        command
    };
    bench.both(16 << 20, &[&data], command).alike().well();
}

unsafe extern "C" {
    fn _Fork() -> libc::pid_t;
}

/// Reads in a child for which no handlers of pthread_atfork(3) run.
pub fn bare_fork_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    println!("{:x}", mapping.word(100));
    // SAFETY: this program has one thread.
    let child = unsafe { _Fork() };
    if child == 0 {
        (0..100).for_each(|number| {
            mapping.word(number * 163);
        });
        std::process::exit(5);
    }
    let mut status = 0;
    // SAFETY: it is our child.
    unsafe { libc::waitpid(child, ptr::from_mut(&mut status), 0) };
    println!("{status:x}");
}

pub fn bare_fork(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let both = bench.both(16 << 20, &[&data], || bench.own("bare fork", &[path]));
    let both = both.alike().well().governs(&data);
    if let Some(told) = &both.told {
        assert_eq!(told.entries.len(), 2, "{:?}", told.entries.keys());
        return;
    }
    let governed = both.statistics.iter().filter(|of| of.mappings.iter().any(|of| of.faults > 0));
    let governed = governed.count();
    let all = !has_observer() || governed == 2;
    assert!(all, "{governed} processes were governed: {:#?}", both.statistics);
}
