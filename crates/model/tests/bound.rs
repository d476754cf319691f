//! With vma-bound no fault reads beyond its VMA, in random jobs.

use crate::support::{Accesses, random_spec};
use filemap_core::address::mapping::FileMapping;
use filemap_core::address::vma::Vma;
use filemap_core::decision::{Cause, Decision, Log};
use filemap_core::series::Switch;
use filemap_core::units::{PageCount, PageIndex, Vpn};
use filemap_job::{Job, JobFlags};
use filemap_model::{Profile, mappings, trace};

const JOBS: u64 = 20_000;

#[test]
fn no_fault_reads_beyond_its_vma_with_the_bound() {
    let (mut windows, mut programs) = (0, 0);
    for seed in 1..=JOBS {
        let spec = with_bound(random_spec(seed, Accesses::Faults), true);
        let Some(job) = valid(spec) else { continue };
        let (watch, after) = run(&job);
        windows += watch.windows;
        programs += u32::from(!job.mappings[0].segments.is_empty());
        if let Some(beyond) = &watch.beyond {
            panic!("seed {seed}: {beyond}\n{}", job.spec.to_toml());
        }
        assert_eq!(after, 0, "seed {seed}: pages behind\n{}", job.spec.to_toml());
    }
    println!("{JOBS} jobs, {programs} of segments, {windows} windows, none beyond its VMA");
    assert!(programs > 1000, "{programs} jobs map segments");
    assert!(windows > 100_000, "{windows} windows test little");
}

#[test]
fn without_the_bound_such_jobs_are_found_at_once() {
    let first = (1..=JOBS).find(|&seed| {
        let spec = with_bound(random_spec(seed, Accesses::Faults), false);
        valid(spec).is_some_and(|job| run(&job).0.beyond.is_some())
    });
    let first = first.expect("some job reads beyond its VMA");
    let jobs = (1..=1000u64).filter_map(|seed| {
        valid(with_bound(random_spec(seed, Accesses::Faults), false)).map(|job| run(&job).0)
    });
    let (beyond, all) = jobs
        .fold((0, 0), |(beyond, all), watch| (beyond + u32::from(watch.beyond.is_some()), all + 1));
    println!("job {first} is the first; {beyond} of the first {all} read beyond a VMA");
    assert!(first <= 10, "job {first} was the first to read beyond its VMA");
    assert!(beyond * 3 > all, "{beyond} of {all}");
}

fn with_bound(mut spec: JobFlags, bound: bool) -> JobFlags {
    let names = spec.with.as_deref().unwrap_or("baseline").split('+');
    let mut names: Vec<_> = names.filter(|&name| name != Switch::VmaBound.name()).collect();
    names.extend(bound.then(|| Switch::VmaBound.name()));
    spec.with = Some(if names.is_empty() { "baseline".into() } else { names.join("+") });
    spec
}

fn valid(spec: JobFlags) -> Option<Job> {
    spec.validate(None).ok()
}

/// The requests of a run, and the number of pages it left cached after the last mapped one.
fn run(job: &Job) -> (Watch, u64) {
    let start = Vpn(job.mappings[0].mapping.shift.0);
    let mappings = mappings(&job.mappings[0], start, &job.rules);
    let mut watch = Watch { mappings, vma: None, cause: None, windows: 0, beyond: None };
    let Ok(run) = trace(job, &Profile::DEFAULT, &mut watch) else {
        return (watch, 0);
    };
    (watch, run.cached.after.unwrap())
}

/// Checks the pages that faults add to the cache against their VMAs.
struct Watch {
    mappings: Vec<FileMapping>,
    /// The VMA of the current fault; for segments any that it can be: see `vmas`.
    vma: Option<PageIndex>,
    /// The cause of its window.
    cause: Option<Cause>,
    windows: u64,
    /// The first addition beyond a VMA.
    beyond: Option<String>,
}

impl Watch {
    /// The VMAs that map `index`: several if segments share a page.
    fn vmas(&self, index: PageIndex) -> Vec<Vma> {
        let maps =
            |mapping: &&FileMapping| mapping.whole.pgoff <= index && index < mapping.whole.end();
        self.mappings.iter().filter(maps).map(|mapping| mapping.vma(index)).collect()
    }

    fn check(&mut self, start: PageIndex, end: PageIndex) {
        let Some(index) = self.vma else { return };
        let around = self.cause == Some(Cause::ReadAround);
        let fits = |vma: &Vma| end <= vma.end() && !(around && start < vma.pgoff);
        let vmas = self.vmas(index);
        if !vmas.iter().any(fits) {
            let cause = self.cause;
            self.beyond.get_or_insert_with(|| format!("{start}..{end} by {cause:?} in {vmas:?}"));
        }
    }
}

impl Log for Watch {
    fn record(&mut self, decision: Decision) {
        match decision {
            Decision::Lookup { index, .. } => {
                self.vma = Some(index);
                self.cause = None;
            }
            Decision::Readahead { cause, .. } => {
                self.cause = Some(cause);
                self.windows += 1;
            }
            Decision::Added { start, order, folios, .. } => {
                self.check(start, start + PageCount(folios << order.0));
            }
            _ => {}
        }
    }
}
