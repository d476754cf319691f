//! Runs the tests of a binary with its own `main`, one at a time, with libtest's options and
//! output.

use std::env;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use crate::skip::skip;

/// A test, and the reason why it runs only with `--ignored` or `--include-ignored`, if so.
pub struct Test<B> {
    pub name: &'static str,
    pub run: fn(&B),
    pub ignored: Option<&'static str>,
}

/// The tests with these paths: `tests![module::test, #[ignore = "reason"] module::slow]`.
macro_rules! tests {
    ($($(#[ignore = $reason:literal])? $test:path),+ $(,)?) => {
        &[$($crate::harness::Test {
            name: stringify!($test),
            run: $test,
            ignored: $crate::harness::tests!(@ $($reason)?),
        }),+]
    };
    (@) => { None };
    (@ $reason:literal) => { Some($reason) };
}
pub(crate) use tests;

/// Options of libtest that take a value and have no effect here.
const VALUED: [&str; 5] = ["--test-threads", "--format", "--color", "--logfile", "-Z"];

/// Exit code of libtest after a failed test.
const FAILED: u8 = 101;

#[derive(Default)]
struct Options {
    filters: Vec<String>,
    skips: Vec<String>,
    exact: bool,
    list: bool,
    ignored: bool,
    include_ignored: bool,
}

impl Options {
    fn from_args() -> Options {
        let mut options = Options::default();
        let mut args = env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--exact" => options.exact = true,
                "--list" => options.list = true,
                "--ignored" => options.ignored = true,
                "--include-ignored" => options.include_ignored = true,
                "--skip" => options.skips.extend(args.next()),
                valued if VALUED.contains(&valued) => drop(args.next()),
                flag if flag.starts_with('-') => {}
                _ => options.filters.push(arg),
            }
        }
        options
    }

    fn matches(&self, name: &str, filter: &String) -> bool {
        if self.exact { name == filter } else { name.contains(filter) }
    }

    fn selects<B>(&self, test: &Test<B>) -> bool {
        let matches = |filter| self.matches(test.name, filter);
        (self.filters.is_empty() || self.filters.iter().any(matches))
            && !self.skips.iter().any(matches)
            && (!self.ignored || test.ignored.is_some())
    }

    fn runs<B>(&self, test: &Test<B>) -> bool {
        test.ignored.is_none() || self.ignored || self.include_ignored
    }
}

/// Runs the selected tests on the bench that `new_bench` makes, or skips all of them for the reason
/// that it returns.
pub fn run<B: Sync>(tests: &[Test<B>], new_bench: impl FnOnce() -> Result<B, String>) -> ExitCode {
    let options = Options::from_args();
    let selected: Vec<_> = tests.iter().filter(|test| options.selects(test)).collect();
    if options.list {
        selected.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", selected.len());
    let started = Instant::now();
    let bench = if selected.iter().any(|test| options.runs(test)) {
        new_bench().inspect_err(|reason| skip(reason)).ok()
    } else {
        None
    };
    let (mut passed, mut failed, mut ignored) = (0, Vec::new(), 0);
    for test in &selected {
        if !options.runs(test) {
            println!("test {} ... ignored, {}", test.name, test.ignored.unwrap_or_default());
            ignored += 1;
        } else if let Some(bench) = &bench
            && run_one(test, bench).is_err()
        {
            println!("test {} ... FAILED", test.name);
            failed.push(test.name);
        } else {
            println!("test {} ... ok", test.name);
            passed += 1;
        }
    }
    drop(bench);
    failed.iter().for_each(|name| println!("failed: {name}"));
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {ignored} ignored; 0 measured; {} filtered \
         out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len(),
        tests.len() - selected.len(),
        started.elapsed().as_secs_f64()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}

/// Runs a test in a thread with its name, which skips and panics report.
fn run_one<B: Sync>(test: &Test<B>, bench: &B) -> thread::Result<()> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(test.name.to_string());
        thread.spawn_scoped(scope, || (test.run)(bench)).expect("a thread").join()
    })
}
