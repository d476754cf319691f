//! What a program sees of its descriptors, and of the locks on its files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::refused::refuse_perf;
use crate::support::bench::{AS, Bench, has_observer};
use crate::support::draws::{Digest, Draws};
use crate::support::mapping::Mapping;
use crate::support::outcome::End;

/// No program here has descriptors above it.
const END: i32 = 1024;

fn look(mapping: &Mapping, seed: u64) {
    let mut draws = Draws::new(seed);
    let mut digest = Digest::NEW;
    (0..100).for_each(|_| digest.add(mapping.word(draws.below(mapping.pages()))));
    println!("looked: {:x}", digest.0);
}

/// Prints the numbers that its files get, before and behind a mapping, and what closing tells.
pub fn program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let open = || File::open(path).expect("the file can be opened");
    let first = open();
    println!("the first is {}", first.as_raw_fd());
    let mapping = Mapping::of(&first);
    look(&mapping, 1);
    let second = open();
    println!("the second is {}", second.as_raw_fd());
    let known = |descriptor: i32| {
        // SAFETY: fcntl(2) asks about a descriptor.
        unsafe { libc::fcntl(descriptor, libc::F_GETFD) }
    };
    let flags: Vec<(i32, i32)> =
        (0..END).map(|n| (n, known(n))).filter(|&(n, flags)| n < 64 && flags >= 0).collect();
    println!("known: {flags:?}");
    // SAFETY: the numbers are free for all the program knows.
    let copies = (3..END).filter(|&n| unsafe { libc::dup2(1, n) } == n).count();
    println!("{copies} copies");
    look(&mapping, 2);
    // SAFETY: they are the program's.
    let closed = (3..END).filter(|&n| unsafe { libc::close(n) } == 0).count();
    println!("{closed} closed");
    look(&mapping, 3);
    // SAFETY: closing what is not open fails.
    let closed = (3..END).filter(|&n| unsafe { libc::close(n) } == 0).count();
    println!("{closed} closed");
    look(&mapping, 4);
    // SAFETY: nothing of the program is there.
    let result = unsafe { libc::close_range(3, u32::MAX, 0) };
    println!("close_range: {result}");
    look(&mapping, 5);
    let third = open();
    println!("the third is {}", third.as_raw_fd());
    std::mem::forget((first, second));
}

pub fn numbers(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    bench
        .both(16 << 20, &[&data], || bench.own("descriptors", &[path]))
        .alike()
        .well()
        .governs(&data);
}

/// The same where a thread scans page tables.
pub fn numbers_without_perf(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let command = || {
        let mut command = bench.own("descriptors", &[path]);
        refuse_perf(&mut command, libc::EACCES);
        command
    };
    bench.both(16 << 20, &[&data], command).alike().well();
}

/// The most descriptors that the program may have.
const LIMIT: u64 = 64;

/// Opens as many files as it may, and then maps one and reads.
pub fn limited_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let first = File::open(path).expect("the file can be opened");
    let mapping = Mapping::of(&first);
    look(&mapping, 1);
    let mut files = Vec::new();
    let error = loop {
        match File::open(path) {
            Ok(file) => files.push(file),
            Err(error) => break error,
        }
    };
    eprintln!("{}", files.len());
    println!("{error}");
    let second = Mapping::of(&first);
    look(&second, 2);
    // SAFETY: this program has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        look(&second, 3);
        std::process::exit(4);
    }
    let mut status = 0;
    // SAFETY: it is our child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    println!("the child: {status:x}");
}

/// The program can open as many files as without the library, or one less.
pub fn limit_is_reached(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let command = || {
        let mut command = bench.own("limited", &[path]);
        let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
        // SAFETY: setrlimit(2) may be called between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
                Ok(())
            })
        };
        command
    };
    let both = bench.both(16 << 20, &[&data], command);
    let opened = [&both.plain, &both.governed].map(|of| {
        assert_eq!(of.end, End::Exited(0), "{of:?}");
        let stderr = of.stderr();
        stderr.trim().parse::<i64>().unwrap_or_else(|_| panic!("more than a number: {stderr}"))
    });
    println!(
        "programs: of {LIMIT} descriptors {} are free, {} when governed",
        opened[0], opened[1]
    );
    assert!((0..=1).contains(&(opened[0] - opened[1])), "{opened:?}");
    assert_eq!(both.plain.stdout(), both.governed.stdout());
}

