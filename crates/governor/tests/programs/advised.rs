//! Advice that is given in place of the program's own: what the kernel then has for each mapping,
//! as /proc says it, and what it reads.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::thread;

use filemap_control::rule::{self, Extent, Rule, RuleKind};
use filemap_control::variable;
use filemap_kernel::{cold, residency};

use crate::support::bench::{AS, Bench, DATA_BYTES};
use crate::support::mapping::{Mapping, PAGE_BYTES};

/// The flags of `/proc/self/smaps` for advice on reading, of each mapping of the file at `path`.
fn flags(path: &str) -> String {
    let smaps = fs::read_to_string("/proc/self/smaps").expect("it can be read");
    let mut found: Vec<(u64, u64, &str)> = Vec::new();
    for line in smaps.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-') {
            let number = |text| u64::from_str_radix(text, 16).expect("an address");
            let offset = number(line.split(' ').nth(2).expect("the offset in the file"));
            let bytes = if line.ends_with(path) { number(to) - number(from) } else { 0 };
            found.push((offset, bytes, "-"));
        }
        if let (Some(last), true) = (found.last_mut(), line.starts_with("VmFlags:")) {
            last.2 = match () {
                () if line.contains(" rr") => "random",
                () if line.contains(" sr") => "sequential",
                () => "normal",
            };
        }
    }
    let found = found.iter().filter(|(_, bytes, _)| *bytes > 0);
    let shown = found.map(|(offset, bytes, flag)| {
        format!("{}+{} {flag}", offset / PAGE_BYTES as u64, bytes / PAGE_BYTES as u64)
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown.join(", ")
}

/// Maps the file at its path and says what the kernel has for it, behind each thing that it does.
pub fn program(arguments: &[String]) {
    let [way, path] = arguments else { panic!("a way and a path are needed") };
    let file = File::open(path).expect("the file can be opened");
    match way.as_str() {
        "maps" => maps(&file, path),
        "again" => {
            let _mapping = Mapping::of(&file);
            println!("exec: {}", flags(path));
        }
        "reads" => {
            // SAFETY: the descriptor is open.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_SEQUENTIAL) };
            let mut page = [0; PAGE_BYTES];
            for number in 0..10 {
                // One behind the other, which the kernel reads ahead.
                let at = number * PAGE_BYTES as u64;
                file.read_exact_at(&mut page, at).expect("the file is longer");
            }
            println!("{}", page[0]);
        }
        other => panic!("no way {other}"),
    }
}

fn maps(file: &File, path: &str) {
    let mapping = Mapping::of(file);
    println!("mapped: {}", flags(path));
    println!("advised: {} {}", mapping.advise(libc::MADV_SEQUENTIAL), flags(path));
    println!("asked for: {}", mapping.advise(libc::MADV_WILLNEED));
    let (start, bytes) = mapping.into_raw();
    // SAFETY: the kernel chooses a place that is free.
    let moved = unsafe { libc::mremap(start.cast(), bytes, bytes, libc::MREMAP_MAYMOVE) };
    assert_ne!(moved, libc::MAP_FAILED);
    // SAFETY: it is mapped; the call takes numbers.
    let advised = unsafe { libc::posix_madvise(moved, bytes, libc::POSIX_MADV_SEQUENTIAL) };
    println!("moved: {advised} {}", flags(path));
    thread::scope(|scope| {
        let part = || Mapping::with(file, 16 * PAGE_BYTES, 32 * PAGE_BYTES, libc::MAP_SHARED);
        scope.spawn(move || {
            let _part = part().expect("it can be mapped");
            println!("in a thread: {}", flags(path));
        });
    });
    // SAFETY: this program has one thread again.
    let child = unsafe { libc::fork() };
    if child == 0 {
        println!("in a child: {}", flags(path));
        // SAFETY: it is mapped.
        unsafe { libc::madvise(moved, bytes, libc::MADV_SEQUENTIAL) };
        println!("advised there: {}", flags(path));
        std::process::exit(0);
    }
    // SAFETY: it is our child.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
    // SAFETY: nobody uses it any more.
    unsafe { libc::munmap(moved, bytes) };
    let own = std::env::current_exe().expect("the test has a path");
    let status = Command::new(own).args([AS, "advised", "again", path]).status();
    assert!(status.expect("it starts").success());
}

/// What the program prints with `rules`, and which of them were given.
fn with(bench: &Bench, way: &str, rules: &[Rule]) -> (String, Vec<usize>) {
    let data = bench.data();
    let given = bench.directory.join("given");
    fs::write(&given, "").expect("the directory is ours");
    let mut command = bench.own("advised", &[way, data.to_str().expect("a plain name")]);
    if !rules.is_empty() {
        let text: OsString = rule::text(rules).expect("a path of one line");
        command.env("LD_PRELOAD", bench.library.path());
        command.env(variable::ADVISE, text).env(variable::ADVISED, &given);
    }
    let output = command.output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && stderr.is_empty(), "{way} {rules:?}: {stderr}");
    let told = fs::read_to_string(&given).expect("it is ours");
    let mut told: Vec<usize> = told.lines().map(|line| line.parse().expect("a number")).collect();
    told.sort_unstable();
    told.dedup();
    (String::from_utf8(output.stdout).expect("it is text"), told)
}

