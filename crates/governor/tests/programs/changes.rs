//! Each change of page is recorded, and nothing else: a program says which pages it touches.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use filemap_control::OPEN_PAGES;
use filemap_control::tape::Kind;
use libc::{MAP_PRIVATE, MAP_SHARED, PROT_NONE, PROT_READ, PROT_WRITE, c_int, c_void};

use crate::support::bench::Bench;
use crate::support::draws::Draws;
use crate::support::mapping::{Mapping, PAGE_BYTES};

/// Steps of a program.
const STEPS: u64 = 4000;

/// Programs that are tried.
const SEEDS: u64 = 6;

pub fn changes(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let begin = std::env::var("FILEMAP_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let begin: u64 = begin.unwrap_or_else(|| u64::from(std::process::id()));
    for seed in begin..begin + SEEDS {
        println!("seed {seed}");
        let written = bench.directory.join("written");
        let before = || {
            fs::copy(&data, &written).expect("there is room for a copy");
        };
        let names = [path, written.to_str().expect("a plain name"), &seed.to_string()].join(" ");
        let arguments: Vec<&str> = names.split(' ').collect();
        let command = || bench.own("changes", &arguments);
        let both = bench.both_after(1 << 20, &[], before, command).alike().well();
        let said: Vec<String> = both.plain.stdout().lines().map(str::to_owned).collect();
        let said: Vec<&String> = said.iter().filter(|line| !line.starts_with("sum")).collect();
        let told = told(both.told.as_ref().expect("it is recorded").entries.values().flatten());
        for (step, (said, told)) in said.iter().zip(&told).enumerate() {
            assert_eq!(*said, told, "seed {seed}, touch {step}");
        }
        assert_eq!(said.len(), told.len(), "seed {seed}");
    }
}

/// What a tape tells, in the form in which the program says it.
fn told<'a>(entries: impl Iterator<Item = &'a filemap_control::tape::Entry>) -> Vec<String> {
    let page = PAGE_BYTES as u64;
    let mut mappings: BTreeMap<u64, u64> = BTreeMap::new();
    let mut told = Vec::new();
    for entry in entries {
        let [address, length, third, _] = entry.values;
        let place = |mappings: &BTreeMap<u64, u64>| {
            let (start, number) = mappings.range(..=address).next_back().expect("a mapping");
            (*number, (address - start) / page)
        };
        match entry.kind {
            Kind::Map => {
                mappings.insert(address, mappings.len() as u64);
            }
            Kind::Touch => {
                let (mapping, first) = place(&mappings);
                told.push(format!("touch {mapping} {first} {}", letter(length != 0)));
            }
            Kind::TouchByCall => {
                let (mapping, first) = place(&mappings);
                let pages = (address % page + length).div_ceil(page);
                told.push(format!("call {mapping} {first}+{pages} {}", letter(third != 0)));
            }
            _ => {}
        }
    }
    told
}

fn letter(is_write: bool) -> char {
    if is_write { 'w' } else { 'r' }
}

/// The pages that are open: their mapping and number, and whether they were written to.
struct Window {
    pages: [Option<(usize, u64, bool)>; OPEN_PAGES],
    opened: usize,
}

impl Window {
    /// Says what is told of a touch.
    fn touch(&mut self, mapping: usize, page: u64, is_write: bool) {
        let known = self.pages.iter_mut().flatten().find(|of| (of.0, of.1) == (mapping, page));
        match known {
            Some((_, _, written)) if *written || !is_write => return,
            Some((_, _, written)) => *written = true,
            None => {
                self.pages[self.opened % OPEN_PAGES] = Some((mapping, page, is_write));
                self.opened += 1;
            }
        }
        println!("touch {mapping} {page} {}", letter(is_write));
    }

    /// Pages of a mapping are closed.
    fn close(&mut self, mapping: usize, first: u64, pages: u64) {
        for place in &mut self.pages {
            if place.is_some_and(|of| of.0 == mapping && (first..first + pages).contains(&of.1)) {
                *place = None;
            }
        }
    }
}

