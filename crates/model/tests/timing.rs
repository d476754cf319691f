//! Timings: what decisions depend on.

use filemap_core::decision::Decision;
use filemap_job::{Job, JobSpec, PhaseSpec, SizeText};
use filemap_model::{Profile, trace_settled};

fn job(advice: &str, private: bool) -> Job {
    let phase = |workload: &str, accesses| PhaseSpec {
        workload: Some(workload.to_string()),
        accesses: Some(accesses),
        ..PhaseSpec::default()
    };
    let spec = JobSpec {
        file_size: Some(SizeText("16m".to_string())),
        advice: Some(advice.to_string()),
        private: Some(private),
        phase: vec![
            phase("sequential", 500),
            phase("read-sequential", 900),
            phase("random", 300),
            phase("sequential", 4000),
        ],
        ..JobSpec::default()
    };
    spec.validate(None).unwrap()
}

fn profile(latency_ns: u64) -> Profile {
    let mut profile = Profile::DEFAULT;
    profile.device.latency_ns = latency_ns;
    profile
}

#[test]
fn a_settled_run_depends_on_no_device() {
    for advice in ["normal", "sequential", "hugepage"] {
        for private in [false, true] {
            let job = job(advice, private);
            let log = |latency_ns| {
                let mut log: Vec<Decision> = Vec::new();
                trace_settled(&job, &profile(latency_ns), &mut log).unwrap();
                log
            };
            assert_eq!(log(0), log(1_000_000_000), "{advice}");
        }
    }
}
