//! What the library costs where it gains nothing.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

use filemap_kernel::cold;

use crate::samples::Samples;
use crate::support::bench::{Bench, write};
use crate::support::draws::Draws;
use crate::support::library::statistics;
use crate::support::mapping::{Mapping, PAGE_BYTES};
use crate::support::outcome::{Outcome, run};

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

/// Looks at pages anywhere, each of them once. Prints the median nanoseconds of a look.
pub fn faults_program(path: &Path, own: Option<i32>) {
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    if let Some(own) = own {
        assert_eq!(mapping.advise(own), 0);
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
    let anonymous = || bench.own("anonymous", &[&name]);
    let cells = in_turn(bench, &path, 3 * repeats, [&anonymous, &anonymous], printed);
    print_row("an anonymous fault, ns", &cells);
    let by_itself = || bench.own("faults", &[&name, "random"]);
    let governed = || bench.own("faults", &[&name, "none"]);
    let cells = in_turn(bench, &path, repeats, [&by_itself, &governed], printed);
    print_row("a single page with MADV_RANDOM or governed, median, ns", &cells);
    let processor = |outcome: &Outcome| outcome.processor.as_nanos() as f64 / FAULTS as f64;
    let cells = in_turn(bench, &path, repeats, [&by_itself, &governed], processor);
    print_row("processor time of such a page, ns", &cells);
    let nothing = || Command::new("/bin/true");
    let elapsed = |outcome: &Outcome| outcome.elapsed.as_nanos() as f64 / 1000.0;
    let cells = in_turn(bench, &path, 40 * repeats, [&nothing, &nothing], elapsed);
    print_row("/bin/true, us", &cells);
    let all = statistics(&bench.directory.join("overhead-statistics"));
    let faults: u64 = all.iter().flat_map(|of| &of.mappings).map(|of| of.faults).sum();
    println!("\n{faults} faults were governed in all of these.");
    std::fs::remove_file(&path).expect("it is ours");
}

/// Runs both programs, the second governed, in turn, on a file that is not cached.
fn in_turn(
    bench: &Bench,
    path: &Path,
    times: usize,
    programs: [&dyn Fn() -> Command; 2],
    of: impl Fn(&Outcome) -> f64,
) -> [Samples; 2] {
    let left = bench.directory.join("overhead-statistics");
    std::fs::create_dir_all(&left).expect("a directory for statistics");
    let mut cells = [Samples::default(), Samples::default()];
    for _ in 0..times {
        for (index, cell) in cells.iter_mut().enumerate() {
            cold::drop_file(path).expect("the file can be dropped");
            let mut command = programs[index]();
            if index == 1 {
                bench.library.govern(&mut command, 16 << 20, &left);
            }
            cell.add(of(&run(&mut command, &bench.directory, LIMIT).well("a program")));
        }
    }
    cells
}

fn print_row(name: &str, [plain, governed]: &[Samples; 2]) {
    let show = |of: &Samples| format!("{:.0} ± {:.0}", of.median(), of.spread());
    let difference = governed.median() - plain.median();
    println!("| {name} | {} | {} | {difference:+.0} |", show(plain), show(governed));
}
