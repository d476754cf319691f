//! What a program can do to harm a process that follows it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::fuse::Fuse;

/// Size of the mapped files in bytes: above the minimum for governing.
const BYTES: usize = 32 << 20;

/// Duration of the harm.
const LASTS: Duration = Duration::from_secs(3);

/// The directory of a filesystem whose server does not answer.
pub const SILENT: &str = "silent";

/// A kind of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The paths of mapped files become FIFOs and links to devices.
    Renames,
    /// Maps files of a server that no longer answers.
    Silence,
    /// Maps and unmaps endlessly.
    Mappings,
    /// Repeatedly maps something else in place of a file.
    Remaps,
    /// Forks endlessly.
    Forks,
    /// Its own child traces it.
    Traces,
    /// Threads fault in cached pages at full speed.
    Storm,
    /// No harm: threads read pages in random order while signals arrive, verify the data, and
    /// record whether it was right.
    Checks,
}

impl Harm {
    pub const ALL: [Harm; 8] = [
        Harm::Renames,
        Harm::Silence,
        Harm::Mappings,
        Harm::Remaps,
        Harm::Forks,
        Harm::Traces,
        Harm::Storm,
        Harm::Checks,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Harm::Renames => "renames",
            Harm::Silence => "silence",
            Harm::Mappings => "mappings",
            Harm::Remaps => "remaps",
            Harm::Forks => "forks",
            Harm::Traces => "traces",
            Harm::Storm => "storm",
            Harm::Checks => "checks",
        }
    }

    pub fn named(name: &str) -> Option<Harm> {
        Harm::ALL.into_iter().find(|harm| harm.name() == name)
    }

    /// Whether only root can do it.
    pub fn needs_root(self) -> bool {
        self == Harm::Silence
    }

    /// Does it for some seconds, with files in `directory`.
    pub fn done_in(self, directory: &Path) {
        match self {
            Harm::Renames => rename(directory),
            Harm::Silence => map_silence(directory),
            Harm::Mappings => map_without_end(directory),
            Harm::Remaps => remap(directory),
            Harm::Forks => fork_without_end(directory),
            Harm::Traces => be_traced(directory),
            Harm::Storm => storm(directory),
            Harm::Checks => check(directory),
        }
    }
}

/// A file of [`BYTES`] bytes, in which each page starts with its number.
fn file(path: &Path) -> File {
    let pages = 0..(BYTES / 4096) as u64;
    let contents: Vec<u8> =
        pages.flat_map(|page| [page.to_ne_bytes().as_slice(), &[0; 4088]].concat()).collect();
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(path);
    file.as_mut().expect("the directory can be written").write_all(&contents).expect("room");
    let file = file.expect("it was opened");
    file.sync_all().expect("the disk works");
    // SAFETY: the call touches no memory.
    unsafe {
        libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(&file), 0, 0, libc::POSIX_FADV_DONTNEED)
    };
    file
}

/// A mapping of a whole file.
struct Mapped(*mut u8);

// SAFETY: threads only read there.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn of(file: &File) -> Mapped {
        Mapped::at(std::ptr::null_mut(), file, MapFlags::SHARED)
    }

    fn at(address: *mut u8, file: &File, flags: MapFlags) -> Mapped {
        // SAFETY: the kernel chooses an unused address, or the caller gives that of its own
        // mapping.
        let mapped = unsafe { mmap(address.cast(), BYTES, ProtFlags::READ, flags, file, 0) };
        Mapped(mapped.expect("a file can be mapped").cast())
    }

    /// The number in a page.
    fn number(&self, page: usize) -> u64 {
        // SAFETY: the page is in the mapping, which lives as long as this is used.
        unsafe { self.0.add(page * 4096).cast::<u64>().read_volatile() }
    }

    fn check(&self, page: usize) {
        assert_eq!(self.number(page), page as u64, "the program read what is not in its file");
    }

    fn end(self) {
        // SAFETY: it is no longer used.
        unsafe { munmap(self.0.cast(), BYTES) }.expect("it is mapped");
    }
}

fn until_over() -> impl FnMut() -> bool {
    let start = Instant::now();
    move || start.elapsed() < LASTS
}

fn rename(directory: &Path) {
    let path = directory.join("data");
    let other = directory.join("other");
    let mut goes_on = until_over();
    for turn in 0.. {
        if !goes_on() {
            return;
        }
        let mapped = Mapped::of(&file(&path));
        let _ = fs::remove_file(&path);
        let _ = fs::remove_file(&other);
        match turn % 3 {
            0 => {
                assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
            }
            1 => std::os::unix::fs::symlink("/dev/zero", &path).expect("a link"),
            _ => fs::create_dir(&other).and_then(|()| fs::remove_dir(&other)).expect("ours"),
        }
        (0..BYTES / 4096).step_by(97).for_each(|page| mapped.check(page));
        mapped.end();
        let _ = fs::remove_file(&path);
    }
}

