//! Injects advice into threads of other processes, which must not notice.
//!
//! Victims and injectors run this test binary, which therefore has a `main` of its own.

#[cfg(target_arch = "x86_64")]
mod calm;
#[cfg(target_arch = "x86_64")]
#[path = "../../../kernel/tests/support/harness.rs"]
mod harness;
#[cfg(target_arch = "x86_64")]
mod kills;
#[cfg(target_arch = "x86_64")]
mod process;
#[path = "../../../kernel/tests/support/session.rs"]
mod session;
#[cfg(target_arch = "x86_64")]
#[path = "../../../kernel/tests/support/skip.rs"]
mod skip;
#[cfg(target_arch = "x86_64")]
mod victim;

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("skipped: inject: threads are made to advise on x86-64 only");
}

#[cfg(target_arch = "x86_64")]
const TESTS: &[harness::Test<process::Bench>] = harness::tests![
    calm::advice_takes_effect_and_is_taken_back,
    calm::keeps_registers,
    calm::waits_do_not_end_early,
    calm::transfers_do_not_end_early,
    calm::loses_no_signals,
    calm::threads_begin_and_end,
    calm::victim_starts_programs_by_vfork,
    calm::leaves_thread_in_system_call,
    calm::stopped_process_stays_stopped,
    calm::refuses_another_mapping,
    calm::leaves_traced_thread,
    calm::consults_seccomp_filter,
    #[ignore = "kills 1,400 injectors: a minute"]
    kills::survives_killed_injectors,
];

#[cfg(target_arch = "x86_64")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments[1..].iter().map(String::as_str).collect();
    match words[..] {
        ["__victim", name, file] => victim::run(name, file),
        ["__injector", pid, file] => kills::inject_for_ever(pid.parse().expect("a pid"), file),
        ["__measure", pid, file, count] => {
            calm::measure(pid.parse().expect("a pid"), file, count.parse().expect("a count"))
        }
        _ => harness::run(TESTS, || Ok(process::Bench::new())),
    }
}
