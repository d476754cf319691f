//! Injectors that are killed at arbitrary moments.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::{MemoryAdvice, advise_any, madvise};

use crate::calm::vdso_of;
use crate::process::{Bench, Victim, field, range_of, tids};

/// Minimum number of kills per victim.
const KILLS: usize = 350;
/// Maximum number of kills: on a slow machine few of them hit between seize and detach.
const MOST_KILLS: usize = 10 * KILLS;

/// Advises by all threads in turn until killed.
pub fn inject_for_ever(pid: u32, file: &str) -> ! {
    let range = range_of(pid, file);
    loop {
        for tid in tids(pid) {
            let _ = madvise(pid, tid, &range, MemoryAdvice::Random);
            let _ = madvise(pid, tid, &range, MemoryAdvice::Normal);
        }
    }
}

pub fn survives_killed_injectors(bench: &Bench) {
    let clean = vdso_of(std::process::id());
    // A stub that completes a transfer stays until its thread needs another.
    for (name, leaves_stubs) in [
        ("registers", false),
        ("killed-waits", false),
        ("signals", false),
        ("killed-transfers", true),
    ] {
        let victim = bench.start(name);
        let (mut while_traced, mut while_stopped, mut in_stub) = (0, 0, 0);
        let mut stubs = 0;
        let mut kills = 0;
        let has_hit = loop {
            let has_hit = while_traced > 0 && (in_stub > 0 || leaves_stubs);
            if kills == MOST_KILLS || kills >= KILLS && has_hit {
                break has_hit;
            }
            let kill = kills;
            kills += 1;
            let (traced, stopped) = kill_one(bench, &victim, kill);
            while_traced += usize::from(traced);
            while_stopped += usize::from(stopped);
            victim.runs();
            let left = clean
                .chunks(88)
                .zip(vdso_of(victim.pid).chunks(88))
                .filter(|(clean, found)| clean != found)
                .count();
            in_stub += usize::from(left > stubs);
            stubs = left;
            if kill.is_multiple_of(20) {
                succeed(&victim);
            }
        };
        println!(
            "  {name}: {kills} kills, {while_traced} of a tracer, {while_stopped} while a thread \
             was stopped, {in_stub} left a stub"
        );
        assert!(has_hit, "no kill came between seizing and letting go");
        succeed(&victim);
        victim.end();
    }
}

/// Kills one injector. Returns whether it was tracing a thread, and whether that thread was
/// stopped. Every other injector is halted by SIGSTOP first to find out, and killed in that state;
/// otherwise both are false.
fn kill_one(bench: &Bench, victim: &Victim, kill: usize) -> (bool, bool) {
    let own = std::env::current_exe().expect("this binary");
    let mut injector = Command::new(own)
        .args(["__injector", &victim.pid.to_string()])
        .arg(&bench.file)
        .stdin(Stdio::null())
        .spawn()
        .expect("an injector");
    let pid = injector.id();
    let begin = Instant::now();
    while field(pid, pid, "Threads").is_none_or(|threads| threads == "1")
        && begin.elapsed() < Duration::from_secs(2)
    {
        std::hint::spin_loop();
    }
    sleep(Duration::from_micros((kill * 7919 % 2000) as u64));
    let (mut traced, mut stopped) = (false, false);
    if kill.is_multiple_of(2) {
        // SAFETY: the child has not been reaped, so its PID cannot have been reused.
        unsafe { libc::kill(pid as i32, libc::SIGSTOP) };
        while field(pid, pid, "State").is_some_and(|state| !state.starts_with('T')) {
            std::hint::spin_loop();
        }
        sleep(Duration::from_micros(200));
        for tid in victim.tids() {
            let is = |name, begin| {
                field(victim.pid, tid, name).is_some_and(|text| text.starts_with(begin))
            };
            let is_traced = !is("TracerPid", '0');
            traced |= is_traced;
            stopped |= is_traced && is("State", 't');
        }
    }
    injector.kill().expect("a kill");
    injector.wait().expect("the injector's end");
    (traced, stopped)
}

fn succeed(victim: &Victim) {
    let begin = Instant::now();
    loop {
        match advise_any(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random) {
            Ok(_) => return,
            Err(refusal) => {
                assert!(begin.elapsed() < Duration::from_secs(10), "{refusal}");
                assert!(!refusal.is_lasting(), "{refusal}");
            }
        }
    }
}
