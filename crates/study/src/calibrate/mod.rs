//! Measures the device and fault costs of this machine, and how well they predict times.

mod bench;
mod fit;
mod queue;
mod report;

use std::path::Path;

use filemap_job::program::Rounds;
use filemap_job::record::{RecordKind, SCHEMA};
use filemap_job::{EngineKind, Job, JobFlags, JobSpec, Run, SizeText};
use filemap_kernel::calibrate::{CalibrationFile, HOLE_BYTES};
use filemap_kernel::engine::{PreparedJob, host_environment, temporary_directory};
use filemap_kernel::storage::Storage;
use filemap_model::{Profile, trace};
use serde_json::{Value, json};

use crate::engine::Engines;
use crate::error::Error;
use crate::footer::Footer;
use crate::{host, input, provenance};
use fit::sample;
use report::PredictedJob;

pub(crate) use bench::MachineBench;

pub use report::CalibrateRecord;

/// The published workloads, each with either advice.
const WORKLOADS: [&str; 5] = ["random", "stride:1021", "stride:2053", "stride:4099", "sequential"];
const ADVICE: [&str; 2] = ["normal", "random"];

/// Jobs that measure system calls and wake-ups.
const CALLS: &str = include_str!("calls.toml");
const WAKES: &str = include_str!("wakes.toml");

/// Options of a calibration.
#[allow(missing_docs, reason = "their names say it")]
pub struct CalibrateOptions {
    /// Size of the test file in bytes.
    pub bytes: u64,
    pub rounds: u64,
    /// Path of the profile; `kept` is the sentence of the report about it.
    pub path: String,
    pub kept: String,
    /// Command that repeats the calibration.
    pub command: String,
}

/// Measures this machine. `keep` receives the text of the profile as soon as it is complete.
///
/// # Errors
/// Something cannot be measured here; errors of `keep`.
pub fn calibrate(
    asked: CalibrateOptions,
    engines: &impl Engines,
    keep: impl FnOnce(&str) -> Result<(), Error>,
) -> Result<CalibrateRecord, Error> {
    let (journal, _undoing) = engines.journal()?;
    let directory = temporary_directory()?;
    let mut bench = MachineBench::prepare(journal, directory, asked.bytes)?;
    let mut rows = Vec::new();
    for workload in WORKLOADS {
        for advice in ADVICE {
            rows.push(Timed::prepare(&bench, workload, advice)?);
        }
    }
    let progress = engines.progress(Some(asked.rounds));
    for _ in 0..asked.rounds {
        // Alternates, so that other load on the machine affects costs and rows alike.
        for pair in rows.chunks_mut(ADVICE.len()) {
            bench.sample_device()?;
            for row in pair {
                row.runs.push(row.prepared.run()?.into_recorded(&row.job));
            }
        }
        bench.sample_kernel()?;
        progress.advance();
    }
    let (profile, no_ring) = bench.profile()?;
    let text = profile_text(&profile, bench.file.storage(), bench.file.path());
    keep(&text)?;
    let samples = &bench.samples;
    let unlimited = bench.reclaim.unlimited().map(|reason| {
        format!("the cost of evicting a page was not measured, so it is 0: {reason}")
    });
    let predicted = rows.iter().map(|row| row.predicted(&profile)).collect::<Result<_, _>>()?;
    let calibration = CalibrateRecord {
        schema: SCHEMA,
        kind: RecordKind::Calibrate,
        profile: json!(profile),
        profile_toml: text,
        costs: samples.costs(unlimited.is_some()),
        direct: samples.direct(),
        in_flight: samples.in_flight(&profile),
        warnings: no_ring.into_iter().chain(unlimited).collect(),
        footer: footer(&bench.file, &profile, &asked),
        kept: asked.kept,
        ..CalibrateRecord::default()
    };
    Ok(calibration.with_rows(predicted))
}

