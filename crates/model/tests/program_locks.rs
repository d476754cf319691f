//! Threads of a program that wait for each other's locks, and processes that share a mapping.

use crate::support::both_caches::{agreed_on_random, valid};
use crate::support::program::random_writers;
use filemap_job::waits::Cause;
use filemap_job::{Counters, Run};
use filemap_model::{Profile, trace};

fn run(text: &str) -> Run {
    trace(&valid(text), &Profile::DEFAULT, &mut ()).unwrap()
}

/// A file of 16 MiB, which `tables` use.
fn of_file(tables: &str) -> String {
    format!(
        "fs = 'base-pages'\n{tables}\n[[file]]\nname = 'f'\nsize = '16m'\n[[open]]\nname = 'f'\nfile = 'f'\n\
         [[mapping]]\nname = 'm'\nopen = 'f'\n[[mapping]]\nname = 'other'\nopen = 'f'\n"
    )
}

/// The locks of a process.
const LOCKS: [Cause; 3] = [Cause::MmapRead, Cause::MmapWrite, Cause::VmaFaults];

fn waited_ns(run: &Run, lock: Cause) -> u64 {
    run.waits.iter().filter(|wait| wait.cause == lock.name()).map(|wait| wait.sum_ns).sum()
}

/// All threads finish, and the stores of the page cache agree, whatever threads do to each other.
#[test]
fn random_threads_that_wait_for_locks_come_to_their_ends() {
    let (mut ran, mut waited, mut refused, mut processes) = (0, 0, 0, 0);
    let random = |seed| toml::to_string(&random_writers(seed)).unwrap();
    agreed_on_random(1..=160, random, |program, run| {
        if let Ok(run) = run {
            ran += 1;
            waited += u32::from(LOCKS.iter().any(|lock| waited_ns(&run, *lock) > 0));
            refused += run.counters.vma_lock_refused.unwrap_or(0);
            processes += u32::from(program.processes.len() > 1);
        }
    });
    let counts = (ran, waited, refused, processes);
    assert!(ran > 120 && waited > 80 && refused > 40 && processes > 25, "{counts:?}");
}

/// A wait lasts from the request to the lock, however often the thread is woken meanwhile. Here a
/// woken thread is slow to run, while another one takes the lock again and again.
#[test]
fn a_wait_for_a_lock_that_others_steal_is_one() {
    let mut profile = Profile::DEFAULT;
    profile.cost.wake_latency_ns = 1_000_000;
    let writer = "[[thread]]\nrepeat = 60000\n[[thread.phase]]\nmapping = 'other'\n\
                  mprotect = 'exec'\n";
    // Both have to sleep once, while a reader has the lock.
    let text = of_file(&format!(
        "kernel = '6.12'\n{writer}{writer}[[thread]]\n[[thread.phase]]\nmapping = 'm'\n\
         workload = 'sequential'\naccesses = 4096\n[[thread.phase]]\nmapping = 'm'\n\
         madvise = 'dontneed'\n"
    ));
    let run = trace(&valid(&text), &profile, &mut ()).unwrap();
    let of_write = run.waits.iter().find(|wait| wait.cause == Cause::MmapWrite.name()).unwrap();
    assert!(of_write.count <= run.counters.mmap_lock_waits.unwrap(), "{of_write:?}");
    assert!(of_write.max_ns > 1_500_000, "it was woken twice: {of_write:?}");
}

/// Locks decide when a thread continues, but not what its own faults find if nobody else uses its
/// file.
#[test]
fn a_thread_beside_writers_finds_what_it_finds_alone() {
    let counters = |writer: &str, kernel: &str| {
        let text = format!(
            "kernel = '{kernel}'\n[[file]]\nname = 'g'\nsize = '1m'\n[[open]]\nname = 'g'\n\
             file = 'g'\n[[mapping]]\nname = 'g'\nopen = 'g'\n[[thread]]\n\
             [[thread.phase]]\nmapping = 'm'\nworkload = 'random'\naccesses = 2000\n{writer}"
        );
        run(&of_file(&text))
    };
    let writer = "[[thread]]\nrepeat = 2000\n[[thread.phase]]\nmapping = 'g'\n\
                  mprotect = 'exec'\n[[thread.phase]]\nmapping = 'g'\nmprotect = 'as-mapped'\n\
                  [[thread.phase]]\nfork = true\n";
    for kernel in ["6.1", "6.6", "6.12", "6.18"] {
        let (alone, beside) = (counters("", kernel), counters(writer, kernel));
        // A refused fault starts under mmap_lock, and so does not change over to it.
        let known = |run: &Run| Counters {
            minor_faults: None,
            retry_mmap_drop: None,
            retry_arrival: None,
            vma_lock_refused: None,
            mmap_lock_shared: None,
            mmap_lock_waits: None,
            ..run.threads[0].counters
        };
        assert_eq!(known(&beside), known(&alone), "{kernel}");
        // Fault-around skips pages that have not arrived, which depends on the time.
        let minors = [&beside, &alone].map(|run| run.threads[0].counters.minor_faults.unwrap());
        assert!(minors[0].abs_diff(minors[1]) < 5, "{kernel}: {minors:?}");
        assert!(waited_ns(&beside, Cause::MmapRead) > 0, "{kernel}");
        assert!(beside.threads[0].elapsed_ns > alone.threads[0].elapsed_ns, "{kernel}");
        let refused = beside.counters.vma_lock_refused.unwrap();
        // A fork marks all VMAs. 6.1 has no locks of VMAs.
        assert_eq!(refused > 0, kernel != "6.1", "{kernel}: {refused}");
    }
}

