//! What the library costs where it gains nothing.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

use filemap_control::request::event;
use filemap_kernel::cold;

use crate::samples::Samples;
use crate::support::bench::{Bench, has_observer, write};
use crate::support::draws::Draws;
use crate::support::library::statistics;
use crate::support::mapping::{Mapping, PAGE_BYTES};
use crate::support::outcome::{Outcome, run};
use crate::support::skip::skip;

const LIMIT: Duration = Duration::from_secs(120);

/// Faults of anonymous memory.
const ANONYMOUS: usize = 200_000;

/// Pages that a program looks at, each of which is a fault.
const FAULTS: u64 = 10_000;

const FILE_BYTES: u64 = 1 << 30;

/// Looks at a file, so that it is governed from there on, and takes anonymous memory. Prints
/// nanoseconds for each page.
pub fn anonymous_program(path: &Path) {
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    let sum = (0..10).fold(0, |sum, n| mapping.word(n * 1000).wrapping_add(sum));
    let bytes = ANONYMOUS * PAGE_BYTES;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the kernel chooses a place that is free.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: it is ours. Large pages would be one fault for many.
    unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
    let begun = Instant::now();
    for page in 0..ANONYMOUS {
        // SAFETY: the page is inside the mapping.
        unsafe { start.cast::<u8>().add(page * PAGE_BYTES).write_volatile(1) };
    }
    println!("{sum:x}\n{}", begun.elapsed().as_nanos() as f64 / ANONYMOUS as f64);
}

/// Who has a look at each major fault of a program that looks at pages anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Nobody: the program has advised MADV_RANDOM.
    Nobody,
    /// Besides, the event that the library uses, with a handler that does nothing.
    EmptyHandler,
    /// The library.
    Library,
}

impl Who {
    const ALL: [Who; 3] = [Who::Nobody, Who::EmptyHandler, Who::Library];

    fn name(self) -> &'static str {
        match self {
            Who::Nobody => "nobody",
            Who::EmptyHandler => "empty-handler",
            Who::Library => "library",
        }
    }
}

extern "C" fn empty_handler(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {}

/// Has the event send its signals to [`empty_handler`]. Returns whether that is permitted.
fn observe_with_an_empty_handler() -> bool {
    // SAFETY: all of it may be zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = empty_handler as *const () as usize;
    // As the library has them.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    let attributes = event::attributes(event::Faults::Major);
    // SAFETY: the sets and the action are ours, the attributes are as long as they say, and the
    // request takes no argument.
    unsafe {
        libc::sigfillset(&mut action.sa_mask);
        libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut());
        let attributes = attributes.as_ptr();
        let call = libc::SYS_perf_event_open;
        let opened = libc::syscall(call, attributes, 0, -1, -1, event::FLAG_CLOEXEC) as c_int;
        opened >= 0 && libc::ioctl(opened, event::IOC_ENABLE, 0) == 0
    }
}

/// Looks at pages anywhere, each of them once. Prints the median nanoseconds of a look.
pub fn faults_program(path: &Path, who: &str) {
    let who = Who::ALL.into_iter().find(|of| of.name() == who).expect("somebody");
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    if who != Who::Library {
        assert_eq!(mapping.advise(libc::MADV_RANDOM), 0);
    }
    if who == Who::EmptyHandler {
        assert!(observe_with_an_empty_handler(), "perf events are not permitted");
    }
    let mut draws = Draws::new(11);
    let mut sum = 0_u64;
    let looks: Samples = (0..FAULTS)
        .map(|_| {
            let page = draws.below(mapping.pages());
            let begun = Instant::now();
            sum = sum.wrapping_add(mapping.word(page));
            begun.elapsed().as_nanos() as f64
        })
        .collect();
    println!("{sum:x}\n{}", looks.median());
}

pub fn measure(bench: &Bench, repeats: usize) {
    let path = bench.directory.join("overhead");
    write(&path, FILE_BYTES);
    let name = path.to_str().expect("a plain name").to_string();
    println!("\n## Overhead\n\n| What | Plain | Governed | Difference |\n|---|---|---|---|");
    let printed = |outcome: &Outcome| {
        let text = outcome.stdout();
        text.lines().last().and_then(|line| line.parse().ok()).expect("a number")
    };
    let both = |of: &dyn Fn() -> Command| [(of(), false), (of(), true)];
    let anonymous = || both(&|| bench.own("anonymous", &[&name]));
    let [cells] = in_turn(bench, &path, 3 * repeats, anonymous, [&printed]);
    print_pair("an anonymous fault, ns", &cells);
    let nothing = || both(&|| Command::new("/bin/true"));
    let elapsed = |outcome: &Outcome| outcome.elapsed.as_nanos() as f64 / 1000.0;
    let [cells] = in_turn(bench, &path, 40 * repeats, nothing, [&elapsed]);
    print_pair("/bin/true, us", &cells);
    if has_observer() {
        println!("\n| A single page, cold, ns | MADV_RANDOM | And the event | Governed |");
        println!("|---|---|---|---|");
        let each = || Who::ALL.map(|who| (bench.own("faults", &[&name, who.name()]), is_ours(who)));
        let processor = |outcome: &Outcome| outcome.processor.as_nanos() as f64 / FAULTS as f64;
        let [looks, time] = in_turn(bench, &path, repeats, each, [&printed, &processor]);
        print_three("a look, the median", &looks);
        print_three("processor time", &time);
    } else {
        skip("perf events are not permitted, so that no page is governed");
    }
    let all = statistics(&bench.directory.join("overhead-statistics"));
    let faults: u64 = all.iter().flat_map(|of| &of.mappings).map(|of| of.faults).sum();
    println!("\n{faults} faults were governed in all of these.");
    std::fs::remove_file(&path).expect("it is ours");
}

fn is_ours(who: Who) -> bool {
    who == Who::Library
}

/// Runs programs in turn on a file that is not cached, of which those that are marked are governed.
/// Returns what each of `of` makes of them.
fn in_turn<const PROGRAMS: usize, const FIGURES: usize>(
    bench: &Bench,
    path: &Path,
    times: usize,
    programs: impl Fn() -> [(Command, bool); PROGRAMS],
    of: [&dyn Fn(&Outcome) -> f64; FIGURES],
) -> [[Samples; PROGRAMS]; FIGURES] {
    let left = bench.directory.join("overhead-statistics");
    std::fs::create_dir_all(&left).expect("a directory for statistics");
    let mut cells = std::array::from_fn(|_| std::array::from_fn(|_| Samples::default()));
    for _ in 0..times {
        for (program, (mut command, is_governed)) in programs().into_iter().enumerate() {
            cold::drop_file(path).expect("the file can be dropped");
            if is_governed {
                bench.library.govern(&mut command, 16 << 20, &left);
            }
            let outcome = run(&mut command, &bench.directory, LIMIT).well("a program");
            for (figure, cells) in of.iter().zip(&mut cells) {
                let cells: &mut [Samples; PROGRAMS] = cells;
                cells[program].add(figure(&outcome));
            }
        }
    }
    cells
}

fn show(of: &Samples) -> String {
    format!("{:.0} ± {:.0}", of.median(), of.spread())
}

fn print_pair(name: &str, [plain, governed]: &[Samples; 2]) {
    let difference = governed.median() - plain.median();
    println!("| {name} | {} | {} | {difference:+.0} |", show(plain), show(governed));
}

fn print_three(name: &str, cells: &[Samples; 3]) {
    let [plain, observed, governed] = cells.each_ref().map(show);
    println!("| {name} | {plain} | {observed} | {governed} |");
}
