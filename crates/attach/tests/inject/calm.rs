//! Injectors that run to completion.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use filemap_attach::{MemoryAdvice, Refusal, advise_any, madvise};

use crate::process::{Bench, Victim, field, range_of, tids};

const LONG: Duration = Duration::from_secs(4);

/// Maximum duration on a busy machine, where few attempts succeed in [`LONG`].
const ON_BUSY_MACHINES: Duration = Duration::from_secs(60);

/// Results of many attempts.
#[derive(Default)]
struct Attempts {
    stopped_ns: Vec<u64>,
    refusals: BTreeMap<String, usize>,
}

impl Attempts {
    /// Advises once by each thread, and records the results.
    fn round(&mut self, victim: &Victim) {
        for tid in victim.tids() {
            let random = self.stopped_ns.len().is_multiple_of(2);
            let advice = if random { MemoryAdvice::Random } else { MemoryAdvice::Normal };
            match madvise(victim.pid, tid, &victim.range, advice) {
                Ok(advised) => self.stopped_ns.push(advised.stopped_ns),
                Err(refusal) => {
                    let name = format!("{refusal:?}");
                    let name = name.split("tid: ").next().unwrap_or("").to_owned();
                    let place = format!("{refusal}");
                    let place = place.split(':').nth(1).unwrap_or("").to_owned();
                    *self.refusals.entry(name + &place).or_default() += 1;
                }
            }
        }
    }

    fn say(&mut self) {
        self.stopped_ns.sort_unstable();
        let us = |share: f64| {
            let index = ((self.stopped_ns.len() as f64 - 1.0) * share) as usize;
            self.stopped_ns.get(index).map_or(0, |ns| ns / 1000)
        };
        let (median, high, worst) = (us(0.5), us(0.99), us(1.0));
        println!(
            "  {} times, stopped {median} us (median), {high} (99 %), {worst} (worst); {:?}",
            self.stopped_ns.len(),
            self.refusals
        );
    }
}

fn attack(bench: &Bench, name: &str, least: usize) {
    let victim = bench.start(name);
    let mut attempts = Attempts::default();
    let begin = Instant::now();
    let is_enough = |attempts: &Attempts| attempts.stopped_ns.len() >= least;
    while begin.elapsed() < LONG || !is_enough(&attempts) && begin.elapsed() < ON_BUSY_MACHINES {
        attempts.round(&victim);
    }
    attempts.say();
    assert!(is_enough(&attempts), "{}", attempts.stopped_ns.len());
    victim.runs();
    victim.end();
}

pub fn advice_takes_effect_and_is_taken_back(bench: &Bench) {
    let victim = bench.start("registers");
    for _ in 0..20 {
        advise_any(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random).expect("advice");
        assert!(victim.is_random());
        advise_any(victim.pid, victim.pid, &victim.range, MemoryAdvice::Normal).expect("advice");
        assert!(!victim.is_random());
        let vdso = vdso_of(victim.pid);
        assert_eq!(vdso, vdso_of(std::process::id()), "the vDSO is as it was");
    }
    victim.end();
}

/// Contents of a process's vDSO, including the padding.
pub fn vdso_of(pid: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vDSO");
    let (begin, end) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("two");
    let (begin, end) = (u64::from_str_radix(begin, 16), u64::from_str_radix(end, 16));
    let (begin, end) = (begin.expect("an address"), end.expect("an address"));
    let mut bytes = vec![0; (end - begin) as usize];
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("its memory");
    memory.read_exact_at(&mut bytes, begin).expect("its vDSO");
    bytes
}

pub fn keeps_registers(bench: &Bench) {
    attack(bench, "registers", 200);
}

pub fn waits_do_not_end_early(bench: &Bench) {
    attack(bench, "waits", 100);
}

pub fn transfers_do_not_end_early(bench: &Bench) {
    attack(bench, "transfers", 20);
}

pub fn loses_no_signals(bench: &Bench) {
    attack(bench, "signals", 100);
}

pub fn threads_begin_and_end(bench: &Bench) {
    attack(bench, "threads", 20);
    let victim = bench.start("threads");
    for _ in 0..500 {
        let refused = advise_any(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random).err();
        let is_gone = matches!(refused, Some(Refusal::Gone { .. }));
        assert!(!is_gone, "a thread that ended is not the process: {refused:?}");
    }
    victim.end();
}

pub fn victim_starts_programs_by_vfork(bench: &Bench) {
    attack(bench, "vforks", 0);
}

pub fn leaves_thread_in_system_call(bench: &Bench) {
    let victim = bench.start("blocked");
    sleep(Duration::from_millis(50));
    for _ in 0..100 {
        let refused = madvise(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random);
        assert_eq!(refused, Err(Refusal::InSystemCall { tid: victim.pid }));
    }
    victim.end();
}