/// With vma-retry a fault that waited for its page does not retry under `mmap_lock`, where it would
/// wait for a writer.
#[test]
fn retries_under_the_lock_of_their_vma_do_not_wait_for_writers() {
    let counters = |series: &str| {
        let text = format!(
            "kernel = '6.12'\nread_ahead_kb = 64\n{series}\n[[thread]]\n[[thread.phase]]\n\
             mapping = 'm'\nworkload = 'sequential'\naccesses = 4096\n[[thread]]\n\
             repeat = 4000\n[[thread.phase]]\nmapping = 'other'\nmprotect = 'exec'\n\
             [[thread.phase]]\nmapping = 'other'\nmprotect = 'as-mapped'\n"
        );
        run(&of_file(&text))
    };
    let (baseline, retry) = (counters(""), counters("with = 'vma-retry'"));
    let read = |run: &Run| waited_ns(run, Cause::MmapRead);
    assert!(read(&baseline) > 0 && read(&retry) == 0, "{} {}", read(&baseline), read(&retry));
    let tries = |run: &Run| run.counters.retry_arrival;
    assert!(tries(&baseline) > Some(100) && tries(&retry) > Some(100));
}

/// Processes share the page cache, and have their own page tables.
#[test]
fn prefork_processes_share_pages_and_not_entries() {
    let touch = "[[thread.phase]]\nmapping = 'm'\nworkload = 'sequential'\naccesses = 4096\n";
    let worker =
        |number: u64, meets: &str| format!("[[thread]]\nprocess = 'p{number}'\n{meets}{touch}");
    let alone = run(&of_file(&format!("[[thread]]\n{touch}")));
    // One after the other: the first reads the pages for the rest.
    let after = |number: u64| match number {
        1 => format!("[[thread]]\nprocess = 'p1'\n{touch}"),
        _ => {
            format!("{}after = [{{ thread = '{}', phase = 1 }}]\n", worker(number, ""), number - 1)
        }
    };
    let in_turn = run(&of_file(&(1..=4).map(after).collect::<String>()));
    let faults = |run: &Run, thread: usize| {
        let counters = &run.threads[thread].counters;
        (counters.major_faults.unwrap(), counters.minor_faults.unwrap())
    };
    assert_eq!(faults(&in_turn, 0), faults(&alone, 0));
    // 64 KiB of entries for each fault.
    assert_eq!([1, 2, 3].map(|thread| faults(&in_turn, thread)), [(0, 256); 3]);
    let at_once: String =
        (1..=4).map(|number| worker(number, "[[thread.phase]]\nbarrier = 'all'\n")).collect();
    let at_once = run(&of_file(&at_once));
    for run in [&in_turn, &at_once] {
        assert_eq!(run.counters.data_pages_read, Some(4096));
        let all = (0..4).map(|thread| faults(run, thread)).map(|(major, minor)| major + minor);
        // And a few if fault-around skips pages that have not arrived.
        let all: u64 = all.sum();
        assert!((4 * 256..4 * 256 + 8).contains(&all), "{all}");
        let waited_ns: u64 = LOCKS.iter().map(|lock| waited_ns(run, *lock)).sum();
        assert_eq!(waited_ns, 0, "they share no lock");
    }
}

/// After a fork the first write to a copied page is a fault, which finds that the child has exited.
#[test]
fn a_fork_takes_the_right_to_write_to_copies() {
    let text = |between: &str| {
        format!(
            "[[file]]\nname = 'f'\nsize = '1m'\n[[open]]\nname = 'f'\nfile = 'f'\n\
             [[mapping]]\nname = 'm'\nopen = 'f'\nprivate = true\n[[thread]]\n\
             [[thread.phase]]\nmapping = 'm'\nwrite = true\nworkload = 'sequential'\n\
             accesses = 100\n{between}[[thread.phase]]\nmapping = 'm'\nwrite = true\n\
             workload = 'sequential'\naccesses = 150\n[[thread.phase]]\nmapping = 'm'\n\
             write = true\nworkload = 'sequential'\naccesses = 150\n"
        )
    };
    let minors = |run: &Run| {
        let last = run.phases.len() - 2;
        [last, last + 1].map(|phase| run.phases[phase].counters.minor_faults.unwrap())
    };
    let (plain, forked) = (run(&text("")), run(&text("[[thread.phase]]\nfork = true\n")));
    let [first, second] = minors(&plain);
    assert_eq!(minors(&forked), [first + 100, second]);
}

