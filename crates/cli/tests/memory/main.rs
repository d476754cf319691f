//! A file larger than its memory, in the model and on the running kernel: what is read, and which
//! pages stay. It takes minutes and root; without `--ignored` it is passed over.

use std::fs::File;
use std::path::Path;

use filemap_core::cache::PageCache;
use filemap_core::units::PageIndex;
use filemap_job::{Job, JobSpec};
use filemap_kernel::cgroup::{Limits, MemoryCgroup};
use filemap_kernel::cold::drop_file;
use filemap_kernel::engine::plan;
use filemap_kernel::journal::Journal;
use filemap_kernel::probe::{Probe, main_if_child};
use filemap_kernel::residency::{PageSet, resident_pages};

fn main() {
    main_if_child();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new("/var/tmp/engine/big");
    for text in &args {
        let spec = JobSpec::from_toml(text).unwrap();
        let job = spec.validate(None).unwrap();
        one(&job, path);
    }
}

fn one(job: &Job, path: &Path) {
    let profile = filemap_model::Profile::DEFAULT;
    let traced = filemap_model::trace(job, &profile, &mut ()).unwrap();
    let pages = job.file_pages().0;
    let mut present = vec![false; pages as usize];
    let mut at = PageIndex(0);
    let end = PageIndex(pages);
    while at < end {
        let from = traced.cache.next_present(at, end);
        at = traced.cache.next_absent(from, end);
        (from.0..at.0).for_each(|page| present[page as usize] = true);
    }
    let model = PageSet::collect(present.into_iter());
    let journal = Journal::open().unwrap();
    let limits = Limits { max_bytes: job.machine.memory_max_bytes, high_bytes: None };
    let plan = plan(job, path).unwrap();
    let probe = Probe::start(&plan).unwrap();
    drop_file(path).unwrap();
    let cgroup = MemoryCgroup::create(&journal, limits).unwrap();
    cgroup.add(probe.pid()).unwrap();
    let before = filemap_kernel::procstat::VmStat::now().unwrap();
    let outcome = probe.run().unwrap();
    let vm = filemap_kernel::procstat::VmStat::now().unwrap().since(&before);
    let file = File::open(path).unwrap();
    let live = resident_pages(&file, pages).unwrap();
    let name = std::env::var("OUT").unwrap_or("x".into());
    let text = |set: &PageSet| set.iter().map(|p| p.0.to_string()).collect::<Vec<_>>().join("\n");
    std::fs::write(format!("/var/tmp/engine/{name}.live"), text(&live)).unwrap();
    std::fs::write(format!("/var/tmp/engine/{name}.model"), text(&model)).unwrap();
    let c = traced.run.counters;
    println!(
        "model pages {} major {} minor {} resident {} inactive {} active {}",
        c.data_pages_read.unwrap(),
        c.major_faults.unwrap(),
        c.minor_faults.unwrap(),
        model.len(),
        traced.cache.inactive().0,
        traced.cache.active().0
    );
    let p = &outcome.phases[0];
    println!(
        "live  pages {} major {} minor {} resident {} jaccard {:.4} error {:.4} {} s",
        p.read_bytes.unwrap() / 4096,
        p.major,
        p.minor,
        live.len(),
        model.overlap(&live),
        p.read_bytes.unwrap() as f64 / 4096.0 / c.data_pages_read.unwrap() as f64 - 1.0,
        p.elapsed_ns / 1_000_000_000,
    );
    for (n, v) in cgroup.stat().unwrap().iter() {
        if v != 0 && !n.starts_with("total_") {
            print!("{n} {v}; ");
        }
    }
    println!();
    for (n, v) in vm.iter() {
        if [
            "workingset",
            "pgsteal",
            "pgscan",
            "pgactivate",
            "pgdeactivate",
            "pgrefill",
            "pgrotated",
        ]
        .iter()
        .any(|p| n.starts_with(p))
        {
            print!("{n} {v}; ");
        }
    }
    println!();
    for f in [
        "memory.kmem.usage_in_bytes",
        "memory.usage_in_bytes",
        "memory.max_usage_in_bytes",
        "memory.failcnt",
    ] {
        println!(
            "{f} {}",
            std::fs::read_to_string(cgroup.path().join(f)).unwrap_or_default().trim()
        );
    }
}