/// Holds a record lock on a file that it maps and unmaps, and has another program look for it.
pub fn locks_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let file = OpenOptions::new().read(true).write(true).open(path).expect("it can be opened");
    // SAFETY: all of it may be zero.
    let mut lock: libc::flock = unsafe { std::mem::MaybeUninit::zeroed().assume_init() };
    lock.l_type = libc::F_WRLCK as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock.l_start = 10;
    lock.l_len = 100;
    // SAFETY: the lock is valid.
    println!("locked: {}", unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock) });
    let ask = |when: &str| {
        let program = std::env::current_exe().expect("the test has a path");
        let output = Command::new(program).args([AS, "asks", path]).output().expect("it starts");
        print!("{when}: {}", String::from_utf8_lossy(&output.stdout));
        let _ = io::stdout().flush();
    };
    ask("before");
    let mapping = Mapping::of(&file);
    look(&mapping, 1);
    ask("mapped");
    drop(mapping);
    ask("unmapped");
    let mapping = Mapping::with(&file, 1 << 20, 16 << 20, libc::MAP_SHARED).expect("a mapping");
    look(&mapping, 2);
    // SAFETY: it is the mapping.
    unsafe { libc::madvise(mapping.start().cast(), mapping.bytes(), libc::MADV_NORMAL) };
    ask("advised");
    std::process::exit(0);
}

/// Says whether another program has a lock on a file.
pub fn asks_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let file = OpenOptions::new().read(true).write(true).open(path).expect("it can be opened");
    // SAFETY: all of it may be zero.
    let mut lock: libc::flock = unsafe { std::mem::MaybeUninit::zeroed().assume_init() };
    lock.l_type = libc::F_WRLCK as i16;
    // SAFETY: the lock is valid.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut lock) };
    println!("{} {} {}", i32::from(lock.l_type), lock.l_start, lock.l_len);
}

pub fn locks_stay(bench: &Bench) {
    let path = bench.file("locked", 32 << 20);
    let name = path.to_str().expect("a plain name");
    let both = bench.both(1 << 20, &[&path], || bench.own("locks", &[name]));
    let both = both.alike().well().governs(&path);
    assert!(both.plain.stdout().contains("unmapped: 1 10 100"), "{}", both.plain.stdout());
}

/// Becomes a daemon: two forks, a session of its own, no descriptor kept. It leaves what it read
/// in a file.
pub fn daemon_program(arguments: &[String]) {
    let [path, result, order] = arguments else { panic!("two paths and an order are needed") };
    let early = order == "maps first";
    let mapped = early.then(|| Mapping::of(&File::open(path).expect("it can be opened")));
    if let Some(mapping) = &mapped {
        look(mapping, 1);
    }
    // SAFETY: this program has one thread, and closes descriptors that it uses no more.
    unsafe {
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        libc::setsid();
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        for descriptor in 0..END {
            libc::close(descriptor);
        }
    }
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").expect("it opens");
    let number = null.as_raw_fd();
    // SAFETY: it is open.
    let [one, two] = [(); 2].map(|()| unsafe { libc::dup(number) });
    let mapping = mapped.unwrap_or_else(|| Mapping::of(&File::open(path).expect("it opens")));
    let mut digest = Digest::NEW;
    let mut draws = Draws::new(2);
    (0..200).for_each(|_| digest.add(mapping.word(draws.below(mapping.pages()))));
    let partial = format!("{result}.part");
    fs::write(&partial, format!("{number} {one} {two} {:x}\n", digest.0)).expect("there is room");
    fs::rename(&partial, result).expect("it is ours");
}

