//! `filemap calibrate`.

mod calls;
mod reclaim;
mod wakes;

use filemap_job::program::Rounds;
use filemap_job::{EngineKind, Job, JobSpec, ProgramSpec, Run, SizeText, parse_size};
use filemap_kernel::calibrate::{
    Bench, DIRECT_BYTES, MIN_BYTES, REQUEST_ENTRIES, REQUEST_SEGMENTS, Sample,
};
use filemap_kernel::engine::{Kernel, Prepared, host_environment, temporary_directory};
use filemap_kernel::storage::io_bytes;
use filemap_model::{Profile, profile, trace};
use filemap_study::Footer;
use filemap_study::calibrate::{self, Calibration, Cost, Direct, Row};
use filemap_study::stats;
use serde_json::{Value, json};

use calls::Calls;
use reclaim::Reclaim;
use wakes::Wakes;

use crate::Outcome;
use crate::args::{CalibrateArgs, MAX_ROUNDS};
use crate::error::Error;
use crate::interrupt;
use crate::output::{Inputs, Output, is_stdout};
use crate::progress::Bar;
use filemap_study::engine::Progress;
use filemap_study::host;
use filemap_study::input;
use filemap_study::machine_profile;
use filemap_study::provenance;

/// Size of the file where none is given.
const DEFAULT_BYTES: u64 = 1 << 30;

/// Rounds where no number is given.
const DEFAULT_ROUNDS: u64 = 5;

/// The published workloads, each with either advice.
const WORKLOADS: [&str; 5] = ["random", "stride:1021", "stride:2053", "stride:4099", "sequential"];
const ADVICE: [&str; 2] = ["normal", "random"];

