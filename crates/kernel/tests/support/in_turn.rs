//! Tests of a program that has a main of its own, one after the other.

use std::panic::resume_unwind;
use std::thread;

/// What a test is called, and what it does on a bench.
pub type Test<B> = (&'static str, fn(&B));

/// Runs those of `tests` whose name has all words of the command line in it. `program` is what
/// their lines begin with.
pub fn run<B: Sync>(program: &str, tests: &[Test<B>], bench: &B) {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (name, test) in tests {
        if wanted.iter().all(|part| name.contains(part.as_str())) {
            println!("{program}: {name}");
            // Skips name the test by its thread.
            thread::scope(|scope| {
                let running = thread::Builder::new().name(name.to_string());
                let running = running.spawn_scoped(scope, || test(bench)).expect("a thread");
                running.join().unwrap_or_else(|panic| resume_unwind(panic));
            });
        }
    }
}
