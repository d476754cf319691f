//! A job's record and command line repeat the job.

use filemap_job::{Job, JobSpec};

const JOBS: &[(&str, &str)] = &[
    (
        "workload = 'random'\nfile_size = '1g'",
        "filemap run --kernel 6.18 --workload random --accesses 2621 --file-size 1g",
    ),
    (
        "workload = 'stride:1021'\nfile_size = '20g'\nram = '8g'\nread_ahead_kb = 8192\n\
         with = 'p1,p2'\nkernel = '6.12'\nruns = 3",
        "filemap run --kernel 6.12 --with miss-fault-address+miss-no-retry --runs 3 \
         --workload stride:1021 --accesses 52428 --file-size 20g --ram 8g --read-ahead-kb 8192",
    ),
    (
        "workload = 'first'\naccesses = 1\nfile_size = 10001\nmap_offset = 4096\nmap_len = '4k'\n\
         split = 1\nsplit_prot = 'exec'\nexec = true\nprivate = true\nsparse = true\n\
         advice = 'random'\nmap_shift = 3\nfs = 'xfs'\nfile = \"/a b/it's\"\non = 'kernel'\n\
         seed = 14004281193724023956",
        "filemap run --on kernel --kernel 6.18 --workload first --accesses 1 \
         --seed 14004281193724023956 --file-size 10001 --file '/a b/it'\\''s' --map-offset 4k \
         --map-len 4k --map-shift 3 --split 1 --split-prot exec --advice random --exec --private \
         --sparse --fs xfs",
    ),
    (
        "workload = 'read-random'\nbs = '1m'\naccesses = 7\nfile_size = '1.5g'\narch = 'arm64'\n\
         page_size = '64k'\ncache_limit = '64m'\nmemory_max = '128m'\nmemory_high = '100m'",
        "filemap run --kernel 6.18 --workload read-random --accesses 7 --bs 1m --file-size 1536m \
         --cache-limit 64m --memory-high 100m --memory-max 128m --arch arm64 --page-size 64k",
    ),
    (
        "accesses_file = 'list'\nfile_size = '1m'\nmachine = 'm.toml'",
        "filemap run --kernel 6.18 --machine m.toml --accesses-file list --file-size 1m",
    ),
    (
        "file_size = '1m'\nseed = 5\n[[phase]]\naccesses_file = 'list'\n[[phase]]\n\
         workload = 'interleave:2'\naccesses = 9\nseed = 6",
        "filemap run JOB.toml",
    ),
];

fn validate(mut spec: JobSpec) -> Job {
    for (_, text) in spec.accesses_files() {
        *text = Some("0\n5\n2".to_string());
    }
    spec.validate(None).unwrap()
}

/// The flags that say `job`.
fn flags(job: &Job) -> JobSpec {
    JobSpec::clone(job.of_flags.as_ref().unwrap())
}

#[test]
fn specs_and_commands_repeat_the_job() {
    for (toml, command) in JOBS {
        let job = validate(JobSpec::from_toml(toml).unwrap());
        assert_eq!(job.command(), *command);
        assert_eq!(validate(flags(&job)), job, "{toml}");
        let again = JobSpec::from_toml(&job.to_toml());
        assert_eq!(validate(again.unwrap()), job, "{}", job.to_toml());
        assert!(!job.to_toml().contains("seed_text"), "{}", job.to_toml());
        let json = serde_json::to_string(&flags(&job)).unwrap();
        assert_eq!(validate(serde_json::from_str(&json).unwrap()), job, "{json}");
    }
}

/// What a reader of JSON that rounds numbers leaves of a job still makes the same one.
#[test]
fn the_text_of_a_seed_counts() {
    let validate = |toml: &str| JobSpec::from_toml(toml).unwrap().validate(None);
    let seed = |toml: &str| {
        validate(toml).map(|job| (job.seed, job.accesses().next().unwrap().seed)).unwrap()
    };
    let job = "workload = 'random'\nfile_size = '1m'\nseed = 88172645463325250\n";
    assert_eq!(seed(job).0, 88172645463325250);
    let text = "seed_text = '88172645463325252'\n";
    assert_eq!(seed(&format!("{job}{text}")), (88172645463325252, 88172645463325252));
    let phase = "file_size = '1m'\n[[phase]]\nworkload = 'random'\nseed_text = '7'";
    assert_eq!(seed(phase).1, 7);
    let flags = JobSpec { seed: Some(9), ..JobSpec::default() };
    let of_file = JobSpec::from_toml(&format!("{job}{text}")).unwrap();
    assert_eq!(of_file.overlay(flags).validate(None).unwrap().seed, 9, "a flag counts more");
    let wrong = validate(&format!("{job}seed_text = '5x'")).unwrap_err().to_string();
    assert_eq!(wrong, "'5x' is no seed_text; give the digits of seed, or leave it out");
}
