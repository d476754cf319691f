//! Order of jobs on mock engines.

pub mod mock;

use filemap_job::JobFlags;

use mock::Mock;

use super::*;

fn job(keys: &str) -> Job {
    let text = format!("workload = 'random'\nfile_size = '1m'\naccesses = 4\nseed = 7\n{keys}");
    JobFlags::from_toml(&text).unwrap().validate(Some("6.18.0")).unwrap()
}

/// Runs `jobs`; returns the results, the announced number of turns, and the number taken.
fn run(mock: &Mock, jobs: &[Job], count: u64) -> (Result<Vec<JobRuns>, Error>, u64, u64) {
    let mut profiles = vec![Profile::DEFAULT; jobs.len()];
    let ran = run_lists(mock, vec![(jobs, &mut profiles)], count, false);
    let records = ran.map(|mut ran| ran.remove(0));
    let (total, advanced) = mock.progressed();
    (records, total, advanced)
}

fn seeds_of(ran: &JobRuns) -> Vec<u64> {
    ran.runs.iter().map(|run| run.seed).collect()
}

#[test]
fn runs_of_the_kernel_alternate_between_jobs() {
    let mock = Mock::default();
    let jobs = [job("on = 'kernel'\nruns = 2"), job("on = 'kernel'\nruns = 3\nadvice = 'random'")];
    let (records, total, advanced) = run(&mock, &jobs, 1);
    let expected = ["normal", "random", "normal", "random", "random"];
    assert_eq!(mock.turns(), expected.map(|advice| format!("host: run {advice} 7")));
    assert_eq!((total, advanced), (5, 5));
    let times = |ran: &JobRuns| ran.runs.iter().map(|run| run.elapsed_ns).collect::<Vec<_>>();
    let records = records.unwrap();
    assert_eq!(times(&records[0]), [1, 3].map(|seconds| Some(seconds * 1_000_000_000)));
    assert_eq!(times(&records[1]), [2, 4, 5].map(|seconds| Some(seconds * 1_000_000_000)));
    // Jobs drop before the engine, which undoes their changes on signals too.
    assert_eq!(mock.asked().last().unwrap(), "host is gone");
    assert!(!records[0].environment.is_empty());
}

#[test]
fn records_have_the_runs_of_all_seeds_in_order() {
    let jobs = [
        job("runs = 2"),
        job("on = 'kernel'\nruns = 2"),
        job("advice = 'random'"),
        job("on = 'kernel'\nimage = 'vmlinuz'\nruns = 3"),
    ];
    let mock = Mock::default();
    let (records, total, advanced) = run(&mock, &jobs, 3);
    let records = records.unwrap();
    let [a, b, c]: [u64; 3] = seeds(7, 3).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(seeds_of(&records[0]), [a, a, b, b, c, c]);
    assert_eq!(seeds_of(&records[1]), [a, a, b, b, c, c]);
    assert_eq!(seeds_of(&records[2]), [a, b, c]);
    assert_eq!(seeds_of(&records[3]), [a, a, a, b, b, b, c, c, c]);
    let engines: Vec<&str> = records.iter().map(|ran| ran.engine.name()).collect();
    assert_eq!(engines, ["model", "kernel", "model", "kernel"]);
    // A turn is a seed of the model or of a booted kernel, or a run of the running kernel.
    assert_eq!((total, advanced), (3 + 6 + 3 + 3, 3 + 6 + 3 + 3));
    let turns = mock.turns();
    let turn_of = |engine: &str| turns.iter().position(|turn| turn.starts_with(engine)).unwrap();
    assert!(turn_of("model") < turn_of("host") && turn_of("host") < turn_of("boot"), "{turns:?}");
}

#[test]
fn a_failed_run_ends_all_and_leaves_nothing() {
    let mock = Mock::failing("host: run random 7");
    let jobs = [job("on = 'kernel'\nruns = 5"), job("on = 'kernel'\nruns = 5\nadvice = 'random'")];
    let (records, total, advanced) = run(&mock, &jobs, 1);
    assert_eq!(records.unwrap_err().to_string(), "host: run random 7 failed");
    assert_eq!((total, advanced), (10, 1));
    let after = mock.asked().split_off(5);
    assert_eq!(after, ["host: drop normal", "host: drop random", "host is gone"]);
}

#[test]
fn a_job_of_the_model_that_fails_keeps_the_kernel_from_running() {
    let mock = Mock::failing("model: run normal 7");
    let (records, ..) = run(&mock, &[job(""), job("on = 'kernel'")], 1);
    assert!(records.is_err());
    assert_eq!(mock.turns(), ["model: run normal 7"]);
    assert_eq!(mock.asked().iter().filter(|entry| entry.contains(": drop ")).count(), 2);
}

#[test]
fn the_model_has_the_requests_of_the_device_beside_it() {
    let mock = Mock::with_io_bytes(12_345_000);
    run(&mock, &[job("")], 1).0.unwrap();
    run(&mock, &[job(""), job("on = 'kernel'")], 1).0.unwrap();
    assert_eq!(mock.turns()[0], "model: run normal 7");
    assert_eq!(mock.turns()[1], "model beside the host: run normal 7");
}

#[test]
fn the_model_has_the_flushes_of_the_kernel_under_the_same_limit() {
    let limited = "memory_max = '512k'";
    let kernel = job(&format!("on = 'kernel'\nimage = 'vmlinuz'\nruns = 2\n{limited}"));
    let mock = Mock::with_flushes(&[1, 3]);
    run(&mock, &[job(limited), job("memory_max = '768k'"), kernel.clone()], 1).0.unwrap();
    let asked = mock.asked();
    let flushed: Vec<&String> = asked.iter().filter(|entry| entry.contains("flush as")).collect();
    assert_eq!(flushed, ["model: flush as [[1, 3], [1, 3]]"]);
    assert_eq!(mock.turns().last().unwrap(), "model: run normal 7");
    // Not with several seeds, nor without a kernel.
    for (jobs, count) in [(vec![job(limited), kernel], 2), (vec![job(limited)], 1)] {
        let mock = Mock::with_flushes(&[1, 3]);
        run(&mock, &jobs, count).0.unwrap();
        assert!(!mock.asked().iter().any(|entry| entry.contains("flush as")));
    }
}

#[test]
fn only_the_running_kernel_has_settings_to_change() {
    let changing = |keys: &str| {
        let mock = Mock::default();
        let done = run_jobs(&mock, &[job(keys)], &mut [Profile::DEFAULT], 1, true);
        (done.map_err(|error| error.exit_code()).err(), mock.asked().first().cloned())
    };
    assert_eq!(changing(""), (Some(2), None));
    assert_eq!(changing("on = 'kernel'\nimage = 'vmlinuz'"), (Some(2), None));
    assert_eq!(changing("on = 'kernel'"), (None, Some("host that may change".to_string())));
}
