//! Programs to be followed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::ptr::null_mut;
use std::thread;

use crate::bench::PAGE;

/// Argument that makes this test binary run one of the programs.
const PROGRAM: &str = "__program";

/// Runs a program and exits if the arguments say so; returns otherwise.
pub fn main_if_program() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, asked, name, rest @ ..] = &arguments[..] else { return };
    if asked != PROGRAM {
        return;
    }
    match (&**name, rest) {
        ("touch", [file, threads, seed]) => touch(file, number(threads), number(seed)),
        ("rounds", [pages, threads, count]) => {
            rounds(number(pages), number(threads), number(count));
        }
        ("map", [count, file]) => map_pages(number(count), file),
        ("start", rest) => start(rest),
        ("refused", [errno]) => crate::running::refused(number(errno) as u32),
        _ => panic!("no program {name}"),
    }
    std::process::exit(0);
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// A running program, which the test controls by its standard input and output.
pub struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub fn start(name: &str, arguments: &[&str]) -> Program {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args([PROGRAM, name]).args(arguments);
        Program::of(command)
    }

    pub fn of(mut command: Command) -> Program {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Program { child, input, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the next line of output, a list of numbers.
    pub fn says(&mut self) -> Vec<u64> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        line.split_whitespace().map(|word| word.parse().expect("a number")).collect()
    }

    /// Lets the program proceed past its next [`listen`].
    pub fn go(&mut self) {
        self.input.write_all(b"\n").expect("it listens");
    }

    pub fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().expect("it ends").success());
    }
}

fn say(numbers: &[u64]) {
    let words: Vec<_> = numbers.iter().map(u64::to_string).collect();
    println!("{}", words.join(" "));
    stdout().flush().expect("a pipe");
}

fn listen() {
    let mut byte = [0];
    let _ = stdin().read(&mut byte);
}

/// Maps a file for the rest of the process's life, and returns the address.
pub fn map(path: &Path, pages: u64) -> usize {
    let file = File::open(path).expect("a file");
    let length = (pages * PAGE) as usize;
    // SAFETY: the kernel chooses an unused address.
    let address = unsafe {
        libc::mmap(null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(address, libc::MAP_FAILED);
    address as usize
}

pub fn advise(address: usize, pages: u64, advice: i32) {
    // SAFETY: the range is mapped by this program, and the advice leaves its contents as they are.
    let done = unsafe { libc::madvise(address as *mut _, (pages * PAGE) as usize, advice) };
    assert_eq!(done, 0);
}

pub fn read(address: usize, page: u64) {
    // SAFETY: the page is mapped.
    unsafe { ((address + (page * PAGE) as usize) as *const u8).read_volatile() };
}

/// The order in which a thread touches its pages. The threads together touch each page once.
pub fn order(pages: u64, threads: u64, thread: u64, seed: u64) -> Vec<u64> {
    let mut state = seed;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut all: Vec<u64> = (0..pages).collect();
    for place in (1..all.len()).rev() {
        all.swap(place, (random() % (place as u64 + 1)) as usize);
    }
    all.into_iter().skip(thread as usize).step_by(threads as usize).collect()
}

/// Maps the file and prints the address, waits for input, touches each page from `threads` threads
/// and prints their TIDs, then waits for input again.
fn touch(file: &str, threads: u64, seed: u64) {
    let pages = std::fs::metadata(file).expect("a file").len() / PAGE;
    let address = map(Path::new(file), pages);
    advise(address, pages, libc::MADV_RANDOM);
    say(&[address as u64]);
    listen();
    let work = |thread| {
        order(pages, threads, thread, seed).into_iter().for_each(|page| read(address, page));
        // SAFETY: the call takes no arguments.
        unsafe { libc::gettid() as u64 }
    };
    let tids = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|t| scope.spawn(move || work(t))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    say(&tids);
    listen();
}

/// Touches anonymous memory over and over, dropping it by MADV_DONTNEED in between: the cheapest
/// faults. Prints the number of minor faults and the elapsed time in microseconds.
fn rounds(pages: u64, threads: u64, rounds: u64) {
    listen();
    let begin = std::time::Instant::now();
    let work = || {
        let length = (pages * PAGE) as usize;
        // SAFETY: the kernel chooses an unused address.
        let address = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(null_mut(), length, libc::PROT_READ, flags, -1, 0)
        };
        assert_ne!(address, libc::MAP_FAILED);
        let address = address as usize;
        advise(address, pages, libc::MADV_NOHUGEPAGE);
        for _ in 0..rounds {
            (0..pages).for_each(|page| read(address, page));
            advise(address, pages, libc::MADV_DONTNEED);
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let took = begin.elapsed().as_micros() as u64;
    // SAFETY: the call fills the structure.
    let usage = unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    say(&[usage.ru_minflt.cast_unsigned(), took]);
    listen();
}

/// Maps the first page of a file `count` times.
fn map_pages(count: u64, file: &str) {
    let file = File::open(file).expect("a file");
    for _ in 0..count {
        // SAFETY: the kernel chooses an unused address.
        let address = unsafe {
            let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            libc::mmap(null_mut(), PAGE as usize, protection, flags, file.as_raw_fd(), 0)
        };
        assert_ne!(address, libc::MAP_FAILED);
    }
    say(&[count]);
    listen();
}

/// Runs another of the programs as a child, and waits for it.
fn start(arguments: &[String]) {
    let status = Command::new(std::env::current_exe().expect("this binary"))
        .arg(PROGRAM)
        .args(arguments)
        .status();
    assert!(status.expect("a process").success());
}
