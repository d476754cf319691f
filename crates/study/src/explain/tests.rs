//! On random jobs, the sums by cause are the bytes read, and every change of the counter has a
//! reason.

use filemap_core::decision::{Decision, Log};
use filemap_job::random::{Rng, elf};
use filemap_job::{Job, JobSpec, PhaseSpec, SizeText};
use filemap_model::{Profile, Timing, trace, trace_on};

use super::counter::Sight;
use super::explainer::Explainer;
use super::explanation::Explanation;
use super::origin::Origin;
use super::traced::Traced;

const JOBS: u64 = 300;

fn random_spec(rng: &mut Rng) -> JobSpec {
    let size = |pages: u64| SizeText((pages * 4096).to_string());
    let pages = 200 + rng.below(6000);
    let offset = rng.below(pages / 2);
    let length = 64 + rng.below(pages - offset - 64);
    let phases = 1 + rng.below(3);
    JobSpec {
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
        ..JobSpec::default()
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
    let mut explainer = Explainer::new(job, Sight::Every);
    // What does not fit into memory is no job to explain.
    let run = trace(job, &Profile::DEFAULT, &mut explainer).ok()?;
    let pages = run.counters.data_pages_read.expect("the model counts them");
    Some((explainer.finish(), pages))
}

#[test]
fn sums_are_the_bytes_read() {
    let mut rng = Rng(88172645463325252);
    let (mut done, mut evicting) = (0, 0);
    for _ in 0..JOBS {
        let spec = random_spec(&mut rng);
        let Ok(job) = spec.validate(None) else { continue };
        let Some((found, pages)) = explained(&job) else { continue };
        let about = job.to_toml();
        done += 1;
        evicting += u64::from(found.evicted > 0);
        assert_eq!(found.pages_read(), pages, "{about}");
        let brought: u64 = found.brought.iter().map(|(_, brought)| brought.pages).sum();
        assert_eq!(brought, pages, "{about}");
        let used: u64 = found.brought.iter().map(|(_, brought)| brought.used).sum();
        let amount = |origin| found.amounts.get(origin).pages;
        assert_eq!(used, amount(Origin::Used) + amount(Origin::Refetched), "{about}");
        let misses = found.misses.as_ref().expect("a job of one file has them");
        let moves = misses.moves;
        assert_eq!(moves.unexplained, 0, "{about}");
        let taken = moves.taken_by_retries + moves.taken_by_arounds + moves.hits_taking;
        let left = moves.misses - moves.misses_at_cap - taken;
        assert_eq!(left, u64::from(misses.last), "{about}");
        // Each page of the map came in, and no more were used than the program accessed.
        let map = found.map.as_ref().expect("it has a map");
        let came: u64 = map.cells.iter().map(|cell| cell.came).sum();
        let again: u64 = found.amounts.iter().map(|(_, amount)| amount.again).sum();
        assert_eq!(came + again, pages, "{about}");
    }
    assert!(done > JOBS * 2 / 3 && evicting > JOBS / 10, "{done} jobs, {evicting} evict");
}

#[test]
fn pages_outside_the_segments_are_told_from_those_inside() {
    let mut rng = Rng(17);
    let (mut done, mut between) = (0, 0);
    for _ in 0..JOBS {
        let pages = 100 + rng.below(5000);
        let spec = JobSpec {
            file: Some("program".to_string()),
            elf: Some(elf(&mut rng, pages, 4096)),
            workload: Some("elf".to_string()),
            accesses: Some(1 + rng.below(2000)),
            read_ahead_kb: Some(rng.pick(&[16, 128, 1024])),
            with: Some(rng.pick(&["baseline", "mmap-miss", "vma-bound+exec-bypass"]).to_string()),
            ..JobSpec::default()
        };
        let Ok(job) = spec.validate(None) else { continue };
        let mut explainer = Explainer::new(&job, Sight::Every);
        let cached = trace(&job, &Profile::DEFAULT, &mut explainer).expect("it fits").cached;
        let found = explainer.finish();
        let about = format!("{:?}", job.mappings[0].segments);
        let amount = |origin| found.amounts.get(origin).pages;
        assert_eq!(Some(amount(Origin::BetweenSegments)), cached.between, "{about}");
        let outside = cached.before.zip(cached.after).map(|(before, after)| before + after);
        assert_eq!(Some(amount(Origin::BeyondMapping)), outside, "{about}");
        let outside = amount(Origin::BetweenSegments) + amount(Origin::BeyondMapping);
        assert_eq!(Some(found.pages_read() - outside), cached.inside, "{about}");
        let unexplained = found.misses.as_ref().map(|misses| misses.moves.unexplained);
        assert_eq!((found.absent_accesses, unexplained), (0, Some(0)), "{about}");
        let mapped: u64 =
            found.map.as_ref().expect("it has a map").cells.iter().map(|cell| cell.mapped).sum();
        assert!(cached.inside <= Some(mapped), "{about}");
        done += 1;
        between += u64::from(amount(Origin::BetweenSegments) > 0);
    }
    assert!(done > JOBS * 2 / 3 && between > JOBS / 20, "{done} jobs, {between} with gaps");
}

/// What the model tells of accesses is no more than what its decisions show.
#[test]
fn a_log_alone_says_the_same() {
    let mut rng = Rng(2463534242);
    let mut done = 0;
    for _ in 0..JOBS {
        let mut spec = random_spec(&mut rng);
        // Which of two reads of a page it was that missed shows in no log.
        spec.phase.retain(|phase| phase.bs.is_none());
        let Ok(job) = spec.validate(None) else { continue };
        let mut traced = Traced::new(&job, Sight::Every);
        let mut log: Vec<Decision> = Vec::new();
        let Some((found, _)) = explained(&job) else { continue };
        trace(&job, &Profile::DEFAULT, &mut log).expect("it fits");
        log.into_iter().for_each(|decision| traced.record(decision));
        assert!(traced.finish() == found, "{}", job.to_toml());
        done += 1;
    }
    assert!(done > JOBS / 3, "{done} jobs");
}

#[test]
fn accesses_are_of_pages_that_are_in() {
    let mut rng = Rng(3453997556048239312);
    for _ in 0..JOBS {
        let mut spec = random_spec(&mut rng);
        // A read may lose pages of its block before it ends.
        spec.phase.retain(|phase| phase.bs.is_none());
        let Ok(job) = spec.validate(None) else { continue };
        let Some((found, _)) = explained(&job) else { continue };
        assert_eq!(found.absent_accesses, 0, "{}", job.to_toml());
    }
}

#[test]
fn a_file_larger_than_memory_is_refetched() {
    let spec = JobSpec {
        workload: Some("random".to_string()),
        file_size: Some(SizeText("64m".to_string())),
        cache_limit: Some(SizeText("24m".to_string())),
        accesses: Some(2000),
        ..JobSpec::default()
    };
    let job = spec.validate(None).expect("a job");
    let mut explainer = Explainer::new(&job, Sight::Every);
    let cache = filemap_model::extents::ExtentCache::new(job.machine.cache_limit);
    trace_on(&job, &Profile::DEFAULT, Timing::Settled, cache, &mut explainer).expect("it fits");
    let found = explainer.finish();
    assert!(found.amounts.get(Origin::Refetched).pages > 0);
    assert!(found.map.expect("it has a map").cells.iter().any(|cell| cell.left > 0));
}
