//! A search, a debugger, a tracer and compilers, with all processes that they start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use filemap_control::layout::Reason;

use crate::support::bench::Bench;
use crate::support::data::is_there;
use crate::support::outcome::End;
use crate::support::skip::skip;

pub fn ripgrep(bench: &Bench) {
    if !is_there("rg", "--version") {
        return skip("there is no ripgrep");
    }
    let data = bench.data();
    for arguments in [&["-c", "ab"][..], &["-o", "-b", "-a", "xyz."], &["-l", "never-there-4711"]] {
        let command = || {
            let mut command = Command::new("rg");
            command.args(["--mmap", "--no-config", "-j", "2", "-a"]).args(arguments).arg(&data);
            command
        };
        let both = bench.both(16 << 20, &[&data], command).alike().governs(&data);
        both.reads_as_much();
    }
}

fn reader(bench: &Bench, path: &Path) -> Vec<String> {
    let command =
        bench.own("reader", &[path.to_str().expect("a plain name"), "random:200", "none"]);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_str().expect("a plain word").to_string()).collect()
}

/// Under a tracer nothing is governed, and the program does what it does.
pub fn strace(bench: &Bench) {
    if !is_there("strace", "--version") {
        return skip("there is no strace");
    }
    let data = bench.data();
    let log = bench.directory.join("strace.log");
    let command = || {
        let mut command = Command::new("strace");
        command.args(["-f", "-o"]).arg(&log).args(reader(bench, &data));
        command
    };
    let both = bench.both(16 << 20, &[&data], command);
    if !both.plain.stderr.is_empty() {
        return skip(format!("strace cannot trace here: {}", both.plain.stderr()));
    }
    let both = both.alike().well();
    assert_eq!(both.faults(&data), 0, "{:?}", both.statistics);
    let traced = both.statistics.iter().any(|of| of.reason == Reason::Traced);
    assert!(traced || !crate::support::bench::has_observer(), "{:?}", both.statistics);
}

/// gdb says numbers of processes, which differ from run to run.
fn without_numbers(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(|line| {
        let digits = |c: char| if c.is_ascii_digit() { '#' } else { c };
        if line.contains("process ") || line.contains("Thread 0x") {
            let line: String = line.chars().map(digits).collect();
            line.replace("##", "#").replace("##", "#")
        } else {
            line.to_string()
        }
    });
    lines.collect::<Vec<_>>().join("\n").into_bytes()
}

pub fn gdb(bench: &Bench) {
    if !is_there("gdb", "--version") {
        return skip("there is no gdb");
    }
    let data = bench.data();
    let commands: [&[&str]; 2] = [
        &["-ex", "run"],
        &["-ex", "break mmap64", "-ex", "run", "-ex", "continue 3", "-ex", "kill"],
    ];
    for commands in commands {
        let command = || {
            let mut command = Command::new("gdb");
            command.args(["-nx", "-q", "-batch", "-ex", "set breakpoint pending on"]);
            command.args(["-ex", "set debuginfod enabled off"]).args(commands).arg("--args");
            command.args(reader(bench, &data));
            command
        };
        let both = bench.both(16 << 20, &[&data], command);
        // Where it stops depends on which libraries there are; that it runs does not.
        if commands.len() == 2 {
            let both = both.alike_but(without_numbers).well();
            assert!(both.plain.stdout().contains("exited normally"), "{}", both.plain.stdout());
            assert_eq!(both.faults(&data), 0, "{:?}", both.statistics);
        } else {
            assert_eq!(both.plain.end, both.governed.end, "{:?}", both.governed);
            let stderr = both.governed.stderr();
            assert!(!stderr.contains("SIGTRAP"), "{stderr}");
            assert!(!both.governed.stdout().contains("SIGTRAP"), "{}", both.governed.stdout());
        }
    }
}

/// Programs that a shell starts find signals as without the library.
pub fn shell(bench: &Bench) {
    for shell in ["sh", "bash"] {
        if Command::new(shell).args(["-c", ":"]).output().is_err() {
            skip(format!("there is no {shell}"));
            continue;
        }
        let look = "grep -E '^Sig(Blk|Ign|Pnd)' /proc/self/status";
        let script = format!(
            "{look} && {look} | cat; ({look}); x=$({look}); echo $x; trap '' 5; {look}; \
             trap 'echo trapped' 5; kill -5 $$; {look}"
        );
        let command = || {
            let mut command = Command::new(shell);
            command.arg("-c").arg(&script);
            command
        };
        bench.both(64 << 10, &[], command).alike().well();
    }
}

const C: &str = r#"
#include <stdio.h>
#include <string.h>
int add(int a, int b);
int main(int argc, char **argv) {
    char text[64];
    snprintf(text, sizeof text, "%d", add(argc, (int)strlen(argv[0]) * 0));
    return puts(text) < 0;
}
"#;

/// A whole tree of processes: drivers, compilers, assemblers and linkers, in parallel.
pub fn c_compiler(bench: &Bench) {
    if !is_there("gcc", "--version") {
        return skip("there is no gcc");
    }
    let directory = bench.directory.join("c");
    fs::create_dir(&directory).expect("there is room");
    for number in 0..4 {
        let text = if number == 0 {
            C.to_string()
        } else {
            format!("int add{number}(int a, int b) {{ return a + b * {number}; }}\n")
        };
        fs::write(directory.join(format!("{number}.c")), text).expect("there is room");
    }
    fs::write(directory.join("4.c"), "int add(int a, int b) { return a + b; }\n").expect("room");
    let script = "for n in 0 1 2 3 4; do gcc -O1 -c -o $n.o $n.c & done; wait; \
                  gcc -o program *.o && ./program x; cat *.o | cksum; cksum < program; \
                  gcc -c nonsense.c; echo $?";
    let command = || {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("cd {} && {script}", directory.display()));
        command
    };
    // So small that tables of the compilers are governed as well.
    bench.both(16 << 10, &[], command).alike().well();
}

/// The directory of the libraries of the Rust compiler, which it maps.
fn rust_libraries() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "target-libdir"]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_dir().then_some(path)
}

pub fn rust_compiler(bench: &Bench) {
    if rust_libraries().is_none() {
        return skip("there is no rustc");
    }
    let source = bench.directory.join("hello.rs");
    let text = "fn main() { let v: Vec<u32> = (0..10).collect(); println!(\"{v:?}\"); }\n";
    fs::write(&source, text).expect("there is room");
    let program = bench.directory.join("hello");
    let command = || {
        let mut command = Command::new("sh");
        let (source, program) = (source.display(), program.display());
        command.arg("-c").arg(format!(
            "rustc -C codegen-units=4 -o {program} {source} && {program} && cksum < {program}; \
             echo 'fn f() {{ 1 + }}' | rustc -"
        ));
        command
    };
    let both = bench.both(1 << 20, &[], command).alike();
    assert_eq!(both.plain.end, End::Exited(1), "{:?}", both.plain);
    let mapped = match &both.told {
        Some(told) => told.touches().next().is_some(),
        None => both.statistics.iter().any(|of| !of.mappings.is_empty()),
    };
    assert!(
        mapped || !crate::support::bench::has_observer(),
        "no library of Rust is governed: {:?}",
        both.statistics
    );
}
