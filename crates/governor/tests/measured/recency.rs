//! What it costs that pages of a mapping that is read at random are not seen to be used: some pages
//! are read often, others seldom, and memory is short.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use filemap_kernel::cgroup::{CgroupLimits, MemoryCgroup};
use filemap_kernel::cold;
use filemap_kernel::journal::Journal;
use filemap_kernel::scratch::Scratch;

use crate::samples::Samples;
use crate::support::bench::{Bench, write};
use crate::support::mapping::{Mapping, PAGE_BYTES};
use crate::support::outcome::run;
use crate::support::reader::Pattern;
use crate::support::skip::skip;

const FILE_BYTES: u64 = 256 << 20;

/// Half as much again as the pages take that are read often.
const LIMIT_BYTES: u64 = 48 << 20;

const LOOKS: u64 = 200_000;

const MARKING: &str = "RANDOM, hot pages marked";

const LIMIT: Duration = Duration::from_secs(600);

/// Who advises, and the filesystem's readahead in KiB meanwhile.
const COLUMNS: [(&str, &str, u64); 5] = [
    ("NORMAL, 128 KiB", "none", 128),
    ("NORMAL, page by page", "none", 0),
    ("RANDOM", "random", 128),
    (MARKING, "random", 128),
    ("Governed", "none", 128),
];

pub fn measure(bench: &Bench, scratch: &Scratch, repeats: usize) {
    let path = scratch.root().join("recency");
    write(&path, FILE_BYTES);
    let journal = Journal::open_in(&bench.directory.join("state")).expect("a journal");
    let limits = CgroupLimits { max_bytes: Some(LIMIT_BYTES), high_bytes: None };
    let mut cells = [const { (Vec::new(), Vec::new()) }; COLUMNS.len()];
    for _ in 0..repeats {
        for (column, (seconds, gib)) in COLUMNS.iter().zip(&mut cells) {
            let (name, advice, kib) = column;
            // A new one each time: nothing is charged to it yet.
            let cgroup = match MemoryCgroup::create(&journal, limits) {
                Ok(cgroup) => cgroup,
                Err(error) => return skip(error),
            };
            scratch.set_read_ahead(*kib).expect("the readahead can be set");
            cold::drop_file(&path).expect("the file can be dropped");
            let file = path.to_str().expect("a plain name");
            let mut command = match *name {
                MARKING => bench.own("marking-reader", &[file, &LOOKS.to_string()]),
                _ => bench.own("reader", &[file, &format!("hot-cold:{LOOKS}"), advice]),
            };
            if *name == "Governed" {
                bench.library.govern(&mut command, 16 << 20, &bench.directory.join("recency"));
            }
            let mut members = std::fs::OpenOptions::new()
                .write(true)
                .open(cgroup.path().join("cgroup.procs"))
                .expect("the cgroup is ours");
            // SAFETY: only a write happens between fork and exec.
            unsafe { command.pre_exec(move || members.write_all(b"0")) };
            let outcome = run(&mut command, &bench.directory, LIMIT).well(name);
            seconds.push(outcome.elapsed.as_secs_f64());
            gib.push(outcome.read_bytes as f64 / (1_u64 << 30) as f64);
            cold::drop_file(&path).expect("the file can be dropped");
        }
    }
    println!(
        "\n## Recency\n\n{LOOKS} looks at pages of 256 MiB, nine in ten of them at 32 MiB, in"
    );
    println!("a cgroup of 48 MiB; {repeats} runs of each, in turn.\n");
    println!("| Who advises | Seconds | GiB read |\n|---|---|---|");
    for ((name, ..), (seconds, gib)) in COLUMNS.iter().zip(cells) {
        let [seconds, gib] = [seconds, gib].map(|of| of.into_iter().collect::<Samples>());
        let (spread, gib_spread) = (seconds.spread(), gib.spread());
        let (seconds, gib) = (seconds.median(), gib.median());
        println!("| {name} | {seconds:.2} ± {spread:.2} | {gib:.3} ± {gib_spread:.3} |");
    }
    std::fs::remove_file(&path).expect("it is ours");
}

/// A page is hot from so many faults on.
const HOT: u8 = 3;

/// Hot pages that are marked at each fault.
const MARKED: usize = 4;

/// What could be done about it: a page that has faulted again and again is hot, and at each further
/// fault some hot pages that are cached are read by process_vm_readv(2), which marks a page as
/// accessed although MADV_RANDOM hides what the program reads.
pub fn marking_reader(path: &Path, looks: u64) {
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    assert_eq!(mapping.advise(libc::MADV_RANDOM), 0);
    let mut faults = vec![0_u8; mapping.pages() as usize];
    let (mut hot, mut next, mut majors) = (Vec::new(), 0, major_faults());
    Pattern::HotCold(looks).each(mapping.pages(), |page| {
        mapping.word(page);
        let now = major_faults();
        if now == majors {
            return;
        }
        majors = now;
        let count = &mut faults[page as usize];
        *count = count.saturating_add(1);
        if *count == HOT {
            hot.push(page);
        }
        for _ in 0..MARKED.min(hot.len()) {
            next = (next + 1) % hot.len();
            mark(&mapping, hot[next]);
        }
    });
}

/// Marks a page as accessed, if it is cached. Two marks make it active.
fn mark(mapping: &Mapping, page: u64) {
    let mut is_cached = 0_u8;
    let mut byte = 0_u8;
    // SAFETY: the page is inside the mapping, and the calls write one byte each to where they are
    // told.
    unsafe {
        let page = mapping.start().add(page as usize * PAGE_BYTES);
        libc::mincore(page.cast(), PAGE_BYTES, &mut is_cached);
        if is_cached & 1 == 0 {
            return;
        }
        let to = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let from = libc::iovec { iov_base: page.cast(), iov_len: 1 };
        for _ in 0..2 {
            libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0);
        }
    }
}

fn major_faults() -> i64 {
    // SAFETY: all fields may be zero, and the call fills them.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_majflt
    }
}