fn rule(kind: RuleKind, path: &Path, pages: [Option<(u64, u64)>; 2]) -> Rule {
    let extent = |(first, pages): (u64, u64)| Extent {
        offset_bytes: first * PAGE_BYTES as u64,
        length_bytes: pages * PAGE_BYTES as u64,
    };
    let [mapping, part] = pages.map(|pages| pages.map(extent));
    Rule { kind, mapping, part, path: path.as_os_str().to_owned() }
}

pub fn mappings(bench: &Bench) {
    let data = bench.data();
    let pages = DATA_BYTES / PAGE_BYTES as u64;
    let plain = format!(
        "mapped: 0+{pages} normal\nadvised: 0 0+{pages} sequential\nasked for: 0\n\
         moved: 0 0+{pages} sequential\nin a thread: 0+{pages} sequential, 16+32 normal\n\
         in a child: 0+{pages} sequential\nadvised there: 0+{pages} sequential\n\
         exec: 0+{pages} normal\n"
    );
    assert_eq!(with(bench, "maps", &[]), (plain.clone(), vec![]));
    // The advice of a rule holds for every mapping of the file, whatever the program advises.
    let random = [rule(RuleKind::Random, &data, [None, None])];
    let all = plain.replace("normal", "random").replace("sequential", "random");
    assert_eq!(with(bench, "maps", &random), (all, vec![0]));
    // Of one mapping it leaves the others alone.
    let one = [rule(RuleKind::Random, &data, [Some((16, 32)), None])];
    let of_one = plain.replace("16+32 normal", "16+32 random");
    assert_eq!(with(bench, "maps", &one), (of_one, vec![0]));
    // A rule for another file, or of a mapping that there is not, is not given.
    let none = [
        rule(RuleKind::Random, Path::new("/nowhere"), [None, None]),
        rule(RuleKind::Random, &data, [Some((16, 31)), None]),
    ];
    assert_eq!(with(bench, "maps", &none), (plain, vec![]));
}

/// Two rules for the parts of a mapping.
pub fn parts(bench: &Bench) {
    let data = bench.data();
    let pages = DATA_BYTES / PAGE_BYTES as u64;
    let whole = Some((0, pages));
    let rules = [
        rule(RuleKind::Random, &data, [whole, Some((0, 100))]),
        rule(RuleKind::Sequential, &data, [whole, Some((100, pages - 100))]),
    ];
    let (text, told) = with(bench, "again", &rules);
    let rest = pages - 100;
    assert_eq!(
        (text.as_str(), told),
        (&*format!("exec: 0+100 random, 100+{rest} sequential\n"), vec![0, 1])
    );
}

/// The pages of the file that are in memory once the program has run on a cold file.
fn read(bench: &Bench, way: &str, rules: &[Rule]) -> u64 {
    let data = bench.data();
    cold::drop_file(&data).expect("it can be dropped");
    let (_, told) = with(bench, way, rules);
    assert_eq!(told, (0..rules.len()).collect::<Vec<_>>(), "{rules:?}");
    let file = File::open(&data).expect("it is ours");
    residency::resident_pages(&file, DATA_BYTES / PAGE_BYTES as u64).expect("it is ours").len()
}

pub fn reads(bench: &Bench) {
    let data = bench.data();
    let plain = read(bench, "reads", &[]);
    assert!(plain > 20, "{plain}: readahead is off here");
    // The program's own POSIX_FADV_SEQUENTIAL does not take the rule back.
    let random = [rule(RuleKind::FileRandom, &data, [None, None])];
    assert_eq!(read(bench, "reads", &random), 10);
    let part = [None, Some((1000, 50))];
    // Populating faults as any access does, so that MADV_RANDOM keeps it to these pages.
    let populated = [RuleKind::Random, RuleKind::Populate].map(|kind| rule(kind, &data, part));
    assert_eq!(read(bench, "again", &populated), 50);
    assert!(read(bench, "again", &[rule(RuleKind::WillNeed, &data, part)]) >= 1);
}
