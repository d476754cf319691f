//! Pages of a file in holes: cached like others, and filled without the device.

use filemap_core::decision::{Decision, Log};
use filemap_job::program::{FoundFile, Job, JobSpec};
use filemap_model::{Profile, trace};

const PAGES: u64 = 4096;

/// The pages that were added to the page cache.
#[derive(Default)]
struct AddedPages(Vec<u64>);

impl Log for AddedPages {
    fn record(&mut self, decision: Decision) {
        if let Decision::Added { start, order, folios, .. } = decision {
            self.0.extend(start.0..start.0 + (folios << order.0));
        }
    }
}

/// Touches of a file of 16 MiB by `workload`, with `settings`; the pages of `holes` lie in holes.
fn job(workload: &str, settings: &str, holes: &[std::ops::Range<u64>]) -> Job {
    let text = format!(
        "{settings}[[file]]\nname = 'a'\npath = '/x/a'\n[[open]]\nname = 'a'\nfile = 'a'\n\
         [[mapping]]\nname = 'm'\nopen = 'a'\n[[thread]]\n[[thread.phase]]\nmapping = 'm'\n{workload}"
    );
    let mut spec = JobSpec::from_toml(&text).unwrap();
    for file in spec.existing_files() {
        let holes: Vec<_> = holes.iter().map(|hole| hole.start * 4096..hole.end * 4096).collect();
        let sparse = matches!(&holes[..], [hole] if *hole == (0..PAGES * 4096));
        *file.found = Some(FoundFile { size_bytes: PAGES * 4096, sparse, holes, elf: None });
    }
    spec.validate(None).unwrap()
}

/// Holes drawn with `seed`: runs of 1 to 200 pages, and as much data between them.
fn drawn_holes(mut seed: u64) -> Vec<std::ops::Range<u64>> {
    let mut holes = Vec::new();
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        1 + (seed >> 33) % 200
    };
    let mut at = next();
    while at < PAGES {
        let end = (at + next()).min(PAGES);
        holes.push(at..end);
        at = end + next();
    }
    holes
}

/// The bytes read are those of added pages outside of holes, by a second count from the log. What
/// is cached, and what faults, does not depend on holes.
#[test]
fn only_pages_outside_of_holes_are_read() {
    let workloads = ["workload = 'random'\naccesses = 300\n", "workload = 'sequential'\n"];
    let settings =
        ["fs = 'ext4'\nread_ahead_kb = 8192\n", "read_ahead_kb = 128\ncache_limit = '4m'\n"];
    for seed in 0..40 {
        let holes = drawn_holes(seed);
        let is_hole = |page: &u64| holes.iter().any(|hole| hole.contains(page));
        for (workload, settings) in workloads.iter().flat_map(|own| settings.map(|set| (own, set)))
        {
            let run = |holes: &[std::ops::Range<u64>]| {
                let mut added = AddedPages::default();
                let job = job(workload, settings, holes);
                (trace(&job, &Profile::DEFAULT, &mut added).unwrap(), added.0)
            };
            let (partly, added) = run(&holes);
            let read = added.iter().filter(|page| !is_hole(page)).count() as u64;
            let counters = &partly.counters;
            assert_eq!(counters.bytes_read, Some(read * 4096), "seed {seed}, {workload}");
            assert_eq!(counters.data_pages_read, Some(added.len() as u64), "seed {seed}");
            let (plain, in_plain) = run(&[]);
            let (sparse, in_sparse) = run(std::slice::from_ref(&(0..PAGES)));
            let times = [sparse.elapsed_ns, partly.elapsed_ns, plain.elapsed_ns];
            assert!(times.is_sorted(), "seed {seed}, {workload}, {settings}: {times:?}");
            // Under a limit, what reclaim finds depends on what has arrived.
            if !settings.contains("cache_limit") {
                assert_eq!((&added, &added), (&in_plain, &in_sparse), "seed {seed}");
                assert_eq!(counters.major_faults, plain.counters.major_faults, "seed {seed}");
            }
        }
    }
}
