#![expect(missing_docs, reason = "criterion_group makes a public function")]
//! Speed of the model on the jobs of the published matrix: `cargo bench -p filemap-model`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use filemap_job::{Job, JobFlags, SizeText};
use filemap_model::{Profile, trace};

const WORKLOADS: [&str; 5] = ["random", "stride:1021", "stride:2053", "stride:4099", "sequential"];
const VARIANTS: [&str; 4] = ["baseline", "p1", "p2", "p1+p2"];

fn job(workload: &str, variant: &str, file_size: &str, accesses: Option<u64>) -> Job {
    let spec = JobFlags {
        workload: Some(workload.to_string()),
        with: (variant != "baseline").then(|| variant.to_string()),
        file_size: Some(SizeText(file_size.to_string())),
        ram: Some(SizeText("8g".to_string())),
        read_ahead_kb: Some(8192),
        accesses,
        ..JobFlags::default()
    };
    spec.validate(None).expect("a valid job")
}

fn run(job: &Job) {
    black_box(trace(job, &Profile::DEFAULT, &mut ()).expect("enough memory"));
}

fn matrix(criterion: &mut Criterion) {
    let sizes = ["20g", "4g"].into_iter();
    let cells = sizes.flat_map(|size| WORKLOADS.map(|workload| (size, workload)));
    let jobs: Vec<Job> = cells
        .flat_map(|(size, workload)| VARIANTS.map(|variant| job(workload, variant, size, None)))
        .collect();
    let mut group = criterion.benchmark_group("matrix");
    group.sample_size(10);
    group.bench_function("40 cells, one seed", |bench| bench.iter(|| jobs.iter().for_each(run)));
    group.finish();
}

fn throttled(criterion: &mut Criterion) {
    let job = job("random", "p1+p2", "20g", None);
    let mut group = criterion.benchmark_group("throttled");
    group.throughput(Throughput::Elements(job.accesses().next().unwrap().accesses));
    group.bench_function("random p1+p2", |bench| bench.iter(|| run(&job)));
    group.finish();
}

fn large_file(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("2 TiB, 1000000 random accesses");
    group.sample_size(10);
    for variant in ["baseline", "mmap-miss"] {
        let job = job("random", variant, "2t", Some(1_000_000));
        group.bench_function(variant, |bench| bench.iter(|| run(&job)));
    }
    group.finish();
}

criterion_group!(benches, matrix, throttled, large_file);
criterion_main!(benches);