#[test]
fn threads_repeat_meet_and_sleep() {
    let text = "[[thread]]\nrepeat = 3\n[[thread.phase]]\nsleep_ns = 1000000\n\
        [[thread.phase]]\nbarrier = 'all'\n[[thread]]\nrepeat = 3\n[[thread.phase]]\n\
        barrier = 'all'\n[[thread.phase]]\nmap = 'm'\n[[thread.phase]]\nmapping = 'm'\n\
        workload = 'sequential'\naccesses = 100\n[[thread.phase]]\nunmap = 'm'\n[[thread]]\n\
        for = '5ms'\n[[thread.phase]]\nsleep_ns = 900000\n";
    let run = run(&of_file(text));
    let counters: Vec<_> = run.threads.iter().map(|thread| thread.counters).collect();
    let rounds: Vec<_> = counters.iter().map(|counters| counters.rounds.unwrap()).collect();
    assert_eq!(rounds, [3, 3, 5]);
    assert_eq!(run.counters.rounds, Some(3), "of the thread that accesses pages");
    assert_eq!(counters[1].accesses, Some(300));
    // Entries are freed in each round: 100 pages are 7 faults again, and one more in the first,
    // when not all pages have arrived.
    assert_eq!(counters[1].minor_faults.unwrap() + counters[1].major_faults.unwrap(), 22);
    let slept = run.threads[0].elapsed_ns.unwrap();
    assert!((3_000_000..3_100_000).contains(&slept), "{slept}");
    assert!(run.threads[1].elapsed_ns.unwrap() >= slept);
    // Its time ends while it sleeps for the sixth time.
    assert_eq!(run.threads[2].elapsed_ns, Some(5_000_000));
}

/// A call that changes nothing takes `mmap_lock`, but no VMA lock; one that does change something
/// makes faults fall back to `mmap_lock`.
#[test]
fn a_call_that_changes_nothing_refuses_no_fault() {
    let counters = |protections: [&str; 2]| {
        let phase = |protection: &str| {
            format!("[[thread.phase]]\nmapping = 'm'\nmprotect = '{protection}'\n")
        };
        let writer = protections.map(phase).concat();
        run(&of_file(&format!(
            "kernel = '6.12'\n[[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'random'\n\
             accesses = 3000\n[[thread]]\nrepeat = 5000\n{writer}"
        )))
    };
    let (changes, repeats) = (counters(["exec", "as-mapped"]), counters(["exec", "exec"]));
    let refused = |run: &Run| run.counters.vma_lock_refused.unwrap();
    assert!(refused(&changes) > 20, "{}", refused(&changes));
    // The first of them does change something.
    assert!(refused(&repeats) <= 1, "{}", refused(&repeats));
    assert!(waited_ns(&repeats, Cause::MmapRead) > 0, "it takes mmap_lock all the same");
}

/// A writer spins while another writer runs on another CPU, which is not a wait. On one CPU, and if
/// the other one sleeps, it sleeps too.
#[test]
fn writers_spin_for_writers_that_run() {
    let counters = |cpus: u32| {
        let writer = "[[thread]]\nrepeat = 200\n[[thread.phase]]\nfork = true\n";
        run(&of_file(&format!("kernel = '6.12'\ncpus = {cpus}\n{writer}{writer}")))
    };
    let waits = |run: &Run| run.counters.mmap_lock_waits.unwrap();
    let (one, two) = (counters(1), counters(2));
    assert_eq!(waits(&two), 0, "{:?}", two.waits);
    // A call keeps its CPU: the next thread there finds no writer at work.
    assert_eq!(waits(&one), 0, "{:?}", one.waits);
    let spun_ns = |run: &Run| {
        let running = run.waits.iter().find(|wait| wait.cause == Cause::Running.name());
        running.map_or(0, |wait| wait.sum_ns)
    };
    assert!(spun_ns(&two) > spun_ns(&one), "{} {}", spun_ns(&two), spun_ns(&one));
}

