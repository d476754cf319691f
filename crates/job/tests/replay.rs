//! The record and the job file of a job repeat it.

use filemap_job::{Job, JobFlags, JobSpec};

const JOBS: &[&str] = &[
    "workload = 'random'\nfile_size = '1g'",
    "workload = 'stride:1021'\nfile_size = '20g'\nram = '8g'\nread_ahead_kb = 8192\n\
         with = 'p1,p2'\nkernel = '6.12'\nruns = 3",
    "workload = 'first'\naccesses = 1\nfile_size = 10001\nmap_offset = 4096\nmap_len = '4k'\n\
         split = 1\nsplit_prot = 'exec'\nexec = true\nprivate = true\nsparse = true\n\
         advice = 'random'\nmap_shift = 3\nfs = 'xfs'\nfile = \"/a b/it's\"\non = 'kernel'\n\
         seed = 14004281193724023956",
    "workload = 'read-random'\nbs = '1m'\naccesses = 7\nfile_size = '1.5g'\narch = 'arm64'\n\
         page_size = '64k'\ncache_limit = '64m'\nmemory_max = '128m'\nmemory_high = '100m'",
    "accesses_file = 'list'\nfile_size = '1m'\nmachine = 'm.toml'",
    "file_size = '1m'\nseed = 5\n[[phase]]\naccesses_file = 'list'\n[[phase]]\n\
         workload = 'interleave:2'\naccesses = 9\nseed = 6",
];

fn validate(mut spec: JobSpec) -> Job {
    for (_, text) in spec.accesses_files() {
        *text = Some("0\n5\n2".to_string());
    }
    spec.validate(None).unwrap()
}

#[test]
fn job_file_and_record_repeat_the_job() {
    for toml in JOBS {
        let job = validate(JobSpec::read(toml).unwrap());
        assert!(job.is_single_mapping(), "{toml}");
        assert_eq!(validate(job.spec.clone()), job, "{toml}");
        let again = job.spec.to_toml();
        assert_eq!(validate(JobSpec::read(&again).unwrap()), job, "{again}");
        assert!(!again.contains("seed_text"), "{again}");
        let json = serde_json::to_string(&job.spec).unwrap();
        assert_eq!(validate(serde_json::from_str(&json).unwrap()), job, "{json}");
    }
}

/// A JSON reader that rounds numbers does not change the job.
#[test]
fn seed_text_takes_precedence() {
    let validate = |toml: &str| JobFlags::from_toml(toml).unwrap().validate(None);
    let seed = |toml: &str| {
        validate(toml).map(|job| (job.seed, job.accesses().next().unwrap().seed)).unwrap()
    };
    let job = "workload = 'random'\nfile_size = '1m'\nseed = 88172645463325250\n";
    assert_eq!(seed(job).0, 88172645463325250);
    let text = "seed_text = '88172645463325252'\n";
    assert_eq!(seed(&format!("{job}{text}")), (88172645463325252, 88172645463325252));
    let phase = "file_size = '1m'\n[[phase]]\nworkload = 'random'\nseed_text = '7'";
    assert_eq!(seed(phase).1, 7);
    let flags = JobFlags { seed: Some(9), ..JobFlags::default() };
    let of_file = JobFlags::from_toml(&format!("{job}{text}")).unwrap();
    assert_eq!(of_file.overlay(flags).validate(None).unwrap().seed, 9, "a flag counts more");
    let wrong = validate(&format!("{job}seed_text = '5x'")).unwrap_err().to_string();
    assert_eq!(wrong, "'5x' is no seed_text; give the digits of seed, or leave it out");
}