/// Sends SIGSTOP and SIGCONT at random moments. A process that was stopped last must stay stopped.
pub fn stopped_process_stays_stopped(bench: &Bench) {
    let victim = bench.start("registers");
    let mut attempts = Attempts::default();
    let begin = Instant::now();
    let stopper = std::thread::spawn({
        let pid = victim.pid as i32;
        move || {
            let mut pause = 1;
            while begin.elapsed() < LONG {
                for signal in [libc::SIGSTOP, libc::SIGCONT] {
                    pause = (pause * 48271) % 2_147_483_647;
                    sleep(Duration::from_micros(pause % 1000));
                    // SAFETY: the child has not been reaped, so its PID cannot have been reused.
                    unsafe { libc::kill(pid, signal) };
                }
            }
        }
    });
    while !stopper.is_finished() {
        attempts.round(&victim);
    }
    stopper.join().expect("the stopper");
    attempts.say();
    assert!(attempts.stopped_ns.len() > 50, "{}", attempts.stopped_ns.len());
    victim.signal(libc::SIGSTOP);
    sleep(Duration::from_millis(50));
    for _ in 0..50 {
        let refused = madvise(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random);
        assert_eq!(refused, Err(Refusal::Stopped { tid: victim.pid }));
        let state = field(victim.pid, victim.pid, "State").expect("a state");
        assert!(state.starts_with('T'), "{state}");
    }
    victim.signal(libc::SIGCONT);
    victim.runs();
    victim.end();
}

pub fn refuses_another_mapping(bench: &Bench) {
    let victim = bench.start("registers");
    let meant = victim.range.clone();
    let mut others = vec![meant.clone(); 6];
    others[0].offset_bytes += 4096;
    others[1].protection |= libc::PROT_WRITE as u32;
    others[2].is_shared = !meant.is_shared;
    others[3].length_bytes += 4096;
    others[4].address -= 1 << 30;
    others[5].file.as_mut().expect("a file").id.inode += 1;
    for other in others {
        let refused = madvise(victim.pid, victim.pid, &other, MemoryAdvice::Random);
        assert_eq!(refused, Err(Refusal::Changed { address: other.address }));
    }
    assert!(!victim.is_random());
    let mut half = meant;
    half.length_bytes /= 2;
    madvise(victim.pid, victim.pid, &half, MemoryAdvice::Random).expect("advice for a half");
    assert!(victim.is_random());
    victim.end();
}

pub fn leaves_traced_thread(bench: &Bench) {
    let victim = bench.start("registers");
    // SAFETY: the request passes no memory of this process.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, victim.pid as i32, 0_usize, 0_usize) };
    assert_eq!(seized, 0);
    for _ in 0..100 {
        let refused = madvise(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random);
        assert_eq!(refused, Err(Refusal::Traced { tid: victim.pid }));
    }
    // SAFETY: as above; the wait ensures that the thread is stopped when it is detached.
    unsafe {
        libc::ptrace(libc::PTRACE_INTERRUPT, victim.pid as i32, 0_usize, 0_usize);
        libc::waitpid(victim.pid as i32, std::ptr::null_mut(), libc::__WALL);
        libc::ptrace(libc::PTRACE_DETACH, victim.pid as i32, 0_usize, 0_usize);
    }
    victim.end();
}

pub fn consults_seccomp_filter(bench: &Bench) {
    let victim = bench.start("filtered");
    sleep(Duration::from_millis(20));
    let refused = madvise(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random);
    assert!(matches!(refused, Err(Refusal::Filtered { .. })), "{refused:?}");
    victim.end();
    let victim = bench.start("allowed");
    sleep(Duration::from_millis(20));
    let advised = madvise(victim.pid, victim.pid, &victim.range, MemoryAdvice::Random);
    if rustix::process::geteuid().is_root() {
        advised.expect("advice that the filter allows");
    } else {
        assert!(matches!(advised, Err(Refusal::Filtered { .. })), "{advised:?}");
    }
    victim.end();
}

/// Prints the results of `count` attempts on a running process; started by hand.
pub fn measure(pid: u32, file: &str, count: usize) -> ! {
    let range = range_of(pid, file);
    let (mut stopped, mut refused) = (Vec::new(), BTreeMap::<String, usize>::new());
    for attempt in 0..count {
        let advice = if attempt % 2 == 0 { MemoryAdvice::Random } else { MemoryAdvice::Normal };
        let tids = tids(pid);
        match advise_any(pid, tids[attempt % tids.len()], &range, advice) {
            Ok(advised) => stopped.push(advised.stopped_ns),
            Err(refusal) => {
                let name = format!("{refusal:?}");
                let name = name.split("tid: ").next().unwrap_or("").to_owned();
                *refused.entry(name).or_default() += 1;
            }
        }
    }
    let mut attempts = Attempts { stopped_ns: stopped, refusals: refused };
    attempts.say();
    std::process::exit(0)
}
