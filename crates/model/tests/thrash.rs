//! Threads that wait: what holds after every event, and how jobs end.

mod support;

use filemap_core::decision::Decision;
use filemap_core::rules::Rules;
use filemap_core::series::{Series, Switch};
use filemap_core::units::PageCount;
use filemap_model::Digest;
use filemap_model::thrash::words::WordCache;
use filemap_model::thrash::{Cause, Ending, Error, Outcome, Thrash, Until, run, run_on};

use support::thrash::{plain_job, random_job};

fn checked(job: &Thrash) -> Outcome {
    let cache = WordCache::new(job.threads, job.file_pages, job.capacity());
    run_on(job, cache, &mut (), true).unwrap_or_else(|error| panic!("{error}: {job:?}"))
}

#[test]
fn invariants_hold_after_every_event_of_random_jobs() {
    for seed in 1..=1000 {
        let job = random_job(seed);
        let outcome = checked(&job);
        let counts = outcome.counts;
        assert!(counts.retry_misses <= counts.major_faults, "{job:?}");
        assert!(counts.faults_dropped <= counts.lock_drops, "{job:?}");
        assert!(counts.retries <= counts.lock_drops, "{job:?}");
        assert!(counts.evicted_pages <= counts.pages_read, "{job:?}");
    }
}

/// Every moment of every thread that reads went into something, of which the course has as much as
/// the spans.
#[test]
fn the_time_of_the_threads_is_told_to_the_nanosecond() {
    for seed in 1..=200 {
        let of_seed = random_job(seed);
        let until = Until::Elapsed(1 + seed * 77_777);
        let job = Thrash { until, warm_up_ns: seed % 3 * 5_000, ..of_seed };
        if matches!(until, Until::Elapsed(ns) if ns <= job.warm_up_ns) {
            continue;
        }
        let outcome = run(&job, &mut ()).unwrap();
        if outcome.ending != Ending::Complete {
            continue;
        }
        let course = outcome.waits.course(outcome.ended_ns).unwrap();
        let count = course.causes[0].spent_ns.len();
        for at in 0..count {
            let spent: u64 = course.causes.iter().map(|cause| cause.spent_ns[at]).sum();
            let length_ns =
                (outcome.elapsed_ns - at as u64 * course.interval_ns).min(course.interval_ns);
            assert_eq!(spent, length_ns * job.threads as u64, "interval {at} of {count}: {job:?}");
        }
        for cause in Cause::ALL {
            let told = course.causes.iter().find(|told| told.cause == cause.name());
            let told: u64 = told.map_or(0, |told| told.spent_ns.iter().sum());
            assert_eq!(told, outcome.waits.of(cause).sum_ns, "{cause:?}");
        }
    }
}

#[test]
fn what_ends_in_its_warm_up_counts_nothing() {
    let job = Thrash { warm_up_ns: 1_000_000_000, ..plain_job() };
    let outcome = checked(&job);
    assert_eq!((outcome.ending, outcome.has_warmed_up), (Ending::Complete, false));
    assert_eq!((outcome.counts.rounds, outcome.counts.pages_read, outcome.elapsed_ns), (0, 0, 0));
    assert_eq!(outcome.waits.course(outcome.ended_ns), None);
    assert!(checked(&plain_job()).has_warmed_up);
}

/// The check puts every step into the queue of events: that it is looked at changes nothing.
#[test]
fn a_job_has_one_result() {
    for seed in 1..=100 {
        let job = random_job(seed);
        let digest = |checks| {
            let mut digest = Digest::default();
            let cache = WordCache::new(job.threads, job.file_pages, job.capacity());
            let outcome = run_on(&job, cache, &mut digest, checks).unwrap();
            (outcome, digest.value())
        };
        assert_eq!(digest(false), digest(true), "{job:?}");
    }
}

#[test]
fn a_round_reads_its_file_by_the_rules_of_readahead() {
    // One thread, 256 pages, 32 a window, 6.12: a miss at 0 and a mark at 24 and then at every
    // 32nd page: each drops the lock.
    let job = Thrash { until: Until::Rounds(1), ..plain_job() };
    let counts = checked(&job).counts;
    assert_eq!((counts.rounds, counts.pages_read, counts.major_faults), (1, 256, 1));
    assert_eq!((counts.lock_drops, counts.faults_dropped, counts.retries), (9, 9, 9));
    // The last mark asks for a window behind the end of the file.
    assert_eq!((counts.retry_misses, counts.windows, counts.evicted_pages), (0, 9, 0));
    // 16 pages a fault; the mark is left out by fault-around, and found by a fault of its own.
    let mut log: Vec<Decision> = Vec::new();
    run(&job, &mut log).unwrap();
    let served = log.iter().filter(|decision| matches!(decision, Decision::Served { .. })).count();
    assert_eq!(served as u64, counts.faults);
    // The second round finds everything.
    let again = checked(&Thrash { until: Until::Rounds(2), ..job }).counts;
    assert_eq!((again.pages_read, again.lock_drops), (256, 9));
}

