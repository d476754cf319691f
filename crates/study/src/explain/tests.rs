//! Causes of random jobs add up to the bytes read, and changes of the counter to its value.

use filemap_core::decision::{Decision, Log, MissChange};
use filemap_core::readahead::miss;
use filemap_job::random::{Rng, elf};
use filemap_job::{Job, JobFlags, JobSpec, PhaseSpec, SizeText};
use filemap_model::{Profile, Timing, trace, trace_timed};

use super::answer::explain_answer;
use super::counter::CounterVisibility;
use super::explainer::{Explainer, Explanation};
use super::history::RunHistory;
use super::origin::{Origin, PerOrigin, SourceTotal};
use super::trace_explainer::TraceExplainer;

const JOBS: u64 = 300;

fn random_spec(rng: &mut Rng) -> JobFlags {
    let size = |pages: u64| SizeText((pages * 4096).to_string());
    let pages = 200 + rng.below(6000);
    let offset = rng.below(pages / 2);
    let length = 64 + rng.below(pages - offset - 64);
    let phases = 1 + rng.below(3);
    JobFlags {
        kernel: Some(rng.pick(&["6.12", "6.18"]).to_string()),
        with: Some(
            rng.pick(&["baseline", "baseline", "p1", "p2", "mmap-miss", "vma-bound+exec-bypass"])
                .to_string(),
        ),
        seed: Some(1 + rng.below(1 << 40)),
        file_size: Some(size(pages)),
        map_offset: Some(size(offset)),
        map_len: Some(size(length)),
        map_shift: (rng.below(3) == 0).then(|| rng.below(512)),
        advice: Some(
            rng.pick(&["normal", "normal", "random", "sequential", "hugepage"]).to_string(),
        ),
        exec: (rng.below(5) == 0).then_some(true),
        private: (rng.below(4) == 0).then_some(true),
        read_ahead_kb: Some([0, 16, 128, 128, 1024][rng.below(5) as usize]),
        fs: Some(rng.pick(&["ext4", "xfs", "base-pages"]).to_string()),
        cache_limit: (rng.below(2) == 0).then(|| size(1200 + rng.below(1000))),
        phase: (0..phases).map(|_| random_phase(rng)).collect(),
        ..JobFlags::default()
    }
}

fn random_phase(rng: &mut Rng) -> PhaseSpec {
    let workload = rng.pick(&[
        "random",
        "random",
        "stride:37",
        "stride:513",
        "sequential",
        "reverse",
        "interleave:3",
        "read-random",
        "read-sequential",
    ]);
    let read = workload.starts_with("read");
    PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(1 + rng.below(1500)),
        bs: read.then(|| SizeText(rng.pick(&["512b", "4k", "5000", "64k", "300k"]).to_string())),
        ..PhaseSpec::default()
    }
}

fn explained(job: &Job) -> Option<(Explanation, u64)> {
    let mut explainer = Explainer::new(job, CounterVisibility::Every, &[]);
    // Jobs that run out of memory are skipped.
    let run = trace(job, &Profile::DEFAULT, &mut explainer).ok()?;
    let pages = run.counters.data_pages_read.expect("the model counts them");
    Some((explainer.finish(), pages))
}

#[test]
fn causes_add_up_to_the_pages_read() {
    let mut rng = Rng(88172645463325252);
    let (mut done, mut evicting) = (0, 0);
    for _ in 0..JOBS {
        let spec = random_spec(&mut rng);
        let Ok(job) = spec.validate(None) else { continue };
        let Some((found, pages)) = explained(&job) else { continue };
        let about = job.spec.to_toml();
        done += 1;
        evicting += u64::from(found.files[0].evicted > 0);
        assert_eq!(found.pages_read(), pages, "{about}");
        let sources = found.sources();
        let added: u64 = sources.iter().map(|(_, source)| source.pages).sum();
        assert_eq!(added, pages, "{about}");
        let used: u64 = sources.iter().map(|(_, source)| source.used).sum();
        let totals = found.totals();
        let pages_of = |origin| totals.get(origin).pages;
        assert_eq!(used, pages_of(Origin::Used) + pages_of(Origin::Refetched), "{about}");
        if let Some(counter) = found.counters.get(&0) {
            let moves = counter.moves;
            assert_eq!(moves.unexplained, 0, "{about}");
            let left = moves.misses - moves.misses_at_cap - moves.decrements();
            assert_eq!(left, u64::from(counter.last), "{about}");
            assert_eq!(counter.first_above.is_some(), moves.misses_above > 0, "{about}");
            let singles = moves.misses_above + counter.off;
            assert_eq!(sources.get(Origin::Single).calls, singles, "{about}");
        }
        // Every page of the map entered the cache, and used pages do not exceed the pages accessed.
        let map = found.files[0].map.as_ref().expect("it has a map");
        let added: u64 = map.cells.iter().map(|cell| cell.came).sum();
        let again: u64 = totals.iter().map(|(_, total)| total.again).sum();
        assert_eq!(added + again, pages, "{about}");
    }
    assert!(done > JOBS * 2 / 3 && evicting > JOBS / 10, "{done} jobs, {evicting} evict");
}