pub fn daemons(bench: &Bench) {
    let data = bench.data();
    let result = bench.directory.join("daemon's");
    let names = [&data, &result].map(|path| path.to_str().expect("a plain name"));
    for order in ["maps first", "maps later"] {
        let mut found = Vec::new();
        for governed in [false, true] {
            let _ = fs::remove_file(&result);
            let statistics = bench.directory.join(format!("daemon-statistics-{order}"));
            fs::create_dir_all(&statistics).expect("a directory for statistics");
            let mut command = bench.own("daemon", &[names[0], names[1], order]);
            if governed {
                bench.library.govern(&mut command, 16 << 20, &statistics);
            }
            filemap_kernel::cold::drop_file(&data).expect("the file can be dropped");
            let outcome = bench.plain(command);
            let text = eventually(|| fs::read_to_string(&result).ok());
            found.push((outcome.stdout(), outcome.stderr(), text));
            if governed && has_observer() {
                let faults = || {
                    let all = crate::support::library::statistics(&statistics);
                    all.iter().flat_map(|of| &of.mappings).map(|of| of.faults).max()
                };
                // The daemon itself has statistics, as long as it runs and when it has ended.
                let most = eventually(|| faults().filter(|&faults| faults > 100));
                assert!(most > 100, "{order}: {most} faults were governed");
            }
        }
        assert_eq!(found[0], found[1], "{order}");
    }
}

/// Waits until `look` finds something.
fn eventually<T>(look: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A copy of a file to another, straight from its mapping, by each call that can.
pub fn writes_program(arguments: &[String]) {
    let [path, how] = arguments else { panic!("a path and a call are needed") };
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    // SAFETY: the name ends with a zero.
    let target = unsafe { libc::memfd_create(c"target".as_ptr(), 0) };
    let (start, bytes) = (mapping.start(), mapping.bytes());
    let place = |done: usize| start.wrapping_add(done).cast_const().cast();
    let mut done = 0;
    let begun = Instant::now();
    // SAFETY: all that is written is inside the mapping, and the stream is open until the end.
    unsafe {
        let stream = libc::fdopen(target, c"w".as_ptr());
        while done < bytes {
            let left = bytes - done;
            let part = libc::iovec { iov_base: start.add(done).cast(), iov_len: left.min(1 << 20) };
            let written = match how.as_str() {
                "write" => libc::write(target, place(done), left),
                "small writes" => libc::write(target, place(done), left.min(10_000)),
                "pwrite" => libc::pwrite(target, place(done), left, done as libc::off_t),
                "writev" => libc::writev(target, &part, 1),
                "pwritev" => libc::pwritev(target, &part, 1, done as libc::off_t),
                "fwrite" => libc::fwrite(place(done), 1, left, stream) as isize,
                _ => panic!("{how} is no call"),
            };
            assert!(written > 0, "{}", io::Error::last_os_error());
            done += written as usize;
        }
        libc::fflush(stream);
    }
    eprintln!("{}", begun.elapsed().as_micros());
    let copy = std::mem::ManuallyDrop::new(
        // SAFETY: the descriptor is open.
        unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(target) },
    );
    println!("{done} {}", Mapping::of(&copy).as_slice() == mapping.as_slice());
}

/// Writes from a mapping are as fast as without the library, or nearly.
pub fn writes(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    for how in ["write", "small writes", "pwrite", "writev", "pwritev", "fwrite"] {
        let both = bench.both(16 << 20, &[&data], || bench.own("writes", &[path, how]));
        assert_eq!(both.plain.stdout(), both.governed.stdout(), "{how}");
        assert_eq!(both.governed.end, End::Exited(0), "{how}: {:?}", both.governed);
        let [plain, governed] = [&both.plain, &both.governed].map(|of| {
            let text = of.stderr();
            let micros = text.trim().parse();
            Duration::from_micros(micros.unwrap_or_else(|_| panic!("{how}: {text}")))
        });
        println!("programs: {how} takes {plain:.1?}, {governed:.1?} when governed");
        // Recording is slower, as METHOD says.
        let is_quick = governed < plain * 2 + Duration::from_millis(100);
        assert!(is_quick || bench.records(), "{how}: {governed:?}");
        both.reads_as_much();
    }
}

/// Reads, and becomes a program without the library that lists the descriptors it was left.
pub fn leaves_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let file = File::open(path).expect("the file can be opened");
    look(&Mapping::of(&file), 1);
    let mut list = Command::new("/bin/ls");
    list.env_remove("LD_PRELOAD").arg("/proc/self/fd");
    let status = list.status().expect("it starts");
    println!("{status}");
    panic!("{}", list.exec());
}

pub fn left_open(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let both = bench.both(16 << 20, &[&data], || bench.own("leaves", &[path]));
    both.alike().well().governs(&data);
}
