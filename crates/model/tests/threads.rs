//! Several threads: what they share, when they wait, and who has a CPU.

use filemap_core::decision::Decision;
use filemap_job::Run;
use filemap_job::program::{Job, JobSpec};
use filemap_model::extents::ExtentCache;
use filemap_model::{Digest, Error, Profile, Timing, trace, trace_on};

/// A program of a file of 16 MiB, opened as `a` and `again` and mapped as `a` and `again`.
fn program(tables: &str) -> Job {
    let text = format!(
        "{tables}\n[[file]]\nname = 'f'\nsize = '16m'\n[[open]]\nname = 'a'\nfile = 'f'\n\
         [[open]]\nname = 'again'\nfile = 'f'\n[[mapping]]\nname = 'a'\nopen = 'a'\n\
         [[mapping]]\nname = 'again'\nopen = 'again'\n"
    );
    JobSpec::from_toml(&text).unwrap().validate(None).unwrap()
}

fn run(tables: &str) -> Run {
    trace(&program(tables), &Profile::DEFAULT, &mut ()).unwrap()
}

/// A thread of one phase.
fn thread(keys: &str) -> String {
    format!("[[thread]]\n[[thread.phase]]\n{keys}\n")
}

/// Major and minor faults, windows and pages read of each thread.
fn faults(run: &Run) -> Vec<[u64; 4]> {
    let counters = run.threads.iter().map(|thread| thread.counters);
    let known = counters.map(|counters| {
        [
            counters.major_faults,
            counters.minor_faults,
            counters.readahead_calls,
            counters.data_pages_read,
        ]
        .map(Option::unwrap)
    });
    known.collect()
}

#[test]
fn a_page_in_flight_is_waited_for_and_not_read_again() {
    // The second fault occurs while the first waits for its window of 32 pages.
    for (mapping, page) in [("a", 100), ("again", 100), ("again", 101)] {
        let second = format!("mapping = '{mapping}'\npages = [{page}]");
        let run = run(&(thread("mapping = 'a'\npages = [100]") + &thread(&second)));
        let [first, second] = faults(&run)[..] else { panic!("two threads") };
        assert_eq!(first, [1, 0, 1, 32], "{mapping} {page}");
        // It finds the folio, so it is not a major fault, and continues when the window arrives.
        assert_eq!(second, [0, 1, 0, 0], "{mapping} {page}");
        let elapsed = |thread: usize| run.threads[thread].elapsed_ns.unwrap();
        assert!(elapsed(1) > Profile::DEFAULT.device.latency_ns);
        assert!(elapsed(1).abs_diff(elapsed(0)) < 2_000, "{} {}", elapsed(0), elapsed(1));
    }
}

#[test]
fn a_thread_is_woken_by_what_arrives_in_the_turn_of_another() {
    // Advice takes time in one piece, and meanwhile the page arrives.
    let advises = "[[thread]]\n".to_string()
        + &"[[thread.phase]]\nopen = 'again'\nfadvise = 'normal'\n".repeat(1000);
    let waits = thread("mapping = 'a'\npages = [100]");
    let (alone, both) = (run(&waits), run(&(waits.clone() + &advises)));
    assert_eq!(both.threads[0].elapsed_ns, alone.threads[0].elapsed_ns);
}

#[test]
fn a_page_that_two_threads_write_is_copied_once() {
    let writes = thread("mapping = 'p'\nworkload = 'sequential'\naccesses = 2048\nwrite = true");
    // The file and its copies take 16 MiB.
    let tables = "memory_max = '14m'\n[[mapping]]\nname = 'p'\nopen = 'a'\nlen = '8m'\n\
                  private = true\n";
    let run = run(&(tables.replace("\\\n", "") + &writes + &writes));
    assert!(run.counters.evicted_pages > Some(0), "{:?}", run.counters);
}

#[test]
fn what_another_thread_has_mapped_is_not_mapped_around_again() {
    let mut log: Vec<Decision> = Vec::new();
    let touches = thread("mapping = 'a'\npages = [100]");
    trace(&program(&(touches.clone() + &touches)), &Profile::DEFAULT, &mut log).unwrap();
    let around = log.iter().filter(|decision| matches!(decision, Decision::MapPages { .. }));
    assert!(around.count() <= 3, "{log:?}");
    let served = log.iter().filter(|decision| matches!(decision, Decision::Served { .. }));
    assert_eq!(served.count(), 2);
}

#[test]
fn a_thread_that_thinks_keeps_its_cpu_for_a_slice_only() {
    let thinks = thread("mapping = 'a'\npages = [0, 0, 0]\nthink_ns = 50000000");
    let run = run(&format!("cpus = 1\n{thinks}{}", thread("mapping = 'again'\npages = [2000]")));
    let ended_ns = run.threads[1].elapsed_ns.unwrap();
    assert!((4_000_000..13_000_000).contains(&ended_ns), "{ended_ns}");
}

#[test]
fn a_read_waits_for_what_a_fault_reads() {
    let read = "open = 'a'\nworkload = 'read-sequential'\noffset = '400k'\nbs = '4k'\naccesses = 1";
    let run = run(&format!("cpus = 1\n{}{}", thread("mapping = 'a'\npages = [100]"), thread(read)));
    assert_eq!(faults(&run)[1], [0, 0, 0, 0]);
    assert!(run.threads[1].elapsed_ns.unwrap() > Profile::DEFAULT.device.latency_ns);
}

