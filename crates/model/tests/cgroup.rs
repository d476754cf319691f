//! A file larger than the memory of its cgroup, against counters of a 6.12 with classic LRU lists.

use filemap_job::JobFlags;
use filemap_model::{Profile, trace};

/// Pages read, major faults and cached pages, of a 4 GiB file with 8192 KiB readahead.
fn counted(workload: &str, limit: &str) -> [u64; 3] {
    let text = format!(
        "{workload}\n{limit}\nkernel = '6.12'\nfile_size = '4g'\nread_ahead_kb = 8192\nfs = 'ext4'\n"
    );
    let job = JobFlags::from_toml(&text).unwrap().validate(None).unwrap();
    let run = trace(&job, &Profile::DEFAULT, &mut ()).unwrap();
    let counters = run.counters;
    [counters.data_pages_read.unwrap(), counters.major_faults.unwrap(), run.cached.inside.unwrap()]
}

#[test]
fn a_cgroups_limit_pays_for_the_kernels_memory() {
    // Debian's 6.12.107 under QEMU, cgroup v2, multi-generational LRU off.
    let cases = [
        ("workload = 'random'\naccesses = 10485", [11_486_456, 6442, 405_154]),
        ("workload = 'stride:4099'\naccesses = 2600", [5_286_072, 2600, 405_209]),
    ];
    for (workload, measured) in cases {
        let found = counted(workload, "memory_max = '1600m'");
        for (found, measured) in found.into_iter().zip(measured) {
            let error = found.abs_diff(measured) as f64 / measured as f64;
            assert!(error < 0.001, "{workload}: {found}, measured {measured}");
        }
    }
}

#[test]
fn a_limit_of_the_page_cache_is_its_own() {
    let workload = "workload = 'random'\naccesses = 10485";
    let [_, _, cached] = counted(workload, "cache_limit = '1600m'");
    assert!((409_500..=409_600).contains(&cached), "{cached}");
    // The smaller limit decides, and which memory is charged to it.
    let both = counted(workload, "cache_limit = '1500m'\nmemory_max = '1600m'");
    assert_eq!(both, counted(workload, "cache_limit = '1500m'"));
}
