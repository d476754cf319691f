#![expect(missing_docs, reason = "criterion_group makes a public function")]
//! Speed of the model on the published job of threads that wait:
//! `cargo bench -p filemap-model --bench thrash`. Its elements are events.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use filemap_core::rules::{Arch, Family, Kernel, Rules};
use filemap_core::series::{Series, Switch};
use filemap_core::units::PageCount;
use filemap_model::Profile;
use filemap_model::thrash::costs::Costs;
use filemap_model::thrash::mechanisms::Mechanisms;
use filemap_model::thrash::{Outcome, Thrash, Until, run};

/// The published job as `filemap published` has it, for 8 virtual seconds that are all counted.
fn job(series: Series) -> Thrash {
    Thrash {
        rules: Rules::new(Kernel::V6_18, series),
        arch: Arch::new(Family::X86_64, 4096).expect("x86-64 has pages of 4 KiB"),
        threads: 500,
        cpus: 50,
        file_pages: PageCount(4096),
        sparse: true,
        read_ahead: PageCount(512),
        fault_around: PageCount(16),
        max_folio: None,
        high: Some(PageCount(262_144)),
        max: Some(PageCount(314_573)),
        writers: 0,
        one_vma: false,
        noise_threads: 0,
        until: Until::Elapsed(8_000_000_000),
        warm_up_ns: 0,
        stagger_ns: 100_000_000,
        seed: 1,
        mechanisms: Mechanisms::ALL,
        costs: Costs::SERVER,
        device: Profile::DEFAULT.device,
    }
}

fn simulate(job: &Thrash) -> Outcome {
    run(black_box(job), &mut ()).expect("a valid job without a deadlock")
}

fn threads_that_wait(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("500 threads, 8 virtual seconds");
    group.sample_size(10);
    let variants =
        [("baseline", Series::BASELINE), ("vma-retry", Series::BASELINE.with(Switch::VmaRetry))];
    for (name, series) in variants {
        let job = job(series);
        group.throughput(Throughput::Elements(simulate(&job).counts.events));
        group.bench_function(name, |bench| bench.iter(|| simulate(&job)));
    }
    group.finish();
}

criterion_group!(benches, threads_that_wait);
criterion_main!(benches);