#[test]
fn opens_of_their_own_are_streams_of_their_own() {
    let scan = |mapping: &str, pages: &[u64]| {
        thread(&format!("mapping = '{mapping}'\npages = {pages:?}\nthink_ns = 100000"))
    };
    let (low, high): (Vec<u64>, Vec<u64>) = ((0..1024).collect(), (2048..3072).collect());
    // One thread misses once and then only hits marks; two of one open break its stream.
    let own = run(&(scan("a", &low) + &scan("again", &high)));
    let shared = run(&(scan("a", &low) + &scan("a", &high)));
    let majors = |run: &Run| run.counters.major_faults.unwrap();
    assert_eq!(majors(&own), 2, "{:?}", faults(&own));
    assert!(majors(&shared) > 10, "{:?}", faults(&shared));
}

#[test]
fn two_cpus_take_half_the_time_of_one() {
    // Two threads that compute for 20 ms each.
    let busy = |page: u64| {
        thread(&format!("mapping = 'a'\npages = [{page}, {page}]\nthink_ns = 10000000"))
    };
    let both = busy(100) + &busy(101);
    let elapsed = |cpus: &str| run(&format!("{cpus}\n{both}")).elapsed_ns.unwrap();
    let (one, two, each) = (elapsed("cpus = 1"), elapsed("cpus = 2"), elapsed(""));
    assert_eq!(two, each, "as many as threads where it is not said");
    assert!((20_000_000..20_200_000).contains(&two), "{two}");
    assert!((40_000_000..40_200_000).contains(&one), "{one}");
}

#[test]
fn one_cpu_alternates_by_time_slice() {
    let busy = |page: u64| {
        let pages = vec![page; 30];
        thread(&format!("mapping = 'a'\npages = {pages:?}\nthink_ns = 1000000"))
    };
    let run = run(&format!("cpus = 1\n{}{}", busy(100), busy(101)));
    // 30 ms each: one finishes at most a slice of 4 ms before the other, not 30.
    let [first, second] = [0, 1].map(|thread| run.threads[thread].elapsed_ns.unwrap());
    assert!((60_000_000..60_200_000).contains(&first.max(second)), "{first} {second}");
    assert!((500_000..5_000_000).contains(&first.abs_diff(second)), "{first} {second}");
}

#[test]
fn a_thread_that_waits_gives_up_its_cpu() {
    // The first thread waits for 64 windows one by one, while the second computes.
    let pages: Vec<u64> = (0..64).map(|number| number * 60).collect();
    let waits = thread(&format!("mapping = 'a'\npages = {pages:?}"));
    let busy = thread("mapping = 'again'\npages = [0]\nthink_ns = 3000000");
    let elapsed_ns = |threads: &str| run(&format!("cpus = 1\n{threads}")).elapsed_ns.unwrap();
    let alone = elapsed_ns(&waits);
    assert!(alone > 64 * Profile::DEFAULT.device.latency_ns);
    // The other one costs at most its own time once: waiting hides it in part.
    let both = elapsed_ns(&(waits + &busy));
    assert!(both < alone + elapsed_ns(&busy), "{alone} {both}");
}

#[test]
fn a_thread_that_slept_does_not_wait_for_the_end_of_a_slice() {
    // Both compute. The second has slept for its first page, and had less of the CPU.
    let pages = vec![100; 30];
    let busy = thread(&format!("mapping = 'a'\npages = {pages:?}\nthink_ns = 1000000"));
    let pages: Vec<u64> = (0..8).map(|number| number * 60).collect();
    let waits = thread(&format!("mapping = 'again'\npages = {pages:?}\nthink_ns = 100000"));
    let run = run(&format!("cpus = 1\n{busy}{waits}"));
    // It sleeps 8 times: waiting for a tick each time would make 32 ms.
    let waited_ns = run.threads[1].elapsed_ns.unwrap();
    assert!(waited_ns < 24_000_000, "{waited_ns}");
}

#[test]
fn decisions_of_all_threads_are_in_one_log() {
    let tables =
        thread("mapping = 'a'\npages = [0, 2000]") + &thread("mapping = 'a'\npages = [1000]");
    let mut log = Vec::new();
    trace(&program(&tables), &Profile::DEFAULT, &mut log).unwrap();
    let looked_up = log.iter().filter_map(|decision| match decision {
        Decision::Lookup { index, hit: false, .. } => Some(index.0),
        _ => None,
    });
    assert_eq!(looked_up.collect::<Vec<_>>(), [0, 1000, 2000]);
}

#[test]
fn the_same_program_decides_the_same() {
    let tables: String = (0..8)
        .map(|seed| {
            thread(&format!(
                "mapping = 'a'\nworkload = 'random'\naccesses = 500\nseed = {}",
                seed + 1
            ))
        })
        .collect();
    let digest = |tables: &str| {
        let mut digest = Digest::default();
        trace(&program(tables), &Profile::DEFAULT, &mut digest).unwrap();
        digest
    };
    let tight = format!("cache_limit = '4m'\n{tables}");
    assert_eq!(digest(&tight), digest(&tight));
    assert_ne!(digest(&tight), digest(&format!("cpus = 1\n{tight}")));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(digest(&tight), digest(&tight)));
        }
    });
}

#[test]
fn threads_have_no_order_where_everything_settles() {
    let tables = thread("mapping = 'a'\npages = [1]").repeat(2);
    let cache = ExtentCache::new(None);
    let found = trace_on(&program(&tables), &Profile::DEFAULT, Timing::Settled, cache, &mut ());
    assert_eq!(found.unwrap_err(), Error::SettledThreads { threads: 2 });
}