#[test]
fn counts_pages_between_and_outside_segments() {
    let mut rng = Rng(17);
    let (mut done, mut between) = (0, 0);
    for _ in 0..JOBS {
        let pages = 100 + rng.below(5000);
        let spec = JobFlags {
            file: Some("program".to_string()),
            elf: Some(elf(&mut rng, pages, 4096)),
            workload: Some("elf".to_string()),
            accesses: Some(1 + rng.below(2000)),
            read_ahead_kb: Some(rng.pick(&[16, 128, 1024])),
            with: Some(rng.pick(&["baseline", "mmap-miss", "vma-bound+exec-bypass"]).to_string()),
            ..JobFlags::default()
        };
        let Ok(job) = spec.validate(None) else { continue };
        let mut explainer = Explainer::new(&job, CounterVisibility::Every, &[]);
        let cached = trace(&job, &Profile::DEFAULT, &mut explainer).expect("it fits").cached;
        let found = explainer.finish();
        let about = format!("{:?}", job.mappings[0].segments);
        let totals = found.totals();
        let pages_of = |origin| totals.get(origin).pages;
        assert_eq!(Some(pages_of(Origin::BetweenSegments)), cached.between, "{about}");
        let outside = cached.before.zip(cached.after).map(|(before, after)| before + after);
        assert_eq!(Some(pages_of(Origin::BeyondMapping)), outside, "{about}");
        let outside = pages_of(Origin::BetweenSegments) + pages_of(Origin::BeyondMapping);
        assert_eq!(Some(found.pages_read() - outside), cached.inside, "{about}");
        let unexplained: u64 = found.counters.values().map(|own| own.moves.unexplained).sum();
        assert_eq!((found.absent_accesses, unexplained), (0, 0), "{about}");
        let map = found.files[0].map.as_ref().expect("it has a map");
        let mapped: u64 = map.cells.iter().map(|cell| cell.mapped).sum();
        assert!(cached.inside <= Some(mapped), "{about}");
        done += 1;
        between += u64::from(pages_of(Origin::BetweenSegments) > 0);
    }
    assert!(done > JOBS * 2 / 3 && between > JOBS / 20, "{done} jobs, {between} with gaps");
}

/// A log without access numbers, like a trace, but with the changes of `mmap_miss`.
#[derive(Default)]
struct Recorded(Vec<Result<Decision, MissChange>>);

impl Log for Recorded {
    fn record(&mut self, decision: Decision) {
        self.0.push(Ok(decision));
    }

    fn mmap_miss_changed(&mut self, change: MissChange) {
        self.0.push(Err(change));
    }
}

/// The explanation derived from the log alone.
fn explained_by_log(job: &Job) -> Explanation {
    let mut log = Recorded::default();
    trace(job, &Profile::DEFAULT, &mut log).expect("it fits");
    let mut explainer = TraceExplainer::new(job, CounterVisibility::Every, &[]);
    for entry in log.0 {
        match entry {
            Ok(decision) => explainer.record(decision),
            Err(change) => explainer.mmap_miss_changed(change),
        }
    }
    explainer.finish()
}

/// `found` without waits, which a log does not have.
fn without_waits(found: Explanation) -> Explanation {
    let history = RunHistory { waits: Vec::new(), threads: Vec::new(), ..found.history };
    Explanation { history, ..found }
}