/// The program: touches, system calls and changes of protection, as a seed says.
pub fn program(arguments: &[String]) {
    let [read, written, seed] = arguments else { panic!("two paths and a seed are needed") };
    let mut draws = Draws::new(seed.parse().expect("a number"));
    let open = |path: &str| {
        OpenOptions::new().read(true).write(true).open(Path::new(path)).expect("it is there")
    };
    let (read, written) = (open(read), open(written));
    let bytes = read.metadata().expect("its size").len() as usize;
    let pages = (bytes / PAGE_BYTES) as u64;
    let map = |file: &File, rights: i32, flags: i32| {
        // SAFETY: the kernel chooses a place that is free.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<u8>()
    };
    let maps = [
        map(&read, PROT_READ, MAP_SHARED),
        map(&read, PROT_READ | PROT_WRITE, MAP_PRIVATE),
        map(&written, PROT_READ | PROT_WRITE, MAP_SHARED),
    ];
    let null = OpenOptions::new().write(true).open("/dev/null").expect("it is there");
    let zero = File::open("/dev/zero").expect("it is there");
    let mut window = Window { pages: [None; OPEN_PAGES], opened: 0 };
    let (mut sum, mut near) = (0_u64, 0);
    for _ in 0..STEPS {
        let mapping = draws.below(3) as usize;
        let page = match draws.below(4) {
            0 => draws.below(pages - 4),
            _ => (near + draws.below(5)) % (pages - 4),
        };
        near = page;
        // SAFETY: the place is in the mapping, and four pages are behind it.
        let place = unsafe { maps[mapping].add(page as usize * PAGE_BYTES + 64) };
        let may_write = mapping != 0;
        match draws.below(100) {
            0..3 => {
                // The kernel takes pages, and puts some there.
                let length = 1 + draws.below(3) as usize * PAGE_BYTES;
                // SAFETY: as many bytes are there.
                let done = unsafe { libc::write(null.as_raw_fd(), place.cast(), length) };
                assert_eq!(done, length as isize);
                let count = (64 + length).div_ceil(PAGE_BYTES);
                println!("call {mapping} {page}+{count} r");
            }
            3..6 if may_write => {
                let length = 1 + draws.below(3) as usize * PAGE_BYTES;
                // SAFETY: as many bytes are there, and may be written to.
                let done = unsafe { libc::read(zero.as_raw_fd(), place.cast::<c_void>(), length) };
                assert_eq!(done, length as isize);
                let count = (64 + length).div_ceil(PAGE_BYTES);
                println!("call {mapping} {page}+{count} w");
            }
            6..9 => {
                // It gets the protection that it has, which closes it.
                let rights = if may_write { PROT_READ | PROT_WRITE } else { PROT_READ };
                // SAFETY: the pages are in the mapping.
                unsafe {
                    let first = place.sub(64).cast();
                    assert_eq!(libc::mprotect(first, 3 * PAGE_BYTES, rights), 0);
                }
                window.close(mapping, page, 3);
            }
            9..40 if may_write => {
                window.touch(mapping, page, true);
                // SAFETY: the place may be written to.
                unsafe { place.write_volatile(sum as u8) };
            }
            _ => {
                window.touch(mapping, page, false);
                // SAFETY: the place may be read.
                sum = sum.wrapping_mul(31) + u64::from(unsafe { place.read_volatile() });
            }
        }
    }
    println!("sum {sum}");
}

/// Touches that the program's handler was told of.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Lets the page be read that was touched.
extern "C" fn on_refused(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    REFUSED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the kernel passes the address of a page that the program has protected.
    unsafe {
        let page = (*info).si_addr().addr() & !(PAGE_BYTES - 1);
        libc::mprotect(ptr::with_exposed_provenance_mut(page), PAGE_BYTES, PROT_READ);
    }
}

/// Has [`on_refused`] called on SIGSEGV.
fn handle_refused() {
    // SAFETY: all of it may be zero.
    let mut action: libc::sigaction = unsafe { std::mem::MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = on_refused as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the action is valid.
    assert_eq!(unsafe { libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()) }, 0);
}

/// Protects pages of a mapping, some anew and some in the place of others, and touches them.
/// Prints how often the handler was told.
fn touch_refused(mapping: &Mapping, pages: std::ops::Range<u64>) {
    for page in pages {
        let place = mapping.start().wrapping_add(page as usize * PAGE_BYTES);
        place.expose_provenance();
        let before = REFUSED.load(Ordering::SeqCst);
        if page.is_multiple_of(2) {
            // SAFETY: the page is in the mapping.
            assert_eq!(unsafe { libc::mprotect(place.cast(), PAGE_BYTES, PROT_NONE) }, 0);
        } else {
            let flags = MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: the page is in the mapping, and nobody refers to it.
            let made = unsafe { libc::mmap(place.cast(), PAGE_BYTES, PROT_NONE, flags, -1, 0) };
            assert_ne!(made, libc::MAP_FAILED);
        }
        // SAFETY: the handler lets the page be read.
        let byte = unsafe { place.read_volatile() };
        let told = REFUSED.load(Ordering::SeqCst) - before;
        println!("page {page}: {byte}, told {told}");
    }
}

/// The program: recording stops on the way, when it is about to filter its calls.
pub fn afterwards_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let file = File::open(path).expect("it is there");
    let mapping = Mapping::of(&file);
    handle_refused();
    let sum = (0..16).fold(0, |sum: u64, page| sum.wrapping_add(mapping.word(page)));
    println!("sum {sum}");
    touch_refused(&mapping, 16..20);
    // There is no such filter.
    // SAFETY: the call takes numbers.
    let failed = unsafe { libc::prctl(libc::PR_SET_SECCOMP, 99_u64, 0_u64, 0_u64, 0_u64) };
    println!("no filter: {failed}");
    // Pages that were open, and others.
    touch_refused(&mapping, 8..12);
    touch_refused(&mapping, 30..34);
    thread::scope(|scope| {
        scope.spawn(|| touch_refused(&mapping, 40..44));
    });
    println!("{:x}", mapping.word(50));
}

/// When recording has stopped the program's own protection is what it was, and its handler is told
/// of all touches of what it protects.
pub fn afterwards(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    let both = bench.both(64 << 10, &[], || bench.own("afterwards", &[path]));
    let both = both.alike().governs(&data).well();
    let text = both.plain.stdout();
    assert_eq!(text.matches("told 1").count(), 16, "{text}");
}
