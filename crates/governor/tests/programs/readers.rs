//! Programs that read a mapped file: in several orders, threads and processes.

use std::ffi::CString;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::thread;

use crate::support::bench::{AS, Bench, DATA_BYTES};
use crate::support::draws::{Digest, Draws};
use crate::support::mapping::{Mapping, PAGE_BYTES};
use crate::support::reader::{Pattern, advice, read};

/// Reads by a pattern, and prints a digest of what it read.
pub fn program(arguments: &[String]) {
    let [path, pattern, own] = arguments else { panic!("a path, a pattern and advice are needed") };
    let read = read(Path::new(path), Pattern::parse(pattern), advice(own));
    println!("{:x}", read.digest);
}

fn with(bench: &Bench, path: &Path, pattern: &str, advice: &str) -> Command {
    bench.own("reader", &[path.to_str().expect("a plain name"), pattern, advice])
}

pub fn orders(bench: &Bench) {
    let data = bench.data();
    // How many bytes are read of which one is read when governed.
    for (pattern, divisor) in
        [("random:200", 4), ("stride:101:163", 4), ("clusters:20:16", 2), ("random:5000", 1)]
    {
        let both = bench.both(16 << 20, &[&data], || with(bench, &data, pattern, "none"));
        both.alike().well().governs(&data).reads_less(divisor);
    }
    for pattern in ["scan", "backward", "first:4000", "mix:4000:50"] {
        let both = bench.both(16 << 20, &[&data], || with(bench, &data, pattern, "none"));
        both.alike().well().governs(&data);
    }
}

/// The whole file is read once, governed or not.
pub fn scans_read_once(bench: &Bench) {
    let data = bench.data();
    let both = bench.both(16 << 20, &[&data], || with(bench, &data, "scan", "none"));
    both.alike().well().governs(&data).reads_as_much();
}

pub fn own_advice(bench: &Bench) {
    let data = bench.data();
    for own in ["random", "sequential"] {
        for pattern in ["random:200", "scan"] {
            let both = bench.both(16 << 20, &[&data], || with(bench, &data, pattern, own));
            let both = both.alike().well().reads_as_much();
            assert_eq!(both.faults(&data), 0, "{own}: what the program advised is governed");
        }
    }
}

pub fn small_mappings_are_left_alone(bench: &Bench) {
    let data = bench.data();
    let both = bench.both(2 * DATA_BYTES, &[&data], || with(bench, &data, "random:100", "none"));
    let both = both.alike().well();
    assert_eq!(both.faults(&data), 0);
}

/// Threads that read at once: a part each from its beginning, or pages anywhere.
pub fn threads_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    let part = mapping.pages() / 4;
    let of = |thread: u64| {
        let mut digest = Digest::NEW;
        let mut draws = Draws::new(thread);
        for step in 0..part / 2 {
            let page = if thread < 4 { thread * part + step } else { draws.below(part * 4) };
            digest.add(mapping.word(page));
        }
        digest.0
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || of(thread))).collect();
        threads.into_iter().for_each(|of| println!("{:x}", of.join().expect("it ends")));
    });
}

pub fn threads(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let both = bench.both(16 << 20, &[&data], || bench.own("threads", &[path]));
    both.alike().well().governs(&data);
}

/// Threads that come and go while others map, read and unmap.
pub fn churn_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let file = File::open(path).expect("the file can be opened");
    let worker = |number: u64| {
        let mut draws = Draws::new(number);
        let mut digest = Digest::NEW;
        for _ in 0..60 {
            let pages = 256 + draws.below(1000);
            let first = draws.below(DATA_BYTES / PAGE_BYTES as u64 - pages) as usize * PAGE_BYTES;
            let mapping =
                Mapping::with(&file, first, pages as usize * PAGE_BYTES, libc::MAP_SHARED)
                    .expect("a part can be mapped");
            (0..10).for_each(|_| digest.add(mapping.word(draws.below(pages))));
        }
        digest.0
    };
    for round in 0..4 {
        let digests = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|thread| scope.spawn(move || worker(round * 8 + thread))).collect();
            threads.into_iter().map(|of| of.join().expect("it ends")).collect::<Vec<_>>()
        });
        println!("{digests:x?}");
    }
}

pub fn threads_that_map(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let both = bench.both(1 << 20, &[&data], || bench.own("churn", &[path]));
    both.alike().well().governs(&data);
}

/// A program that forks while it has a mapping, and whose children read, exec and spawn.
pub fn forks_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    let look = |seed| {
        let mut draws = Draws::new(seed);
        let mut digest = Digest::NEW;
        (0..100).for_each(|_| digest.add(mapping.word(draws.below(mapping.pages()))));
        digest.0
    };
    println!("parent: {:x}", look(0));
    for seed in 1..4 {
        // SAFETY: this program has one thread.
        let child = unsafe { libc::fork() };
        if child == 0 {
            println!("child {seed}: {:x}", look(seed));
            // SAFETY: the same.
            let grandchild = unsafe { libc::fork() };
            if grandchild == 0 {
                println!("grandchild {seed}: {:x}", look(seed + 10));
                // SAFETY: it ends this process only.
                unsafe { libc::_exit(3) };
            }
            println!("child {seed}: {:x}", wait(grandchild));
            std::process::exit(seed as i32);
        }
        println!("status: {:x}", wait(child));
    }
    spawned(path);
    println!("parent: {:x}", look(20));
}

fn wait(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: it is our child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    status
}

/// Runs the reader by posix_spawn(3), which is what the standard library does here, and by
/// vfork(2) and exec. They read different pages.
fn spawned(path: &str) {
    let program = std::env::current_exe().expect("the test has a path");
    let arguments = |pattern| [AS, "reader", path, pattern, "none"];
    let status = Command::new(&program).args(arguments("random:100")).status().expect("it starts");
    println!("spawned: {status}");
    let program = CString::new(program.to_str().expect("a plain name")).expect("no zero");
    let arguments = arguments("stride:163:101").map(|text| CString::new(text).expect("no zero"));
    let mut pointers = vec![program.as_ptr()];
    pointers.extend(arguments.iter().map(|argument| argument.as_ptr()));
    pointers.push(ptr::null());
    // SAFETY: the child only calls exec or ends.
    #[expect(deprecated, reason = "programs do so")]
    let child = unsafe { libc::vfork() };
    if child == 0 {
        // SAFETY: the list ends with a null pointer.
        unsafe {
            libc::execv(program.as_ptr(), pointers.as_ptr());
            libc::_exit(9);
        }
    }
    println!("vforked: {:x}", wait(child));
}

pub fn forks(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let both = bench.both(16 << 20, &[&data], || bench.own("forks", &[path]));
    let both = both.alike().well().governs(&data).reads_less(2);
    // The parent, three children, three grandchildren, and two programs.
    if let Some(told) = &both.told {
        assert_eq!(told.entries.len(), 9, "{:?}", told.entries.keys());
        return;
    }
    let has_faults = |of: &&filemap_control::Snapshot| of.mappings.iter().any(|m| m.faults > 0);
    let governed = both.statistics.iter().filter(has_faults).count();
    let all = !crate::support::bench::has_observer() || governed == 9;
    assert!(all, "{governed} processes were governed: {:#?}", both.statistics);
}
