//! The model against counters of a real kernel: `data/measured-6.12.json`.

use filemap_job::{Job, JobFlags, Run, SizeText};
use filemap_model::{Profile, trace};
use serde::Deserialize;

/// Measurements: each key is known, and each that every run has is required.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// For readers of the file.
    #[serde(rename = "what")]
    _what: String,
    runs: Vec<Measured>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    kernel: String,
    series: Vec<String>,
    read_ahead_kb: u64,
    /// RAM of the machine, into which each file fitted.
    #[serde(rename = "ram")]
    _ram: String,
    file_size: u64,
    map_offset: u64,
    map_len: u64,
    workload: String,
    accesses: u64,
    xorshift64_seed: Option<u64>,
    split: Option<u64>,
    split_prot: Option<String>,
    data_pages_read: u64,
    major_faults: u64,
    /// Pages cached at the end: in some runs only, but then all three.
    cached_inside: Option<u64>,
    cached_before: Option<u64>,
    cached_after: Option<u64>,
}

/// Runs in the file.
const RUNS: usize = 90;

/// Counters of these: two per run, and three more of 30 runs.
const COUNTERS: usize = 270;

impl Measured {
    /// The job that was run.
    fn job(&self) -> Job {
        let size = |bytes: u64| Some(SizeText::from_bytes(bytes));
        let spec = JobFlags {
            kernel: Some(self.kernel.clone()),
            with: (!self.series.is_empty()).then(|| self.series.join("+")),
            workload: Some(self.workload.clone()),
            accesses: Some(self.accesses),
            seed: self.xorshift64_seed,
            file_size: size(self.file_size),
            map_offset: size(self.map_offset),
            map_len: size(self.map_len),
            read_ahead_kb: Some(self.read_ahead_kb),
            split: self.split,
            split_prot: self.split_prot.clone(),
            ..JobFlags::default()
        };
        spec.validate(None).unwrap()
    }

    /// Each measured counter, with that of the model.
    fn counters(&self, run: &Run) -> Vec<(&'static str, u64, Option<u64>)> {
        let pairs = [
            ("data_pages_read", Some(self.data_pages_read), run.counters.data_pages_read),
            ("major_faults", Some(self.major_faults), run.counters.major_faults),
            ("cached_inside", self.cached_inside, run.cached.inside),
            ("cached_before", self.cached_before, run.cached.before),
            ("cached_after", self.cached_after, run.cached.after),
        ];
        pairs.into_iter().filter_map(|(key, real, model)| Some((key, real?, model))).collect()
    }
}

fn run(job: &Job) -> Run {
    trace(job, &Profile::DEFAULT, &mut ()).unwrap()
}

#[test]
fn counters_equal_those_of_linux_6_12() {
    let text = include_str!("../../../data/measured-6.12.json");
    let data: File = serde_json::from_str(text).expect("each run has these keys and no others");
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (number, measured) in data.runs.iter().enumerate() {
        let job = measured.job();
        for (key, real, modelled) in measured.counters(&run(&job)) {
            compared += 1;
            if modelled != Some(real) {
                let command = job.spec.to_toml();
                wrong.push(format!("run {number} {command}: {key} {modelled:?}, real {real}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{compared} compared\n{}", wrong.join("\n"));
    assert_eq!((data.runs.len(), compared), (RUNS, COUNTERS), "what there is to compare");
}
