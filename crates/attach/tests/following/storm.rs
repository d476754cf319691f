//! Faults at rates that overflow the rings.

use std::time::{Duration, Instant};

use filemap_attach::{Event, EventKind, FaultKind, FollowMethod, Follower};

use crate::bench::Bench;
use crate::program::Program;

/// CPU time used by this process, in nanoseconds.
fn cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec.cast_unsigned() * 1_000_000_000 + used.tv_nsec.cast_unsigned()
}

/// Events reported during a fault storm.
struct Storm {
    faults: u64,
    took_us: u64,
    told: u64,
    lost: u64,
    other: u64,
    cpu_ns: u64,
}

/// Lets a program fault as fast as it can, and reads events at least `period` apart.
fn storm(period: Duration) -> Storm {
    let mut follower = Follower::for_children_with(FollowMethod::PerfEvents).expect("perf events");
    let mut program = Program::start("rounds", &["4096", "2", "200"]);
    program.go();
    let (mut reported, mut lost, mut other) = (0, 0, 0);
    let mut take = |event: Event| match event.kind {
        EventKind::Fault { kind: FaultKind::Minor, .. } => reported += 1,
        EventKind::Lost { records } => lost += records,
        _ => other += 1,
    };
    let output = std::thread::spawn(move || (program.says(), program));
    let used = cpu_ns();
    while !output.is_finished() {
        std::thread::sleep(period);
        follower.wait(Duration::from_millis(10)).expect("events");
        follower.read_events(&mut take).expect("events");
    }
    let (numbers, program) = output.join().expect("a thread");
    while follower.wait(Duration::from_millis(50)).expect("events") {
        follower.read_events(&mut take).expect("events");
    }
    let cpu_ns = cpu_ns() - used;
    let [faults, took_us] = numbers[..] else { panic!("no numbers") };
    program.end();
    Storm { faults, took_us, told: reported, lost, other, cpu_ns }
}

pub fn reports_or_counts_every_fault(_: &Bench) {
    for period in [Duration::ZERO, Duration::from_millis(150)] {
        let Storm { faults, took_us, told, lost, other, cpu_ns } = storm(period);
        println!(
            "storm: {faults} faults in {took_us} us, read every {period:?}: {told} told, {lost} \
             lost, {other} others; {} ns of CPU an event",
            cpu_ns / (told + other).max(1)
        );
        // The program's count includes faults before exec and in the kernel; lost records include
        // other kinds.
        assert!(told + lost <= faults + 50, "no more than there were");
        assert!(told + lost + 50 >= faults, "each is told or counted");
        assert!(lost > 0 || period.is_zero(), "the rings have not room for all");
    }
}

/// Major faults, one page each: each wakes the reader.
pub fn reports_single_faults_soon(bench: &Bench) {
    let pages = 20_000;
    let path = bench.cold_file("single", pages);
    let mut follower = Follower::for_children_with(FollowMethod::PerfEvents).expect("perf events");
    let mut program = Program::start("touch", &[path.to_str().unwrap(), "1", "3"]);
    program.says();
    follower.read_events(&mut |_| {}).expect("events");
    program.go();
    let output = std::thread::spawn(move || (program.says(), program));
    let (mut faults, mut late_ns, mut reads) = (0_u64, 0, 0_u64);
    let (begin, used) = (Instant::now(), cpu_ns());
    while !output.is_finished() {
        follower.wait(Duration::from_millis(10)).expect("events");
        reads += 1;
        let now_ns = filemap_attach::now_ns();
        let mut take = |event: Event| {
            faults += 1;
            late_ns += now_ns.saturating_sub(event.at_ns);
        };
        follower.read_events(&mut take).expect("events");
    }
    let used = cpu_ns() - used;
    println!(
        "single faults: {faults} told by {reads} reads; {} ns of CPU an event, {} ns late, {} ns a \
         fault",
        used / faults.max(1),
        late_ns / faults.max(1),
        begin.elapsed().as_nanos() / u128::from(pages)
    );
    assert!(faults >= pages);
    output.join().expect("a thread").1.end();
}