fn map_silence(directory: &Path) {
    let Some(fuse) = Fuse::mount(&directory.join(SILENT), BYTES as u64) else {
        println!("no FUSE filesystem can be mounted here");
        return;
    };
    let opened = File::open(directory.join(SILENT).join("data")).expect("the server answers");
    let mapped = Mapped::of(&opened);
    mapped.number(1);
    fuse.fall_silent();
    // It keeps accessing its own file meanwhile.
    let own = Mapped::of(&file(&directory.join("data")));
    let mut goes_on = until_over();
    let mut page = 0;
    while goes_on() {
        own.check(page % (BYTES / 4096));
        page += 97;
        thread::sleep(Duration::from_millis(1));
    }
    // Closing a file waits for the server too.
    drop(fuse);
}

fn map_without_end(directory: &Path) {
    let file = file(&directory.join("data"));
    let mut goes_on = until_over();
    let mut kept = Vec::new();
    for turn in 0_usize.. {
        if !goes_on() {
            return;
        }
        let mapped = Mapped::of(&file);
        mapped.check(turn % 100);
        // Up to the limit of mappings of a process.
        if kept.len() < 30_000 {
            kept.push(mapped);
        } else {
            mapped.end();
        }
    }
}

fn remap(directory: &Path) {
    let (one, other) = (file(&directory.join("one")), file(&directory.join("other")));
    let place = Mapped::of(&one);
    let mut goes_on = until_over();
    let mut page = 1;
    while goes_on() {
        for file in [&one, &other] {
            let mapped = Mapped::at(place.0, file, MapFlags::SHARED | MapFlags::FIXED);
            page = (page * 31 + 7) % (BYTES / 4096);
            mapped.check(page);
        }
        // SAFETY: nothing is read before the next mapping there.
        unsafe {
            libc::mmap(
                place.0.cast(),
                BYTES,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
    }
}

fn fork_without_end(directory: &Path) {
    let mapped = Mapped::of(&file(&directory.join("data")));
    let mut goes_on = until_over();
    let mut page = 0;
    while goes_on() {
        let children: Vec<i32> = (0..8)
            .map(|child| {
                // SAFETY: the child makes no call that needs other threads, and there are none.
                match unsafe { libc::fork() } {
                    0 => {
                        mapped.check((page + child) % (BYTES / 4096));
                        // SAFETY: there is nothing to clean up.
                        unsafe { libc::_exit(0) }
                    }
                    pid => pid,
                }
            })
            .collect();
        for pid in children {
            let mut status = 0;
            // SAFETY: the status outlives the call.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            assert_eq!(status, 0, "a child of the program ended with {status}");
        }
        page += 8;
    }
}

fn be_traced(directory: &Path) {
    let mapped = Mapped::of(&file(&directory.join("data")));
    // SAFETY: the calls touch no memory of this process. A tracer that exits detaches.
    let tracer = unsafe {
        libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0);
        let own = libc::getpid();
        let tracer = libc::fork();
        if tracer == 0 {
            let seized = libc::ptrace(libc::PTRACE_SEIZE, own, 0, 0);
            libc::sleep(2);
            libc::_exit(i32::from(seized != 0));
        }
        tracer
    };
    let mut goes_on = until_over();
    let mut page = 0;
    while goes_on() {
        mapped.check(page % (BYTES / 4096));
        page += 97;
        thread::sleep(Duration::from_millis(1));
    }
    let mut status = 0;
    // SAFETY: the status outlives the call. A governor may have been first, so any result is right.
    unsafe { libc::waitpid(tracer, &mut status, 0) };
}

fn storm(directory: &Path) {
    let file = file(&directory.join("data"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mapped = Mapped::of(&file);
                while !is_over.load(Ordering::Relaxed) {
                    (0..BYTES / 4096).for_each(|page| mapped.check(page));
                    // SAFETY: the pages are in the cache, and are mapped again from there.
                    unsafe { libc::madvise(mapped.0.cast(), BYTES, libc::MADV_DONTNEED) };
                }
                mapped.end();
            });
        }
        thread::sleep(LASTS);
        is_over.store(true, Ordering::Relaxed);
    });
}

/// How long [`Harm::Checks`] reads.
const CHECKS: Duration = Duration::from_millis(300);

extern "C" fn on_alarm(_: i32) {}

fn check(directory: &Path) {
    fs::write(directory.join("pid"), std::process::id().to_string()).expect("it can be written");
    let file = file(&directory.join("data"));
    let every = libc::timeval { tv_sec: 0, tv_usec: 500 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the handler does nothing, and the timer outlives the call.
    unsafe {
        libc::signal(libc::SIGALRM, on_alarm as *const () as libc::sighandler_t);
        libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
    }
    let start = Instant::now();
    let reads = |mut page: usize| {
        let mapped = Mapped::of(&file);
        while start.elapsed() < CHECKS {
            page = (page * 1_103_515_245 + 12_345) % (BYTES / 4096);
            mapped.check(page);
        }
        mapped.end();
    };
    let is_right = thread::scope(|scope| {
        let threads = [1, 2, 3].map(|seed| scope.spawn(move || reads(seed)));
        threads.into_iter().all(|thread| thread.join().is_ok())
    });
    let (part, whole) = (directory.join("result.part"), directory.join("result"));
    fs::write(&part, if is_right { "right" } else { "wrong" }).expect("it can be written");
    fs::rename(part, whole).expect("it is ours");
}