/// The job of the job file `text` on `cpus` CPUs, and the number of rounds of its threads.
fn repeated(text: &str, cpus: Option<u64>) -> Result<(Job, f64), Error> {
    let mut spec = JobSpec::from_toml(text)?;
    spec.on = Some(EngineKind::Kernel.to_string());
    spec.cpus = cpus;
    let program = spec.validate(input::host_release().as_deref())?;
    let Rounds::Times(rounds) = program.threads[0].rounds else {
        unreachable!("it says how often")
    };
    Ok((program, rounds as f64))
}

/// A job that reads a hole sequentially, with or without a memory limit.
fn hole(limit_bytes: Option<u64>) -> Result<Job, Error> {
    resolve_job(JobFlags {
        workload: Some("sequential".to_string()),
        file_size: Some(SizeText::from_bytes(HOLE_BYTES)),
        fraction: Some(1.0),
        sparse: Some(true),
        memory_max: limit_bytes.map(SizeText::from_bytes),
        ..JobFlags::default()
    })
}

/// Validates the job of `flags` for this machine.
fn resolve_job(flags: JobFlags) -> Result<Job, Error> {
    let mut spec = JobSpec::from_flags(&flags)?;
    spec.on = Some(EngineKind::Kernel.to_string());
    host::resolve(&mut spec)?;
    Ok(spec.validate(input::host_release().as_deref())?)
}

/// A row under measurement.
struct Timed {
    workload: &'static str,
    advice: &'static str,
    job: Job,
    prepared: PreparedJob,
    runs: Vec<Run>,
}

impl Timed {
    fn prepare(
        bench: &MachineBench,
        workload: &'static str,
        advice: &'static str,
    ) -> Result<Self, Error> {
        let job = resolve_job(JobFlags {
            workload: Some(workload.to_string()),
            advice: Some(advice.to_string()),
            file: Some(bench.file.path().display().to_string()),
            cold: Some(true),
            ..JobFlags::default()
        })?;
        let prepared = bench.kernel.prepare(&job)?;
        Ok(Timed { workload, advice, job, prepared, runs: Vec::new() })
    }

    fn predicted(&self, profile: &Profile) -> Result<PredictedJob, Error> {
        let run = trace(&self.job, profile, &mut ())?;
        let seconds = |run: &Run| run.elapsed_ns.unwrap_or(0) as f64 / 1e9;
        let measured_s = sample(self.runs.iter().map(seconds));
        Ok(PredictedJob::new(self.workload, self.advice, measured_s, seconds(&run)))
    }
}

/// The profile of `storage` as TOML for `--machine`; the device was measured by reads of the file
/// at `path`.
pub(crate) fn profile_text(profile: &Profile, storage: &Storage, path: &Path) -> String {
    let text = toml::to_string(profile).expect("a profile has numbers only");
    // A new file has no name.
    let is_new = path.starts_with("/proc");
    let file = if is_new { "a new file".to_string() } else { format!("{path:?}") };
    format!(
        "# Measured by filemap {} on {}, Linux {}: {:?} with {}, by reads of\n\
         # {file}. itlb is assumed. What is added to the cache takes its time by the folio\n\
         # (add_folio_ns), and none by the page (add_page_ns).\n{text}",
        env!("CARGO_PKG_VERSION"),
        provenance::today(),
        input::host_release().unwrap_or_default(),
        storage.device,
        storage.filesystem,
    )
}

fn footer(bench: &CalibrationFile, profile: &Profile, asked: &CalibrateOptions) -> Footer {
    let storage = bench.storage();
    let mut environment = host_environment();
    provenance::stamp(&mut environment, EngineKind::Kernel.name());
    let mut add = |key: &str, value: Value| environment.insert(key.to_string(), value);
    add("device", storage.device.clone().into());
    add("filesystem", storage.filesystem.clone().into());
    add("read_ahead_kb", storage.read_ahead_kb.into());
    add("file_bytes", asked.bytes.into());
    add("profile", json!(profile));
    add("profile_path", asked.path.as_str().into());
    Footer {
        scope: "one thread, a written file that fits in memory, cold before each measurement; \
                lower quartiles of the rounds"
            .to_string(),
        command: asked.command.clone(),
        environment,
    }
}
