//! Seeds of jobs with tables: the seed of each phase, and warnings about seeds.

use filemap_job::{Job, JobSpec};

/// A job with a file of 16 pages, opened as `o` and mapped as `m`, and these threads.
fn job(threads: &str) -> Job {
    let text = format!(
        "seed = 5\n[[file]]\nname = 'f'\nsize = '64k'\n[[open]]\nname = 'o'\nfile = 'f'\n\
         [[mapping]]\nname = 'm'\nopen = 'o'\n{threads}"
    );
    let valid = JobSpec::from_toml(&text).and_then(|spec| spec.validate(None));
    valid.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A thread with random accesses to the mapping and additional keys in its phase.
fn draws(keys: &str) -> String {
    format!("[[thread]]\nphase = [{{ mapping = 'm', workload = 'random', accesses = 4{keys} }}]\n")
}

fn seeds(job: &Job) -> Vec<u64> {
    job.accesses().map(|accesses| accesses.seed).collect()
}

/// A phase keeps its own seed, even if it equals the seed of the job; the job file of a job with
/// another seed validates to that job.
#[test]
fn own_seed_is_kept() {
    let one = job(&(draws(", seed = 5") + &draws("") + &draws(", seed = 7")));
    assert_eq!(seeds(&one), [5, 5, 7]);
    let other = one.with_seed(9);
    assert_eq!((other.seed, seeds(&other)), (9, vec![5, 9, 7]));
    assert_eq!(other.spec.validate(None).unwrap(), other);
    let flags = "seed = 5\nfile_size = '64k'\n[[phase]]\nworkload = 'random'\naccesses = 4\n\
                 [[phase]]\nworkload = 'random'\naccesses = 4\nseed = 5\n";
    let of_flags = filemap_job::JobFlags::from_toml(flags).unwrap().validate(None).unwrap();
    let other = of_flags.with_seed(9);
    assert_eq!(seeds(&other), [9, 5]);
    assert_eq!(other.spec.validate(None).unwrap(), other);
}

#[test]
fn warns_if_seeds_change_nothing() {
    let warnings = |job: &Job, seeds| job.seed_warnings(seeds).join("; ");
    assert_eq!(warnings(&job(&draws("")), 3), "");
    let own = warnings(&job(&draws(", seed = 1")), 3);
    assert!(own.contains("--seeds changes nothing: each phase"), "{own}");
    let none = "[[thread]]\nphase = [{ mapping = 'm', workload = 'sequential', accesses = 4 }]\n";
    assert!(warnings(&job(none), 2).contains("no phase draws its accesses"));
    assert_eq!(warnings(&job(none), 1), "");
}

#[test]
fn warns_of_threads_with_same_draws() {
    let warnings = |threads: &str| job(threads).seed_warnings(1);
    let alike = warnings(&(draws("") + &draws("")));
    assert!(alike[0].starts_with("threads '1' and '2' draw the same pages"), "{alike:?}");
    assert!(warnings(&(draws(", seed = 1") + &draws(", seed = 2"))).is_empty());
    let other_order = draws("").replace("random", "zipf:0.9");
    assert!(warnings(&(draws("") + &other_order)).is_empty());
    assert!(warnings(&draws("")).is_empty());
}

#[test]
fn pages_of_timed_thread_are_unknown() {
    assert!(job(&draws("")).used_pages().is_some());
    let timed = draws("").replace("phase =", "for = '1s'\nphase =");
    assert_eq!(job(&timed).used_pages(), None);
}
