//! Real programs do the same whether they are governed or not: what they print, how they end,
//! what they are told by each call. Those that map large files are governed truly, and read less
//! where that can be expected.
//!
//! The binary has a main of its own because many of the programs are this binary, run again. What
//! is not installed is passed over with a line that says so. Names or parts of them choose tests.

mod advice;
mod advised;
mod arrays;
mod cancelled;
mod changes;
mod changing;
mod databases;
mod descriptors;
mod memory;
mod readers;
mod refused;
mod signals;
#[path = "../support/mod.rs"]
mod support;
mod tight;
mod tools;
mod vectors;

use std::any::Any;
use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

use filemap_kernel::storage::Storage;

use support::bench::{AS, Bench};
use support::skip::skip;

type Test = (&'static str, fn(&Bench));

const TESTS: [Test; 47] = [
    ("files are read in several orders", readers::orders),
    ("a scan reads all once", readers::scans_read_once),
    ("what the program advises stands", readers::own_advice),
    ("small mappings are left alone", readers::small_mappings_are_left_alone),
    ("threads read at once", readers::threads),
    ("threads map and unmap", readers::threads_that_map),
    ("a program forks, execs and spawns", readers::forks),
    ("a program uses SIGTRAP itself", signals::own_signals),
    ("memory calls do what they do", memory::calls),
    ("files change under their mapping", changing::files),
    ("what is no regular file", changing::odd_files),
    ("numbers of descriptors", descriptors::numbers),
    ("numbers of descriptors without perf events", descriptors::numbers_without_perf),
    ("no descriptor is left to other programs", descriptors::left_open),
    ("the limit of descriptors is reached", descriptors::limit_is_reached),
    ("record locks stay", descriptors::locks_stay),
    ("daemons close all descriptors", descriptors::daemons),
    ("a program writes from its mapping", descriptors::writes),
    ("little room", tight::ways),
    ("threads are cancelled while they wait", cancelled::threads),
    ("a program sends from its mapping", vectors::sends),
    ("many parts and little stack", vectors::small_stack),
    ("nobody hears why nothing is governed", vectors::nobody_listens),
    ("the governor's advice does not stay behind", advice::left),
    ("a program takes all descriptors", advice::all_descriptors),
    ("a fork without handlers", advice::bare_fork),
    ("advice is given in place of the program's", advised::mappings),
    ("parts of a mapping are advised", advised::parts),
    ("files are advised before they are read", advised::reads),
    ("perf events are refused", refused::without_perf),
    ("a program filters its own calls", refused::own_filter),
    ("a static program", refused::static_program),
    ("a set-uid program", refused::set_uid_program),
    ("a user who is not root", refused::ordinary_user),
    ("no room for statistics", refused::no_room_for_statistics),
    ("switched off", refused::switched_off),
    ("no directory for statistics", refused::no_directory),
    ("lmdb", databases::lmdb),
    ("sqlite reads", databases::sqlite_reads),
    ("sqlite locks", databases::sqlite_locks),
    ("numpy", arrays::numpy),
    ("ripgrep", tools::ripgrep),
    ("strace", tools::strace),
    ("gdb", tools::gdb),
    ("programs of a shell", tools::shell),
    ("a C compiler", tools::c_compiler),
    ("the Rust compiler", tools::rust_compiler),
];

/// What programs do while each change of page is recorded.
const RECORDED: [Test; 28] = [
    ("each change of page", changes::changes),
    ("recorded: memory is the program's own afterwards", changes::afterwards),
    ("recorded: files are read in several orders", readers::orders),
    ("recorded: a program advises", readers::own_advice),
    ("recorded: threads read at once", readers::threads),
    ("recorded: threads map and unmap", readers::threads_that_map),
    ("recorded: a program forks, execs and spawns", readers::forks),
    ("recorded: a program uses SIGSEGV itself", signals::own_signals),
    ("recorded: memory calls do what they do", memory::calls),
    ("recorded: files change under their mapping", changing::files),
    ("recorded: what is no regular file", changing::odd_files),
    ("recorded: numbers of descriptors", descriptors::numbers),
    ("recorded: record locks stay", descriptors::locks_stay),
    ("recorded: a program writes from its mapping", descriptors::writes),
    ("recorded: little room", tight::ways),
    ("recorded: threads are cancelled while they wait", cancelled::threads),
    ("recorded: a program sends from its mapping", vectors::sends),
    ("recorded: many parts and little stack", vectors::small_stack),
    ("recorded: a program takes all descriptors", advice::all_descriptors),
    ("recorded: a fork without handlers", advice::bare_fork),
    ("recorded: lmdb", databases::lmdb),
    ("recorded: sqlite reads", databases::sqlite_reads),
    ("recorded: sqlite locks", databases::sqlite_locks),
    ("recorded: numpy", arrays::numpy),
    ("recorded: ripgrep", tools::ripgrep),
    ("recorded: programs of a shell", tools::shell),
    ("recorded: a C compiler", tools::c_compiler),
    ("recorded: the Rust compiler", tools::rust_compiler),
];

type Program = (&'static str, fn(&[String]));

/// The programs that this binary is.
const PROGRAMS: [Program; 24] = [
    ("changes", changes::program),
    ("afterwards", changes::afterwards_program),
    ("reader", readers::program),
    ("threads", readers::threads_program),
    ("churn", readers::churn_program),
    ("forks", readers::forks_program),
    ("signals", signals::program),
    ("memory", memory::program),
    ("changing", changing::program),
    ("odd", changing::odd_program),
    ("descriptors", descriptors::program),
    ("limited", descriptors::limited_program),
    ("leaves", descriptors::leaves_program),
    ("locks", descriptors::locks_program),
    ("asks", descriptors::asks_program),
    ("daemon", descriptors::daemon_program),
    ("writes", descriptors::writes_program),
    ("sends", vectors::program),
    ("small stack", vectors::small_stack_program),
    ("advice", advice::program),
    ("advised", advised::program),
    ("bare fork", advice::bare_fork_program),
    ("filtered", refused::filtered_program),
    ("tight", tight::program),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, rest @ ..] = &arguments[..]
        && first == AS
    {
        let (_, program) =
            PROGRAMS.iter().find(|(of, _)| of == name).expect("a program of that name");
        return program(rest);
    }
    let wanted: Vec<String> = arguments.into_iter().filter(|a| !a.starts_with('-')).collect();
    let bench = Bench::new("programs");
    if let Some(reason) = Storage::of(&bench.directory).expect("the directory's disk").unsuited() {
        return skip(format!("{} {reason}", bench.directory.display()));
    }
    let mut failed = run(&bench, &wanted, &TESTS);
    drop(bench);
    let mut bench = Bench::new("recorded");
    bench.record();
    failed.extend(run(&bench, &wanted, &RECORDED));
    let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    if let Some((_, panic)) = failed.pop() {
        println!("programs: failed: {}", names.join(", "));
        drop(bench);
        resume_unwind(panic);
    }
}

type Panic = Box<dyn Any + Send>;

/// Runs the tests that are wanted, and returns those that failed.
fn run(bench: &Bench, wanted: &[String], tests: &[Test]) -> Vec<(&'static str, Panic)> {
    let mut failed = Vec::new();
    for &(name, test) in tests {
        if wanted.iter().all(|part| name.contains(part.as_str())) {
            let begun = Instant::now();
            // Skips name the test by its thread.
            let ended = thread::scope(|scope| {
                let running = thread::Builder::new().name(name.to_string());
                running.spawn_scoped(scope, || test(bench)).expect("a thread").join()
            });
            println!("programs: {name}: {:.1?}", begun.elapsed());
            if let Err(panic) = ended {
                failed.push((name, panic));
            }
        }
    }
    failed
}
