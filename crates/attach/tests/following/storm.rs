//! More faults than can be told.

use std::time::Instant;

use filemap_attach::{Event, FaultKind, Follower, Way, What};

use crate::bench::Bench;
use crate::program::Program;

/// What this process has used of the CPU, in nanoseconds.
fn cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec.cast_unsigned() * 1_000_000_000 + used.tv_nsec.cast_unsigned()
}

pub fn told_or_counted(_: &Bench) {
    let mut follower = Follower::of_children_by(Way::PerfEvents).expect("perf events");
    let mut program = Program::start("rounds", &["4096", "2", "200"]);
    program.go();
    let (mut told, mut lost, mut other) = (0, 0, 0);
    let mut take = |event: Event| match event.what {
        What::Fault { kind: FaultKind::Minor, .. } => told += 1,
        What::Lost { records } => lost += records,
        _ => other += 1,
    };
    let pid = program.pid();
    let said = std::thread::spawn(move || (program.says(), program));
    let (begin, used) = (Instant::now(), cpu_ns());
    while !said.is_finished() {
        follower.wait(std::time::Duration::from_millis(10)).expect("events");
        follower.read(&mut take).expect("events");
    }
    let (numbers, program) = said.join().expect("a thread");
    while follower.wait(std::time::Duration::from_millis(50)).expect("events") {
        follower.read(&mut take).expect("events");
    }
    let used = cpu_ns() - used;
    let [faults, took_us] = numbers[..] else { panic!("no numbers") };
    println!(
        "storm: {faults} faults of {pid} in {took_us} us, {told} told, {lost} lost, {other} others; \
         {} ns of CPU an event, {:?} in all",
        used / (told + other).max(1),
        begin.elapsed()
    );
    // Faults before exec and in the kernel are counted by the program, and not told.
    assert!(told + lost <= faults + 1000, "no more than there were");
    assert!(told + lost + 2000 >= faults, "each is told or counted");
    program.end();
}