#[test]
fn a_log_alone_is_explained_alike() {
    let mut rng = Rng(2463534242);
    let mut done = 0;
    for _ in 0..JOBS {
        let mut spec = random_spec(&mut rng);
        // A log does not show which of two reads of a page missed.
        spec.phase.retain(|phase| phase.bs.is_none());
        let Ok(job) = spec.validate(None) else { continue };
        let Some((found, _)) = explained(&job) else { continue };
        let by_log = without_waits(explained_by_log(&job));
        assert!(by_log == without_waits(found), "{}", job.spec.to_toml());
        done += 1;
    }
    assert!(done > JOBS / 3, "{done} jobs");
}

/// Two files and three mappings; phases and further tables are appended.
const TABLES: &str = "read_ahead_kb = 128
    [[file]]\nname = 'a'\nsize = '16m'
    [[file]]\nname = 'b'\nsize = '8m'
    [[open]]\nname = 'oa'\nfile = 'a'
    [[open]]\nname = 'ob'\nfile = 'b'
    [[open]]\nname = 'ob2'\nfile = 'b'
    [[mapping]]\nname = 'ma'\nopen = 'oa'
    [[mapping]]\nname = 'mb'\nopen = 'ob'\nadvice = 'sequential'
    [[mapping]]\nname = 'mc'\nopen = 'ob2'\noffset = '1m'\nlen = '2m'\n";

const ONE_THREAD: &str = "[[thread]]
    [[thread.phase]]\nmapping = 'ma'\nworkload = 'random'\naccesses = 700
    [[thread.phase]]\nmapping = 'mb'\nworkload = 'sequential'\naccesses = 300
    [[thread.phase]]\nmapping = 'mc'\nmadvise = 'random'
    [[thread.phase]]\nmapping = 'mc'\nworkload = 'random'\naccesses = 100
    [[thread.phase]]\nmapping = 'ma'\nworkload = 'stride:37'\naccesses = 400\n";

const MORE_THREADS: &str = "[[thread]]\nname = 'reader'\nrepeat = 3
    [[thread.phase]]\nopen = 'ob'\nworkload = 'read-random'\nbs = '16k'\naccesses = 60
    [[thread]]\nname = 'other'\nprocess = 'child'
    [[thread.phase]]\nmapping = 'ma'\nworkload = 'random'\nseed = 9\naccesses = 500\n";

fn program(head: &str, threads: &[&str]) -> Job {
    let text = format!("{head}\n{TABLES}{}", threads.concat());
    JobSpec::from_toml(&text).unwrap().validate(None).unwrap()
}

/// Sums by file, mapping and open file agree with the totals, and so do the counters.
#[test]
fn programs_are_explained_by_file_mapping_and_open_file() {
    for (head, threads) in [
        ("with = 'baseline'", &[ONE_THREAD][..]),
        ("with = 'mmap-miss'", &[ONE_THREAD]),
        ("with = 'mmap-miss'", &[ONE_THREAD, MORE_THREADS]),
        ("with = 'p1'\nram = '12m'", &[ONE_THREAD]),
        ("with = 'mmap-miss'\nram = '12m'", &[ONE_THREAD, MORE_THREADS]),
    ] {
        let job = program(head, threads);
        let mut explainer = Explainer::new(&job, CounterVisibility::Every, &[1, 1]);
        let run = trace(&job, &Profile::DEFAULT, &mut explainer).expect("it fits");
        let found = explainer.finish();
        for (file, counted) in found.files.iter().zip(&run.files) {
            assert_eq!(Some(file.pages_read()), counted.data_pages_read, "{head}");
            assert_eq!(Some(file.evicted), counted.evicted_pages, "{head}");
            let used: u64 = file.sources.iter().map(|(_, source)| source.used).sum();
            let totals = &file.totals;
            let causes = [Origin::Used, Origin::Refetched].map(|origin| totals.get(origin).pages);
            assert_eq!(used, causes.iter().sum::<u64>(), "{head}");
            assert!(used > 0 && file.map.is_some(), "{head}");
        }
        let pages = |sources: &PerOrigin<SourceTotal>| {
            sources.iter().map(|(_, source)| source.pages).sum::<u64>()
        };
        let through: u64 = found.mappings.iter().chain(&found.opens).map(pages).sum();
        assert_eq!(through, found.pages_read(), "{head}");
        assert!(found.mappings.iter().all(|sources| pages(sources) > 0), "{head}");
        let reads: u64 = found.opens.iter().map(pages).sum();
        assert_eq!(reads > 0, threads.len() > 1, "{head}");
        for counter in found.counters.values() {
            let moves = counter.moves;
            assert_eq!(moves.unexplained, 0, "{head}");
            let left = moves.misses - moves.misses_at_cap - moves.decrements();
            assert_eq!(left, u64::from(counter.last), "{head}");
        }
        let highest = found.counters.values().map(|counter| u64::from(counter.max)).max();
        assert_eq!(highest, run.counters.mmap_miss_max, "{head}");
        assert_eq!(found.history.threads.len(), job.threads.len(), "{head}");
        let waited: u64 = found.history.waits.iter().flat_map(|wait| &wait.ns).sum();
        assert!(waited > 0, "{head}");
        let text = explain_answer(&found, &job);
        let stops = text.contains("Readahead of open file oa stopped at access");
        assert_eq!(stops, found.counters[&0].moves.misses_above > 0, "{text}");
    }
}