#[test]
fn a_retry_is_never_at_a_loss_with_the_series_where_memory_is_ample() {
    let series = Series::BASELINE.with(Switch::VmaRetry);
    for threads in [1, 4] {
        for series in [Series::BASELINE, series] {
            let rules = Rules::new(plain_job().rules.kernel, series);
            let job = Thrash { rules, threads, cpus: 2, writers: 2, ..plain_job() };
            let counts = checked(&job).counts;
            assert_eq!(counts.retry_misses, 0);
            assert_eq!(counts.refused, 0, "a writer writes to a VMA of its own");
        }
    }
}

/// A thread whose data has come waits for a CPU behind all others, who evict pages meanwhile.
#[test]
fn what_a_thread_waited_for_is_kept_until_it_runs() {
    let series = Series::BASELINE.with(Switch::VmaRetry);
    let rules = Rules::new(plain_job().rules.kernel, series);
    let job = Thrash { rules, threads: 24, sparse: false, read_ahead: PageCount(8), ..plain_job() };
    let until = Until::Elapsed(1_000_000_000);
    let counts = checked(&Thrash { max: Some(PageCount(600)), until, ..job }).counts;
    assert!(counts.faults_dropped > 1000 && counts.evicted_pages > 1000, "{counts:?}");
    assert_eq!(counts.retry_misses, 0, "{counts:?}");
}

/// Threads that read one VMA meet the writers to it, and those with files of their own do not.
#[test]
fn the_lock_of_one_large_vma_is_that_of_all_its_faults() {
    let job = Thrash { threads: 4, cpus: 3, writers: 2, ..plain_job() };
    let job = Thrash { one_vma: true, until: Until::Elapsed(200_000_000), ..job };
    let one = checked(&job);
    assert!(one.counts.refused > 0 && one.waits.of(Cause::VmaReaders).count == 0, "{one:?}");
    let none = checked(&Thrash { writers: 0, ..job.clone() });
    assert_eq!(none.counts.refused, 0, "nobody writes to it");
    assert!(none.counts.rounds > 4, "files are read again");
    assert_eq!(none.counts.lock_drops, 4 * 9, "all of them are cached");
    let own = checked(&Thrash { one_vma: false, ..job });
    assert_eq!(own.counts.refused, 0);
}

/// The same job beside itself on several threads of this machine, and alone.
#[test]
fn threads_of_the_host_do_not_matter() {
    let digest = |job: &Thrash| {
        let mut digest = Digest::default();
        let outcome = run(job, &mut digest).unwrap();
        (outcome, digest.decisions(), digest.value())
    };
    let jobs: Vec<Thrash> = (1..=24).map(random_job).collect();
    let alone: Vec<_> = jobs.iter().map(digest).collect();
    assert!(alone.iter().any(|(_, decisions, _)| *decisions > 1000));
    for threads in [2, 5] {
        std::thread::scope(|scope| {
            let all = || jobs.iter().map(digest).collect::<Vec<_>>();
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(all)).collect();
            for thread in started {
                assert_eq!(thread.join().unwrap(), alone);
            }
        });
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let job = plain_job;
    let zero = |what| Err(Error::Zero { what });
    let run = |job: Thrash| run(&job, &mut ());
    assert_eq!(run(Thrash { threads: 0, ..job() }), zero("threads"));
    assert_eq!(run(Thrash { cpus: 0, ..job() }), zero("cpus"));
    assert_eq!(run(Thrash { file_pages: PageCount(0), ..job() }), zero("pages of a file"));
    assert_eq!(run(Thrash { until: Until::Elapsed(0), ..job() }), zero("time"));
    assert_eq!(run(Thrash { until: Until::Rounds(0), ..job() }), zero("rounds"));
    let (high, max) = (Some(PageCount(100)), Some(PageCount(99)));
    let error = run(Thrash { high, max, ..job() }).unwrap_err();
    assert_eq!(error, Error::HighAboveMax { high: 100, max: 99 });
    let error = run(Thrash { max: Some(PageCount(31)), ..job() }).unwrap_err();
    assert_eq!(error, Error::BelowWindow { what: "memory.max", limit: 31, window: 32 });
}

#[test]
fn out_of_memory_ends_a_job_with_what_was_known() {
    // Stacks alone take more than the limit.
    let job = Thrash { threads: 20, max: Some(PageCount(60)), ..plain_job() };
    let outcome = checked(&job);
    assert!(matches!(outcome.ending, Ending::OutOfMemory { .. }), "{:?}", outcome.ending);
    assert_eq!(outcome.counts.rounds, 0);
}