/// Advice takes time to free entries, under `mmap_lock` up to 6.12 and under the VMA lock since
/// 6.18.
#[test]
fn a_writer_waits_for_entries_that_advice_takes_away() {
    let counters = |kernel: &str| {
        run(&of_file(&format!(
            "kernel = '{kernel}'\ncpus = 2\n[[thread]]\nrepeat = 20\n[[thread.phase]]\n\
             mapping = 'm'\nworkload = 'sequential'\naccesses = 4096\n[[thread.phase]]\n\
             mapping = 'm'\nmadvise = 'dontneed'\n[[thread]]\nrepeat = 20000\n\
             [[thread.phase]]\nmapping = 'other'\nmprotect = 'exec'\n[[thread.phase]]\n\
             mapping = 'other'\nmprotect = 'as-mapped'\n"
        )))
    };
    let (old, new) = (counters("6.12"), counters("6.18"));
    let advice_ns = |run: &Run| run.phases[1].elapsed_ns.unwrap();
    // 4096 entries of 12 ns.
    assert!(advice_ns(&old) > 20 * 49_000 && advice_ns(&new) > 20 * 49_000);
    assert!(waited_ns(&old, Cause::MmapWrite) > 20 * 20_000, "{:?}", old.waits);
    assert_eq!(waited_ns(&new, Cause::MmapWrite), 0, "{:?}", new.waits);
}

/// An entry costs `mprotect` what the profile states, or as much as `munmap` if it states nothing.
#[test]
fn changing_an_entry_costs_what_the_profile_says() {
    let text = of_file(
        "[[thread]]\n[[thread.phase]]\nmapping = 'm'\nworkload = 'sequential'\naccesses = 4096\n\
         [[thread.phase]]\nmapping = 'm'\nmprotect = 'exec'\n",
    );
    let protect_ns = |own: Option<u64>| {
        let mut profile = Profile::DEFAULT;
        profile.cost.protect_page_ns = own;
        let run = trace(&valid(&text), &profile, &mut ()).unwrap();
        run.phases[1].elapsed_ns.unwrap() - profile.cost.call_ns
    };
    assert_eq!(protect_ns(None), 4096 * Profile::DEFAULT.cost.entry_ns);
    assert_eq!(protect_ns(Some(3)), 4096 * 3);
}

/// A fork locks one VMA after the other. With vma-hold it waits for the data of a fault in each.
#[test]
fn a_fork_waits_for_the_faults_of_one_vma_after_the_other() {
    let forks = |with: &str| {
        let run = run(&format!(
            "kernel = '6.12'\nwith = '{with}'\n[[file]]\nname = 'f'\nsize = '4m'\ncount = 8\n\
             [[open]]\nname = 'f'\nfile = 'f'\n[[mapping]]\nname = 'm'\nopen = 'f'\nadvice = \
             'random'\n[[thread]]\ncount = 8\n[[thread.phase]]\nmapping = 'm'\nworkload = \
             'sequential'\naccesses = 1024\n[[thread]]\nrepeat = 100\n[[thread.phase]]\nfork = \
             true\n[[thread.phase]]\nsleep_ns = 100000\n"
        ));
        let of_faults = run.waits.iter().find(|wait| wait.cause == Cause::VmaFaults.name());
        let [forks] = run.calls.as_slice() else { panic!("no other call: {:?}", run.calls) };
        assert_eq!(forks.count, 100);
        (of_faults.map_or(0, |wait| wait.count), forks.max_ns)
    };
    let ((_, dropped_ns), (waits, held_ns)) = (forks("baseline"), forks("vma-hold"));
    assert!(waits > 100, "{waits}");
    assert!(held_ns > dropped_ns, "{dropped_ns} {held_ns}");
}

/// The first write to a copy after a fork is a fault, which a writer in another thread delays.
#[test]
fn writes_behind_a_fork_take_the_lock_of_their_vma() {
    let run = run(
        "kernel = '6.12'\n[[file]]\nname = 'f'\nsize = '4m'\n[[open]]\nname = 'f'\nfile = 'f'\n\
         [[mapping]]\nname = 'm'\nopen = 'f'\nprivate = true\n\
         [[thread]]\nrepeat = 20\n[[thread.phase]]\nmapping = 'm'\nworkload = 'sequential'\n\
         accesses = 1024\nwrite = true\n[[thread]]\nrepeat = 200\n[[thread.phase]]\nfork = true\n",
    );
    let counters = run.counters;
    // Most faults are such writes, as the pages are copied in the first round.
    assert!(counters.minor_faults.unwrap() > 5000, "{counters:?}");
    assert!(counters.vma_lock_refused.unwrap() > 20, "{counters:?}");
    assert!(waited_ns(&run, Cause::VmaFaults) > 0, "forks wait for faults: {:?}", run.waits);
    let [forks] = run.calls.as_slice() else { panic!("no other call: {:?}", run.calls) };
    assert_eq!((forks.cause.as_str(), forks.count), ("fork", 200));
    assert!(forks.sum_ns >= waited_ns(&run, Cause::VmaFaults), "it is part of them: {forks:?}");
}