/// The accesses of a single-threaded program are recovered from its log, file by file.
#[test]
fn a_log_of_a_program_is_explained_alike() {
    for head in ["with = 'baseline'", "with = 'mmap-miss'", "with = 'mmap-miss'\nram = '12m'"] {
        for repeat in ["", "[[thread]]\nrepeat = 2\n"] {
            let steps = match repeat {
                "" => ONE_THREAD.to_string(),
                repeat => ONE_THREAD.replacen("[[thread]]\n", repeat, 1),
            };
            let job = program(head, &[&steps]);
            let mut explainer = Explainer::new(&job, CounterVisibility::Every, &[]);
            trace(&job, &Profile::DEFAULT, &mut explainer).expect("it fits");
            let found = without_waits(explainer.finish());
            assert_eq!(found.absent_accesses, 0, "{head} {repeat}");
            let by_log = without_waits(explained_by_log(&job));
            assert_eq!(by_log.files, found.files, "{head} {repeat}");
            assert!(by_log == found, "{head} {repeat}");
        }
    }
}

/// The text names the threshold of the rules that the job ran with.
#[test]
fn the_answer_names_access_and_threshold() {
    let spec = JobFlags {
        workload: Some("random".to_string()),
        file_size: Some(SizeText("256m".to_string())),
        with: Some("mmap-miss".to_string()),
        ..JobFlags::default()
    };
    let job = spec.validate(None).expect("a job");
    let (mut found, _) = explained(&job).expect("it fits");
    assert_eq!(found.counters[&0].threshold, miss::threshold(&job.rules));
    let text = explain_answer(&found, &job);
    let words = "Readahead stopped at access 106 of 655 (counted from 0), where mmap_miss rose \
                 above 100: 102 misses had added to it, and hits had taken 1.";
    assert!(text.starts_with(words), "{text}");
    let counter = found.counters.get_mut(&0).expect("its counter");
    counter.threshold = 10;
    let text = explain_answer(&found, &job);
    assert!(text.contains("where mmap_miss rose above 10:"), "{text}");
}

#[test]
fn accesses_are_of_pages_that_are_in() {
    let mut rng = Rng(3453997556048239312);
    for _ in 0..JOBS {
        let mut spec = random_spec(&mut rng);
        // Pages of a block may be evicted before the read of the block ends.
        spec.phase.retain(|phase| phase.bs.is_none());
        let Ok(job) = spec.validate(None) else { continue };
        let Some((found, _)) = explained(&job) else { continue };
        assert_eq!(found.absent_accesses, 0, "{}", job.spec.to_toml());
    }
}

#[test]
fn a_file_larger_than_memory_is_refetched() {
    let spec = JobFlags {
        workload: Some("random".to_string()),
        file_size: Some(SizeText("64m".to_string())),
        cache_limit: Some(SizeText("24m".to_string())),
        accesses: Some(2000),
        ..JobFlags::default()
    };
    let job = spec.validate(None).expect("a job");
    let mut explainer = Explainer::new(&job, CounterVisibility::Every, &[]);
    trace_timed(&job, &Profile::DEFAULT, Timing::Settled, &mut explainer).expect("it fits");
    let found = explainer.finish();
    assert!(found.totals().get(Origin::Refetched).pages > 0);
    assert!(
        found.files[0].map.as_ref().expect("it has a map").cells.iter().any(|cell| cell.left > 0)
    );
}