/// Measures this machine, and how well that predicts.
pub fn run(args: &CalibrateArgs) -> Result<Outcome, Error> {
    let bytes = bytes(args)?;
    let rounds = args.runs.unwrap_or(DEFAULT_ROUNDS);
    if !(1..=MAX_ROUNDS).contains(&rounds) {
        return Err(Error::Usage(format!(
            "--runs {rounds} is out of range; give 1 to {MAX_ROUNDS}"
        )));
    }
    let (path, is_own) = place(args)?;
    let out = (machine_profile::FLAG, Some(path.as_str()));
    let mut output = Output::open(&args.output, &Inputs::default(), &[out])?;
    let target = output.take(machine_profile::FLAG).expect("it was opened");
    let (journal, _undoing) = interrupt::journal()?;
    let directory = temporary_directory()?;
    let bench = Bench::create(&directory, bytes)?;
    let kernel = Kernel::in_directory(journal, directory);
    let mut rows = WORKLOADS
        .iter()
        .flat_map(|workload| {
            ADVICE.map(|advice| Measured::prepare(&kernel, &bench, workload, advice))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut calls = Calls::prepare(&kernel)?;
    let mut reclaim = Reclaim::prepare(&kernel)?;
    let mut wakes = Wakes::prepare(&kernel)?;
    let progress = Bar::new(rounds as usize);
    let mut samples = Vec::new();
    for _ in 0..rounds {
        // In turn, so that what else runs here meets costs and rows alike.
        for pair in rows.chunks_mut(ADVICE.len()) {
            samples.push(bench.sample()?);
            for row in pair {
                row.runs.push(Run::of(&row.job, row.prepared.run()?));
            }
        }
        calls.run()?;
        reclaim.run()?;
        wakes.run()?;
        progress.advance();
    }
    let apart = median(&samples, |s| s.apart);
    let device = profile::Device {
        io_bytes: io_bytes(bench.path())?,
        ring_entries: bench.ring_entries().filter(|_| is_complete_together(apart)),
        ..Profile::DEFAULT.device
    };
    let mut profile = profile_of(&samples, device)?;
    profile.cost = wakes.cost(reclaim.cost(calls.cost(profile.cost)));
    let text = profile_text(&profile);
    target.write(text.as_bytes())?;
    let calibration = Calibration {
        costs: [costs(&samples), calls.costs(), reclaim.costs(), wakes.costs()].concat(),
        direct: direct(&samples),
        profile: (text, json!(profile)),
        kept: kept(&path, is_own),
        warnings: no_ring(bench.ring_entries(), apart)
            .into_iter()
            .chain(reclaim.warning())
            .collect(),
        rows: rows.iter().map(|row| row.predicted(&profile)).collect::<Result<_, _>>()?,
    };
    let footer = footer(&bench, bytes, (&profile, &path), command(args, rounds));
    output.write(&calibrate::report(&calibration, footer))?;
    Ok(Outcome::Done)
}

/// What the report says of the profile at `path`.
fn kept(path: &str, is_own: bool) -> String {
    match is_own {
        true => format!(
            "The profile is in {path}. The model goes by it from now on; --machine default is the \
             built-in profile."
        ),
        false if is_stdout(path) => "The profile went to stdout.".to_string(),
        false => format!("The profile is in {path}. The model goes by it with --machine {path}."),
    }
}

/// Where the profile goes, and whether that is where the model looks for it by itself.
fn place(args: &CalibrateArgs) -> Result<(String, bool), Error> {
    if let Some(path) = &args.out {
        return Ok((path.clone(), false));
    }
    let path = machine_profile::path()?;
    machine_profile::make_directory(&path)?;
    Ok((path, true))
}

fn bytes(args: &CalibrateArgs) -> Result<u64, Error> {
    let Some(size) = &args.file_size else { return Ok(DEFAULT_BYTES) };
    match parse_size(&size.0) {
        Ok(bytes) if bytes >= MIN_BYTES => Ok(bytes),
        Ok(_) => {
            Err(Error::Usage(format!("--file-size {} is too small; give 64m or more", size.0)))
        }
        Err(error) => Err(Error::Usage(format!("--file-size: {error}"))),
    }
}

/// The program that the job file `text` says, on so many CPUs of this machine, and how often its
/// threads do their phases.
fn repeated(text: &str, cpus: Option<u64>) -> Result<(Job, f64), Error> {
    let mut spec = ProgramSpec::from_toml(text)?;
    spec.on = Some(EngineKind::Kernel.to_string());
    spec.cpus = cpus;
    let program = spec.validate(input::host_release().as_deref())?;
    let Rounds::Times(rounds) = program.threads[0].rounds else {
        unreachable!("it says how often")
    };
    Ok((program, rounds as f64))
}

/// A row as it is measured.
struct Measured {
    workload: &'static str,
    advice: &'static str,
    job: Job,
    prepared: Prepared,
    runs: Vec<Run>,
}

impl Measured {
    fn prepare(
        kernel: &Kernel,
        bench: &Bench,
        workload: &'static str,
        advice: &'static str,
    ) -> Result<Self, Error> {
        let mut spec = JobSpec {
            on: Some(EngineKind::Kernel.to_string()),
            workload: Some(workload.to_string()),
            advice: Some(advice.to_string()),
            file: Some(bench.path().display().to_string()),
            cold: Some(true),
            ..JobSpec::default()
        };
        host::resolve(&mut spec)?;
        let job = spec.validate(input::host_release().as_deref())?;
        let prepared = kernel.prepare(&job)?;
        Ok(Measured { workload, advice, job, prepared, runs: Vec::new() })
    }

    fn predicted(&self, profile: &Profile) -> Result<Row, Error> {
        let run = trace(&self.job, profile, &mut ())?;
        let seconds = |run: &Run| run.elapsed_ns.unwrap_or(0) as f64 / 1e9;
        Ok(Row {
            workload: self.workload.to_string(),
            advice: self.advice.to_string(),
            measured_s: sample(self.runs.iter().map(seconds)),
            predicted_s: seconds(&run),
        })
    }
}

fn sample(figures: impl Iterator<Item = f64>) -> stats::Sample {
    stats::Sample::of(figures.collect()).expect("there is at least one round")
}

fn median<S>(samples: &[S], of: impl Fn(&S) -> f64) -> f64 {
    sample(samples.iter().map(of)).median
}

/// Whether reads that overlap, and are so much of the time of one `apart`, are complete together.
/// They are half of it apart where they share the device, and the whole where they are served one
/// after the other.
fn is_complete_together(apart: f64) -> bool {
    apart < 0.25
}

/// What to warn of where the profile leaves out the ring of the device, if it has one: others who
/// use the processor or the device take reads apart that would be complete together.
fn no_ring(entries: Option<u32>, apart: f64) -> Option<String> {
    let entries = entries.filter(|_| !is_complete_together(apart))?;
    Some(format!(
        "the device takes requests through a ring of {entries} entries, but reads that overlap were \
         not complete together ({apart:.2} of the time of one apart), so the profile has no \
         ring_entries; if the machine was busy, run filemap calibrate again when it is quiet"
    ))
}

/// The profile that the medians give for `device`, of which its numbers are known: each kind of
/// access costs in it what was measured.
fn profile_of(samples: &[Sample], device: profile::Device) -> Result<Profile, Error> {
    let touch = median(samples, |s| s.touch_ns);
    let map_page = median(samples, map_page_ns);
    let fault = (median(samples, |s| s.minor_ns) - touch - map_page).max(0.0);
    let add_page = median(samples, |s| s.add_page_ns);
    // A fault that misses begins twice.
    let own = touch + 2.0 * fault;
    let Sample { window_pages, around_pages, .. } = samples[0];
    let pages = window_pages as f64;
    let single = median(samples, |s| s.single_ns) - own - map_page - add_page;
    let window =
        median(samples, |s| s.window_ns) - own - around_pages as f64 * map_page - pages * add_page;
    let page_ns = (window - single) / (pages - 1.0);
    let page_bytes = filemap_kernel::page_size() as f64;
    if page_ns <= 0.0 || single <= page_ns {
        return Err(Error::CannotRun(
            "this device is too fast, or this machine too busy, to tell latency from bandwidth; \
             give more --runs on a quiet machine"
                .to_string(),
        ));
    }
    let latency = single - page_ns;
    let transfer = transfer_ns(samples, page_bytes).min(page_ns);
    let waited = device.ring_entries.map_or(0.0, |entries| latency / pages_together(entries));
    let whole = |ns: f64| ns.round() as u64;
    Ok(Profile {
        device: profile::Device {
            latency_ns: whole(latency),
            bandwidth_bytes: whole(page_bytes * 1e9 / transfer),
            segment_ns: whole((page_ns - transfer - waited).max(0.0)),
            ..device
        },
        cost: profile::Cost {
            touch_ns: whole(touch),
            fault_ns: whole(fault),
            map_page_ns: whole(map_page),
            add_page_ns: 0,
            add_folio_ns: whole(add_page),
            ..Profile::DEFAULT.cost
        },
        ..Profile::DEFAULT
    })
}

/// Base pages that are complete together in a ring of so many entries, before the next ones of a
/// window are begun: those of as many full requests as it holds. One is taken whatever it needs.
fn pages_together(entries: u32) -> f64 {
    f64::from((entries / REQUEST_ENTRIES).max(1) * REQUEST_SEGMENTS)
}

/// A page of a read that has few segments: the longest of the reads past the page cache, against
/// the shortest.
fn transfer_ns(samples: &[Sample], page_bytes: f64) -> f64 {
    let last = DIRECT_BYTES.len() - 1;
    let more_ns = median(samples, |s| s.direct_ns[last] - s.direct_ns[0]);
    more_ns.max(1.0) * page_bytes / (DIRECT_BYTES[last] - DIRECT_BYTES[0]) as f64
}

/// A page more that fault-around maps.
fn map_page_ns(sample: &Sample) -> f64 {
    let more = sample.around_pages.saturating_sub(1).max(1) as f64;
    ((sample.around_ns - sample.minor_ns) / more).max(0.0)
}

fn cost<S>(samples: &[S], name: &'static str, of: fn(&S) -> f64) -> Cost {
    Cost { name, ns: sample(samples.iter().map(of)) }
}

fn costs(samples: &[Sample]) -> Vec<Cost> {
    vec![
        cost(samples, "access to a mapped page", |s| s.touch_ns),
        cost(samples, "minor fault, one page mapped", |s| s.minor_ns),
        cost(samples, "each page more that fault-around maps", map_page_ns),
        cost(samples, "major fault, a single cold page", |s| s.single_ns),
        cost(samples, "of it beyond a direct read of the page", |s| s.single_ns - s.direct_ns[0]),
        cost(samples, "page added to the cache, without the device", |s| s.add_page_ns),
        cost(samples, "major fault, a window of the readahead size", |s| s.window_ns),
    ]
}

fn direct(samples: &[Sample]) -> Vec<Direct> {
    let of = |(number, bytes)| {
        let ns = sample(samples.iter().map(|sample| sample.direct_ns[number]));
        Direct { bytes, ns }
    };
    DIRECT_BYTES.into_iter().enumerate().map(of).collect()
}

/// The profile as a file for `--machine`.
fn profile_text(profile: &Profile) -> String {
    let text = toml::to_string(profile).expect("a profile has numbers only");
    format!(
        "# Measured by filemap calibrate; queue_depth and itlb are assumed. What is added to the cache\n\
         # takes its time by the folio (add_folio_ns), and none by the page (add_page_ns).\n{text}"
    )
}

fn footer(bench: &Bench, bytes: u64, profile: (&Profile, &str), command: String) -> Footer {
    let storage = bench.storage();
    let mut environment = host_environment();
    provenance::stamp(&mut environment, EngineKind::Kernel.name());
    let mut add = |key: &str, value: Value| environment.insert(key.to_string(), value);
    add("device", storage.device.clone().into());
    add("filesystem", storage.filesystem.clone().into());
    add("read_ahead_kb", storage.read_ahead_kb.into());
    add("file_bytes", bytes.into());
    add("profile", json!(profile.0));
    add("profile_path", profile.1.into());
    Footer {
        scope: "one thread, a written file that fits in memory, cold before each measurement; \
                medians of the rounds"
            .to_string(),
        command,
        environment,
    }
}

fn command(args: &CalibrateArgs, rounds: u64) -> String {
    let profile = args.out.iter().map(|path| format!(" --out {path}"));
    let size = args.file_size.iter().map(|SizeText(size)| format!(" --file-size {size}"));
    let rest: String = profile.chain(size).collect();
    format!("filemap calibrate{rest} --runs {rounds}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_is_left_out_is_told() {
        assert_eq!(no_ring(Some(128), 0.01), None, "the profile has it");
        assert_eq!(no_ring(None, 0.5), None, "there is none");
        let told = no_ring(Some(128), 0.5).unwrap();
        assert!(told.contains("128 entries") && told.contains("0.50"), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }

    #[test]
    fn as_many_full_requests_are_complete_together_as_the_ring_holds() {
        assert_eq!([2, 256, 515].map(pages_together), [256.0; 3]);
        assert_eq!([516, 32 * 258].map(pages_together), [512.0, 32.0 * 256.0]);
    }
}
