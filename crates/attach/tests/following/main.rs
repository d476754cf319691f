//! Processes of our own are followed. The binary has a main of its own because they are this
//! binary, run again.

mod bench;
mod children;
mod program;

use std::panic::resume_unwind;
use std::thread;

use bench::Bench;

type Test = (&'static str, fn(&Bench));

const TESTS: [Test; 1] = [
    ("each first touch is told once, in order", children::first_touches),
];

fn main() {
    program::main_if_program();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let bench = Bench::new();
    for (name, test) in TESTS {
        if wanted.iter().all(|part| name.contains(part.as_str())) {
            println!("following: {name}");
            // Skips name the test by its thread.
            thread::scope(|scope| {
                let running = thread::Builder::new().name(name.to_string());
                let running = running.spawn_scoped(scope, || test(&bench)).expect("a thread");
                running.join().unwrap_or_else(|panic| resume_unwind(panic));
            });
        }
    }
}
